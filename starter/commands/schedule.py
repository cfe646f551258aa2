"""`sennit schedule`: runs that Temporal's own schedules start, of a goal, a plan or a program.

Nobody is there when such a run begins. So it always asks before it writes, and reads only
folders that the operator of the workers allows. The client refuses what it can see of that, and
the workers all of it.
"""

import argparse
import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleInfo,
    ScheduleListActionStartWorkflow,
    ScheduleListDescription,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.common import Priority
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.client import RPC_TIMEOUT, Sennit
from sennit.starter.client.errors import Exit, Refused, SennitError
from sennit.starter.client.local import is_local_stack
from sennit.starter.client.request import (
    build_request,
    checked_goal,
    checked_new_id,
    docs_folder,
    markdown_summary,
    summary,
    with_memo,
)
from sennit.starter.client.runs import WORKFLOW_TYPE, RunSummary, summary_of
from sennit.starter.client.server_errors import error_of
from sennit.starter.commands.command_line import CONNECTION, Parser, add_common_arguments
from sennit.starter.commands.launch import add_run_arguments, connect, run_options
from sennit.starter.commands.run import checked_for
from sennit.starter.limits import MAX_SCHEDULE_NAME_CHARACTERS
from sennit.starter.plans.inputs import read_inputs
from sennit.starter.plans.plan_file import read_plan
from sennit.starter.terminal.console import Terminal
from sennit.starter.terminal.text import columns
from sennit.workflows.messages.queues import WORKFLOW
from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.program_plan import program_plan

CATCH_UP = timedelta(hours=1)
"""How late a run may start after the server was away. What was due before that is left out."""
_PATIENCE = 10.0
_ABOUT = {
    "add": "start runs at the times of a cron text",
    "list": "list the schedules, with their last and next runs",
    "pause": "start no runs until it is resumed",
    "resume": "start runs again",
    "run": "start a run now",
    "remove": "remove it; its runs go on",
}


