"""Plans in unit tests: fakes for tools, models and people, in a time that takes none."""

import asyncio
from typing import Any

import pytest

from sennit.testing import Fake, WrongFake, run_plan
from sennit.workflows.plan.language.problems import InvalidPlan

DAY = 86_400.0


def tool(name: str, which: str = "search", **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "tool", "tool": which, "args": {"query": name}, **fields}


WRITE = {"id": "page", "kind": "tool", "tool": "publish", "args": {"text": "hello"}}
GATE = {"id": "ok", "kind": "gate", "question": "Publish $a?", "schema": {"enum": ["yes", "no"]}}


def test_values_pass_from_fakes_to_prompts_and_questions() -> None:
    told: list[str] = []

    def llm(prompt: str, **_: Any) -> str:
        told.append(prompt)
        return "a summary"

    def ask(question: str, **_: Any) -> str:
        told.append(question)
        return "yes"

    plan = {
        "nodes": [
            tool("a", "look"),
            {"id": "sum", "kind": "llm", "prompt": "Sum up $a"},
            GATE,
            {"id": "both", "kind": "join", "inputs": ["sum", "ok"]},
        ]
    }
    report = run_plan(plan, {"look": lambda query: f"found {query}", "llm": llm, "ask": ask})
    assert (report.status, report.answer) == ("done", ["a summary", "yes"])
    assert sorted(told) == ["Publish found a?", "Sum up found a"]


def test_waiting_takes_no_time_and_counts_exactly() -> None:
    async def slow(query: str) -> str:
        await asyncio.sleep(DAY / 2)
        return query

    report = run_plan(
        {"nodes": [tool("a", "slow", timeout="13h"), tool("b", "slow", timeout="13h", needs=["a"])]}, {"slow": slow}
    )
    assert [node.duration_ms for node in report.nodes] == [DAY / 2 * 1000, DAY / 2 * 1000]


def test_a_failure_is_tried_again_and_then_repaired_or_not() -> None:
    calls: list[str] = []

    def look(query: str) -> str:
        calls.append(query)
        if len(calls) < 6:
            raise TimeoutError("the service is slow")
        return "there"

    repairs: list[tuple[str, str]] = []

    def repair(node: str, error: str) -> str:
        repairs.append((node, error))
        return "retry"

    report = run_plan({"nodes": [tool("a", "look")]}, {"look": look, "repair": repair})
    assert (report.status, report.answer, report.nodes[0].attempts) == ("done", "there", 6)
    assert [node for node, _ in repairs] == ["a"]
    assert len(calls) == 6
    calls.clear()
    left = run_plan({"nodes": [tool("a", "look")]}, {"look": look})
    assert (left.status, left.nodes[0].status) == ("partial", "failed")


def test_nobody_answers_a_gate_before_its_deadline() -> None:
    async def ask(question: str, **_: Any) -> str:
        await asyncio.sleep(2 * DAY)
        return "yes"

    report = run_plan({"nodes": [tool("a", "look"), GATE]}, {"look": lambda query: 1, "ask": ask}, on_failure="fail")
    assert report.status == "failed"
    assert "GateTimeout" in (report.problem or "")


@pytest.mark.parametrize(
    ("word", "status", "written"),
    [(True, "done", ["b.txt"]), ("not now", "failed", []), ({"text": "better", "path": "b.txt"}, "done", ["b.txt"])],
)
def test_a_write_waits_for_approval(word: Any, status: str, written: list[str]) -> None:
    made: list[str] = []

    def write(path: str, text: str, **_: Any) -> dict[str, Any]:
        made.append(path)
        return {"path": path, "bytes": len(text), "sha256": "", "changed": True}

    shown: list[str] = []

    def approve(what: str, **_: Any) -> Any:
        shown.append(what)
        return word

    plan = {"nodes": [{"id": "w", "kind": "tool", "tool": "keep", "args": {"path": "b.txt", "text": "hello"}}]}
    report = run_plan(plan, {"keep": write, "approve": approve}, tools=["doubles.kept_tool"], on_failure="fail")
    assert (report.status, made) == (status, written)
    assert "b.txt" in shown[0]


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InvalidPlan, match="nodes"):
        run_plan({"nodes": [tool("a", "look", args={"query": "$b"})]}, {"look": lambda query: 1})
    with pytest.raises(WrongFake, match="the plan needs `llm`"):
        run_plan({"nodes": [{"id": "a", "kind": "llm", "prompt": "Go"}]}, {})
    with pytest.raises(WrongFake, match="`ask` does not fit its schema"):
        run_plan({"nodes": [tool("a", "look"), GATE]}, {"look": lambda query: 1, "ask": lambda question, **_: "maybe"})


def test_a_program_an_agent_and_a_map_have_their_fakes_too() -> None:
    script = "async def main(name: str):\n    return await look(query=name)\n"
    plan = {
        "nodes": [
            tool("list", "look"),
            {
                "id": "each",
                "kind": "map",
                "over": "$list",
                "as": "item",
                "do": {"kind": "tool", "tool": "look", "args": {"query": "$item"}},
            },
            {"id": "p", "kind": "program", "script": script, "arguments": {"name": "tides"}},
            {"id": "s", "kind": "agent", "goal": "Look at $each", "tools": ["look"]},
        ],
        "answer": {"each": "$each", "p": "$p", "s": "$s"},
    }
    fakes: dict[str, Fake] = {
        "look": lambda query: [1, 2] if query == "list" else f"of {query}",
        "agent": lambda goal, **_: goal,
    }
    report = run_plan(plan, fakes)
    assert report.answer == {"each": ["of 1", "of 2"], "p": "of tides", "s": "Look at [given each]"}, report


def test_a_model_whose_turns_do_not_wait_is_played_as_one_call() -> None:
    """A fake stands for a whole loop, so its turns make no difference, but a wrong field does."""

    def two(prompt: str = "", **_: Any) -> str:
        return "Two."

    node = {"id": "n", "kind": "llm", "prompt": "How much?", "tools": ["calculate"], "turn": {"quorum": 4}}
    report = run_plan({"nodes": [node], "answer": "$n"}, {"llm": two})
    assert (report.status, report.answer) == ("done", "Two.")
    with pytest.raises(InvalidPlan, match=r"nodes\[0\].turn.quorum: must be at least 1, not 0"):
        run_plan({"nodes": [{**node, "turn": {"quorum": 0}}], "answer": "$n"}, {"llm": two})
