"""A small load on a real worker and a real server, both scraped by a real Prometheus with the shipped configuration."""

import asyncio
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from doubles.runs import call, early_calls, insist, until
from doubles.worker_processes import WorkerProcesses
from temporalio.client import Client
from temporalio.common import Priority

from sennit.starter.dev.binary import obtain
from sennit.starter.dev.child import Child
from sennit.starter.dev.server import DevServer, free_port
from sennit.testing.model_rules import Reply
from sennit.testing.models import model_server
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect

SHIPPED = Path(__file__).parents[2] / "deploy" / "observability"
STEP = 1
WINDOW = 10
MODEL = "openai:gpt-4o"


def available() -> bool:
    """Whether there is a Prometheus on this machine."""
    return shutil.which("prometheus") is not None and shutil.which("promtool") is not None


class MeasuredServer(DevServer):
    """A dev server that shows its metrics, and tells its backlog at once instead of after a minute."""

    metrics_port = 0

    def _command(self) -> Iterator[str]:
        self.metrics_port = self.metrics_port or free_port(0)
        yield from super()._command()
        yield from ("--metrics-port", str(self.metrics_port))
        yield from ("--dynamic-config-value", 'matching.backlogMetricsEmitInterval="1s"')


class Prometheus(Child):
    """Prometheus with the shipped configuration, but for where it finds its targets and how often it asks them."""

    name = "Prometheus"
    grace = 5.0

    def __init__(self, folder: Path, workers: str, server: str) -> None:
        super().__init__(folder / "prometheus.log")
        self.folder, self.url = folder, f"http://127.0.0.1:{free_port(0)}"
        config = yaml.safe_load((SHIPPED / "prometheus-kubernetes.yml").read_text())
        config["global"] = {"scrape_interval": f"{STEP}s", "scrape_timeout": f"{STEP}s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(SHIPPED / name) for name in config["rule_files"]]
        pod = "__meta_kubernetes_pod_"
        found = {  # as the discovery of pods would find them
            "sennit": (workers, {"label_app_kubernetes_io_name": "sennit", "container_port_name": "http"}),
            "temporal": (server, {"container_port_name": "metrics"}),
        }
        for job in config["scrape_configs"]:
            del job["kubernetes_sd_configs"]
            target, labels = found[job["job_name"]]
            labels |= {"name": f"{job['job_name']}-0", "label_app_kubernetes_io_component": "all"}
            named = {pod + name: value for name, value in labels.items()}
            job["static_configs"] = [{"targets": [target], "labels": named}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))

    async def start(self) -> None:
        """Start it; returns when it answers."""
        arguments = {
            "config.file": str(self.folder / "prometheus.yml"),
            "storage.tsdb.path": str(self.folder / "tsdb"),
            "web.listen-address": self.url.removeprefix("http://"),
        }
        await self.launch(["prometheus", *(f"--{name}={value}" for name, value in arguments.items())], {})

    async def responds(self) -> bool:
        async with httpx.AsyncClient() as client:
            try:
                return (await client.get(f"{self.url}/-/ready")).status_code == 200
            except httpx.HTTPError:
                return False

    async def ask(self, path: str, **parameters: Any) -> Any:
        """Return the data of an answer of its API."""
        async with httpx.AsyncClient(timeout=20) as client:
            answer = (await client.get(f"{self.url}/api/v1/{path}", params=parameters)).json()
        assert answer["status"] == "success", answer
        return answer["data"]


@dataclass(slots=True)
class Monitored:
    """What was seen since `began`."""

    prometheus: Prometheus
    began: float

    async def series(self, expression: str) -> list[dict[str, Any]]:
        """Return what a panel of the dashboard would draw: series with `metric` and `values`."""
        query = expression.replace("$__rate_interval", f"{WINDOW}s")
        found = await self.prometheus.ask("query_range", query=query, start=self.began, end=time.time(), step=STEP)
        return [*found["result"]]


