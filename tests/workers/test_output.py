"""What a tool prints, or a process that it starts, has no secrets in it when it reaches the log."""

import subprocess
import sys

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
