"""The workers of a local stack: their process, their environment, and a digest that
tells when it has changed.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from pydantic import BaseModel

from sennit.folders import PACKAGE
from sennit.starter.dev.child import Child
from sennit.starter.dev.messages import LocalStackFailed, WrongSettings
from sennit.starter.dev.server import HOST, NAMESPACE, free_port
from sennit.starter.dev.state import StateDir
from sennit.starter.dev.worker_command import WORKERS, run_to_end

COMMAND = (*WORKERS, "all")
CHECK = (*WORKERS, "catalogue")
CHECK_LIMIT = 60.0  # seconds
GC = (*WORKERS, "gc")
STORE_ID = ".store-id"  # what an artifact store has as long as it is there
DRAIN = 10.0  # seconds that running activities get at a stop; Temporal repeats those that are cut
INSTALLATION = f"{PACKAGE.parent}, Python of {sys.prefix}"
PACKAGES = ("workflows", "activities", "workers", "starter")
INHERITED = ("SENNIT_", "OPENAI_", "ANTHROPIC_", "OTEL_", "SSL_CERT_")
OF_THE_CLIENT = frozenset(
    {"SENNIT_STATE", "SENNIT_IDLE_STOP", "SENNIT_TEMPORAL_CLI", "SENNIT_HEALTH_PORT"}
)
PATHS = ("DOCS", "DOCS_ROOTS", "HTTP_TOOLS", "LOGINS", "MCP", "PRICES", "TOOLS_PATH", "WRITE_ROOT")
MODEL_SETTINGS = "SENNIT_MODEL_SETTINGS"  # a file, or the settings themselves


class Workers(Child):
    """Workers of every role in one process, with the environment of this one, for the server at
    `address`. A stack may have several such processes; this is the one with the `number`.
    """

    grace = DRAIN + 5

    def __init__(self, command: Sequence[str], state: StateDir, number: int = 1) -> None:
        super().__init__(state.log("worker", number))
        self.name = "the worker process"
        if number > 1:
            self.name = f"worker process {number}"
        self._command = command
        self._state = state
        self._port = 0
        self.address = ""

    async def start(self) -> None:
        self._port = free_port()
        await self.launch(
            self._command, worker_environment(self._state, self.address, self._port, os.environ)
        )

    async def responds(self) -> bool:
        return await asyncio.to_thread(says_yes, self._port, "/readyz")

    async def lives(self) -> bool:
        return await asyncio.to_thread(says_yes, self._port, "/livez")

    async def collect_garbage(self) -> bool:
        """Delete artifacts of runs that the server no longer knows, in a process that ends
        with this one's server.

        Returns whether it has looked at all. What it says goes to the log of the workers.
        """
        environment = worker_environment(self._state, self.address, 0, os.environ)
        with self.log.open("ab") as log:
            ended = await run_to_end(
                GC, out=log, errors=log, env=environment, folder=self.log.parent
            )
        return ended.code == 0


class Store(BaseModel):
    """An artifact store: its place, and whether it was created just now."""

    store: str
    created: bool


async def create_store(environment: Mapping[str, str]) -> Store:
    """Create the artifact store of workers with this environment, unless it is there.
    Raises LocalStackFailed.
    """
    ended = await run_to_end((*WORKERS, "store"), env=environment)
    if ended.code != 0:
        raise LocalStackFailed(f"the artifact store cannot be created: {ended.last_line}")
    return Store.model_validate_json(ended.out)


def says_yes(port: int, path: str) -> bool:
    """Return whether a GET is answered with 200 within two seconds."""
    with (
        suppress(OSError, HTTPException),
        closing(HTTPConnection(HOST, port, timeout=2)) as connection,
    ):
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


def worker_environment(
    state: StateDir, address: str, health_port: int, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return a client's environment with this stack's server in place of any other.

    TEMPORAL_* of the client describe another server (TLS, keys, a profile) and are left out; an
    empty profile file keeps the SDK from reading the person's own.
    """
    absolute = with_absolute_paths(environ)
    kept = {name: value for name, value in absolute.items() if not name.startswith("TEMPORAL_")}
    return kept | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "SENNIT_ARTIFACTS": str(state.artifacts),
        "SENNIT_INDEX": str(state.index),
        "SENNIT_GRANTS": str(state.grants),
        "SENNIT_IMPORTED": str(state.modules),
        "SENNIT_LOGINS": kept.get("SENNIT_LOGINS") or str(state.logins),
        "SENNIT_DRAIN": f"{DRAIN:g}",
        "SENNIT_HEALTH_PORT": f"{HOST}:{health_port}",
    }


