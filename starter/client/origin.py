"""A run that is over, as a fork of it begins: its request, with the script that it had last, from its history."""

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Request as UpdateRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import Refused
from sennit.starter.client.server_errors import error_of
from sennit.starter.limits import MAX_WORKFLOW_NAME_CHARACTERS
from sennit.workflows.limits import MAX_ORIGINS
from sennit.workflows.messages.contracts import PREPARE, PROGRAM
from sennit.workflows.messages.updates import EditProgram
from sennit.workflows.plan.language.packing import unpack_plan
from sennit.workflows.plan.language.text import format_names
from sennit.workflows.plan.programs.program_plan import program_plan
from sennit.workflows.plan.programs.reply import PROGRAM as PROGRAM_NODE
from sennit.workflows.plan.programs.reply import program_plan_of

_NOT_TAKEN_OVER = (
    "plan",
    "plan_packed",
    "origins",
    "material",
    "prepared",
    "depth",
    "run_prefix",
    "carry",
    "grant",
    "repeat_writes",
)
"""What is not in the request of a fork as it was."""
RESET = "reset"


@dataclass(frozen=True, slots=True)
class Origin:
    """A run to fork: `homes` name its artifacts and those of the runs that it forks itself, the latest first. One that
    ended before it called anything has none: it has written nothing.

    Without a `plan` it planned by itself; `has_program` says whether it called a program then.
    """

    name: str
    request: dict[str, Any]
    homes: tuple[str, ...]
    plan: dict[str, Any] | None = None
    has_program: bool = False

    @property
    def fork_id(self) -> str:
        """A fresh id for a fork."""
        return f"{self.name[:MAX_WORKFLOW_NAME_CHARACTERS]}-fork-{secrets.token_hex(2)}"

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of the run, as far as the plan has them."""
        inputs = self.request.get("inputs") or {}
        declared = (self.plan or {}).get("inputs") or {}
        return {name: value for name, value in inputs.items() if name in declared}

    def with_script(self, script: str, node: str = "", inputs: Mapping[str, Any] | None = None) -> "Origin":
        """Return the run with another script of its program, or of the program `node` of its plan.

        Raises Refused if there is none, or if it is not clear which.
        """
        if self.plan is None and self.has_program and node in ("", PROGRAM_NODE):
            return replace(self, plan=program_plan_of(script))
        programs = _programs(self.plan)
        if node and node not in programs:
            raise Refused(f"{self.name} has no program {node!r:.60}{_known(programs)}")
        if not node and len(programs) != 1:
            way = "fork it without --with"
            if programs:
                way = f"name one with --node{_known(programs)}"
            raise Refused(f"{self.name} has {len(programs) or 'no'} programs to give a script to; {way}")
        assert self.plan is not None
        [name] = [node] if node else programs
        if self.plan == program_plan(programs[name]["script"], self.request.get("inputs") or {}):
            values = {**(self.request.get("inputs") or {}), **(inputs or {})}
            return replace(self, plan=program_plan(script, values))
        nodes = [{**each, "script": script} if each.get("id") == name else each for each in self.plan["nodes"]]
        return replace(self, plan={**self.plan, "nodes": nodes})


def _programs(plan: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    nodes = (plan or {}).get("nodes")
    found = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return {str(node.get("id")): node for node in found if node.get("kind") == "program"}


def _known(names: Mapping[str, Any]) -> str:
    if not names:
        return ""
    return f"; there are {format_names(list(names))}"


async def read_origin(client: Client, name: str) -> Origin:
    """Return the run of that id, which is over. Raises Refused if it cannot be forked, or another SennitError."""
    request, scripts, plan, has_program, first = dict[str, Any](), dict[str, str](), None, False, ""
    has_begun = False
    try:
        found = await client.get_workflow_handle(name).describe()
        first, run_id = found.raw_description.workflow_execution_info.first_run_id, found.run_id
        while run_id:
            began, edited, called, run_id = await _read_run(client, name, run_id)
            request, plan = request or began, plan or _plan_of(began)
            scripts, has_program = edited | scripts, has_program or PROGRAM.name in called
            has_begun |= any(activity != PREPARE.name for activity in called)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND or not (plan or request.get("goal")):
            raise error_of(error) from None  # of a long chain, the server may have forgotten the first runs
        has_begun = True
    except ValueError as error:
        raise Refused(f"{name} has no plan that can be read: {error}") from None
    if request.get("depth"):
        raise Refused(f"{name} is a sub-agent; fork the run above it, {name.rpartition('.')[0]}")
    homes = (*((first,) if has_begun else ()), *request.get("origins", ()))
    if len(homes) > MAX_ORIGINS:
        raise Refused(f"{name} is a fork of forks, {MAX_ORIGINS} deep already; fork an earlier one")
    origin = Origin(
        name, {key: value for key, value in request.items() if key not in _NOT_TAKEN_OVER}, homes, plan, has_program
    )
    for node, script in scripts.items():
        origin = origin.with_script(script, node)
    return origin


def _plan_of(request: dict[str, Any]) -> dict[str, Any] | None:
    packed = request.get("plan_packed")
    if packed:
        return unpack_plan(packed)
    return request.get("plan")


async def _read_run(
    client: Client, name: str, run_id: str
) -> tuple[dict[str, Any], dict[str, str], dict[str, bool], str]:
    """Return the request of one run of a chain, the scripts that its programs were given, the activities of its calls,
    and the run before it. After a reset nobody knows what it called before that: `RESET` stands for it.
    """
    request, before, called = dict[str, Any](), "", dict[str, bool]()
    sent: dict[str, tuple[str, str]] = {}
    scripts: dict[str, str] = {}
    async for event in _events(client, name, run_id):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            began = event.workflow_execution_started_event_attributes
            before = began.continued_execution_run_id
            payloads = await client.data_converter.decode(began.input.payloads)
            request = payloads[0] if payloads and isinstance(payloads[0], dict) else {}
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            called[event.activity_task_scheduled_event_attributes.activity_type.name] = True
        elif event.workflow_task_failed_event_attributes.base_run_id:
            called[RESET] = True
        elif (update := _update_in(event)).input.name == EditProgram.name:
            edit = EditProgram.model_validate((await client.data_converter.decode(update.input.args.payloads))[0])
            sent[update.meta.update_id] = edit.node, edit.script
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
            done = event.workflow_execution_update_completed_event_attributes
            if done.outcome.WhichOneof("value") == "success" and done.meta.update_id in sent:
                node, script = sent[done.meta.update_id]
                scripts[node] = script
    return request, scripts, called, before


def _update_in(event: HistoryEvent) -> UpdateRequest:
    """Return the update that an event brings. One that was made before a reset is only in its admission."""
    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
        return event.workflow_execution_update_admitted_event_attributes.request
    return event.workflow_execution_update_accepted_event_attributes.accepted_request


def _events(client: Client, name: str, run_id: str) -> AsyncIterator[HistoryEvent]:
    return client.get_workflow_handle(name, run_id=run_id).fetch_history_events()
