"""The `sennit` command with models behind a server: a plan run while it is written, a failure, a replan, an answer.

The model server is a process, the local stack is started by the command, and nothing else is.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from doubles.cli_user import CliUser, ModelProcess, cli_user_with_models
from doubles.events import activity_positions
from temporalio.client import Client

pytestmark = pytest.mark.server
KEY = "sk-proj-DoNotShowMe-4711"
PLANNER, JOINER = "You plan work.*", "You put results together.*"

GOAL = "Which is longer, the Nile or the Amazon?"
NILE, AMAZON = "The Nile is about 6,650 kilometres long", "The Amazon is about 6,400 kilometres long"
PLAN = f"""\
Thought: both lengths are looked up side by side, beside a page that may have both.
1. nap(seconds=1, value={{"path": "rivers/nile.md", "text": "{NILE}, by the atlas."}})
2. search("length of the Amazons", k=1)
3. visit("http://down.example.org/rivers")
Thought: the two lengths are in kilometres, so a model that reads both passages can compare them without arithmetic
Thought: nothing is written, and nothing has to be asked of a person, so the plan can end with the answer at once
Thought: the page may be down, and then the searches have to do, or the one who answers asks for another way
4. answer("Which is longer?", $1, $2, $3)
"""
REPLAN = json.dumps(
    {"replan": {"why": "the page is down", "nodes": '5. search("Amazon river", k=1)\n6. answer($1, $5)'}}
)
ANSWER = json.dumps({
    "answer": "The Nile [1], by 250 km [2].",
    "evidence": [{"node": "n1", "claim": "length", "quote": NILE}, {"node": "n5", "claim": "length", "quote": AMAZON}],
})  # fmt: skip
RULES: list[dict[str, Any]] = [
    {"match": f"{PLANNER}{re.escape(GOAL)}", "text": PLAN, "first_token": 0.2, "rate": 40},
    {"match": "Count", "text": "counted", "usage": [390, 10]},
    {"match": f"{JOINER}n5, succeeded", "text": ANSWER},
    {"match": f"{JOINER}closed for today", "text": REPLAN},
]
AS_AGENT = {
    "nodes": [{"id": "sub", "kind": "agent", "goal": GOAL, "tools": ["search", "visit", "nap"]}],
    "answer": "$sub",
}
Found = tuple[CliUser, ModelProcess]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    with cli_user_with_models(tmp_path_factory.mktemp("models"), RULES, KEY) as found:
        yield found


def report(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


async def moments(person: CliUser, run: str) -> dict[str, int]:
    return await activity_positions((await Client.connect(person.address)).get_workflow_handle(run))


def check_course(events: dict[str, int]) -> None:
    """Three calls at once, before the plan is whole; the new one after the joiner asked for it."""
    assert events["n1"] < events["n2"] < events["n3"] < events["n1 done"] < events["run:plan done"]
    assert events["run:plan done"] < events["n4"] < events["n5"] < events["n6"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_goal_is_answered_with_evidence_after_a_failure_and_a_replan(found: Found, provider: str) -> None:
    person, model = found
    before = len(model.asked(GOAL))
    result = report(person.sennit("ask", GOAL, "--model", f"{provider}:test-model", "--output", "json"))
    assert (result["status"], result["answer"]) == ("done", "The Nile [1], by 250 km [2].")
    assert [(piece["node"], piece["source"], piece["quote"]) for piece in result["evidence"]] == [
        ("n1", "rivers/nile.md", NILE),
        ("n5", "rivers/amazon.md", AMAZON),
    ]
    ended = {line["id"]: line["status"] for line in result["nodes"]}
    assert ended.pop("n3") == "failed"
    assert ended == dict.fromkeys(("n1", "n2", "n4", "n5", "n6"), "succeeded")
    assert result["usage"]["calls"] == len(model.asked(GOAL)) - before == 3
    check_course(await moments(person, result["id"]))
    assert person.leaks(KEY) == []


async def test_so_it_is_in_a_sub_agent(found: Found, tmp_path: Path) -> None:
    person, _ = found
    (tmp_path / "plan.json").write_text(json.dumps(AS_AGENT))
    result = report(person.sennit("run", str(tmp_path / "plan.json"), "--output", "json"))
    assert (result["status"], result["answer"]) == ("done", "The Nile [1], by 250 km [2].")
    assert [(piece["node"], piece["source"]) for piece in result["evidence"]] == [
        ("sub.n1", "rivers/nile.md"),
        ("sub.n5", "rivers/amazon.md"),
    ]
    assert result["usage"]["calls"] == 3
    check_course(await moments(person, f"{result['id']}.sub"))
    status = person.sennit("status", f"{result['id']}.sub")
    assert status.returncode == 0
    assert '[1] rivers/nile.md: "The Nile is about 6,650 kilometres long"' in status.stdout
    assert person.leaks(KEY) == []


def test_a_budget_stops_a_plan_and_a_higher_one_goes_on(found: Found, tmp_path: Path) -> None:
    """Calls of 400 tokens each: the 25th reaches the limit, and no 26th begins."""
    person, model = found
    nodes = [{"id": f"n{number}", "kind": "llm", "prompt": f"Count {number}"} for number in range(50)]
    (tmp_path / "plan.json").write_text(json.dumps({"nodes": nodes, "answer": "$n49"}))
    done = person.sennit("run", str(tmp_path / "plan.json"), "--id", "spender", "--budget", "tokens=10000,time=10m")
    assert (done.returncode, done.stdout) == (4, "")
    assert len(model.asked("Count")) == 25
    status = person.sennit("status", "spender")
    assert status.returncode == 4
    assert status.stdout.splitlines()[:2] == [
        "spender  blocked  25 of 50 nodes · 25 model calls, 10,000 tokens",
        "budget  tokens 10,000 of 10,000",
    ]
    question, command = status.stdout.splitlines()[-3:-1]
    assert question == "budget: the budget is spent (tokens 10000 of 10000); 25 nodes are ready and wait"
    assert command == "    sennit update spender raise_budget tokens=20000"
    assert question in done.stderr
    assert command in done.stderr
    raised = person.sennit(*command.split()[1:])
    assert raised.returncode == 0, raised.stderr
    ended = person.sennit("watch", "spender")
    assert (ended.returncode, ended.stdout) == (0, "counted\n")
    assert len(model.asked("Count")) == 50
