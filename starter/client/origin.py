"""A run that is over, as a fork of it begins: its request, with the script that it had
last, from its history.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
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
    """A run to fork: `homes` name its artifacts and those of the runs that it forks itself, the
    latest first. One that ended before it called anything has none: it has written nothing.

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

    def with_script(
        self, script: str, node: str = "", inputs: Mapping[str, Any] | None = None
    ) -> "Origin":
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
            raise Refused(
                f"{self.name} has {len(programs) or 'no'} programs to give a script to; {way}"
            )
        assert self.plan is not None
        if not node:
            [node] = programs

        # A plan that was made around a script is made again, because it declares the inputs
        # of the script's `main`.
        given = self.request.get("inputs") or {}
        if self.plan == program_plan(programs[node]["script"], given):
            return replace(self, plan=program_plan(script, {**given, **(inputs or {})}))

        nodes: list[dict[str, Any]] = []
        for entry in self.plan["nodes"]:
            if entry.get("id") == node:
                entry = {**entry, "script": script}
            nodes.append(entry)
        return replace(self, plan={**self.plan, "nodes": nodes})


def _programs(plan: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the programs of a plan by their ids. Nothing has checked the form of the plan."""
    programs: dict[str, dict[str, Any]] = {}
    nodes = (plan or {}).get("nodes")
    if not isinstance(nodes, list):
        return programs
    for node in nodes:
        if isinstance(node, dict) and node.get("kind") == "program":
            programs[str(node.get("id"))] = node
    return programs


def _known(names: Mapping[str, Any]) -> str:
    if not names:
        return ""
    return f"; there are {format_names(list(names))}"


async def read_origin(client: Client, name: str) -> Origin:
    """Return the run of that id, which is over. Raises Refused if it cannot be forked,
    or another SennitError.
    """
    request: dict[str, Any] = {}
    plan: dict[str, Any] | None = None
    scripts: dict[str, str] = {}
    has_program = False
    has_begun = False
    first = ""

    # From the last run of the chain back to the first: a later run's word on the request, the
    # plan or a script holds.
    try:
        found = await client.get_workflow_handle(name).describe()
        first = found.raw_description.workflow_execution_info.first_run_id
        run_id: str = found.run_id
        while run_id:
            history = await _read_run(client, name, run_id)
            request = request or history.request
            plan = plan or _plan_of(history.request)
            scripts = history.scripts | scripts
            if PROGRAM.name in history.activities:
                has_program = True
            if any(activity != PREPARE.name for activity in history.activities):
                has_begun = True
            run_id = history.earlier_run
    except RPCError as error:
        # Of a long chain, the server may have forgotten the first runs.
        is_forgotten = error.status is RPCStatusCode.NOT_FOUND
        if not is_forgotten or not (plan or request.get("goal")):
            raise error_of(error) from None
        has_begun = True
    except ValueError as error:
        raise Refused(f"{name} has no plan that can be read: {error}") from None

    if request.get("depth"):
        raise Refused(f"{name} is a sub-agent; fork the run above it, {name.rpartition('.')[0]}")
    homes: tuple[str, ...] = tuple(request.get("origins", ()))
    if has_begun:
        homes = (first, *homes)
    if len(homes) > MAX_ORIGINS:
        raise Refused(f"{name} is a fork of forks, {MAX_ORIGINS} deep already; fork an earlier one")
    kept = {key: value for key, value in request.items() if key not in _NOT_TAKEN_OVER}
    origin = Origin(name, kept, homes, plan, has_program)
    for node, script in scripts.items():
        origin = origin.with_script(script, node)
    return origin


def _plan_of(request: dict[str, Any]) -> dict[str, Any] | None:
    packed = request.get("plan_packed")
    if packed:
        return unpack_plan(packed)
    return request.get("plan")


@dataclass(slots=True)
class _History:
    """What the history of one run of a chain says: its request, the scripts that its programs were
    given, the activities of its calls, and the run before it, "" for the first. After a reset
    nobody knows what the run called before that: `RESET` stands for it.
    """

    request: dict[str, Any] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    activities: dict[str, bool] = field(default_factory=dict)
    earlier_run: str = ""


async def _read_run(client: Client, name: str, run_id: str) -> _History:
    """Return what the history of one run of a chain says."""
    history = _History()
    sent: dict[str, tuple[str, str]] = {}
    async for event in _events(client, name, run_id):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            began = event.workflow_execution_started_event_attributes
            history.earlier_run = began.continued_execution_run_id
            payloads = await client.data_converter.decode(began.input.payloads)
            if payloads and isinstance(payloads[0], dict):
                history.request = payloads[0]
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            activity = event.activity_task_scheduled_event_attributes.activity_type
            history.activities[activity.name] = True
        elif event.workflow_task_failed_event_attributes.base_run_id:
            history.activities[RESET] = True
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
            # A script counts once the run has taken the update that brought it.
            done = event.workflow_execution_update_completed_event_attributes
            is_taken = done.outcome.WhichOneof("value") == "success"
            if is_taken and done.meta.update_id in sent:
                node, script = sent[done.meta.update_id]
                history.scripts[node] = script
        else:
            update = _update_in(event)
            if update.input.name == EditProgram.name:
                arguments = await client.data_converter.decode(update.input.args.payloads)
                edit = EditProgram.model_validate(arguments[0])
                sent[update.meta.update_id] = (edit.node, edit.script)
    return history


def _update_in(event: HistoryEvent) -> UpdateRequest:
    """Return the update that an event brings. One that was made before a reset is
    only in its admission.
    """
    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
        return event.workflow_execution_update_admitted_event_attributes.request
    return event.workflow_execution_update_accepted_event_attributes.accepted_request


def _events(client: Client, name: str, run_id: str) -> AsyncIterator[HistoryEvent]:
    return client.get_workflow_handle(name, run_id=run_id).fetch_history_events()
