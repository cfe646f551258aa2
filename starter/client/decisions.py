"""What a person decides about a run: the updates that it takes, each as a call with types."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.activity_details import why_silent
from sennit.starter.client.below import place_below
from sennit.starter.client.errors import (
    InvalidRequest,
    NoAnswer,
    NotAllowed,
    RunIsOver,
    SennitError,
)
from sennit.starter.client.server_errors import error_of
from sennit.workflows.messages.updates import UPDATES, InvalidUpdate, parse_update

MODELS = {model.name: model for model in UPDATES}
"""The updates of a run by their names."""

UPDATE_TIMEOUT = 30.0


class Decisions:
    """The decisions on the run `id`. Each is applied once, or refused and not at all."""

    def __init__(self, client: Client, name: str) -> None:
        self.id = name
        self._client = client

    async def approve(
        self, node: str = "", *, digest: str = "", args: Mapping[str, JsonValue] | None = None
    ) -> str:
        """Let a write run with the values that were shown, those of `args` changed, or without a
        node the plan that waits. With `digest` it is refused if it is not the one that was
        shown; a plan needs it. As every decision it returns the run's sentence about it, and
        raises what `update` raises.
        """
        return await self.update(
            "approve", **_set_fields(node=node, digest=digest, args=dict(args or {}))
        )

    async def reject(self, node: str = "", reason: str = "", *, digest: str = "") -> str:
        """Refuse a write, which then fails with this reason. Without a node it is the
        plan of this digest: its planner writes another one, as the reason says, and
        without a reason the run ends.
        """
        return await self.update("reject", **_set_fields(node=node, reason=reason, digest=digest))

    async def answer(self, node: str, value: JsonValue, *, repeat_effect: bool = False) -> str:
        """Answer a gate, or give the result of a call that has failed, which is then not called."""
        return await self.update(
            "answer", value=value, **_set_fields(node=node, repeat_effect=repeat_effect)
        )

    async def retry(self, node: str = "", *, repeat_effect: bool = False) -> str:
        """Run a node again, or without one whatever blocks the run. What was written is written
        again only with `repeat_effect`.
        """
        return await self.update(
            "retry_node", **_set_fields(node=node, repeat_effect=repeat_effect)
        )

    async def skip(self, node: str) -> str:
        """Give up a node that has not succeeded, and those that need it; joins go on without it."""
        return await self.update("skip_node", node=node)

    async def edit(self, script: str, *, node: str = "") -> str:
        """Give a program another script: it runs again, and calls that it makes
        again keep their results.
        """
        return await self.update("edit_program", script=script, **_set_fields(node=node))

    async def edit_plan(self, plan: Mapping[str, JsonValue], *, digest: str = "") -> str:
        """Put another plan in the place of the one that waits for approval. It is checked,
        and asked about again.

        With the `digest` of the plan that was read, the run refuses it if another plan waits by
        then. Without one, the plan of whoever comes last waits.
        """
        return await self.update("edit_plan", plan=dict(plan), **_set_fields(digest=digest))

    async def finish(self, reason: str = "") -> str:
        """End the run now, with what there is."""
        return await self.update("finish", **_set_fields(reason=reason))

    async def update(self, name: str, /, **fields: Any) -> str:
        """Send an update and return the run's sentence about it. It is applied once, or
        refused and not at all.

        An update of the node `sub.n1` goes to node n1 of the sub-agent `sub`, as `place_below`
        says it. Raises InvalidRequest for a wrong form, NotAllowed with the run's reason,
        RunIsOver; NoAnswer if no worker took it within 30 s, and then it may still be applied
        later; and what `place_below` raises.
        """
        if "by" in _fields_of(name):
            fields = {"by": self._client.identity[:100], **fields}
        below, path = self.id, str(fields.get("node", ""))
        if "." in path:
            below, fields["node"] = await place_below(self._client, self.id, path)
        run = self._client.get_workflow_handle(below)
        request = checked_update(name, fields)
        try:
            message = await asyncio.wait_for(run.execute_update(name, request), UPDATE_TIMEOUT)
        except WorkflowUpdateFailedError as failure:
            cause = failure.cause
            if not isinstance(cause, ApplicationError):
                raise NotAllowed(str(cause)) from None
            if cause.type == "RunIsOver":
                raise RunIsOver(cause.message) from None
            raise NotAllowed(cause.message) from None
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            late = NoAnswer(
                f"no worker took the update within {UPDATE_TIMEOUT:.0f} s; it may still be applied"
            )
            raise await self._explained(late) from None
        except RPCError as error:
            raise self._call_error(error) from None
        return str(message or f"{name} was applied")

    async def _explained(self, error: SennitError) -> SennitError:
        """Return a NoAnswer with its reason, if the server knows it."""
        why = None
        if isinstance(error, NoAnswer):
            why = await why_silent(self._client, self.id)
        if not why:
            return error
        return NoAnswer(why)

    def _call_error(self, error: RPCError) -> SennitError:
        if error.status is RPCStatusCode.NOT_FOUND and "completed" in error.message:
            way = shlex.join(["sennit", "status", self.id])
            return RunIsOver(f"{self.id} is over and takes no updates; see: {way}")
        return error_of(error)


def _set_fields(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _fields_of(name: str) -> Sequence[str]:
    model = MODELS.get(name)
    if model is None:
        return ()
    return list(model.model_fields)


def checked_update(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object to send; raises InvalidRequest naming the field, the
    problem and an example.
    """
    model = MODELS.get(name)
    if model is None:
        raise InvalidRequest(f"`{name[:60]}` is no update; there are {', '.join(MODELS)}")
    try:
        return parse_update(model, fields).model_dump(mode="json", exclude_unset=True)
    except InvalidUpdate as invalid:
        raise InvalidRequest(str(invalid)) from None
