"""Every role runs under Pod Security `restricted`, and does its work there."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.kubernetes import Cluster
from doubles.runs import call
from temporalio.client import Client

from sennit.workers.roles import ROLES
from sennit.workflows.messages import queues

pytestmark = pytest.mark.timeout(600)
PROC = "Seccomp NoNewPrivs CapEff"


@pytest.mark.parametrize("role", sorted(ROLES.keys() - {"all"}))
def test_a_role_is_ready_and_has_no_rights(workers: Cluster, role: str) -> None:
    (pod,) = workers.pods(role).values()
    name = pod["metadata"]["name"]
    assert {each["type"]: each["status"] for each in pod["status"]["conditions"]}["Ready"] == "True"
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]
    code = (
        "import os, urllib.request\n"
        "lines = dict(line.split(':', 1) for line in open('/proc/1/status'))\n"
        f"rights = {{name: lines[name].strip() for name in {PROC.split()}}}\n"
        "token = os.path.exists('/var/run/secrets/kubernetes.io')\n"
        "writable = [place for place in ('/', '/opt/sennit', '/usr') if os.access(place, os.W_OK)]\n"
        "import json; print(json.dumps([os.getuid(), rights, token, writable]))\n"
    )
    seen = json.loads(workers.kubectl("exec", name, "--", "python3", "-c", code))
    rights = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0000000000000000"}
    assert seen == [10001, rights, False, []]
    ready = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/readyz').read().decode())"
    answer = json.loads(workers.kubectl("exec", name, "--", "python3", "-c", ready))
    assert (answer["ready"], answer["role"], tuple(answer["queues"])) == (True, role, ROLES[role].queues)


def test_a_question_from_outside_is_answered_by_the_pods(workers: Cluster) -> None:
    command = [sys.executable, "-m", "sennit", "ask", "Which is longer, the Nile or the Amazon?"]
    asked = subprocess.run([*command, "--address", workers.temporal, "--timeout", "3m"], capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    assert "Nile" in asked.stdout


PROGRAM = """
async def double(number: int) -> int:
    return (await calculate(expression=f"{number} * 2"))["value"]

async def main(count: int):
    found = await parallel([task(double, number=number) for number in range(count)])
    return f"{sum(found)} in all"
"""


def test_a_program_runs_in_the_pods(workers: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "sennit", "run", str(script), "--input", "count=5"]
    ran = subprocess.run([*command, "--address", workers.temporal, "--timeout", "3m"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, "20 in all"), ran.stderr


def test_garbage_is_collected_by_a_job(workers: Cluster) -> None:
    workers.kubectl("create", "job", "gc-now", "--from=cronjob/sennit-gc")
    try:
        workers.kubectl("wait", "job/gc-now", "--for=condition=complete", "--timeout=120s")
        assert "deleted: 0 runs" in workers.kubectl("logs", "job/gc-now")
    finally:
        workers.kubectl("delete", "job", "gc-now")


ESCAPES = {
    "network": (
        "import socket; socket.create_connection(({gateway!r}, {port}), 2)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ({gateway!r}, 53))",
        "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('/tmp/x')",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    ),
    "secrets": (
        "print(open('/proc/1/environ').read())",
        "print(open('/proc/%d/mem' % os.getppid(), 'rb').read(1))",
        "print(open('/etc/passwd').read())",
        "print(os.listdir('/var/lib/sennit'))",
        "print(os.listdir('/documents'))",
        "print(os.listdir('/tests'))",
        "os.symlink('/etc/passwd', 'link'); print(open('link').read())",
    ),
    "files": (
        "open('/tmp/escaped', 'w')",
        "open('/var/lib/sennit/artifacts/escaped', 'w')",
        "open('/dev/shm/escaped', 'w')",
        "os.mkdir('../escaped')",
    ),
    "processes": (
        "os.kill(1, 0)",
        "os.kill(os.getppid(), 9)",
        "os.setuid(0)",
        "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0, 'refused'",
        "import ctypes; assert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0, 'refused'",
        "bytearray(600 << 20)",
    ),
}
ENDLESS = {
    "loop": "while True: pass",
    "bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
}
TRY = """
import os
result = []
for attempt in data:
    try:
        exec(attempt)
    except BaseException as error:
        continue
    result.append(attempt)
"""


async def test_the_sandbox_of_a_pod_holds(workers: Cluster, temporal: Client) -> None:
    """Each attempt is made by code that a plan runs, as a model's code would be."""
    host, _, port = workers.temporal.partition(":")
    nodes = [
        call(name, "python", args={"code": TRY, "data": [each.format(gateway=host, port=port) for each in attempts]})
        for name, attempts in ESCAPES.items()
    ]
    nodes += [
        call(name, "python", args={"code": code, "timeout_s": 1}, on_error="skip") for name, code in ENDLESS.items()
    ]
    plan = {"nodes": nodes, "answer": {name: f"${name}" for name in ESCAPES}}
    name = f"cluster-sandbox-{os.getpid()}"
    run = await temporal.start_workflow("AgentRun", {"plan": plan}, id=name, task_queue=queues.WORKFLOW)
    report = await asyncio.wait_for(run.result(), 180)
    assert {name: (one["exit_code"], one["result"]) for name, one in report["answer"].items()} == {
        name: (0, []) for name in ESCAPES
    }
    errors = {node["id"]: node["error"] for node in report["nodes"] if node["status"] == "skipped"}
    assert errors.keys() == ENDLESS.keys()
    assert all(error.startswith("SandboxLimit: stopped after 1 s") for error in errors.values())
    (pod,) = workers.pods("sandbox").values()
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
