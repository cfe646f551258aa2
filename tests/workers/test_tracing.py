"""Traces of real runs, as a receiver of OTLP gets them from worker processes."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.local_workers import serving
from doubles.runs import call, happens, insist, status_of, until
from doubles.traces import TraceServer, trace_server
from doubles.worker_processes import WorkerProcesses
from opentelemetry.sdk.trace import TracerProvider
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowFailureError,
    WorkflowHandle,
)

from sennit.activities.definitions import Activities
from sennit.activities.nodes import tracing
from sennit.activities.toolbox.redaction import redact
from sennit.starter.client.request import current_trace
from sennit.starter.dev.server import DevServer
from sennit.testing.model_rules import Reply
from sennit.testing.models import model_server
from sennit.workers.telemetry import start_traces
from sennit.workers.tracing import RUN, Traces, caller_in
from sennit.workflows.messages import queues
from sennit.workflows.messages.converter import connect
from sennit.workflows.run import drain

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PLAN = {
    "nodes": [
        call("a", args={"value": "x"}),
        call("b", "flaky", args={"failures": 1}, retry={"attempts": 3}),
        {"id": "both", "kind": "join", "inputs": ["a", "b"]},
        {"id": "told", "kind": "llm", "prompt": "Say it quickly: $both", "model": "openai:test-model"},
    ],
    "answer": {"both": "$both", "told": "$told"},
}


def processes(server: DevServer, state: Path, traces: TraceServer, **env: str) -> WorkerProcesses:
    """Worker processes that send their spans at once and replay every workflow task."""
    fast = {"OTEL_EXPORTER_OTLP_ENDPOINT": traces.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    return WorkerProcesses(server.address, state, **fast, SENNIT_CACHED_WORKFLOWS="0", **env)


async def begin(
    client: Client, name: str, memo: dict[str, Any] | None = None, **request: Any
) -> WorkflowHandle[Any, Any]:
    queue = queues.WORKFLOW
    return await client.start_workflow("AgentRun", request, id=f"agent-trace-{name}", task_queue=queue, memo=memo)


async def ended(traces: TraceServer, runs: int = 1) -> None:
    await happens(lambda: len(traces.named(RUN)) >= runs)
    await asyncio.sleep(0.5)  # what comes too much would come now


async def test_a_run_is_one_trace_of_nodes_attempts_and_model_calls(dev_server: DevServer, tmp_path: Path) -> None:
    client = await connect(dev_server.address)
    async with model_server() as model:
        model.on("Say it quickly", "quick")
        with trace_server() as traces:
            workers = processes(dev_server, tmp_path / "state", traces, OPENAI_BASE_URL=model.openai_url)
            try:
                workers.start("all")
                memo = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
                report = await (await begin(client, "one", memo, plan=PLAN)).result()
                await ended(traces)
            finally:
                workers.kill()
    assert report["status"] == "done"
    run, nodes = traces.one(RUN), {name: traces.one(name) for name in ("a", "b", "told")}
    assert (run.trace, run.parent, run.attributes["sennit.status"]) == (TRACE, CALLER, "done")
    assert {span.trace for span in traces.spans} == {TRACE}
    assert {node.parent for node in nodes.values()} == {run.id}
    assert all(run.start <= node.start <= node.end <= run.end for node in nodes.values())
    assert set(nodes["told"].links) == {nodes["a"].id, nodes["b"].id}, "a join has no span, but those before it have"
    attempts = sorted(traces.below(nodes["b"]), key=lambda span: span.start)
    assert [span.attributes["sennit.attempt"] for span in attempts] == [1, 2]
    assert [span.name for span in attempts] == ["execute_tool flaky"] * 2
    assert attempts[0].error
    assert attempts[1].error is nodes["b"].error is None
    (attempt,) = traces.below(nodes["told"])
    (chat,) = traces.below(attempt)
    assert chat.name == "chat test-model"
    wanted = {"provider.name": "openai", "operation.name": "chat", "request.model": "test-model",
              "response.model": "test-model", "response.finish_reasons": ["stop"]}  # fmt: skip
    assert {name: chat.attributes[f"gen_ai.{name}"] for name in wanted} == wanted
    used = report["usage"]
    assert chat.attributes["gen_ai.usage.input_tokens"] == used["input_tokens"]
    assert chat.attributes["gen_ai.usage.output_tokens"] == used["output_tokens"]
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == used["cached_tokens"]
    assert "quick" not in str(chat.attributes)
    assert not [span.name for span in traces.spans if Counter(each.id for each in traces.spans)[span.id] > 1]
    assert (set(traces.paths), traces.services) == ({"/v1/traces"}, {"sennit"})


@pytest.mark.chaos
async def test_no_span_comes_twice_when_a_worker_is_killed(dev_server: DevServer, tmp_path: Path) -> None:
    client = await connect(dev_server.address)
    plan = {"nodes": [call("a"), call("slow", args={"seconds": 3}), call("c", needs=["slow"])], "answer": "$c"}
    with trace_server() as traces:
        workers = processes(dev_server, tmp_path / "state", traces)
        try:
            workers.start("all")
            run = await begin(client, "killed", plan=plan)
            await workers.until_called(run.first_execution_run_id or "", "a", "slow")
            await until(run, lambda view: status_of(view, "a") == "succeeded")
            workers.kill()
            workers.start("all")
            await run.result()
            await ended(traces)
        finally:
            workers.kill()
    times = Counter(span.id for span in traces.spans)
    assert not [span for span in traces.spans if times[span.id] > 1]
    slow, top = traces.one("slow"), traces.one(RUN)
    assert [span.attributes["sennit.attempt"] for span in traces.below(slow)] == [2]
    assert slow.end - slow.start > traces.below(slow)[0].end - traces.below(slow)[0].start
    assert (top.parent, {span.trace for span in traces.spans}) == ("", {top.trace})


async def test_failures_sub_agents_planning_and_contents(dev_server: DevServer, tmp_path: Path) -> None:
    client = await connect(dev_server.address)
    fails = {"nodes": [call("n", "fail", retry={"attempts": 1})], "on_failure": "fail", "answer": "$n"}
    above = {"nodes": [{"id": "sub", "kind": "agent", "goal": "Steady?", "tools": ["nap"]}], "answer": "$sub"}
    async with model_server() as model:
        model.on("You plan work.*Steady", Reply('1. nap(value="a")\n2. answer($1)'))
        model.on("You put results together.*Steady", "It is a secret.")
        with trace_server() as traces:
            env = {"OPENAI_BASE_URL": model.openai_url, "SENNIT_TRACE_CONTENTS": "1", "OTEL_SERVICE_NAME": "mine"}
            workers = processes(dev_server, tmp_path / "state", traces, **env)
            try:
                workers.start("all")
                with pytest.raises(WorkflowFailureError):
                    await (await begin(client, "fails", plan=fails)).result()
                report = await (await begin(client, "above", plan=above)).result()
                await ended(traces, 3)
            finally:
                workers.kill()
    assert report["status"] == "done"
    failed = next(span for span in traces.named(RUN) if span.error)
    (node,) = traces.below(failed)
    assert (node.name, node.error, node.attributes["error.type"]) == ("n", "went wrong", "ToolError")
    assert failed.attributes["sennit.status"] == "failed"
    top = next(span for span in traces.named(RUN) if not span.parent and not span.error)
    sub = traces.one("sub")
    (child,) = [span for span in traces.below(sub) if span.name == RUN]
    assert (sub.parent, child.trace) == (top.id, top.trace)
    assert traces.one("run:plan").parent == child.id
    (planned,) = [span for attempt in traces.below(traces.one("run:plan")) for span in traces.below(attempt)]
    assert planned.attributes["sennit.role"] == "planner"
    assert "Steady?" in planned.attributes["gen_ai.input.messages"]
    said = [json.loads(span.attributes["gen_ai.output.messages"]) for span in traces.named(planned.name)]
    assert "It is a secret." in str(said)
    assert traces.services == {"mine"}


async def test_a_group_a_retry_by_a_person_and_a_cancelled_run(dev_server: DevServer, tmp_path: Path) -> None:
    client = await connect(dev_server.address)
    nodes = [call("a"), call("b", needs=["a"]), call("c", "fail", args={"unless": "mended"})]
    nodes += [{"id": "both", "kind": "join", "inputs": ["b", "c"]}, call("last", args={"value": "$both"})]
    with trace_server() as traces:
        workers = processes(dev_server, tmp_path / "state", traces)
        try:
            workers.start("all")
            run = await begin(client, "retried", plan={"nodes": nodes, "answer": "$both", "fuse": "on"})
            await until(run, lambda view: view["status"] == "blocked")
            (workers.index / "mended").touch()
            await insist(run, "retry_node", {"node": "c"})
            await run.result()
            await ended(traces)
            again = await begin(client, "cancelled", plan={"nodes": [call("long", args={"seconds": 60})]})
            await workers.until_called(again.first_execution_run_id or "", "long")
            await again.cancel()
            await ended(traces, 2)
            await happens(lambda: bool(traces.named("long")))
        finally:
            workers.kill()
    assert traces.one("a").attributes["sennit.node"] == "a"
    assert len(traces.below(traces.one("b"))) == 1
    assert traces.one("c").error == "went wrong"
    assert traces.one("c~2").error is None
    assert set(traces.one("last").links) == {traces.one("b").id, traces.one("c~2").id}
    (cancelled,) = [span for span in traces.named(RUN) if span.error]
    assert (cancelled.error, cancelled.attributes["sennit.status"]) == ("cancelled", "cancelled")
    assert [span.error for span in traces.below(cancelled)] == ["cancelled"]
    assert not [span for span, times in Counter(span.id for span in traces.spans).items() if times > 1]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceServer]:
    """A receiver for the spans of this process. What sends them ends with it: its thread takes random numbers for its
    pauses, and Hypothesis fails a test meanwhile whose choices somebody else has touched.
    """
    providers: list[TracerProvider] = []

    def provider(*args: Any, **options: Any) -> TracerProvider:
        providers.append(TracerProvider(*args, **options))
        return providers[-1]

    monkeypatch.setattr("sennit.workers.tracing.TracerProvider", provider)
    with trace_server() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield found
        tracing.use(None)
        for each in providers:
            each.shutdown()


async def test_a_trace_goes_on_when_its_run_continues_as_new(
    client: Client, host: Activities, receiver: TraceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the sandbox of the SDK; the trace comes in the header of its own interceptors for OpenTelemetry."""
    monkeypatch.setattr(drain, "SOFT_BOUNDS", (40, *drain.SOFT_BOUNDS[1:]))
    traces = start_traces(contents=False)
    assert isinstance(traces, Traces)
    config = client.config()
    config["interceptors"] = [Caller()]
    traced = Client(**config)
    nodes = [call(f"n{index}", needs=[f"n{index - 1}"] if index else []) for index in range(12)]
    async with serving(client, host, interceptors=[traces]):
        run = await begin(traced, "continued", plan={"nodes": nodes, "answer": "$n11"})
        await run.result()
        assert (await run.describe()).run_id != run.first_execution_run_id
        await ended(receiver)
    traces.close()
    top = receiver.one(RUN)
    assert (top.parent, {span.trace for span in receiver.spans}) == (CALLER, {TRACE})
    assert len(receiver.below(top)) == 12
    assert all(top.start <= span.start for span in receiver.below(top))


