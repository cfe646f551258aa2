"""What workers take from the client that starts them, and one digest that tells when it has changed."""

import os
import re
import sysconfig
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

PACKAGES = ("workflows", "activities", "workers", "starter")
INHERITED = ("SENNIT_", "OPENAI_", "ANTHROPIC_", "SSL_CERT_")
OF_THE_CLIENT = frozenset({"SENNIT_STATE", "SENNIT_IDLE_STOP", "SENNIT_TEMPORAL_CLI", "SENNIT_HEALTH_PORT"})
PATHS = ("DOCS", "DOCS_ROOTS", "HTTP_TOOLS", "MCP", "TOOLS_PATH", "WRITE_ROOT")


class Settings(BaseModel):
    """A client's environment for workers. It may hold keys: it travels through memory and pipes only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    environ: dict[str, str] = Field(repr=False)

    @classmethod
    def of_this_process(cls) -> Self:
        """Read the environment and the files it names now."""
        environ = with_absolute_paths(os.environ)
        return cls(digest=settings_digest(environ), environ=environ)


def with_absolute_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with their paths made absolute, for a process that works in another folder."""
    absolute = dict(environ)
    for name in (*(f"SENNIT_{name}" for name in PATHS), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        if absolute.get(name):
            parts = [os.path.expanduser(part) for part in absolute[name].split(os.pathsep) if part]  # noqa: PTH111
            absolute[name] = os.pathsep.join(str(Path(part).absolute()) for part in parts)
    return absolute


def settings_digest(environ: Mapping[str, str], root: Path = Path(__file__).parents[2]) -> str:
    """Return a digest of everything whose change asks for new workers; no value can be read from it.

    That is: the variables of Sennit, its models and certificates; the files they name, and the variables that these
    files name; the user's tool modules; the sources of Sennit below `root`.
    """
    digest = sha256()
    names = sorted(name for name in environ if name.startswith(INHERITED) and name not in OF_THE_CLIENT)
    for name in names:
        for part in environ[name].split(os.pathsep):
            content = _content(Path(part))
            digest.update(repr((name, part, content)).encode())
            mentioned = re.findall(r"\$\{?(\w+)", content.decode(errors="replace"))
            names += [each for each in mentioned if each in environ and each not in names]
    for source in (*_tool_modules(environ), *(file for name in PACKAGES for file in _python_files(root / name))):
        digest.update(repr((str(source), _content(source))).encode())
    return digest.hexdigest()[:16]


def _content(path: Path) -> bytes:
    """Return a file's content; nothing for what is no file that can be read."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except (OSError, ValueError):  # a text that is no path
        return b""


def _tool_modules(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of the modules in SENNIT_TOOLS, of packages all, without importing them."""
    folders = environ.get("SENNIT_TOOLS_PATH", "").split(os.pathsep)
    for name in environ.get("SENNIT_TOOLS", "").split(","):
        found = PathFinder.find_spec(name.strip().partition(".")[0], [sysconfig.get_path("purelib"), *folders])
        if found and found.submodule_search_locations:
            for folder in found.submodule_search_locations:
                yield from _python_files(Path(folder))
        elif found and found.origin:
            yield Path(found.origin)


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
