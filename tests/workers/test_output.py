"""What a tool prints, or a process that it starts, has no secrets in it when it reaches the log."""

import os
import subprocess
import sys
import threading

import pytest

from sennit.workers import output

CODE = """
import os, subprocess, sys
from sennit.workers.output import log_stream, redact_output
from sennit.workers.shutdown import leave
redact_output()
print("printed", os.environ["MY_API_KEY"])
sys.stderr.write("to stderr " + os.environ["MY_API_KEY"])
sys.stderr.flush()
subprocess.run([sys.executable, "-c", "import os; print('by a child', os.environ['MY_API_KEY'])"])
os.write(1, b"not text \\xff\\n" + b"x" * 200_000)
log_stream().write("a line of the log\\n")
leave(3)
"""


def test_what_a_process_and_its_children_print_is_redacted() -> None:
    env = {"MY_API_KEY": "hunter2222", "PATH": ""}
    ended = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, check=False, timeout=60)
    assert ended.returncode == 3
    assert b"hunter2222" not in ended.stdout + ended.stderr
    assert b"printed [redacted]\n" in ended.stdout
    assert b"by a child [redacted]\n" in ended.stdout
    assert b"not text \xff\n" in ended.stdout
    assert ended.stdout.count(b"x") >= 200_000, "what comes last is not lost"
    assert b"to stderr [redacted]" in ended.stderr
    assert b"a line of the log\n" in ended.stderr


def _pumped(parts: list[bytes], kept: int) -> None:
    """Have these parts pass through a pump, which reads one after the other, to its end."""
    read, write = os.pipe()
    pump = threading.Thread(target=output._pump, args=(read, kept), daemon=True)
    pump.start()
    for part in parts:
        os.write(write, part)
    os.close(write)
    pump.join(10)
    assert not pump.is_alive()
    os.close(read)


def test_a_secret_in_a_long_line_is_not_cut_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2222")
    monkeypatch.setattr(output, "_MAX_LINE_BYTES", 100)
    shown, kept = os.pipe()
    _pumped([b"x" * 100 + b"hunt"], kept)
    assert os.read(shown, 1000) == b"x" * 100 + b"hunt", "what comes last is not lost"
    for cut in range(1, 10):
        secret = b"hunter2222"
        rest = output._write_part(kept, b"x" * 100 + secret[:cut])
        output._write(kept, rest + secret[cut:] + b"\n")
        assert os.read(shown, 1000) == b"x" * 100 + b"[redacted]\n"
    os.close(kept)
    os.close(shown)


def test_a_line_that_cannot_be_written_does_not_stop_whoever_prints() -> None:
    read, kept = os.pipe()
    os.close(read)  # every write fails with EPIPE
    _pumped([b"lost\n" * 1000] * 100, kept)
    os.close(kept)