async def test_links_that_opentelemetry_drops_are_counted(
    client: Client, host: Activities, receiver: TraceServer
) -> None:
    over = {"id": "m", "kind": "map", "over": "$list.items", "do": {"kind": "tool", "tool": "nap"}}
    asks = call("z", when={"ref": "${m[0].value}", "op": "exists"})  # so that an activity gathers
    plan = {"nodes": [call("list", "count", args={"count": 130}), over, asks], "answer": "$m"}
    traces = start_traces(contents=False)
    assert isinstance(traces, Traces)
    async with serving(client, host, interceptors=[traces]):
        await (await begin(client, "wide", plan=plan)).result()
        await ended(receiver)
    traces.close()
    whole = receiver.one("m")
    assert (len(whole.links), whole.links_dropped) == (128, 2)


class Caller(Interceptor):
    """Sends a header as Temporal's interceptors for OpenTelemetry do."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002
        class Sender(OutboundInterceptor):
            async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:  # noqa: A002
                body = json.dumps({"traceparent": f"00-{TRACE}-{CALLER}-01"}).encode()
                header = Payload(metadata={"encoding": b"json/plain"}, data=body)
                input.headers = {**input.headers, "_tracer-data": header}
                return await super().start_workflow(input)

        return Sender(next)


@pytest.mark.parametrize(("sampler", "kept"), [("parentbased_always_on", 1), ("parentbased_always_off", 0)])
def test_a_sampler_decides_on_a_whole_trace(
    receiver: TraceServer, monkeypatch: pytest.MonkeyPatch, sampler: str, kept: int
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    traces = start_traces(contents=False)
    assert isinstance(traces, Traces)
    run, below = (tracing.span_id("r" * 36, place) for place in ("", "n"))
    traces.record(tracing.Span("r" * 36, below, run, "n", 1, 2))
    traces.record(tracing.Span("r" * 36, run, "", RUN, 1, 2))
    traces.close()
    assert [span.name for span in receiver.spans] == ["n", RUN] * kept
    assert len({span.trace for span in receiver.spans}) == kept


def test_the_key_of_a_receiver_is_a_secret(receiver: TraceServer) -> None:
    headers = "Authorization=Basic cGstbGYtMTpzay1sZi0y,x-langfuse-ingestion-version=4"
    traces = start_traces(False, {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_HEADERS": headers})
    assert isinstance(traces, Traces)
    assert redact("cGstbGYtMTpzay1sZi0y is version 4") == "[redacted] is version 4"


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"3", b"[]", b"{}", b'{"traceparent": 3}', b'{"traceparent": "00-0-0-0"}', b"[" * 10_000]
)
def test_a_header_without_a_trace_is_ignored(data: bytes) -> None:
    assert caller_in(Payload(data=data)) is None


def test_nothing_is_imported_unless_there_is_a_receiver() -> None:
    code = (
        "import sys; from sennit.workers.telemetry import start_traces;"
        "print(start_traces(False, {}), 'opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "False"]


def test_without_the_extra_a_worker_says_so_and_sends_nothing() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None; from sennit.workers.telemetry import start_traces;"
        "print(start_traces(False, {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://localhost:4318'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "install sennit[otel]" in done.stdout
    assert done.stdout.rstrip().endswith("None")


def test_a_client_hands_on_the_span_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace

    monkeypatch.delenv("TRACEPARENT", raising=False)
    assert current_trace() == ""
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{CALLER}-00")
    assert current_trace() == os.environ["TRACEPARENT"]
    given = trace.SpanContext(int(TRACE, 16), 1, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(given)):
        assert current_trace() == f"00-{TRACE}-0000000000000001-01"


SCRIPT = """
import asyncio