def add_arguments(parser: Parser) -> None:
    examples = (
        'sennit schedule add nightly "0 7 * * 1-5" plan.yaml --input city=Rome\nsennit schedule '
        "run nightly"
    )
    parser.describe("|".join(_ABOUT), examples)
    actions = parser.add_subparsers(
        prog="sennit schedule", dest="action", metavar="ACTION", required=True
    )
    for action, about in _ABOUT.items():
        description = f"{about[0].upper()}{about[1:]}."
        command = actions.add_parser(action, help=about, description=description, epilog=CONNECTION)
        add_common_arguments(command)
        if action != "list":
            command.add_argument(
                "name", metavar="NAME", help="the schedule's name; its runs are NAME-TIME"
            )
        if action == "add":
            cron_help = "minute, hour, day, month, weekday; or @daily, @hourly, @every 30m"
            command.add_argument("cron", metavar="CRON", help=cron_help)
            plan_help = "plan.yaml, plan.json, program.py, or - for standard input"
            command.add_argument("plan", metavar="PLAN", nargs="?", help=plan_help)
            command.add_argument("--goal", help="plan and answer this, in place of a PLAN")
            command.add_argument(
                "--time-zone", metavar="ZONE", help="such as Europe/Berlin (default: UTC)"
            )
            input_help = "an input; repeatable"
            command.add_argument(
                "--input", action="append", default=[], metavar="NAME=VALUE", help=input_help
            )
            add_run_arguments(command, replans=True, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Do what the action says. Raises Refused for a wrong time, an unknown name, or
    what no schedule may do.
    """
    if args.action == "add":
        return await _add(args, terminal)
    sennit = await connect(args, terminal)
    if args.action == "list":
        return await _list(sennit, terminal)
    handle = sennit.client.get_schedule_handle(args.name)
    async with _asking(args.name):
        before = await _last_run(handle)
        if args.action == "run":
            return await _run_now(handle, before, terminal)
        if args.action == "pause":
            await handle.pause(note="sennit schedule pause", rpc_timeout=RPC_TIMEOUT)
        elif args.action == "resume":
            await handle.unpause(note="sennit schedule resume", rpc_timeout=RPC_TIMEOUT)
        else:
            await handle.delete(rpc_timeout=RPC_TIMEOUT)
    done = {"pause": "is paused", "resume": "goes on", "remove": "is removed; its runs go on"}[
        args.action
    ]
    terminal.result(f"{args.name} {done}", {"schedule": args.name, "action": args.action})
    return Exit.ANSWER


async def _add(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Create a schedule. Everything that the client can see is checked
    before it asks the server.
    """
    if len(checked_new_id(args.name)) > MAX_SCHEDULE_NAME_CHARACTERS:
        raise Refused(f"a schedule's name has at most {MAX_SCHEDULE_NAME_CHARACTERS} characters")
    if args.approval == "never":
        raise Refused(
            "--approval never: nobody is there when a scheduled run starts, so its writes ask; "
            "leave it out"
        )
    request, title, plan = await _request(args, terminal)
    sennit = await connect(args, terminal, docs=args.docs, renew="always")
    if args.docs:
        request["docs"] = docs_folder(args.docs, must_exist=sennit.server.is_local)
        if is_local_stack(sennit.server):
            _check_folder(request["docs"])
    request, memo = with_memo(request, title, plan)
    action = ScheduleActionStartWorkflow(
        WORKFLOW_TYPE,
        request,
        id=args.name,
        task_queue=WORKFLOW,
        memo=memo,
        static_summary=markdown_summary(title) or None,
        priority=Priority(fairness_key=request.get("tenant")),
    )
    spec = ScheduleSpec(cron_expressions=[args.cron], time_zone_name=args.time_zone)
    policy = SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=CATCH_UP)
    zone = ""
    if args.time_zone:
        zone = f" {args.time_zone}"
    shown = {"cron": args.cron + zone, "title": title}
    try:
        handle = await sennit.client.create_schedule(
            args.name,
            Schedule(action, spec=spec, policy=policy),
            memo=shown,
            rpc_timeout=RPC_TIMEOUT,
        )
        found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
    except ScheduleAlreadyRunningError:
        way = shlex.join(["sennit", "schedule", "remove", args.name])
        raise Refused(
            f"there is a schedule {args.name} already; to replace it: {way}{terminal.flags}"
        ) from None
    except RPCError as error:
        raise _wrong_times(args, error) from None
    following = found.info.next_action_times[:1]
    due = "it is never due"
    if following:
        due = f"its next run is due at {_time(following[0])}"
    added = {"schedule": args.name, "action": "add", "next": _iso(following)}
    terminal.result(f"{args.name} is added; {due}", added)
    if is_local_stack(sennit.server):
        terminal.say(
            "the local stack stops when it is idle, and starts no runs then; keep it up with: "
            "sennit dev"
        )
    return Exit.ANSWER


async def _request(
    args: argparse.Namespace, terminal: Terminal
) -> tuple[dict[str, Any], str, dict[str, Any] | None]:
    """Return the input of the runs, their title, and their plan if they
    have one. Raises Refused.
    """
    if (args.plan is None) == (args.goal is None):
        raise Refused("give a PLAN or a --goal, and not both")
    options = run_options(args)
    if args.goal is not None:
        read_inputs(args.input, {})
        return build_request(goal=checked_goal(args.goal), **options), summary(args.goal), None
    if args.max_replans is not None:
        raise Refused("--max-replans is for a --goal; a plan is run as it is written")
    file = read_plan(args.plan)
    checked = await checked_for(args, file, terminal)
    inputs = read_inputs(args.input, checked.inputs)
    plan = file.data
    if file.script:
        plan = program_plan(file.script, inputs)
    file_name = "plan" if args.plan == "-" else Path(args.plan).stem
    title = checked.goal or file.title or file_name
    return build_request(plan=plan, inputs=inputs, **options), summary(title), plan


