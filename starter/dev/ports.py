"""Ports on 127.0.0.1: the wanted one if it is free, else one the system gives."""

import socket
from collections.abc import Collection

HOST = "127.0.0.1"


def choose_port(wanted: int, taken: Collection[int] = ()) -> int:
    """Return `wanted` if it is free and not in `taken`, else a free port; 0 always gives a free one."""
    if wanted and wanted not in taken and _is_free(wanted):
        return wanted
    while True:
        with socket.create_server((HOST, 0)) as probe:
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def _is_free(port: int) -> bool:
    """Systems differ in what bind allows, so connect, too."""
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((HOST, port)) == 0:
            return False
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True