def with_absolute_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with their paths made absolute, for a process that
    works in another folder.
    """
    absolute = dict(environ)
    names = [f"SENNIT_{name}" for name in PATHS]
    names += ["SSL_CERT_FILE", "SSL_CERT_DIR"]
    if "=" not in environ.get(MODEL_SETTINGS, ""):
        names.append(MODEL_SETTINGS)
    for name in names:
        # A variable may have several paths, as PATH has.
        paths: list[str] = []
        for part in absolute.get(name, "").split(os.pathsep):
            if part:
                expanded = os.path.expanduser(part)  # noqa: PTH111  # a user without a home keeps the `~`
                paths.append(str(Path(expanded).absolute()))
        if absolute.get(name):
            absolute[name] = os.pathsep.join(paths)
    return absolute


def settings_digest(environ: Mapping[str, str] = os.environ, root: Path = PACKAGE) -> str:
    """Return a digest of everything whose change asks for new workers; no
    value can be read from it.

    That is: the variables of Sennit, its models and certificates; the files they name, and the
    variables that these files name; the sources of Sennit below `root`. `changed_modules` tells
    of the user's modules.
    """
    environ = with_absolute_paths(environ)
    digest = sha256()
    names = _inherited(environ)
    for name in names:
        for part in environ[name].split(os.pathsep):
            content = _content(Path(part))
            digest.update(repr((name, part, content)).encode())
            # A variable that a file names is looked at when its turn comes, behind the others.
            for mentioned in re.findall(r"\$\{?(\w+)", content.decode(errors="replace")):
                if mentioned in environ and mentioned not in names:
                    names.append(mentioned)

    sources = sorted(root.glob("*.py"))
    for package in PACKAGES:  # which may be links
        sources += _python_files(root / package)
    for source in sources:
        digest.update(repr((str(source), _content(source))).encode())
    return digest.hexdigest()[:16]


def environment_digest(environ: Mapping[str, str] = os.environ) -> str:
    """Return a digest of the variables that workers take over from a client, without the files that
    they name. Clients in two shells with equal digests would start the same workers.
    """
    environ = with_absolute_paths(environ)
    variables = [(name, environ[name]) for name in _inherited(environ)]
    return sha256(repr(variables).encode()).hexdigest()[:16]


def _inherited(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that workers take over from a client, in order."""
    return sorted(
        name for name in environ if name.startswith(INHERITED) and name not in OF_THE_CLIENT
    )


def changed_modules(state: StateDir) -> list[str]:
    """Return the files of the user's modules that have changed since the workers imported
    them, as these have noted.
    """
    try:
        noted = json.loads(state.modules.read_bytes())
    except (OSError, ValueError):
        return []
    changed: list[str] = []
    for file, digest in noted.items():
        if sha256(_content(Path(file))).hexdigest() != digest:
            changed.append(file)
    return changed


def refuse_foreign_store(state: StateDir) -> None:
    """Raise WrongSettings if SENNIT_ARTIFACTS names another place than the stack's own: its runs
    would be in one place and their outputs, by whoever asks, in two.
    """
    named = os.environ.get("SENNIT_ARTIFACTS", "")
    if named and (
        "://" in named or Path(named).expanduser().absolute() != state.artifacts.absolute()
    ):
        ways = "unset it here, or name the server that its workers serve with --address"
        raise WrongSettings(
            f"SENNIT_ARTIFACTS={named}: the local stack keeps artifacts in {state.artifacts}; "
            f"{ways}"
        )


async def check_settings(command: Sequence[str], state: StateDir) -> None:
    """Have `command` try the settings of this process, so that nothing is stopped for
    workers that cannot start.

    Raises WrongSettings with its last line.
    """
    environment = worker_environment(state, "127.0.0.1:1", 0, os.environ)
    try:
        ended = await run_to_end(command, env=environment, folder=state.root, seconds=CHECK_LIMIT)
    except TimeoutError:
        raise LocalStackFailed(
            f"the workers' settings could not be tried within {CHECK_LIMIT:g} s"
        ) from None
    if ended.code != 0:
        raise WrongSettings(f"workers cannot start with these settings: {ended.last_line}")


def _content(path: Path) -> bytes:
    """Return a file's content; nothing for what is no file that can be read."""
    try:
        if not path.is_file():
            return b""
        return path.read_bytes()
    except (OSError, ValueError):  # a text that is no path
        return b""


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
