"""What a supervisor is told at its start, and the environment it gives to the workers."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from starter.dev.state import StateDir

WORKERS = (sys.executable, "-P", "-m", "workers", "all")
DRAIN = 10.0  # seconds that running activities get at a stop; a person waits, and Temporal repeats what is cut
CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
PATHS = (
    "SENNIT_DOCS",
    "SENNIT_DOCS_ROOTS",
    "SENNIT_HTTP_TOOLS",
    "SENNIT_MCP",
    "SENNIT_TOOLS_PATH",
    "SENNIT_WRITE_ROOT",
)


class Launch(BaseModel):
    """One start of a stack; travels to a supervisor in the background as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: str  # tells this start from others in the record
    state: Path
    binary: Path
    code: str
    settings: str
    foreground: bool = False
    idle_stop: float | None = None  # seconds; None: never
    worker_command: tuple[str, ...] = WORKERS
    docs: Path | None = None
    port: int  # wanted; replaced when taken
    ui_port: int


def worker_environment(
    launch: Launch, address: str, health_port: int, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The client's environment, with this stack's server in place of any other and paths made absolute.

    TEMPORAL_* of the client describe another server (TLS, keys, a profile) and are left out; an explicit profile
    file keeps the SDK from reading the person's own. Runs that name no folder read the example corpus, unless
    SENNIT_DOCS says otherwise, so that a goal typed into the web UI has something to be answered from.
    """
    state = StateDir(launch.state)
    kept = {name: value for name, value in with_whole_paths(environ).items() if not name.startswith("TEMPORAL_")}
    if launch.docs is not None:
        kept["SENNIT_DOCS"] = str(launch.docs.absolute())
    elif CORPUS.is_dir():
        kept.setdefault("SENNIT_DOCS", str(CORPUS))
    return kept | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": "default",
        "TEMPORAL_CONFIG_FILE": str(state.profile),
        "SENNIT_ARTIFACTS": str(state.artifacts),
        "SENNIT_INDEX": str(state.index),
        "SENNIT_DOCS_ANY": "1",
        "SENNIT_DRAIN": f"{DRAIN:g}",
        "SENNIT_HEALTH_PORT": str(health_port),
    }


def with_whole_paths(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables with their paths made absolute, for a process that works in another folder."""
    whole = dict(environ)
    for name in PATHS:
        if whole.get(name):
            parts = whole[name].split(os.pathsep)
            whole[name] = os.pathsep.join(
                part if part.startswith("~") else str(Path(part).absolute()) for part in parts
            )
    return whole


def profile_text(address: str) -> str:
    """A temporal.toml for this stack's server."""
    return f'[profile.default]\naddress = "{address}"\nnamespace = "default"\n'
