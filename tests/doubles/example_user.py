"""A user of the example plans: the `sennit` command, real workers with the example tool, a web server with a page."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from doubles.sennit_command import sennit
from doubles.worker_processes import WorkerProcesses

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LONGEST = 60.0


@dataclass(frozen=True)
class ExampleUser:
    """`run` runs a command line in the repository, stderr among stdout, with `env`; `site` is host and port of the web
    server.
    """

    run: Callable[[str], subprocess.CompletedProcess[str]]
    site: str
    env: dict[str, str]


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        return None


@contextmanager
def example_user(address: str, place: Path) -> Iterator[ExampleUser]:
    """A user of the Temporal server at `address`, whose operator allows the local web server."""
    with _web() as site:
        (place / "public").mkdir()
        processes = WorkerProcesses(
            address,
            place / "workers",
            SENNIT_TOOLS="code_metrics",
            SENNIT_TOOLS_PATH=str(EXAMPLES / "tools"),
            SENNIT_DOCS=str(EXAMPLES / "corpus"),
            SENNIT_HTTP_ALLOW=site,
            SENNIT_WRITE_ROOT=str(place / "public"),
            SENNIT_MODEL="offline",
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENNIT_", "TEMPORAL_"))}
        kept |= {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TEMPORAL_ADDRESS": address,
            "SENNIT_STATE": str(place / "client"),
        }
        try:
            processes.start("all")
            yield ExampleUser(partial(_run, env=kept), site, kept)
        finally:
            processes.kill()


@contextmanager
def _web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(EXAMPLES / "pages")))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _run(command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    program, *argv = shlex.split(command)
    assert program == "sennit"
    return sennit(argv, env, ROOT, LONGEST, together=True)
