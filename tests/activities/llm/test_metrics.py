"""Tokens and cost by model and tenant, in a bounded number of series."""

import pytest
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from sennit.activities.limits import MAX_PAIRS
from sennit.activities.llm.metrics import CallMeter
from sennit.activities.providers.model import ModelReply
from sennit.workflows.plan.language.limits import Usage


def test_so_many_pairs_of_model_and_tenant_have_series_and_the_rest_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = MetricBuffer(10_000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    monkeypatch.setattr(Runtime, "default", lambda: runtime)
    meter = CallMeter()
    for number in (*range(MAX_PAIRS + 50), 0):
        meter.called(f"openai:m{number}", "ok", ModelReply("yes", Usage(2, 1, 7, 1)))
    meter.called("openai:m0", "RateLimited", None)
    cost: dict[tuple[str, str], float] = {}
    for update in buffer.retrieve_updates():
        if update.metric.name == "sennit_model_cost":
            pair = str(update.attributes["model"]), str(update.attributes["tenant"])
            cost[pair] = cost.get(pair, 0) + update.value
    assert len(cost) == MAX_PAIRS + 1
    assert (cost["openai:m0", "none"], cost["openai:m1", "none"], cost["other", "other"]) == (14, 7, 350)