def _check_folder(folder: str) -> None:
    """Raise Refused if the workers of the local stack, which have our settings, let no
    scheduled run read a folder.
    """
    whole = Path(folder).resolve()
    usual = os.environ.get("SENNIT_DOCS")
    if usual and whole == Path(usual).expanduser().resolve():
        return
    for root in os.environ.get("SENNIT_DOCS_ROOTS", "").split(os.pathsep):
        if root and whole.is_relative_to(Path(root).expanduser().resolve()):
            return
    way = "name it or a folder above it in SENNIT_DOCS_ROOTS"
    raise Refused(
        f"--docs {folder} is outside SENNIT_DOCS_ROOTS, and nobody opens it for a scheduled run; "
        f"{way}"
    )


def _wrong_times(args: argparse.Namespace, error: RPCError) -> SennitError:
    """Return why the server does not create a schedule."""
    if error.status is not RPCStatusCode.INVALID_ARGUMENT:
        return error_of(error)
    zone = ""
    if args.time_zone:
        zone = f" in the time zone {args.time_zone!r}"
    reason = one_line(error.message).removeprefix("Invalid schedule spec: ")[:200]
    example = 'write minute, hour, day, month and weekday, such as "0 7 * * 1-5", or @daily'
    return Refused(f"{args.cron!r}{zone} is no time for a schedule ({reason}); {example}")


async def _list(sennit: Sennit, terminal: Terminal) -> Exit:
    """Write the schedules of this namespace that start runs."""
    found = []
    try:
        async for listed in await sennit.client.list_schedules():
            action = None
            if listed.schedule:
                action = listed.schedule.action
            if (
                isinstance(action, ScheduleListActionStartWorkflow)
                and action.workflow == WORKFLOW_TYPE
            ):
                summary = await _summary(sennit.client, listed)
                if summary is not None:
                    found.append(summary)
    except RPCError as error:
        raise error_of(error) from None
    found.sort(key=lambda each: str(each["schedule"]))
    terminal.results(table(found, terminal.columns), found)
    if not found:
        terminal.say("there are no schedules")
    return Exit.ANSWER


async def _summary(client: Client, each: ScheduleListDescription) -> dict[str, Any] | None:
    """Return what the list shows of a schedule: its times, its last run with its status, and why no
    more came; None if somebody has removed it since it was listed. Raises RPCError.
    """
    memo = await each.memo()
    try:
        found = await client.get_schedule_handle(each.id).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return None
    info = found.info
    last_run = _started_by(info)
    last = None
    if last_run:
        last = await _summary_of_run(client, last_run)
    return {
        "schedule": each.id,
        "paused": found.schedule.state.paused,
        "cron": str(memo.get("cron") or ""),
        "title": str(memo.get("title") or ""),
        "last_run": last_run,
        "last_status": last.status if last is not None else "",
        "skipped": info.num_actions_skipped_overlap,
        "missed": info.num_actions_missed_catchup_window,
        "why": await _why_nothing_came(client, info, last),
        "next": _iso(info.next_action_times[:1]),
    }


def _started_by(info: ScheduleInfo) -> str:
    """Return the id of the last run that a schedule has started; "" if it has started none."""
    if not info.recent_actions:
        return ""
    action = info.recent_actions[-1].action
    if not isinstance(action, ScheduleActionExecutionStartWorkflow):
        return ""
    return action.workflow_id


