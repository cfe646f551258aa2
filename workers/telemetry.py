"""Sets up one structured log for our code, the SDK and its core, and the metrics of the SDK."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import unquote

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.types import EventDict, Processor
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
)

from sennit.activities.toolbox.redaction import is_secret_name, redact, remember
from sennit.workers.output import log_stream
from sennit.workers.settings import ListenAddress, LogForm, WrongSetting

if TYPE_CHECKING:
    from sennit.workers.tracing import Traces

log = structlog.stdlib.get_logger("workers")

# Not a line a poller for each lost connection.
_CORE_LEVELS = "error,temporalio_sdk_core=warn,temporal_sdk_bridge=warn"
_BUCKETS = {"sennit_model_first_token": (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)}
"""In seconds; the SDK's own end at 10."""
_RECEIVERS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_RECEIVER_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_CHATTY = ("temporalio", "httpx", "httpcore", "asyncio")


def start_log(
    form: LogForm, level: str, env: Mapping[str, str] = os.environ, stream: TextIO | None = None
) -> None:
    """Send every log entry of this process to `stream` (stderr), without secrets.

    Unless `form` says otherwise, each is a JSON object on a line if the stream is not a
    terminal. Entries made in an activity or a workflow have `run` (workflow id), `run_id`
    and `node` (activity id).
    """
    out = stream or log_stream()
    as_json = form == "json" or (form == "auto" and not out.isatty())
    first: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=first,
            processors=[
                _origin,
                _short_failure,
                ProcessorFormatter.remove_processors_meta,
                *_render(as_json, out, env),
                # Last: the line as it would be written.
                lambda _logger, _method, line: redact(str(line), env),
            ],
        )
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *first,
            structlog.stdlib.PositionalArgumentsFormatter(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    for adapter in (activity.logger, workflow.logger):
        adapter.setLevel(level.upper())
    activity.logger.activity_info_on_message = False
    workflow.logger.workflow_info_on_message = False


def start_runtime(metrics: ListenAddress | None) -> None:
    """Let the SDK's core log through Python and serve Prometheus metrics on `metrics`.

    To be called once, before the first client. Raises WrongSetting when the port cannot be had.
    """
    forwarding = LogForwardingConfig(
        logger=logging.getLogger("temporalio.core"), append_target_to_name=False
    )
    prometheus = PrometheusConfig(
        bind_address=str(metrics),
        counters_total_suffix=True,
        unit_suffix=True,
        durations_as_seconds=True,
        histogram_bucket_overrides=_BUCKETS,
    )
    telemetry = TelemetryConfig(
        logging=LoggingConfig(_CORE_LEVELS, forwarding=forwarding),
        metrics=prometheus if metrics else None,
    )
    try:
        Runtime.set_default(Runtime(telemetry=telemetry))
    except ValueError as problem:
        raise WrongSetting(f"SENNIT_METRICS_PORT='{metrics}': {problem}") from None


def start_traces(contents: bool, env: Mapping[str, str] = os.environ) -> "Traces | None":
    """Return what records spans and sends them to where the OTEL_* variables say; None if they
    name no place, or without the extra `otel`. With `contents`, spans hold what models read and
    write. Raises WrongSetting.
    """
    name = next((name for name in _RECEIVERS if env.get(name)), None)
    if name is None:
        return None
    try:
        from sennit.workers.tracing import Traces
    except ModuleNotFoundError as missing:
        log.warning("no traces are sent: install sennit[otel]", variable=name, missing=missing.name)
        return None
    for header in ",".join(env.get(each, "") for each in _RECEIVER_HEADERS).split(","):
        title, _, value = header.partition("=")
        if is_secret_name(title.strip()) and value.strip():
            remember(unquote(value).split()[-1])
    try:
        return Traces(contents)
    except ValueError as problem:
        raise WrongSetting(f"the OTEL_* variables cannot be used: {problem}") from None


def tool_gauges() -> Callable[[int, float], None]:
    """Return what shows the state of the tools' threads on /metrics."""
    meter = Runtime.default().metric_meter
    lost = meter.create_gauge(
        "sennit_tool_threads_lost", "Threads in calls that were given up and have not ended"
    )
    blocked = meter.create_gauge_float(
        "sennit_tool_loop_blocked", "How long a tool blocks all async tools", "s"
    )

    def show(threads: int, seconds: float) -> None:
        lost.set(threads)
        blocked.set(seconds)

    return show


def _render(as_json: bool, out: TextIO, env: Mapping[str, str]) -> list[Processor]:
    if as_json:
        return [
            structlog.processors.format_exc_info,
            _order,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    colors = out.isatty() and not env.get("NO_COLOR")
    traceback = structlog.dev.plain_traceback
    return [
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=traceback, pad_event_to=0)
    ]


def _order(_logger: Any, _method: str, event: EventDict) -> EventDict:
    first = {key: event.pop(key) for key in ("timestamp", "level", "logger") if key in event}
    return {**first, "message": event.pop("event", ""), **event}


def _origin(_logger: Any, _method: str, event: EventDict) -> EventDict:
    record = event["_record"]
    in_activity = getattr(record, "temporal_activity", None)
    in_workflow = getattr(record, "temporal_workflow", None)
    places: tuple[str | None, ...] = ()
    if isinstance(in_activity, dict):
        places = tuple(
            in_activity.get(key) for key in ("workflow_id", "workflow_run_id", "activity_id")
        )
    elif isinstance(in_workflow, dict):
        places = (in_workflow.get("workflow_id"), in_workflow.get("run_id"))
    elif activity.in_activity():
        info = activity.info()
        places = (info.workflow_id, info.workflow_run_id, info.activity_id)
    for key, value in zip(("run", "run_id", "node"), places, strict=False):
        if value is not None:
            event.setdefault(key, value)
    return event


def _short_failure(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Log the failure of a node in one line; its traceback would show only the SDK."""
    error = event["exc_info"][1] if isinstance(event.get("exc_info"), tuple) else None
    if isinstance(error, ApplicationError):
        del event["exc_info"]
        event["error"] = f"{error.type}: {error.message}"
    return event
