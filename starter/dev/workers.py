"""The workers of a local stack: their process, their environment, and a digest that tells when it has changed."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from importlib.machinery import PathFinder
from pathlib import Path

from starter.dev.child import Child
from starter.dev.server import HOST, NAMESPACE, free_port
from starter.dev.state import StateDir

COMMAND = (sys.executable, "-P", "-m", "workers", "all")
GC = (sys.executable, "-P", "-m", "workers", "gc")
DRAIN = 10.0  # seconds that running activities get at a stop; Temporal repeats those that are cut
ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "examples" / "corpus"
PACKAGES = ("workflows", "activities", "workers", "starter")
INHERITED = ("SENNIT_", "OPENAI_", "ANTHROPIC_", "SSL_CERT_")
OF_THE_CLIENT = frozenset({"SENNIT_STATE", "SENNIT_IDLE_STOP", "SENNIT_TEMPORAL_CLI", "SENNIT_HEALTH_PORT"})
PATHS = ("DOCS", "DOCS_ROOTS", "HTTP_TOOLS", "MCP", "TOOLS_PATH", "WRITE_ROOT")


class Workers(Child):
    """Workers of every role in one process, with the environment of this one, for the server at `address`."""

    name = "the worker process"
    grace = DRAIN + 5

    def __init__(self, command: Sequence[str], state: StateDir) -> None:
        super().__init__(state.log("worker"))
        self._command = command
        self._state = state
        self._port = 0
        self.address = ""

    async def start(self) -> None:
        self._port = free_port()
        await self.launch(self._command, worker_environment(self._state, self.address, self._port, os.environ))

    async def answers(self) -> bool:
        return await asyncio.to_thread(_says_yes, self._port, "/readyz")

    async def lives(self) -> bool:
        return await asyncio.to_thread(_says_yes, self._port, "/livez")

    async def collect_garbage(self) -> bool:
        """Delete artifacts of runs that the server no longer knows, in a process that ends with this one's server.

        Returns whether it has looked at all. What it says goes to the log of the workers.
        """
        environment = worker_environment(self._state, self.address, 0, os.environ)
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *GC, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.log.parent
            )
        try:
            return await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _says_yes(port: int, path: str) -> bool:
    """Return whether a GET is answered with 200 within two seconds."""
    with suppress(OSError, HTTPException), closing(HTTPConnection(HOST, port, timeout=2)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


def worker_environment(state: StateDir, address: str, health_port: int, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a client's environment with this stack's server in place of any other.

    TEMPORAL_* of the client describe another server (TLS, keys, a profile) and are left out; an empty profile file
    keeps the SDK from reading the person's own. Runs that name no folder read the example corpus, unless SENNIT_DOCS
    says otherwise, so that a goal typed into the web UI has documents to answer it.
    """
    kept = {name: value for name, value in with_absolute_paths(environ).items() if not name.startswith("TEMPORAL_")}
    if CORPUS.is_dir():
        kept.setdefault("SENNIT_DOCS", str(CORPUS))
    return kept | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": NAMESPACE,
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "SENNIT_ARTIFACTS": str(state.artifacts),
        "SENNIT_INDEX": str(state.index),
        "SENNIT_GRANTS": str(state.grants),
        "SENNIT_DRAIN": f"{DRAIN:g}",
        "SENNIT_HEALTH_PORT": f"{HOST}:{health_port}",
    }


def with_absolute_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with their paths made absolute, for a process that works in another folder."""
    absolute = dict(environ)
    for name in (*(f"SENNIT_{name}" for name in PATHS), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        if absolute.get(name):
            parts = [os.path.expanduser(part) for part in absolute[name].split(os.pathsep) if part]  # noqa: PTH111
            absolute[name] = os.pathsep.join(str(Path(part).absolute()) for part in parts)
    return absolute


def settings_digest(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> str:
    """Return a digest of everything whose change asks for new workers; no value can be read from it.

    That is: the variables of Sennit, its models and certificates; the files they name, and the variables that these
    files name; the user's tool modules; the sources of Sennit below `root`.
    """
    environ = with_absolute_paths(environ)
    digest = sha256()
    names = sorted(name for name in environ if name.startswith(INHERITED) and name not in OF_THE_CLIENT)
    for name in names:
        for part in environ[name].split(os.pathsep):
            content = _content(Path(part))
            digest.update(repr((name, part, content)).encode())
            mentioned = re.findall(r"\$\{?(\w+)", content.decode(errors="replace"))
            names += [each for each in mentioned if each in environ and each not in names]
    sources = (*_tool_modules(environ), *(file for name in PACKAGES for file in _python_files(root / name)))
    for source in dict.fromkeys(sources):  # a folder may be on the path of one process more often than on another's
        digest.update(repr((str(source), _content(source))).encode())
    return digest.hexdigest()[:16]


def _content(path: Path) -> bytes:
    """Return a file's content; nothing for what is no file that can be read."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except (OSError, ValueError):  # a text that is no path
        return b""


def _tool_modules(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of the modules in SENNIT_TOOLS, of packages all, without importing them; and those beside them on
    SENNIT_TOOLS_PATH, which they may import.
    """
    folders = [folder for folder in environ.get("SENNIT_TOOLS_PATH", "").split(os.pathsep) if folder]
    for folder in folders:
        yield from sorted(Path(folder).glob("*.py"))
    path = [*sys.path[not sys.flags.safe_path :], *folders]  # workers do not look where the command was started
    names = [name.strip().partition(".")[0] for name in environ.get("SENNIT_TOOLS", "").split(",")]
    for top in filter(None, names):
        specs = (finder.find_spec(top, path if finder is PathFinder else None) for finder in sys.meta_path)
        found = next(filter(None, specs), None)  # other finders: packages installed as editable
        if found and found.submodule_search_locations:
            for folder in found.submodule_search_locations:
                yield from _python_files(Path(folder))
        elif found and found.origin:
            yield Path(found.origin)


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