async def _summary_of_run(client: Client, run: str) -> RunSummary | None:
    """Return a run as lists show it, None if the server no longer knows it."""
    try:
        return await summary_of(
            await client.get_workflow_handle(run).describe(rpc_timeout=RPC_TIMEOUT)
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return None  # it is over, and its retention too


async def _why_nothing_came(client: Client, info: ScheduleInfo, last: RunSummary | None) -> str:
    """Return why a schedule has left out runs, such as `4 skipped: nightly-1 waits for
    approval w since 14:02 UTC`.
    """
    reasons: list[str] = []
    skipped, missed = info.num_actions_skipped_overlap, info.num_actions_missed_catchup_window
    if skipped and last is not None and not last.closed:
        doing = "still runs"
        if last.waits_for:
            since = await _waiting_since(client, last)
            doing = f"waits for {last.waits_for} since {since:%Y-%m-%d %H:%M} UTC"
        reasons.append(f"{skipped} skipped: {last.id} {doing}")
    elif skipped:
        reasons.append(f"{skipped} skipped while an earlier run went on")
    if missed:
        reasons.append(
            f"{missed} missed: the server was away for more than {CATCH_UP.seconds // 3600} h"
        )
    return "; ".join(reasons)


async def _waiting_since(client: Client, run: RunSummary) -> datetime:
    """Return when a run has noted what it waits for: its history has that as the last change of its
    memo. One that has continued as new since then waits at least since that.
    """
    execution = WorkflowExecution(workflow_id=run.id, run_id=run.run_id)
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=execution
    )
    page = await client.workflow_service.get_workflow_execution_history_reverse(
        request, timeout=RPC_TIMEOUT
    )
    for event in page.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
            return event.event_time.ToDatetime(UTC)
    return datetime.fromtimestamp(run.began, UTC)


def table(found: list[dict[str, Any]], width: int) -> str:
    """Return a line a schedule: name, times, when it is due, its last run with its status, and its
    title; below it stands why others did not come.
    """
    rows: list[list[str]] = []
    titles: list[str] = []
    for each in found:
        due = ""
        if each["paused"]:
            due = "paused"
        elif each["next"]:
            due = f"next {_time(datetime.fromisoformat(each['next']))}"
        last = "no run yet"
        if each["last_run"]:
            last = f"last {each['last_run']} {each['last_status']}".rstrip()
        cells = (each["schedule"], each["cron"], due, last)
        rows.append([one_line(cell) for cell in cells])
        titles.append(each["title"])

    lines: list[str] = []
    for each, line in zip(found, columns(rows, titles, width).splitlines(), strict=True):
        lines.append(line)
        if each["why"]:
            lines.append(f"  {one_line(each['why'])}")
    return "\n".join(lines)


async def _run_now(handle: ScheduleHandle, before: str, terminal: Terminal) -> Exit:
    """Start a run beside any that goes on, and say which it is."""
    await handle.trigger(overlap=ScheduleOverlapPolicy.ALLOW_ALL, rpc_timeout=RPC_TIMEOUT)
    started = ""
    async with asyncio.timeout(_PATIENCE):
        while not started or started == before:
            await asyncio.sleep(0.2)
            started = await _last_run(handle)
    terminal.say(f"watch it: {shlex.join(['sennit', 'watch', started])}{terminal.flags}")
    terminal.result(started, {"schedule": handle.id, "action": "run", "run": started})
    return Exit.ANSWER


async def _last_run(handle: ScheduleHandle) -> str:
    found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
    action = found.schedule.action
    if not isinstance(action, ScheduleActionStartWorkflow) or action.workflow != WORKFLOW_TYPE:
        raise Refused(f"{handle.id} is a schedule of something else than runs of Sennit")
    return _started_by(found.info)


@asynccontextmanager
async def _asking(name: str) -> AsyncIterator[None]:
    """Turn errors of the server into those of a command."""
    try:
        yield
    except TimeoutError:
        way = "the server has taken it; see: sennit schedule list"
        raise SennitError(f"no run of {name} has started within {_PATIENCE:.0f} s; {way}") from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND and "namespace" not in error.message.lower():
            raise Refused(f"there is no schedule {name}; sennit schedule list shows them") from None
        raise error_of(error) from None


def _iso(times: Any) -> str:
    return next((each.astimezone(UTC).isoformat() for each in times), "")


def _time(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
