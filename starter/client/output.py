"""Outputs of a run, read by one of its workers: the store may be where no client gets to."""

import base64
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from temporalio.client import Client

from sennit.starter.client.below import place_below
from sennit.starter.client.errors import NoAnswer, NoOutput, NotEnded, Refused, SennitError
from sennit.starter.client.short_workflows import ask_worker
from sennit.starter.limits import MAX_OUTPUT_CHANGES
from sennit.workflows.limits import MAX_OUTPUTS, MAX_PART_BYTES
from sennit.workflows.messages.contracts import NodeError, conclusion_of
from sennit.workflows.messages.outputs import (
    GONE,
    NO_OUTPUT,
    NOT_ENDED,
    OutputPart,
    OutputsCall,
    OutputsReply,
)
from sennit.workflows.messages.result import RunReport, cut_warning
from sennit.workflows.plan.language.packing import inflate

LONGEST_READ = timedelta(seconds=40)
"""A worker has 30 s for the store."""
_ERRORS: dict[str, type[SennitError]] = {NOT_ENDED: NotEnded, NO_OUTPUT: NoOutput, GONE: NoOutput}


async def read_output(
    client: Client, run: str, node: str, path: str = "", on_mask: Callable[[], None] | None = None
) -> Any:
    """Return the output of a node, or what is there at `path`; the node may lie below, as
    `place_below` says it. `on_mask` is called if the worker that read it has masked a secret.

    Raises Refused if there is no such node or path, NotEnded, NoOutput, or another SennitError.
    """
    below, name = await place_below(client, run, node)
    return await _one(client, below, name, path, on_mask=on_mask)


async def _one(
    client: Client,
    run: str,
    node: str,
    path: str = "",
    run_id: str = "",
    on_mask: Callable[[], None] | None = None,
) -> Any:
    async with aclosing(_read(client, run, [node], path, run_id, on_mask)) as outputs:
        _, found = await anext(outputs)
    if isinstance(found, NodeError):
        raise _ERRORS.get(found.type, Refused)(found.message)
    return found


async def read_outputs(client: Client, run: str, nodes: Sequence[str]) -> dict[str, Any]:
    """Return the outputs of these nodes by their names, without those that have none by now.

    Raises NoOutput if one that was stored is gone, or another SennitError.
    """
    outputs = {}
    async for name, found in _read(client, run, nodes):
        if not isinstance(found, NodeError):
            outputs[name] = found
        elif found.type == GONE:
            raise NoOutput(found.message)
    return outputs


async def with_whole_answer(client: Client, report: RunReport) -> RunReport:
    """Return a report in which the answer is whole, if its history has only the beginning of it;
    unchanged, with a warning, if nobody can read the rest now.
    """
    if report.answer_ref is None:
        return report
    warning = cut_warning(report.id)
    warnings = tuple(text for text in report.warnings if text != warning)
    try:
        found = conclusion_of(await _one(client, report.id, "", run_id=report.run_id))
    except SennitError as error:
        return report.model_copy(update={"warnings": (*warnings, f"the answer is cut: {error}")})
    whole = {
        "answer": found.answer,
        "evidence": found.evidence,
        "answer_ref": None,
        "warnings": warnings,
    }
    return report.model_copy(update=whole)


async def _read(
    client: Client,
    run: str,
    nodes: Sequence[str],
    path: str = "",
    run_id: str = "",
    on_mask: Callable[[], None] | None = None,
) -> AsyncGenerator[tuple[str, Any | NodeError], None]:
    """Yield each node with its output, or why there is none. An output that changes while
    it is read begins again. Raises NoAnswer if it always does: workers with different
    secrets mask it differently.
    """
    left, begun, digest, changes = list(nodes), bytearray(), "", 0
    while left:
        asked = tuple(left[:MAX_OUTPUTS])
        call = OutputsCall(workflow=run, run_id=run_id, nodes=asked, path=path, start=len(begun))
        reply = await _ask(client, call)
        if not reply.parts:
            raise NoAnswer(f"no worker says what the output of {asked[0]} is")
        for name, part in zip(asked, reply.parts, strict=False):
            if part.error is not None:
                del left[0]
                begun.clear()
                yield name, part.error
                continue
            if begun and part.digest != digest:
                begun.clear()
                changes += 1
                if changes == MAX_OUTPUT_CHANGES:
                    raise NoAnswer(
                        f"workers mask the output of {name} differently; give them the same secrets"
                    )
                break
            digest = part.digest
            begun += _body(part)
            if len(begun) < part.size:
                break
            value = json.loads(begun)
            del left[0]
            begun.clear()
            if part.is_masked and on_mask is not None:
                on_mask()
            yield name, value


def _body(part: OutputPart) -> bytes:
    return inflate(base64.b64decode(part.body), MAX_PART_BYTES)


async def _ask(client: Client, call: OutputsCall) -> OutputsReply:
    """Have a worker read."""
    name = f"{call.workflow}.outputs"  # no sub-agent has this name
    return await ask_worker(
        client,
        "ReadOutputs",
        call,
        OutputsReply,
        name=name,
        limit=LONGEST_READ,
        task="read the output",
    )
