"""Ports on 127.0.0.1: the wanted one if it is free, else one the system gives."""

import socket
from collections.abc import Collection

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now. Both tests are needed: systems differ in what bind allows."""
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port(wanted: int, taken: Collection[int] = ()) -> int:
    """`wanted` if it is free and not in `taken`, else a free one; 0 always gives a free one."""
    if wanted and wanted not in taken and is_free(wanted):
        return wanted
    while True:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
