"""Real processes: a model server by its command line, workers that take their models from the environment."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.model_bench import KEY
from doubles.worker_processes import TESTS, WorkerProcesses
from temporalio.client import Client

from sennit.starter.dev.server import DevServer
from sennit.testing.models import model_server
from sennit.workflows.messages import queues

RULES = [
    {"match": "One", "text": "first answer", "usage": [107, 2]},
    {"match": "Two", "times": 1, "status": 429, "text": f"slow down, {KEY}", "headers": {"retry-after-ms": "50"}},
    {"match": "Two", "text": "second answer", "usage": [105, 3]},
]


@pytest.fixture
def model_url(tmp_path: Path) -> Iterator[str]:
    """The server started by hand, as its docstring says."""
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    command = [
        sys.executable,
        "-m",
        "sennit.testing.models",
        "--rules",
        str(rules),
        "--model",
        "gpt-4o",
        "--rate",
        "200",
    ]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0].partition("=")[2]
        process.kill()


async def test_workers_call_models_and_show_it_in_their_metrics(
    client: Client, dev_server: DevServer, tmp_path: Path, model_url: str, unused_tcp_port: int
) -> None:
    metrics = f"127.0.0.1:{unused_tcp_port}"
    env = {
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": KEY,
        "SENNIT_METRICS_PORT": metrics,
        "SENNIT_LOG_LEVEL": "debug",
    }
    processes = WorkerProcesses(dev_server.address, tmp_path / "state", **env)
    processes.start("all")
    nodes = [{"id": f"n{n}", "kind": "llm", "prompt": prompt} for n, prompt in enumerate(("One", "Two"), 1)]
    nodes[1]["needs"] = ["n1"]  # type: ignore[assignment]
    request = {"goal": "g", "plan": {"nodes": nodes, "answer": ["$n1", "$n2"]}}
    try:
        handle = await client.start_workflow("AgentRun", request, id="agent-metered", task_queue=queues.WORKFLOW)
        result = await handle.result()
        exported = urllib.request.urlopen(f"http://{metrics}/metrics").read().decode()
    finally:
        processes.kill()
    assert result["answer"] == ["first answer", "second answer"]
    usage = {"input_tokens": 212, "output_tokens": 5, "calls": 3, "cached_tokens": 0, "cost_usd": 0.000581}
    assert result["usage"] == usage
    assert 'sennit_model_calls_total{outcome="ok",provider="openai"' in exported
    assert 'sennit_model_calls_total{outcome="RateLimited",provider="openai"' in exported
    assert 'sennit_model_tokens_total{direction="output",model="openai:gpt-4o"' in exported
    assert 'sennit_model_pressure{provider="openai"' in exported
    assert 'le="120"' in exported.partition("sennit_model_first_token_seconds_bucket")[2]
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert os.environ.get("OPENAI_API_KEY") is None


async def test_keys_are_needed_by_the_llm_role_alone(client: Client, dev_server: DevServer, tmp_path: Path) -> None:
    """The role that opens runs knows the models by name; one process has the key, the others have none."""
    goal = "What is 6 times 7?"
    async with model_server(key=KEY, models=("gpt-4o",)) as server:
        server.on("You plan work", '1. calculate("6 * 7")\n2. answer($1)')
        server.on("You put results together", "It is 42.")
        named = {"SENNIT_MODEL": "openai:gpt-4o"}
        keyless = WorkerProcesses(dev_server.address, tmp_path / "state", **named)
        secret = {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": KEY}
        keyed = WorkerProcesses(dev_server.address, tmp_path / "state", **named, **secret)
        keyless.start("workflow", "tools")
        keyed.start("llm")
        try:
            run = client.execute_workflow("AgentRun", {"goal": goal}, id="agent-keyless", task_queue=queues.WORKFLOW)
            result = await run
        finally:
            keyless.kill()
            keyed.kill()
    assert (result["status"], result["answer"], len(server.asked)) == ("done", "It is 42.", 2)
