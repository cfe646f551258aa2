"""Where a node lies whose path goes down into sub-agents: `sub.n1` is a node of the run
that `sub` has started.
"""

from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from sennit.starter.client.errors import NoAnswer, Refused
from sennit.starter.client.server_errors import error_of
from sennit.workflows.plan.language.text import format_name, one_line

QUERY_TIMEOUT = timedelta(seconds=10)


async def place_below(client: Client, run: str, path: str) -> tuple[str, str]:
    """Return the run that a node lies in, and what that run calls it.

    `sub.n1` lies in the sub-agent in its present generation, `sub~1.n1` and `sub~2.n1` in that one.
    `m[17].page` is a part of an item if the map has such a part, and else a node of the item's own
    run. Raises Refused if there is no such sub-agent, NoAnswer, or what `error_of` gives.
    """
    first, *names = path.split(".")
    node = first
    while names:
        following = names.pop(0)
        part = f"{node}.{following}"
        # Only the run itself knows whether its map has such a part.
        if node.endswith("]") and "problem" not in await _asked(client, run, part):
            node = part
            continue
        address, tilde, generation = node.partition("~")
        if not tilde:
            subagent = await subagent_of(client, run, node)
        elif generation == "1":
            subagent = address
        else:
            subagent = node
        run = f"{run}.{subagent}"
        node = following
    return run, node


async def subagent_of(client: Client, run: str, node: str) -> str:
    """Ask a run what its sub-agent at a node is called now."""
    name = (await _asked(client, run, node)).get("subagent")
    if not isinstance(name, str):
        raise Refused(f"{run} has no sub-agent {format_name(node)}")
    return name


async def _asked(client: Client, run: str, node: str) -> dict[str, Any]:
    """Return what a run says of its node; it has a `problem` if there is none."""
    try:
        found = await client.get_workflow_handle(run).query(
            "node", {"node": node}, rpc_timeout=QUERY_TIMEOUT
        )
    except WorkflowQueryFailedError as failure:
        raise NoAnswer(
            f"{run} does not show its node {format_name(node)}: {one_line(failure.message, 300)}"
        ) from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise Refused(f"there is no run {run}") from None
        raise error_of(error) from None
    if isinstance(found, dict):
        return found
    return {"problem": "it says nothing"}
