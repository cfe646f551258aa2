"""The conversation that a run continues: the turns of the runs before it, adopted
into its own artifacts.

A conversation is a chain of runs. Each of them keeps the turns before it, so that it needs none of
the others once it has begun: when their artifacts are deleted, nothing is lost.
"""

from dataclasses import dataclass
from typing import Any, Literal

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sennit.activities.nodes.error_mapping import ConversationGone
from sennit.activities.storage.artifacts import BodyMissing
from sennit.activities.storage.run_context import ArtifactReader
from sennit.activities.toolbox.redaction import mask
from sennit.workflows.limits import MAX_CONTINUED_TURNS
from sennit.workflows.messages.contracts import PrepareCall
from sennit.workflows.plan.language.nodes import ChatTurn
from sennit.workflows.plan.language.references import as_text
from sennit.workflows.plan.limits import MAX_TURN_CHARACTERS

_NOTE = "conversation"
"""What a run's digest of the turns before it is noted under."""
_HAS_ANSWER = ("done", "partial")
_Turns = list[dict[str, Any]]
"""Turns as they lie in the store."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Finds the turns before a run on this worker."""

    library: ArtifactReader

    async def adopt(self, client: Client, run_prefix: str, call: PrepareCall) -> str:
        """Keep the turns before a run in its own artifacts, masked, and return their
        digest; "" without any.

        Safe to repeat: a run that is prepared once more, and one that forks it, has the same turns.
        Raises ConversationGone before anything is spent, StoreUnavailable, and RPCError if the
        server does not answer.
        """
        request = call.request
        if not (request.continues or request.history):
            return ""
        noted = await self._noted(run_prefix, call)
        if noted is not None:
            turns = noted
        elif request.continues:
            turns = await self._turns_after(client, run_prefix, request.continues, request.tenant)
        else:
            turns = [turn.model_dump(mode="json") for turn in request.history]
        digest = await self.library.put(run_prefix, mask(turns))
        await self.library.note(run_prefix, _NOTE, digest)
        return digest

    async def _noted(self, run_prefix: str, call: PrepareCall) -> _Turns | None:
        """Return the turns that the run itself has adopted before, or one that it forks."""
        home = run_prefix.rpartition("/")[0]
        prefixes = [run_prefix]
        for origin in call.request.origins:
            prefixes.append(f"{home}/{origin}")
        for prefix in prefixes:
            turns = await self._kept(prefix)
            if turns is not None:
                return turns
        return None

    async def _kept(self, run_prefix: str) -> _Turns | None:
        digest = await self.library.noted(run_prefix, _NOTE)
        if digest is None:
            return None
        try:
            turns: _Turns = await self.library.value(run_prefix, digest)
        except BodyMissing:
            return None
        return turns

    async def _turns_after(self, client: Client, run_prefix: str, name: str, tenant: str) -> _Turns:
        """Return the turns before the run with this id, and its own two: what it was
        asked, and what it answered.
        """
        found = await _described(client, name)
        asked = await _request_of(client, found)
        if str(asked.get("tenant") or "") != tenant:
            raise ConversationGone(
                f"continues: {name} is no run of this tenant; a conversation has one tenant"
            )
        report = await _report_of(client, found)
        before: _Turns = []
        namespace = run_prefix.rpartition("/")[0]
        home = f"{namespace}/{found.raw_description.workflow_execution_info.first_run_id}"
        if asked.get("continues") or asked.get("history"):
            kept = await self._kept(home)
            if kept is None:
                raise ConversationGone(
                    f"continues: the turns before {name} are gone; start a new conversation"
                )
            before = kept
        question = asked.get("goal") or asked.get("title")
        if not question:
            question = as_text(asked.get("inputs") or {})
        answer = as_text(await self._whole_answer(home, name, report))
        made = [_turn(name, "user", str(question)), _turn(name, "assistant", answer)]
        count = len(before) + len(made)
        if count > MAX_CONTINUED_TURNS:
            many = f"has {count:,} turns; at most {MAX_CONTINUED_TURNS:,}"
            raise ConversationGone(f"continues: the conversation of {name} {many}; start a new one")
        return [*before, *made]

    async def _whole_answer(self, home: str, name: str, report: dict[str, Any]) -> Any:
        """Return an answer. A long one is cut in the report, and lies whole
        among the run's artifacts.
        """
        if not report.get("answer_ref"):
            return report["answer"]
        try:
            return await self.library.value(home, report["answer_ref"])
        except BodyMissing:
            raise ConversationGone(
                f"continues: the answer of {name} is gone; start a new conversation"
            ) from None


def _turn(name: str, role: Literal["user", "assistant"], text: str) -> dict[str, Any]:
    """Return a turn of the run `name`. Raises ConversationGone if a model could
    not read it once more.
    """
    about = "answer" if role == "assistant" else "question"
    if not text:
        raise ConversationGone(
            f"continues: the {about} of {name} is empty; start a new conversation"
        )
    if len(text) > MAX_TURN_CHARACTERS:
        size = f"{len(text):,} characters; at most {MAX_TURN_CHARACTERS:,}"
        raise ConversationGone(
            f"continues: the {about} of {name} has {size}; start a new conversation"
        )
    return ChatTurn(role=role, content=text).model_dump(mode="json")


async def _described(client: Client, name: str) -> WorkflowExecutionDescription:
    try:
        found = await client.get_workflow_handle(name).describe()
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            raise ConversationGone(
                f"continues: there is no run {name}; start a new conversation"
            ) from None
        raise
    if found.workflow_type != "AgentRun":
        raise ConversationGone(
            f"continues: {name} is a workflow of type {found.workflow_type}, not a run of Sennit"
        )
    if found.status is WorkflowExecutionStatus.RUNNING:
        raise ConversationGone(f"continues: {name} still runs; continue it when it has an answer")
    if found.status is not WorkflowExecutionStatus.COMPLETED:
        raise ConversationGone(f"continues: {name} has no answer to go on from")
    return found


async def _request_of(client: Client, found: WorkflowExecutionDescription) -> dict[str, Any]:
    """Return what a run was started with, by the server's own word."""
    handle = client.get_workflow_handle(found.id, run_id=found.run_id)
    async for event in handle.fetch_history_events(page_size=1):
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            began = event.workflow_execution_started_event_attributes
            arguments = await client.data_converter.decode(began.input.payloads)
            if arguments and isinstance(arguments[0], dict):
                return arguments[0]
            return {}
        break
    return {}


async def _report_of(client: Client, found: WorkflowExecutionDescription) -> dict[str, Any]:
    report = await client.get_workflow_handle(found.id, run_id=found.run_id).result()
    if (
        not isinstance(report, dict)
        or report.get("status") not in _HAS_ANSWER
        or report.get("answer") is None
    ):
        raise ConversationGone(f"continues: {found.id} has no answer to go on from")
    return report
