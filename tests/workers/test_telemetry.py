"""One log for all: structured, with its place in a run, without secrets."""

import io
import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from sennit.workers.settings import ListenAddress, WrongSetting
from sennit.workers.telemetry import start_log, start_runtime

Log = Callable[[], list[dict[str, Any]]]
ENV = {"OPENAI_API_KEY": "sk-very-secret"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()
    for name in ("temporalio", "httpx", "httpcore", "asyncio", "temporalio.activity", "temporalio.workflow"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def log() -> Log:
    """The entries so far of this thread. What an earlier test has left behind may still write in its own thread, and
    may be collected here at any time: asyncio says so.
    """
    stream = io.StringIO()
    start_log("auto", "info", ENV, stream)
    here = threading.get_ident()
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: record.thread == here)

    def entries() -> list[dict[str, Any]]:
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        return [entry for entry in written if entry["logger"] != "asyncio"]

    return entries


def test_entries_of_structlog_and_of_the_standard_library_look_alike(log: Log) -> None:
    structlog.stdlib.get_logger("ours").info("one", count=1)
    logging.getLogger("theirs").warning("two %s", "x")
    first, second = log()
    assert (first["logger"], first["level"], first["message"], first["count"]) == ("ours", "info", "one", 1)
    assert (second["logger"], second["level"], second["message"]) == ("theirs", "warning", "two x")
    assert first["timestamp"].endswith("Z")
    assert list(first)[:4] == ["timestamp", "level", "logger", "message"]


def test_an_exception_stays_within_its_entry_and_secrets_are_masked(log: Log) -> None:
    try:
        raise ValueError("boom sk-very-secret")
    except ValueError:
        logging.getLogger("x").exception("key sk-very-secret", extra={"headers": {"Authorization": "Bearer abc-def"}})
    structlog.stdlib.get_logger().info("key sk-very-secret", headers={"Authorization": "Bearer abc-def"})
    failed, noted = log()
    assert "ValueError: boom [redacted]" in failed["exception"]
    assert failed["message"] == noted["message"] == "key [redacted]"
    assert noted["headers"] == {"Authorization": "[redacted]"}


def test_a_failure_meant_for_people_is_one_line_without_traceback(log: Log) -> None:
    try:
        raise ApplicationError("no value", type="CalculationFailed")
    except ApplicationError:
        logging.getLogger("temporalio.activity").warning("Completing activity as failed", exc_info=True)
    (entry,) = log()
    assert entry["error"] == "CalculationFailed: no value"
    assert "exception" not in entry


async def test_an_entry_from_an_activity_names_run_and_node(log: Log) -> None:
    def work() -> None:
        activity.logger.info("by the SDK's logger")
        structlog.stdlib.get_logger("ours").info("by ours")
        logging.getLogger("library").warning("by a library")

    environment = ActivityEnvironment()
    environment.run(work)
    entries = log()
    assert [entry["message"] for entry in entries] == ["by the SDK's logger", "by ours", "by a library"]
    info = environment.info
    for entry in entries:
        assert (entry["run"], entry["run_id"], entry["node"]) == (
            info.workflow_id,
            info.workflow_run_id,
            info.activity_id,
        )


def test_an_entry_from_a_workflow_names_the_run(log: Log) -> None:
    seen = {"workflow_id": "agent-1", "run_id": "r-1", "attempt": 1}
    logging.getLogger("temporalio.workflow").info("step", extra={"temporal_workflow": seen})
    (entry,) = log()
    assert (entry["run"], entry["run_id"]) == ("agent-1", "r-1")
    assert "node" not in entry


def test_warnings_are_entries_and_chatter_is_not(log: Log) -> None:
    logging.getLogger("httpx").info("GET https://example.test")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("odd", UserWarning, stacklevel=1)
    assert ["odd" in entry["message"] for entry in log()] == [True]


def test_debug_lets_everything_through() -> None:
    stream = io.StringIO()
    start_log("json", "debug", ENV, stream)
    logging.getLogger("httpx").debug("detail")
    logging.getLogger("temporalio.worker").debug("step")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["detail", "step"]


@pytest.mark.parametrize(
    ("form", "stream", "env", "coloured"),
    [
        ("auto", Terminal(), {}, True),
        ("auto", Terminal(), {"NO_COLOR": "1"}, False),
        ("text", io.StringIO(), {}, False),
    ],
)
def test_a_terminal_gets_text_with_colours_unless_it_refuses_them(
    form: Any, stream: io.StringIO, env: dict[str, str], coloured: bool
) -> None:
    start_log(form, "info", env | ENV, stream)
    structlog.stdlib.get_logger("ours").info("hello", key="sk-very-secret", authorization="Bearer abc-def-ghi")
    text = stream.getvalue()
    assert "hello" in text
    assert not text.startswith("{")
    assert ("\x1b[" in text) is coloured
    assert "sk-very-secret" not in text
    assert "abc-def-ghi" not in text


def test_a_metrics_port_that_is_taken_is_a_wrong_setting() -> None:
    with pytest.raises(WrongSetting, match=r"SENNIT_METRICS_PORT='999\.0\.0\.1:9090'"):
        start_runtime(ListenAddress("999.0.0.1", 9090))
