"""Sends the spans of runs over OTLP, and takes over the trace of whoever started a run.

Imported only where a worker is told to trace: it needs the extra `otel`.
"""

import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError, is_cancelled_exception
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from sennit.activities.nodes import tracing
from sennit.activities.nodes.tracing import Span, nanoseconds, span_id
from sennit.workflows.messages.result import RunReport
from sennit.workflows.run.subagent import RUN_ID_CHARACTERS

CONTEXT = "_tracer-data"
"""The header in which Temporal's own interceptors for OpenTelemetry, in every
language, hand on a trace.
"""
MEMO = "traceparent"
STARTED = "sennit-started"
RUN = "invoke_agent sennit"
_NODE_ABOVE = re.compile(r".{36}-([0-9a-f]{16})")
FLUSH_SECONDS = 3.0
_caller: ContextVar[SpanContext | None] = ContextVar("caller", default=None)


class _Ids(RandomIdGenerator):
    """Gives the ids that were set for the span that this thread starts next, else random ones."""

    def __init__(self) -> None:
        self.next = threading.local()

    def generate_span_id(self) -> int:
        return getattr(self.next, "span", 0) or super().generate_span_id()

    def generate_trace_id(self) -> int:
        return getattr(self.next, "trace", 0) or super().generate_trace_id()


class Traces(Interceptor):
    """Records spans, and brings the caller's trace from the start of a run to
    all that the run does.
    """

    def __init__(self, contents: bool) -> None:
        """The OTEL_* variables say where spans go, which are kept, and what else they say of this
        process. Raises ValueError for one that cannot be used.
        """
        self.contents = contents
        self._ids = _Ids()
        resource = Resource.create()
        # Nobody has given a name.
        if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "sennit"}))
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("sennit")
        self._ended: deque[str] = deque(maxlen=1000)
        trace.set_tracer_provider(self._provider)  # for tools that make spans of their own
        tracing.use(self)

    def close(self) -> None:
        """Send what is left, or give it up after three seconds."""
        sending = threading.Thread(target=self._provider.force_flush, daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)

    def record(self, span: Span) -> None:
        """Send a span that has ended, later and in another thread."""
        # A span without a parent in its run belongs to whoever called the run.
        parent = _caller.get()
        if span.parent:
            parent = self._context(span.run, span.parent)
        context = Context()
        if parent is not None:
            context = trace.set_span_in_context(NonRecordingSpan(parent), context)

        attributes = dict(span.attributes)
        is_run = span.id == span_id(span.run)
        if is_run:
            attributes["sennit.run"] = span.run
        is_model_call = span.name.startswith("chat ")
        ids = self._ids.next
        ids.trace, ids.span = self._trace(span.run), int(span.id, 16)
        try:
            made = self._tracer.start_span(
                span.name,
                context=context,
                kind=SpanKind.CLIENT if is_model_call else SpanKind.INTERNAL,
                attributes=attributes,
                links=[Link(self._context(span.run, each)) for each in span.links],
                start_time=span.start,
            )
        finally:
            ids.trace = ids.span = 0
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(span.end)

    @contextmanager
    def within(self, span: Span) -> Iterator[None]:
        """Let spans that a tool makes by itself be below this one."""
        with trace.use_span(NonRecordingSpan(self._context(span.run, span.id))):
            yield

    def run_ended(self, span: Span, caller: SpanContext | None) -> None:
        """Record the span of a run, once: a query may have shown its end before the
        workflow task that ends it.
        """
        if span.id not in self._ended:
            self._ended.append(span.id)
            outer = _caller.set(caller)
            try:
                self.record(span)
            finally:
                _caller.reset(outer)

    def _trace(self, run: str) -> int:
        """Return the caller's trace, else one that all workers know: that of the topmost run."""
        caller = _caller.get()
        if caller is not None:
            return caller.trace_id
        topmost = run[:RUN_ID_CHARACTERS]
        return int(span_id(topmost, "trace") + span_id(topmost), 16)

    def _context(self, run: str, ident: str) -> SpanContext:
        caller, number = _caller.get(), self._trace(run)
        if caller is not None:
            flags = caller.trace_flags
        else:
            kept = (
                self._provider.sampler.should_sample(None, number, "run").decision
                is Decision.RECORD_AND_SAMPLE
            )
            flags = TraceFlags(TraceFlags.SAMPLED if kept else TraceFlags.DEFAULT)
        return SpanContext(number, int(ident, 16), is_remote=True, trace_flags=flags)

    def intercept_activity(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002 - the SDK's name
    ) -> ActivityInboundInterceptor:
        return _Activity(next)

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002, ARG002
    ) -> type[WorkflowInboundInterceptor]:
        traces = self

        class _TracedRun(_Run):
            recorder = traces

        return _TracedRun


