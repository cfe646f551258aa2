"""Which Temporal server a command talks to, and how it gets there.

`--address`, TEMPORAL_* variables and the profile file name one, as for the `temporal` command. Only without any of
them is it the local stack, which is joined or started.
"""

import asyncio
import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime, TelemetryConfig

from starter.client.errors import Refused, Unreachable
from starter.client.server_errors import cause_of
from workflows.messages.converter import DATA_CONVERTER
from workflows.plan.language.text import one_line

ONE_TRY = 10.0


@dataclass(frozen=True, slots=True)
class TemporalServer:
    """A server to talk to. `near` says that its workers see this machine's files; `ui` is its web UI, if known; `gone`
    returns whether it was run from here and nobody does so any more.
    """

    config: ClientConnectConfig
    near: bool
    ui: str | None
    gone: Callable[[], bool] = lambda: False

    @property
    def address(self) -> str:
        return self.config.get("target_host", "")

    @property
    def namespace(self) -> str:
        return self.config.get("namespace", "default")

    def link(self, run: str, run_id: str) -> str | None:
        """Return the page of a run in the web UI."""
        return None if self.ui is None else f"{self._workflows}/{quote(run, '')}/{run_id}"

    def list_link(self, query: str) -> str | None:
        """Return the page that lists what a query of Temporal's list filter finds."""
        return None if self.ui is None else f"{self._workflows}?query={quote(query, '')}"

    @property
    def _workflows(self) -> str:
        return f"{(self.ui or '').rstrip('/')}/namespaces/{quote(self.namespace, '')}/workflows"


def configured_place(address: str | None = None, namespace: str | None = None) -> TemporalServer | None:
    """Return the server that flags, TEMPORAL_* variables or the profile name, or None. Raises Refused."""
    try:
        config = ClientConfig.load_client_connect_config()
    except (RuntimeError, ValueError) as error:
        raise Refused(f"the settings of the Temporal connection are wrong: {one_line(str(error))[:200]}") from None
    if address:
        config["target_host"] = address
    if namespace:
        config["namespace"] = namespace
    if not config.get("target_host"):
        return None
    host, _, port = config["target_host"].rpartition(":")
    if not host or not port.isdigit():
        raise Refused(f"the Temporal address is HOST:PORT, not {config['target_host']!r}")
    near = _is_here(host)
    return TemporalServer(config, near, _ui(f"http://{host}:8233" if near and port == "7233" else None))


def local_place(
    address: str, ui: str | None, namespace: str | None = None, gone: Callable[[], bool] = lambda: False
) -> TemporalServer:
    """Return the place of a stack that this machine runs for us."""
    return TemporalServer(
        ClientConnectConfig(target_host=address, namespace=namespace or "default"), True, _ui(ui), gone
    )


async def reach(place: TemporalServer) -> Client:
    """Return a client; raises Unreachable with address and cause, after at most 10 s."""
    try:
        return await asyncio.wait_for(Client.connect(**place.config, data_converter=DATA_CONVERTER), ONE_TRY)
    except TimeoutError:
        raise Unreachable(f"no Temporal server at {place.address}: no answer within {ONE_TRY:.0f} s") from None
    except (RuntimeError, ValueError) as error:
        raise Unreachable(f"no Temporal server at {place.address}: {cause_of(error)}") from None


def hush() -> None:
    """Keep the SDK's own log off standard error, where a command draws."""
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)), error_if_already_set=False)


def _is_here(host: str) -> bool:
    name = host.rpartition("://")[2].strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _ui(derived: str | None) -> str | None:
    return os.environ.get("SENNIT_UI") or derived