@asynccontextmanager
async def monitored(folder: Path, *, waves: int) -> AsyncIterator[Monitored]:
    """Run so many waves of runs that do, meet and wait for all kinds of things, one after the other."""
    server = MeasuredServer(await obtain(pinned_only=True), None, folder / "server.log", port=0, headless=True)
    async with model_server(models=("gpt-4o",)) as model:
        slow = Reply(status=429, text="slow down", headers={"retry-after-ms": "50"})
        model.on("busy", *[slow, Reply(text="later", first_token=0.3)] * waves)
        model.on("", Reply(text="an answer", usage=(900, 60), first_token=0.1))
        probes, metrics = (f"127.0.0.1:{free_port(0)}" for _ in range(2))
        env = {"OPENAI_BASE_URL": model.openai_url, "SENNIT_METRICS_PORT": metrics, "SENNIT_HEALTH_PORT": probes}
        await server.start()
        prometheus = Prometheus(folder, probes, f"127.0.0.1:{server.metrics_port}")
        workers = WorkerProcesses(server.address, folder / "state", **env)
        try:
            workers.start("all")
            await prometheus.start()
            client = await connect(server.address)
            began = time.time()
            for wave in range(waves):
                await _wave(client, wave)
                await asyncio.sleep(2 * STEP)
            await asyncio.sleep(2 * STEP)
            yield Monitored(prometheus, began)
        finally:
            workers.kill()
            await prometheus.stop()
            await server.stop()


async def _wave(client: Client, wave: int) -> None:
    """Start runs of two tenants, and wait for those that end by themselves."""
    nap = {"kind": "tool", "tool": "nap", "args": {"seconds": 0.3, "value": "$item.n"}}
    model = {"kind": "llm", "model": MODEL}
    busy = "busy " if wave % 2 else ""
    nodes = [
        call("list", "count", args={"count": 4 + wave % 3}),
        {"id": "all", "kind": "map", "over": "$list.items", "do": nap},
        call("flaky", "flaky", args={"failures": 1}),
        {"id": "text", "prompt": f"{busy}$all", **model},
        {"id": "short", "prompt": "$text", **model},
    ]
    broken = [call("broken", "fail"), call("never", "nap", needs=["broken"])]
    gate = [{"id": "ok", "kind": "gate", "question": "Shall it go on?"}]
    ending = [
        await _start(client, "acme", nodes),
        await _start(client, "globex", nodes),
        await _start(client, "acme", broken, on_failure="partial" if wave % 2 else "fail"),
    ]
    if wave == 1:
        await _start(client, "acme", gate)
        await client.start_workflow("Nobody", id=f"w-{uuid.uuid4().hex}", task_queue="sennit.nobody")
    await _speculate(client)
    await asyncio.gather(*(each.result() for each in ending), return_exceptions=True)


async def _speculate(client: Client) -> None:
    """Have a run make the calls of two branches early, while a person thinks which it shall be."""
    yes = {"ref": "$ok", "op": "eq", "value": "yes"}
    nodes = [
        {"id": "ok", "kind": "gate", "question": "Which shall it be?"},
        call("one", "digest", args={"text": "one"}, when=yes),
        call("other", "digest", args={"text": "other"}, when={"not": yes}),
    ]
    handle = await _start(client, "acme", nodes, speculate="on")
    await until(handle, lambda view: bool(view["blocked"]))
    while len(await early_calls(handle)) < 2:
        await asyncio.sleep(0.05)
    await insist(handle, "answer", {"node": "ok", "value": "yes"})
    await handle.result()


async def _start(
    client: Client, tenant: str, nodes: list[dict[str, Any]], *, speculate: str = "off", **fields: Any
) -> Any:
    plan = {"nodes": nodes, "answer": f"${nodes[-1]['id']}", **fields}
    request = {"plan": plan, "tenant": tenant, "speculate": speculate}
    return await client.start_workflow(
        "AgentRun",
        request,
        id=f"agent-monitored-{uuid.uuid4().hex[:8]}",
        task_queue=queues.WORKFLOW,
        priority=Priority(fairness_key=tenant),
    )
