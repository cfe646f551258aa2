"""Reads what a run has stored for a client: which, by the run's own word; where, by what
the server has recorded.
"""

import base64
import zlib
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.storage.artifacts import BodyMissing, digest_of, encode
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.limits import MAX_PART_BYTES
from sennit.workflows.messages.contracts import NodeError
from sennit.workflows.messages.outputs import (
    GONE,
    NO_OUTPUT,
    NO_SUCH_NODE,
    NO_SUCH_PATH,
    OutputPart,
    OutputPlace,
    OutputPlaces,
    OutputsCall,
    OutputsReply,
)
from sennit.workflows.plan.language.references import BindError, part_of
from sennit.workflows.plan.language.text import format_name, one_line
from sennit.workflows.run.subagent import is_below


@dataclass(frozen=True, slots=True)
class OutputReader:
    """Reads outputs from this worker's store."""

    library: ArtifactReader

    async def read(self, client: Client, call: OutputsCall) -> OutputsReply:
        """Return the outputs that were asked for, as far as they fit into one reply. Only what the
        run itself has stored is read, if it is a run of Sennit, and this worker's secrets are
        masked once more. Raises StoreUnavailable, and RPCError if the run does not answer.
        """
        try:
            run_prefix = await run_prefix_of(client, call.workflow, call.run_id)
            prefix = f"{client.namespace}/{run_prefix}"
            places = await _places(client, call)
        except (WorkflowQueryFailedError, ValidationError, ForeignRun) as error:
            why = one_line(str(error), 300)
            return _none(NO_SUCH_NODE, f"{call.workflow} does not say where its outputs are: {why}")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return _none(NO_SUCH_NODE, f"there is no run {call.workflow}")
        left, start = MAX_PART_BYTES, call.start
        parts: list[OutputPart] = []
        for name, place in zip(call.nodes, places, strict=True):
            found = await self._read(prefix, name, place, call.path)
            if isinstance(found, NodeError):
                parts.append(OutputPart(error=found))
                continue
            whole, is_masked = found
            piece = whole[start : start + left]
            body = base64.b64encode(zlib.compress(piece)).decode()
            parts.append(
                OutputPart(digest=digest_of(whole), size=len(whole), body=body, is_masked=is_masked)
            )
            left -= len(piece)
            if left <= 0 or start + len(piece) < len(whole):
                break
            start = 0
        return OutputsReply(parts=tuple(parts))

    async def _read(
        self, prefix: str, name: str, place: OutputPlace, path: str
    ) -> tuple[bytes, bool] | NodeError:
        """Return an output, or the part of it at `path`, as JSON, and whether a secret is masked in
        it; or why there is none.
        """
        if place.error is not None:
            return place.error
        called = "the answer"
        if name:
            called = f"the output of {format_name(name)}"
        if not place.ref:
            return NodeError(type=NO_OUTPUT, message=f"{called} was not stored")
        try:
            value = await self.library.value(prefix, place.ref)
        except BodyMissing:
            why = "`sennit gc` has deleted it, or the artifact store is another one by now"
            return NodeError(type=GONE, message=f"{called} is gone: {why}")
        except BindError as error:
            return NodeError(type=NO_OUTPUT, message=f"{called} cannot be read: {error}")
        try:
            value = part_of(value, path, name or "answer")
        except BindError as error:
            return NodeError(type=NO_SUCH_PATH, message=str(error))
        return _masked(value)


def _masked(value: Any) -> tuple[bytes, bool]:
    body = encode(value, canonical=False)
    masked = mask(value, body.decode())
    if masked is value:
        return body, False
    sent = encode(masked, canonical=False)
    return sent, sent != body


class ForeignRun(Exception):
    """Why a workflow is not believed: any program may start one that answers queries."""


async def _places(client: Client, call: OutputsCall) -> tuple[OutputPlace, ...]:
    run = client.get_workflow_handle(call.workflow, run_id=call.run_id or None)
    answer = await run.query("outputs", {"nodes": list(call.nodes)})
    places = OutputPlaces.model_validate(answer).places
    if len(places) != len(call.nodes):
        raise ForeignRun(f"it answers {len(places)} places for {len(call.nodes)} nodes")
    return places


async def run_prefix_of(client: Client, workflow: str, run_id: str = "") -> str:
    """Return the part of the store that belongs to a run, as the server has recorded it: its first
    run id or, for a sub-agent, what the run above it gave it, which must lie below that run's own.
    Nothing that the run says counts.
    """
    began = await _beginning(client, workflow, run_id)
    if began.workflow_type.name != "AgentRun":
        raise ForeignRun(f"it is no run, but a workflow of the type {began.workflow_type.name}")
    parent = began.parent_workflow_execution
    if (
        not parent.workflow_id
        or (await _beginning_above(client, parent)).workflow_type.name != "AgentRun"
    ):
        if not began.first_execution_run_id:
            raise ForeignRun("the server does not say which run it began with")
        return began.first_execution_run_id
    above = await run_prefix_of(client, parent.workflow_id, parent.run_id)
    request = await client.data_converter.decode(began.input.payloads[:1])
    prefix = None
    if request and isinstance(request[0], dict):
        prefix = request[0].get("run_prefix")
    if not isinstance(prefix, str) or not is_below(prefix, above):
        raise ForeignRun(f"the run above it, {parent.workflow_id}, has not recorded where they are")
    return prefix


async def _beginning_above(
    client: Client, parent: WorkflowExecution
) -> WorkflowExecutionStartedEventAttributes:
    try:
        return await _beginning(client, parent.workflow_id, parent.run_id)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise ForeignRun(
            f"the server has forgotten {parent.workflow_id}, the run above it"
        ) from None


async def _beginning(
    client: Client, workflow: str, run_id: str
) -> WorkflowExecutionStartedEventAttributes:
    request = GetWorkflowExecutionHistoryRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=workflow, run_id=run_id),
        maximum_page_size=1,
    )
    page = await client.workflow_service.get_workflow_execution_history(request)
    return page.history.events[0].workflow_execution_started_event_attributes


def _none(kind: str, message: str) -> OutputsReply:
    return OutputsReply(parts=(OutputPart(error=NodeError(type=kind, message=message)),))
