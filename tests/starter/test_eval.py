"""`sennit eval` with models behind a server: two models side by side, a judge, a killed command, a repaired plan."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from doubles.cli_user import LONGEST, CliUser, ModelProcess, cli_user_with_models

pytestmark = pytest.mark.server
PLANNER = "You plan work.*"
JUDGE = "You judge an answer to a task.*"
RULES: list[dict[str, Any]] = [
    {"match": f"{JUDGE}sentence about tides", "text": '{"reason": "it names no moon", "meets_rubric": false}'},
    {"match": JUDGE, "text": '{"reason": "it is polite", "meets_rubric": true}'},
    {
        "match": f"{PLANNER}Mended question",
        "replies": [{"text": "1. no_such_tool(1)\n2. answer($1)"}, {"text": '1. llm("mend it")\n2. answer($1)'}],
    },
    {"match": f"{PLANNER}Hopeless question", "text": "I cannot plan that.", "usage": [70, 7]},
    {"match": "mend it", "text": "It has 42 parts.", "usage": [100, 10]},
    {"match": "Count slowly", "text": "counted", "first_token": 3.0},
    {"match": "Say hello", "text": "Hello, dear reader", "usage": [50, 5]},
    {"match": "Write about tides", "text": "A sentence about tides"},
]
CASES = """\
name: set
cases:
- {name: hello, plan: hello.yaml, expect: {contains: hello, judge: It is polite.}}
- {name: tides, plan: tides.yaml, expect: {contains: tides, judge: It names the moon.}}
- {name: twice, program: twice.py, inputs: {n: 4}, expect: {equals: 8}}
"""
AT_A_TERMINAL = """\
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from sennit.__main__ import main
main()
"""
"""The command as a terminal starts it: a suite that runs in the background has it inherit an ignored SIGINT."""
HELLO, TIDES = "Say hello", "Write about tides"
Found = tuple[CliUser, ModelProcess]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    with cli_user_with_models(tmp_path_factory.mktemp("models"), RULES, "sk-test") as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, prompt in (("hello", HELLO), ("tides", TIDES), ("slow", "Count slowly")):
        plan = {"nodes": [{"id": "a", "kind": "llm", "prompt": prompt}], "answer": "$a"}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(plan))
    (tmp_path / "twice.py").write_text('"""Double it."""\n\n\nasync def main(n: int):\n    return 2 * n\n')
    (tmp_path / "cases.yaml").write_text(CASES)
    return tmp_path


def evaluation(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_two_models_are_compared_and_a_second_time_costs_nothing(found: Found, folder: Path) -> None:
    person, model = found
    command = ["eval", str(folder / "cases.yaml"), "--model", "openai:test-model", "--model", "anthropic:test-model"]
    first = person.sennit(*command, "--output", "json")
    assert first.returncode == 1, first.stderr
    result = evaluation(first)
    rows = {(row["case"], row["model"].partition(":")[0]): row for row in result["results"]}
    assert [key for key, row in rows.items() if row["right"]] == [
        ("hello", "openai"), ("twice", "openai"), ("hello", "anthropic"), ("twice", "anthropic"),
    ]  # fmt: skip
    hello, tides = rows["hello", "openai"], rows["tides", "openai"]
    assert hello["run"] == "set-hello-openai-test-model"
    assert (hello["status"], hello["width"], hello["depth"], hello["calls"]) == ("done", 1, 1, 1)
    assert (hello["input_tokens"], hello["output_tokens"]) == (50, 5)
    assert 0 < hello["seconds"] < LONGEST
    assert tides["why"] == "the judge: it names no moon"
    assert [(each["right"], each["cases"]) for each in result["figures"]] == [(2, 3), (2, 3)]

    # The same command finds every run, that of the judge too, and asks no model.
    asked = len(model.asked())
    again = person.sennit(*command, "--output", "json")
    assert evaluation(again) == result
    assert len(model.asked()) == asked

    # Another expectation is checked against the same answers.
    (folder / "cases.yaml").write_text(CASES.replace("judge: It names the moon.", "within: 1, number: 3"))
    (folder / "earlier.json").write_text(first.stdout)
    other = person.sennit(*command, "--against", str(folder / "earlier.json"))
    assert other.returncode == 0, other.stderr
    assert "it has no number 3 within 1" in other.stdout
    assert "openai:test-model, 3 cases against the earlier result:\n  right    2 -> 2\n" in other.stdout
    assert len(model.asked()) == asked


def test_a_changed_case_is_not_taken_for_the_old_one(found: Found, folder: Path) -> None:
    person, _ = found
    cases = folder / "cases.yaml"
    cases.write_text(
        "name: changing\ncases:\n- {name: twice, program: twice.py, inputs: {n: 4}, expect: {equals: 8}}\n"
    )
    assert person.sennit("eval", str(cases)).returncode == 0
    cases.write_text(cases.read_text().replace("4", "5").replace("8", "10"))
    changed = person.sennit("eval", str(cases), "--output", "json")
    row = evaluation(changed)["results"][0]
    assert (changed.returncode, row["status"], row["right"]) == (1, "refused", False)
    assert "they differ in inputs" in row["why"]
    assert "--again" in row["why"]
    assert person.sennit("eval", str(cases), "--again").returncode == 0


@pytest.mark.parametrize(("by", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_an_evaluation_that_is_stopped_goes_on_and_asks_no_model_twice(
    found: Found, folder: Path, by: signal.Signals, code: int
) -> None:
    person, model = found
    name = f"stopped-by-{by.name.lower()}"
    asked = len(model.asked("Count slowly"))
    case = "{name: count, plan: slow.yaml, expect: {equals: counted}}"
    (folder / "cases.yaml").write_text(f"name: {name}\ncases:\n- {case}\n")
    command = ["eval", str(folder / "cases.yaml"), "--model", "openai:test-model"]
    with subprocess.Popen(
        [sys.executable, "-c", AT_A_TERMINAL, *command], env=person.env, stderr=subprocess.PIPE, text=True
    ) as stopped:
        deadline = time.monotonic() + LONGEST
        while len(model.asked("Count slowly")) == asked:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        stopped.send_signal(by)
        _, said = stopped.communicate()
    assert stopped.returncode == code
    notice = "0 of 1 cases are over, and the runs that have begun go on; the same command goes on\n"
    assert (notice in said) is (by is signal.SIGINT)

    done = person.sennit(*command, "--output", "json")
    assert done.returncode == 0, done.stderr
    assert evaluation(done)["results"][0]["answer"] == "counted"
    assert len(model.asked("Count slowly")) == asked + 1


def test_a_case_that_takes_too_long_is_left_and_waits_to_be_found(found: Found, folder: Path) -> None:
    person, _ = found
    (folder / "cases.yaml").write_text(
        "name: late\ncases:\n- {name: count, plan: slow.yaml, expect: {equals: counted}}\n"
    )
    command = ["eval", str(folder / "cases.yaml"), "--model", "openai:test-model"]
    left = person.sennit(*command, "--timeout", "500ms")
    assert left.returncode == 4
    assert "it goes on; watch it: sennit watch late-count-openai-test-model" in left.stderr
    assert "1 not over" in left.stdout
    assert person.sennit(*command).returncode == 0


def test_the_repairs_of_a_plan_are_counted(found: Found, folder: Path) -> None:
    person, _ = found
    text = "name: mended\ncases:\n- {name: one, goal: Mended question, expect: {number: 42}}\n"
    (folder / "cases.yaml").write_text(text)
    done = person.sennit("eval", str(folder / "cases.yaml"), "--model", "openai:test-model", "--output", "json")
    row = evaluation(done)["results"][0]
    assert (row["right"], row["repairs"]) == (True, 1), row


def test_what_a_planner_has_spent_in_vain_counts(found: Found, folder: Path) -> None:
    person, _ = found
    text = "name: vain\ncases:\n- {name: one, goal: Hopeless question, expect: {number: 42}}\n"
    (folder / "cases.yaml").write_text(text)
    done = person.sennit("eval", str(folder / "cases.yaml"), "--model", "openai:test-model", "--output", "json")
    result = evaluation(done)
    row = result["results"][0]
    usage = json.loads(person.sennit("status", row["run"], "--output", "json").stdout)["usage"]
    assert (row["status"], row["calls"], row["output_tokens"]) == ("failed", 2, 14), row
    assert {name: row[name] for name in ("calls", "input_tokens", "output_tokens", "cost_usd")}.items() <= usage.items()
    assert result["figures"][0]["tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_case_that_waits_for_a_person_is_not_waited_for(found: Found, folder: Path) -> None:
    person, _ = found
    gate = {
        "nodes": [{"id": "ok", "kind": "gate", "question": "Go on?", "schema": {"type": "boolean"}}],
        "answer": "$ok",
    }
    (folder / "gate.yaml").write_text(json.dumps(gate))
    (folder / "cases.yaml").write_text("name: asks\ncases:\n- {name: gate, plan: gate.yaml, expect: {equals: true}}\n")
    waiting = person.sennit("eval", str(folder / "cases.yaml"))
    assert waiting.returncode == 4
    assert "it waits for you at ok; see: sennit status asks-gate" in waiting.stdout
    assert person.sennit("answer", "asks-gate", "ok", "true").returncode == 0
    assert person.sennit("eval", str(folder / "cases.yaml")).returncode == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["none.yaml"], "none.yaml: No such file or directory"),
        (["cases.yaml", "--case", "hallo"], "--case hallo: there is no such case; did you mean `hello`?"),
        (["cases.yaml", "--against", "no.json"], "--against no.json: No such file or directory"),
        (["cases.yaml", "--against", "cases.yaml"], "it is no result of an evaluation"),
        (["cases.yaml", "--id", "a.b"], "a run's id has no dot"),
        (["cases.yaml", "--at-once", "0"], "'0' is not a whole number from 1 to 100"),
        (["cases.yaml", "--model", "nobody:x"], "nobody"),
        (["cases.yaml", "--model", "openai:a-b", "--model", "openai:a.b"], "cannot be told apart in the ids of runs"),
    ],
)
def test_wrong_usage_starts_nothing(
    found: Found, folder: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], message: str
) -> None:
    person, model = found
    monkeypatch.chdir(folder)
    asked = len(model.asked())
    done = person.sennit("eval", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(model.asked()) == asked
