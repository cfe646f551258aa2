"""Temporal on a Postgres of its own, as deploy/dev-cluster starts it: for what a dev server cannot show."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
TEMPORAL, POSTGRES = "temporal-server", "postgres"
DATABASES = ("temporal", "temporal_visibility")
HOST = "127.0.0.1"


class PostgresServer:
    """A running server; `environment` has what libpq's programs need to reach its databases."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._port, self._postgres_port = _free_ports(), _free_ports()
        self.address = f"{HOST}:{self._port}"
        login = {"PGHOST": HOST, "PGPORT": str(self._postgres_port), "PGUSER": "temporal", "PGPASSWORD": "temporal"}
        self.environment = {**os.environ, **login}

    def start(self, *only: str) -> None:
        """Start Postgres and the server; with `server` only that, on the databases that are there."""
        for name in ("pids", "log"):
            (self.place / name).mkdir(exist_ok=True)
        ours = {
            "CLUSTER_STATE": str(self.place),
            "CLUSTER_GATEWAY": HOST,
            "CLUSTER_TEMPORAL_PORT": str(self._port),
            "CLUSTER_POSTGRES_PORT": str(self._postgres_port),
        }
        command = ["sh", str(DEPLOY / "dev-cluster" / "temporal.sh"), *only]
        subprocess.run(command, env={**os.environ, **ours}, check=True, stdout=subprocess.DEVNULL)

    def pid(self, name: str) -> int:
        """Return the process of `temporal-server` or of `postgres`."""
        return int((self.place / "pids" / name).read_text())

    def kill(self, name: str = TEMPORAL, how: signal.Signals = signal.SIGKILL) -> None:
        """End one of the processes, and wait until it has gone."""
        pid = self.pid(name)
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.05)

    def drop(self) -> None:
        """Drop both databases, under whatever is connected."""
        for database in DATABASES:
            self.run("dropdb", "--force", database)

    def run(self, *command: str) -> str:
        """Run a program with the login of Postgres; returns what it prints."""
        done = subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True, cwd="/")
        return done.stdout


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server that leaves nothing behind. Its programs are those that deploy/dev-cluster/build.sh has built."""
    place = Path(tempfile.mkdtemp(prefix="sennit-postgres-"))
    place.chmod(0o711)  # Postgres does not run as root
    server = PostgresServer(place)
    try:
        server.start()
        yield server
    finally:
        for name, how in ((TEMPORAL, signal.SIGKILL), (POSTGRES, signal.SIGINT)):
            if (place / "pids" / name).exists():
                server.kill(name, how)
        shutil.rmtree(place)


def _free_ports() -> int:
    """Return a port that is free, with the others that a Temporal server takes from there on."""
    for port in random.sample(range(11_000, 31_000, 200), 100):  # the server keeps them as numbers of 16 bits with sign
        if all(_is_free(port + step) for step in (0, 1, 2, 3, 100, 101, 102, 103)):
            return port
    raise RuntimeError("no port is free")


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex((HOST, port)) != 0
