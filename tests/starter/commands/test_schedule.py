"""Schedules on a real Temporal server, with the workers in this process."""

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.stores import store_in
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleSpec,
    WorkflowFailureError,
    WorkflowHandle,
)

from sennit.activities.definitions import Activities, WorkerPaths
from sennit.activities.toolbox import load_tools
from sennit.folders import CORPUS
from sennit.starter.client.errors import Exit, Refused
from sennit.starter.commands import schedule
from sennit.starter.commands.command_line import parse
from sennit.starter.terminal.console import Terminal
from sennit.workflows.messages.queues import WORKFLOW

pytestmark = pytest.mark.timeout(120)

PLAN = """\
inputs: {a: {type: integer}}
nodes: [{id: sum, kind: tool, tool: calculate, args: {expression: "$input.a + 1"}}]
answer: $sum.value
"""
PROGRAM = "async def main(a: int):\n    found = await calculate(expression=f'{a} + 1')\n    return found['value']\n"
NEVER = "0 0 30 2 *"
Say = Callable[..., Awaitable[tuple[Exit, str, str]]]


@pytest.fixture
def name() -> str:
    return f"nightly-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def say(
    server_address: str, make_terminal: Callable[..., Terminal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Say:
    """Run `sennit schedule` and return its exit code, and what it has written."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    async def run(*words: str, output: str = "text") -> tuple[Exit, str, str]:
        terminal = make_terminal(output=output, flags=f" --address {server_address}")
        code = await schedule.run(parse(["schedule", *words, "--address", server_address]), terminal)
        return code, terminal.out.getvalue(), terminal.err.getvalue()  # type: ignore[attr-defined]

    return run


@pytest.fixture
def host(tmp_path: Path) -> Activities:
    granted = tmp_path / "granted"
    granted.mkdir()
    grants = tmp_path / "grants.json"
    grants.write_text(json.dumps({"docs": [str(granted)]}))
    grants.chmod(0o600)
    paths = WorkerPaths(store_in(tmp_path / "store"), tmp_path, CORPUS, (), grants)
    return Activities(paths, load_tools(), identity="tests", approval="never")


async def listed(say: Say, name: str, **wanted: Any) -> dict[str, Any]:
    """Return the schedule in the list once it is there, or has these values: the list lags behind."""
    while True:
        _, out, _ = await say("list", output="json")
        for each in json.loads(out):
            if each["schedule"] == name and all(each[key] == value for key, value in wanted.items()):
                return dict(each)
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("what", "title"),
    [
        (["plan.yaml", "--input", "a=6"], "plan"),
        (["program.py", "--input", "a=6"], "program"),
        (["--goal", "How high is Mont Blanc?"], "How high is Mont Blanc?"),
    ],
)
async def test_a_schedule_starts_runs_of_goals_plans_and_programs(
    say: Say, client: Client, host: Activities, name: str, what: list[str], title: str
) -> None:
    code, out, _ = await say("add", name, "0 7 * * 1-5", *what, "--time-zone", "Europe/Berlin")
    assert code == Exit.ANSWER
    assert out.startswith(f"{name} is added; its next run is due at 20")
    found = await listed(say, name)
    assert (found["cron"], found["title"], found["paused"]) == ("0 7 * * 1-5 Europe/Berlin", title, False)
    assert found["last_run"] == ""
    async with serving(client, host):
        _, run_id, err = await say("run", name)
        assert run_id.startswith(f"{name}-20")
        assert f"sennit watch {run_id.strip()} --address" in err
        report = await client.get_workflow_handle(run_id.strip()).result()
    assert report["status"] == "done"
    assert report["answer"] == 7 if "--input" in what else "4,80" in report["answer"]
    last = await listed(say, name, last_run=run_id.strip(), last_status="done")
    assert (last["skipped"], last["why"]) == (0, "")
    assert name in (await say("list"))[1]
    await say("remove", name)


async def test_a_schedule_is_paused_resumed_and_removed(say: Say, name: str) -> None:
    await say("add", name, "@daily", "plan.yaml", "--input", "a=6")
    assert await say("pause", name) == (Exit.ANSWER, f"{name} is paused\n", "")
    assert (await listed(say, name, paused=True))["paused"]
    assert "paused" in (await say("list"))[1]
    assert (await say("resume", name, output="json"))[1] == f'{{"schedule":"{name}","action":"resume"}}\n'
    assert not (await listed(say, name, paused=False))["paused"]
    with pytest.raises(Refused, match=f"there is a schedule {name} already; to replace it: sennit schedule remove"):
        await say("add", name, "@daily", "plan.yaml", "--input", "a=6")
    assert (await say("remove", name))[1] == f"{name} is removed; its runs go on\n"
    for action in ("run", "pause", "resume", "remove"):
        with pytest.raises(Refused, match=f"there is no schedule {name}; sennit schedule list shows them"):
            await say(action, name)


@pytest.mark.parametrize(
    "cron", ["", "x", "* * *", "61 * * * *", "0 7 * * 9", "@often", "@every x", "0 7 * *\n* \x1b[31m"]
)
async def test_a_wrong_cron_text_is_one_sentence_and_no_schedule(say: Say, name: str, cron: str) -> None:
    with pytest.raises(Refused) as wrong:
        await say("add", name, cron, "plan.yaml", "--input", "a=6")
    assert str(wrong.value).startswith(f"{cron!r} is no time for a schedule (")
    assert str(wrong.value).endswith('; write minute, hour, day, month and weekday, such as "0 7 * * 1-5", or @daily')
    assert str(wrong.value).isprintable()
    with pytest.raises(Refused, match="there is no schedule"):
        await say("remove", name)


async def test_a_schedule_says_why_no_more_runs_came(say: Say, host: Activities, client: Client, name: str) -> None:
    Path("gate.yaml").write_text("nodes: [{id: g, kind: gate, question: Go on?}]\n")
    async with serving(client, host):
        await say("add", name, "@every 1s", "gate.yaml")
        while not (found := await listed(say, name))["why"].endswith("UTC"):
            await asyncio.sleep(0.2)
        assert found["last_status"] == "blocked"
        waits = rf"\d+ skipped: {name}-20[^ ]+ waits for gate g since 20\d\d-\d\d-\d\d \d\d:\d\d UTC"
        assert re.fullmatch(waits, found["why"])
        await say("remove", name)
        run = client.get_workflow_handle(found["last_run"])
        await run.execute_update("answer", {"node": "g", "value": "yes"})
        await run.result()


async def test_a_wrong_time_zone_is_named_and_a_day_that_never_comes(say: Say, name: str) -> None:
    with pytest.raises(Refused, match="'@daily' in the time zone 'Mars/Base' is no time for a schedule"):
        await say("add", name, "@daily", "plan.yaml", "--input", "a=6", "--time-zone", "Mars/Base")
    assert (await say("add", name, NEVER, "plan.yaml", "--input", "a=6"))[1] == f"{name} is added; it is never due\n"
    await say("remove", name)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan.yaml", "--input", "a=6", "--approval", "never"], "--approval never: nobody is there when a scheduled"),
        (["plan.yaml", "--input", "a=6", "--goal", "x"], "give a PLAN or a --goal, and not both"),
        ([], "give a PLAN or a --goal, and not both"),
        (["plan.yaml"], "the input `a` is missing"),
        (["plan.yaml", "--input", "a=x"], "--input a: 'x' is not a whole number"),
        (["plan.yaml", "--input", "a=6", "--max-replans", "1"], "--max-replans is for a --goal"),
        (["--goal", " "], "the goal is empty"),
        (["--goal", "x", "--docs", "nowhere"], "--docs nowhere: there is no such folder"),
        (["absent.yaml"], "absent.yaml: No such file"),
    ],
)
async def test_what_a_schedule_may_not_do_is_refused_before_it_is_there(
    say: Say, name: str, words: list[str], message: str
) -> None:
    with pytest.raises(Refused) as refused:
        await say("add", name, "@daily", *words)
    assert message in str(refused.value)
    with pytest.raises(Refused, match="there is no schedule"):
        await say("run", name)


async def test_on_the_local_stack_documents_are_below_the_roots_of_its_workers(
    say: Say, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "is_local_stack", lambda _: True)
    (tmp_path / "notes").mkdir()
    words = ("add", name, "@daily", "--goal", "x", "--docs", "notes")
    with pytest.raises(Refused, match="notes is outside SENNIT_DOCS_ROOTS, and nobody opens it for a scheduled run"):
        await say(*words)
    monkeypatch.setenv("SENNIT_DOCS_ROOTS", f"/nowhere:{tmp_path}")
    code, _, err = await say(*words)
    assert code == Exit.ANSWER
    assert "keep it up with: sennit dev" in err
    await say("remove", name)


async def started_by_schedule(client: Client, name: str, request: dict[str, Any]) -> WorkflowHandle[Any, Any]:
    """Have a schedule that no client of ours made start a run, and return it."""
    action = ScheduleActionStartWorkflow("AgentRun", request, id=name, task_queue=WORKFLOW)
    handle = await client.create_schedule(
        name, Schedule(action, spec=ScheduleSpec(cron_expressions=[NEVER])), trigger_immediately=True
    )
    while not (ran := (await handle.describe()).info.recent_actions):
        await asyncio.sleep(0.1)
    await handle.delete()
    started = ran[0].action
    assert isinstance(started, ScheduleActionExecutionStartWorkflow)
    return client.get_workflow_handle(started.workflow_id)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"approval": "never"}, "approval: a scheduled run asks before it writes"),
        ({"docs": "granted"}, "is outside SENNIT_DOCS_ROOTS of worker tests"),
    ],
)
async def test_the_workers_refuse_it_too_whoever_made_the_schedule(
    client: Client, host: Activities, name: str, tmp_path: Path, fields: dict[str, str], message: str
) -> None:
    fields = {key: str(tmp_path / value) if key == "docs" else value for key, value in fields.items()}
    plan = {"nodes": [{"id": "a", "kind": "tool", "tool": "calculate", "args": {"expression": "1"}}]}
    request = {"plan": plan, "on_failure": "fail", **fields}
    async with serving(client, host):
        run = await started_by_schedule(client, name, request)
        with pytest.raises(WorkflowFailureError) as failed:
            await run.result()
        assert message in str(failed.value.cause)
        person = await client.start_workflow("AgentRun", request, id=f"{name}-person", task_queue=WORKFLOW)
        assert (await person.result())["status"] == "done"


async def test_schedules_of_other_workflows_are_left_alone(say: Say, client: Client, name: str) -> None:
    action = ScheduleActionStartWorkflow("Other", id=name, task_queue="other")
    handle = await client.create_schedule(name, Schedule(action, spec=ScheduleSpec(cron_expressions=[NEVER])))
    with pytest.raises(Refused, match="is a schedule of something else than runs of Sennit"):
        await say("remove", name)
    assert name not in (await say("list"))[1]
    await handle.delete()


def test_the_list_has_columns() -> None:
    row = {"schedule": "news", "paused": False, "cron": "@daily", "title": "What is \x1b[31mnew?", "last_run": "news-1"}
    row |= {"last_status": "done", "why": ""}
    other = {
        "schedule": "b",
        "paused": True,
        "cron": "0 7 * * 1-5 Europe/Berlin",
        "title": "",
        "last_run": "",
        "why": "4 skipped: b-1 waits for approval w since 2026-11-23 14:02 UTC",
        "next": "",
    }
    assert schedule.table([{**row, "next": "2026-11-23T18:00:00+00:00"}, other], 120).splitlines() == [
        "news  @daily                     next 2026-11-23 18:00 UTC  last news-1 done  What is new?",
        "b     0 7 * * 1-5 Europe/Berlin  paused                     no run yet",
        "  4 skipped: b-1 waits for approval w since 2026-11-23 14:02 UTC",
    ]
