"""The workers of a local stack as one child process."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from starter.dev.child import Child
from starter.dev.ports import HOST, choose_port
from starter.dev.settings import Settings
from starter.dev.state import StateDir

COMMAND = (sys.executable, "-P", "-m", "workers", "all")
DRAIN = 10.0  # seconds that running activities get at a stop; a person waits, and Temporal repeats what is cut
CORPUS = Path(__file__).parents[2] / "examples" / "corpus"


class Workers(Child):
    """Workers of every role in one process, for the server at `address`, with a client's `settings`."""

    name = "the worker process"
    grace = DRAIN + 5

    def __init__(self, command: Sequence[str], state: StateDir, settings: Settings) -> None:
        super().__init__(state.log("worker"))
        self._command = command
        self._state = state
        self._port = 0
        self.settings = settings
        self.address = ""

    async def start(self) -> None:
        self._port = choose_port(0)
        environ = worker_environment(self._state, self.address, self._port, self.settings.environ)
        await self.launch(self._command, environ)

    async def answers(self) -> bool:
        """Return whether GET /readyz answers 200 within two seconds."""
        try:
            async with asyncio.timeout(2):
                reader, writer = await asyncio.open_connection(HOST, self._port)
                try:
                    writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    status = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        return status.split(b" ")[1:2] == [b"200"]


def worker_environment(state: StateDir, address: str, health_port: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a client's environment with this stack's server in place of any other.

    TEMPORAL_* of the client describe another server (TLS, keys, a profile) and are left out; an explicit profile
    file keeps the SDK from reading the person's own. Runs that name no folder read the example corpus, unless
    SENNIT_DOCS says otherwise, so that a goal typed into the web UI has something to be answered from.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith("TEMPORAL_")}
    if CORPUS.is_dir():
        kept.setdefault("SENNIT_DOCS", str(CORPUS))
    return kept | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": "default",
        "TEMPORAL_CONFIG_FILE": str(state.profile),
        "SENNIT_ARTIFACTS": str(state.artifacts),
        "SENNIT_INDEX": str(state.index),
        "SENNIT_DOCS_ANY": "1",
        "SENNIT_DRAIN": f"{DRAIN:g}",
        "SENNIT_HEALTH_PORT": str(health_port),
    }
