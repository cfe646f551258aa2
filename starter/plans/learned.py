"""What earlier runs teach about the edges of a plan, as a worker with this
environment would know it.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sennit.starter.client.connection import configured_server
from sennit.starter.client.local import has_local_runs
from sennit.starter.dev.state import StateDir
from sennit.starter.dev.worker_command import LEARN, run_to_end
from sennit.starter.dev.workers import worker_environment
from sennit.workflows.plan.language.nodes import Plan
from sennit.workflows.plan.language.problems import Problem
from sennit.workflows.plan.learning.trajectory import keys_of
from sennit.workflows.plan.learning.unused_edges import Use, doubtful_edges, unused_edges

PATIENCE = 20.0


def store_environment(address: str | None = None, namespace: str | None = None) -> dict[str, str]:
    """Return the environment of a process that reads the artifact store: of the workers that this
    environment is for, or else of the local stack, which need not run. Raises Refused for wrong
    settings of the connection.
    """
    environment = dict(os.environ)
    if configured_server(address, namespace) is None and has_local_runs():
        return worker_environment(StateDir.find(), "", 0, environment)
    if address:
        environment["TEMPORAL_ADDRESS"] = address
    if namespace:
        environment["TEMPORAL_NAMESPACE"] = namespace
    return environment


async def unused_edge_warnings(plan: Plan, tools: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """Return a warning for each edge by `needs` that no reference backs and that earlier runs
    have used for nothing.

    Only a plan with such edges has the store read. If that is away, or slow, nothing is known.
    """
    if not doubtful_edges(plan):
        return []
    command = (*LEARN, "--output", "json")
    try:
        ended = await run_to_end(command, env=store_environment(), seconds=PATIENCE)
        if ended.code != 0:
            return []
        pairs = json.loads(ended.out)["pairs"]
    except (TimeoutError, ValueError, KeyError):
        return []
    keys = keys_of(tools)
    uses: dict[tuple[str, str], Use] = {}
    for pair in pairs:
        first, second = pair["first"], pair["second"]
        if [keys.get(first), keys.get(second)] == pair["keys"]:
            uses[first, second] = Use(pair["together"], pair["used"])
    return list(unused_edges(plan, uses, {str(tool["name"]): tool for tool in tools}))
