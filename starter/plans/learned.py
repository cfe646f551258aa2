"""What earlier runs teach about the edges of a plan, as a worker with this environment would know it."""

import os

from sennit.starter.client.connection import configured_server
from sennit.starter.client.local import has_local_runs
from sennit.starter.dev.state import StateDir
from sennit.starter.dev.workers import worker_environment

PATIENCE = 20.0


def store_environment(address: str | None = None, namespace: str | None = None) -> dict[str, str]:
    """Return the environment of a process that reads the artifact store: of the workers that this environment is for,
    or else of the local stack, which need not run. Raises Refused for wrong settings of the connection.
    """
    environment = dict(os.environ)
    if configured_server(address, namespace) is None and has_local_runs():
        return worker_environment(StateDir.find(), "", 0, environment)
    connection = {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": namespace}
    return environment | {name: value for name, value in connection.items() if value}
