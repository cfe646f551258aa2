"""Which Temporal server a command talks to, and how it gets there.

`--address`, TEMPORAL_* variables and the profile file name one, as for the `temporal` command. Only
without any of them is it the local stack, which is joined or started.
"""

import atexit
import getpass
import ipaddress
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import quote

from temporalio.client import Client
from temporalio.envconfig import ClientConnectConfig
from temporalio.runtime import Runtime, TelemetryConfig

from sennit.private_interfaces import is_foreign
from sennit.starter.client.errors import Refused, ServerUnreachable
from sennit.starter.limits import MAX_SECONDS_AT_EXIT
from sennit.workflows.messages.converter import (
    DATA_CONVERTER,
    cause_of,
    connect,
    connection_settings,
)

LEAST_SECONDS_AT_EXIT = 0.02
CLOUD_HOSTS = (".tmprl.cloud", ".api.temporal.io")
CLOUD_UI = "https://cloud.temporal.io"


@dataclass(frozen=True, slots=True)
class TemporalServer:
    """A server to talk to. `ui` is its web UI, if known; `stopped` returns whether it was run
    from here and is stopped.

    `is_local` says that its workers see the files of this machine.
    """

    config: ClientConnectConfig
    is_local: bool
    ui: str | None
    stopped: Callable[[], bool] = lambda: False

    @property
    def address(self) -> str:
        return self.config.get("target_host", "")

    @property
    def namespace(self) -> str:
        return self.config.get("namespace", "default")

    def link(self, run: str, run_id: str) -> str | None:
        return self._page(f"/{quote(run, '')}/{run_id}")

    def list_link(self, query: str) -> str | None:
        """Return the page that lists what a query of Temporal's list filter finds."""
        return self._page(f"?query={quote(query, '')}")

    def _page(self, path: str) -> str | None:
        if self.ui is None:
            return None
        return f"{self.ui.rstrip('/')}/namespaces/{quote(self.namespace, '')}/workflows{path}"


def configured_server(
    address: str | None = None, namespace: str | None = None
) -> TemporalServer | None:
    """Return the server that flags, TEMPORAL_* variables or the profile name,
    or None. Raises Refused.
    """
    try:
        config = connection_settings()
    except ValueError as error:
        raise Refused(str(error)) from None
    if address:
        config["target_host"] = address
    if namespace:
        config["namespace"] = namespace
    if not config.get("target_host"):
        return None
    return _server(config)


def server_of(client: Client) -> TemporalServer:
    """Return the server of a client that somebody else has connected."""
    address = client.service_client.config.target_host
    return _server(ClientConnectConfig(target_host=address, namespace=client.namespace))


def _server(config: ClientConnectConfig) -> TemporalServer:
    host, _, port = config["target_host"].rpartition(":")
    if not host or not port.isdigit():
        raise Refused(f"the Temporal address is HOST:PORT, not {config['target_host']!r}")
    is_local = _is_loopback(host)
    usual_ui = None
    if is_local and port == "7233":
        usual_ui = f"http://{host}:8233"
    if host.endswith(CLOUD_HOSTS):
        usual_ui = CLOUD_UI
    return TemporalServer(config, is_local, _ui(usual_ui))


def local_server(
    address: str,
    ui: str | None,
    namespace: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> TemporalServer:
    """Return the server of a stack that this machine runs for us."""
    config = ClientConnectConfig(target_host=address, namespace=namespace or "default")
    return TemporalServer(config, True, _ui(ui), stopped)


def _ui(known: str | None) -> str | None:
    """Return where the web UI is: SENNIT_UI, which may be `off`, else what is known."""
    named = os.environ.get("SENNIT_UI")
    if named == "off":
        return None
    return named or known or None


async def connect_client(server: TemporalServer, identity: str = "") -> Client:
    """Return a client, which histories name by its identity: by default the person whose process
    this is. Raises ServerUnreachable with address and cause, after at most 10 s.
    """
    try:
        return await connect(config=server.config, identity=identity or person())
    except (RuntimeError, TimeoutError, ValueError) as error:
        raise ServerUnreachable(
            f"no Temporal server at {server.address}: {cause_of(error)}"
        ) from None


def speaking_sennit(client: Client) -> Client:
    """Return a client of the same connection that writes payloads as Sennit's workers read them.
    Its codec, interceptors and everything else stay. The process ends only when the SDK's
    threads have left Python.
    """
    _wait_at_exit()
    converter = replace(
        client.data_converter,
        payload_converter_class=DATA_CONVERTER.payload_converter_class,
        failure_converter_class=DATA_CONVERTER.failure_converter_class,
    )
    config = client.config()
    # Plugins have already had their say.
    config["data_converter"], config["plugins"] = converter, []
    return Client(**config)


@cache
def _wait_at_exit() -> None:
    atexit.register(_wait_for_sdk_threads)


def _wait_for_sdk_threads() -> None:
    """Return when no thread of the SDK's core runs Python code, or after a second.

    Such a thread hands over a result, and gives way while it wakes the event loop. If the
    interpreter ends meanwhile, Python ends the thread inside of Rust, and that aborts the
    process (exit code 134).
    """
    until = time.monotonic() + MAX_SECONDS_AT_EXIT
    time.sleep(LEAST_SECONDS_AT_EXIT)  # for those that are just about to begin
    while time.monotonic() < until:
        ours = {thread.ident for thread in threading.enumerate() if not is_foreign(thread)}
        if not sys._current_frames().keys() - ours:
            return
        time.sleep(LEAST_SECONDS_AT_EXIT)


def person() -> str:
    """Return who uses this client, as histories and approvals name them."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def silence_sdk_log() -> None:
    """Keep the SDK's own log off standard error, where a command draws."""
    Runtime.set_default(
        Runtime(telemetry=TelemetryConfig(logging=None)), error_if_already_set=False
    )


def _is_loopback(host: str) -> bool:
    name = host.rpartition("://")[2].strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
