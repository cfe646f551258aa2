"""The example plans as a user meets them: the `weft` command, real workers with the example tool, a web server."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from doubles.crew import Crew

from starter.dev.server import DevServer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LONGEST = 60.0

Weft = Callable[[str], subprocess.CompletedProcess[str]]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps no log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        return None


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Host and port of a server with the example pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(EXAMPLES / "pages")))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def shell(dev_server: DevServer, site: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weft]:
    """Run a shell command in the repository, as a user of a server whose operator has allowed the local web server."""
    place = tmp_path_factory.mktemp("examples")
    crew = Crew(
        dev_server.address,
        place / "workers",
        WEFT_TOOLS="code_metrics",
        WEFT_TOOLS_PATH=str(EXAMPLES / "tools"),
        WEFT_DOCS=str(EXAMPLES / "corpus"),
        WEFT_HTTP_ALLOW=site,
    )
    crew.hire("all")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "TEMPORAL_"))}
    kept |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TEMPORAL_ADDRESS": dev_server.address,
        "WEFT_STATE": str(place / "client"),
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=ROOT,
            env=kept,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    yield run
    crew.kill()
