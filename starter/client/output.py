"""Outputs of a run, read by one of its workers: the store may be where no client gets to."""

import base64
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import NoAnswer, NoOutput, NotEnded, Refused, SennitError
from sennit.starter.client.server_errors import error_of
from sennit.starter.client.short_workflows import ask_worker
from sennit.starter.limits import MAX_OUTPUT_CHANGES
from sennit.workflows.limits import MAX_OUTPUTS, MAX_PART_BYTES
from sennit.workflows.messages.contracts import NodeError, conclusion_of
from sennit.workflows.messages.outputs import GONE, NO_OUTPUT, NOT_ENDED, OutputPart, OutputsCall, OutputsReply
from sennit.workflows.messages.result import RunReport, cut_warning
from sennit.workflows.plan.language.packing import inflate
from sennit.workflows.plan.language.text import format_name, one_line

QUERY_TIMEOUT = timedelta(seconds=10)
LONGEST_READ = timedelta(seconds=40)
"""A worker has 30 s for the store."""
_ERRORS: dict[str, type[SennitError]] = {NOT_ENDED: NotEnded, NO_OUTPUT: NoOutput, GONE: NoOutput}


async def read_output(
    client: Client, run: str, node: str, path: str = "", on_mask: Callable[[], None] | None = None
) -> Any:
    """Return the output of a node, or what is there at `path`. `sub.n1` is a node of the sub-agent in its present
    generation, and `sub~1.n1` or `sub~2.n1` in that one.
    `on_mask` is called if the worker that read it has masked a secret.

    Raises Refused if there is no such node or path, NotEnded, NoOutput, or another SennitError.
    """
    *above, name = node.split(".")
    for each in above:
        address, tilde, generation = each.partition("~")
        wanted = address if generation == "1" else each
        run = f"{run}.{wanted if tilde else await _subagent(client, run, each)}"
    return await _one(client, run, name, path, on_mask=on_mask)


async def _subagent(client: Client, run: str, node: str) -> str:
    """Ask a run what its sub-agent at a node is called now. Raises Refused, NoAnswer, or what `error_of` gives."""
    try:
        found = await client.get_workflow_handle(run).query("node", {"node": node}, rpc_timeout=QUERY_TIMEOUT)
    except WorkflowQueryFailedError as failure:
        raise NoAnswer(f"{run} does not show its node {format_name(node)}: {one_line(failure.message, 300)}") from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise Refused(f"there is no run {run}") from None
        raise error_of(error) from None
    name = found.get("subagent") if isinstance(found, dict) else None
    if not isinstance(name, str):
        raise Refused(f"{run} has no sub-agent {format_name(node)}")
    return name


async def _one(
    client: Client, run: str, node: str, path: str = "", run_id: str = "", on_mask: Callable[[], None] | None = None
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
    """Return a report in which the answer is whole, if its history has only the beginning of it; unchanged, with a
    warning, if nobody can read the rest now.
    """
    if report.answer_ref is None:
        return report
    warnings = tuple(each for each in report.warnings if each != cut_warning(report.id))
    try:
        found = conclusion_of(await _one(client, report.id, "", run_id=report.run_id))
    except SennitError as error:
        return report.model_copy(update={"warnings": (*warnings, f"the answer is cut: {error}")})
    whole = {"answer": found.answer, "evidence": found.evidence, "answer_ref": None, "warnings": warnings}
    return report.model_copy(update=whole)


async def _read(
    client: Client,
    run: str,
    nodes: Sequence[str],
    path: str = "",
    run_id: str = "",
    on_mask: Callable[[], None] | None = None,
) -> AsyncGenerator[tuple[str, Any | NodeError], None]:
    """Yield each node with its output, or why there is none. An output that changes while it is read begins again.
    Raises NoAnswer if it always does: workers with different secrets mask it differently.
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
                    raise NoAnswer(f"workers mask the output of {name} differently; give them the same secrets")
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
        client, "ReadOutputs", call, OutputsReply, name=name, limit=LONGEST_READ, task="read the output"
    )
