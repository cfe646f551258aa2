"""What a running stack was started from, so that a client notices that it has changed since."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from starter.dev.launch import with_whole_paths
from starter.dev.state import StackRecord

PACKAGES = ("workflows", "activities", "workers", "starter")
SOURCES = (".py", ".toml")
INHERITED = ("SENNIT_", "OPENAI_", "ANTHROPIC_")
OF_THE_CLIENT = frozenset({"SENNIT_STATE", "SENNIT_IDLE_STOP", "SENNIT_TEMPORAL_CLI", "SENNIT_HEALTH_PORT"})


def code_digest(root: Path = Path(__file__).parents[2]) -> str:
    """Digest of the names and contents of every source file of the four packages."""
    digest = sha256()
    for package in PACKAGES:
        for source in sorted(path for path in (root / package).rglob("*") if path.suffix in SOURCES):
            content = source.read_bytes()
            digest.update(f"{source.relative_to(root)} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:16]


def settings_digest(environ: Mapping[str, str] = os.environ) -> str:
    """Digest of the variables that workers take from the client that starts them, model keys among them."""
    names = sorted(name for name in environ if name.startswith(INHERITED) and name not in OF_THE_CLIENT)
    whole = with_whole_paths(environ)
    return sha256(repr([(name, whole[name]) for name in names]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a client would start a stack from."""

    code: str
    settings: str

    @classmethod
    def of_this_client(cls) -> Self:
        """The sources installed here and the variables set here."""
        return cls(code_digest(), settings_digest())

    def differences(self, record: StackRecord) -> str:
        """What differs in a running stack, in words; empty when nothing does."""
        changed = ["code"] if self.code != record.code else []
        changed += ["settings (SENNIT_*, OPENAI_*, ANTHROPIC_*)"] if self.settings != record.settings else []
        return " and ".join(changed)