class _Activity(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        _caller.set(caller_in(input.headers.get(CONTEXT)))  # an activity has a context of its own
        return await super().execute_activity(input)


class _Run(WorkflowInboundInterceptor):
    """Hands the caller's trace on, and tells of the run's end when it happens,
    not when it is replayed.
    """

    recorder: Traces

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outward(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - the SDK's name
        try:
            result = await super().execute_workflow(input)
        except BaseException as error:
            is_cancelled = (
                is_cancelled_exception(error) and workflow.cancellation_reason() is not None
            )
            # Else it goes on, here or as a new run.
            if is_cancelled or isinstance(error, ApplicationError):
                self._end(input, error, "cancelled" if is_cancelled else "failed")
            raise
        self._end(input, result, "done")
        return result

    def _end(self, execution: ExecuteWorkflowInput, end: Any, status: str) -> None:
        info = workflow.info()
        if workflow.unsafe.is_replaying() or info.workflow_type != "AgentRun":
            return
        run = _run_of(execution, info)
        above = _NODE_ABOVE.fullmatch(run)
        node_above = above[1] if above else ""
        start, now = datetime.fromisoformat(json.loads(_begun().data)), workflow.now()
        span = Span(run, span_id(run), node_above, RUN, nanoseconds(start), nanoseconds(now))
        span.attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "sennit",
            "sennit.workflow_id": info.workflow_id,
            "sennit.status": status,
        }
        if isinstance(end, RunReport):
            span.attributes["sennit.status"] = end.status
        if isinstance(end, BaseException):
            span.error = span.attributes["error.type"] = status
        if isinstance(end, ApplicationError):
            span.error = end.message
            span.attributes["error.type"] = end.type or status
        with workflow.unsafe.sandbox_unrestricted():
            self.recorder.run_ended(span, caller_in(_carried().get(CONTEXT)))


def _run_of(execution: ExecuteWorkflowInput, info: workflow.Info) -> str:
    """Return the prefix under which a run has stored its outputs: that of a sub-agent
    stands in its request.
    """
    request = execution.args[0] if execution.args else None
    if info.parent and isinstance(request, dict):
        prefix = request.get("run_prefix")
        if isinstance(prefix, str) and prefix:
            return prefix
    return info.first_execution_run_id


class _Outward(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002
        input.headers = {**input.headers, **_carried()}
        return super().start_activity(input)

    async def start_child_workflow(
        self,
        input: StartChildWorkflowInput,  # noqa: A002
    ) -> workflow.ChildWorkflowHandle[Any, Any]:
        input.headers = {**input.headers, **_carried()}
        return await super().start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> Any:  # noqa: A002
        input.headers = {**input.headers, **_carried(), STARTED: _begun()}
        return super().continue_as_new(input)


def _begun() -> Payload:
    """Return when the first of the runs began that this one continues. Only they
    can have sent the header.
    """
    info = workflow.info()
    if info.continued_run_id and STARTED in info.headers:
        return info.headers[STARTED]
    return _payload(info.workflow_start_time.isoformat())


def _carried() -> dict[str, Payload]:
    """Return the header with the caller's trace, from the start of this run or from its memo."""
    info = workflow.info()
    if CONTEXT in info.headers:
        return {CONTEXT: info.headers[CONTEXT]}
    memo = workflow.memo_value(MEMO, default="")
    if not (isinstance(memo, str) and memo):
        return {}
    return {CONTEXT: _payload({MEMO: memo})}


def _payload(value: Any) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


def caller_in(header: Payload | None) -> SpanContext | None:
    """Return the trace and span that a header names; None if it names none that is valid."""
    if header is None:
        return None
    try:
        carrier = json.loads(header.data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(carrier, dict):
        return None
    texts = {str(name): value for name, value in carrier.items() if isinstance(value, str)}
    found = trace.get_current_span(
        TraceContextTextMapPropagator().extract(texts, Context())
    ).get_span_context()
    if not found.is_valid:
        return None
    return found
