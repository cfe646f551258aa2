"""Somebody who asks models: the `sennit` command, the local stack it starts, and a model server in a process."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doubles.sennit_command import sennit
from doubles.worker_processes import TESTS

from sennit.folders import CORPUS
from sennit.starter.dev.binary import obtain
from sennit.starter.dev.state import StateDir

LONGEST = 90.0
FOREIGN = ("TEMPORAL_", "SENNIT_", "OPENAI_", "ANTHROPIC_")


@dataclass(frozen=True)
class ModelProcess:
    """A model server in a process of its own; `log` has its requests."""

    openai_url: str
    anthropic_url: str
    log: Path

    def asked(self, *words: str) -> list[str]:
        """Return the text of each request that has all these words, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        texts = [str(json.loads(line)["text"]) for line in lines]
        return [text for text in texts if all(word in text for word in words)]


@contextmanager
def model_process(place: Path, rules: Sequence[dict[str, Any]], *flags: str) -> Iterator[ModelProcess]:
    """Start the server as its docstring says."""
    file, log = place / "rules.json", place / "asked.jsonl"
    file.write_text(json.dumps(rules))
    command = [sys.executable, "-m", "sennit.testing.models", "--rules", str(file), "--log", str(log), *flags]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        urls = [word.partition("=")[2] for word in process.stdout.readline().split()]
        try:
            yield ModelProcess(urls[0], urls[1], log)
        finally:
            process.kill()


@dataclass(frozen=True)
class CliUser:
    """`state` is where the local stack of this person keeps everything."""

    state: Path
    env: dict[str, str]

    def sennit(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, with nobody at the keyboard."""
        return sennit(argv, self.env, Path.cwd(), LONGEST)

    def leaks(self, secret: str) -> list[Path]:
        """Return the files of the state folder that hold a secret: histories in the database, logs, artifacts."""
        bodies = {path: path.read_bytes() for path in self.state.rglob("*") if path.is_file()}
        assert any(b"AgentRun" in body for path, body in bodies.items() if path.name.startswith("temporal.db"))
        return [path for path, body in bodies.items() if secret.encode() in body]

    @property
    def address(self) -> str:
        """Where the Temporal server of the local stack is."""
        record = StateDir(self.state).read()
        assert record is not None
        assert record.address
        return record.address


@contextmanager
def cli_user(state: Path, **variables: str) -> Iterator[CliUser]:
    """Somebody with these variables and the tools for tests; their stack ends with the block."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    env |= {
        "SENNIT_STATE": str(state),
        "SENNIT_TEMPORAL_CLI": str(asyncio.run(obtain(pinned_only=True))),
        "SENNIT_TOOLS": "doubles.tools",
        "SENNIT_TOOLS_PATH": str(TESTS),
        "SENNIT_DOCS": str(CORPUS),
        "XDG_CONFIG_HOME": str(state / "config"),
    }
    person = CliUser(state, env | variables)
    try:
        yield person
    finally:
        person.sennit("dev", "--stop")


@contextmanager
def cli_user_with_models(
    place: Path, rules: Sequence[dict[str, Any]], key: str, **variables: str
) -> Iterator[tuple[CliUser, ModelProcess]]:
    """Somebody whose models are on a server that speaks both formats and wants the key."""
    with model_process(place, rules, "--key", key) as model:
        openai = {"OPENAI_BASE_URL": model.openai_url, "OPENAI_API_KEY": key}
        anthropic = {"ANTHROPIC_BASE_URL": model.anthropic_url, "ANTHROPIC_API_KEY": key}
        with cli_user(place / "state", **openai | anthropic | variables) as person:
            yield person, model