async def look(number):
    found = await nap(value=number)
    return found["value"]

async def main():
    numbers = await asyncio.gather(*[look(number) for number in range(3)])
    task = asyncio.create_task(look(7))
    later = await nap(value=sum(numbers))
    return later["value"] + await task
"""


async def test_every_span_of_a_program_has_its_parent_and_one_trace(dev_server: DevServer, tmp_path: Path) -> None:
    client = await connect(dev_server.address)
    with trace_server() as traces:
        workers = processes(dev_server, tmp_path / "state", traces)
        try:
            workers.start("all")
            program = {"nodes": [{"id": "main", "kind": "program", "script": SCRIPT}], "answer": "$main"}
            report = await (await begin(client, "program", plan=program)).result()
            await ended(traces)
        finally:
            workers.kill()
    assert report["answer"] == 10
    run = traces.one(RUN)
    known = {span.id for span in traces.spans}
    assert {span.name: span.parent for span in traces.spans if span.parent not in known and span is not run} == {}
    assert len({span.trace for span in traces.spans}) == 1
    assert not [span.name for span in traces.spans if Counter(each.id for each in traces.spans)[span.id] > 1]
    calls = [span for span in traces.spans if span.name.endswith((":5", ":11"))]
    assert sorted(span.name.rpartition("/")[0].partition("#")[0] for span in calls) == ["", *["look"] * 4]
    assert all(span.attributes["sennit.node"].startswith("main") for span in calls)
