"""Model calls as metrics of the worker's SDK: on /metrics beside Temporal's own."""

import asyncio
from datetime import timedelta
from functools import cached_property

from temporalio import activity
from temporalio.common import MetricMeter
from temporalio.runtime import Runtime

from sennit.activities.limits import MAX_PAIRS
from sennit.activities.providers.limiter import CALM, Limiter
from sennit.activities.providers.model import ModelReply

REFRESH_SECONDS = 1.0


class _Instruments:
    def __init__(self, meter: MetricMeter) -> None:
        self.calls = meter.create_counter("sennit_model_calls", "Model calls by outcome")
        self.tokens = meter.create_counter("sennit_model_tokens", "Tokens of model calls")
        self.cost = meter.create_counter(
            "sennit_model_cost", "Cost of model calls in millionths of a US dollar"
        )
        self.first = meter.create_histogram_timedelta(
            "sennit_model_first_token", "Time to the first piece of a reply"
        )
        self.pressure = meter.create_gauge_float(
            "sennit_model_pressure", "How much failures slow a provider's calls"
        )


class CallMeter:
    """Counts model calls and their time to the first token by provider, and tokens and cost by
    model and tenant. Shows the pressure on a provider.
    """

    def __init__(self) -> None:
        self._falling: set[str] = set()
        self._pairs: set[tuple[str, str]] = set()

    @cached_property
    def _see(self) -> _Instruments:
        """Made at the first call: before that, the process may still have to choose its runtime."""
        return _Instruments(Runtime.default().metric_meter)

    def called(self, model: str, outcome: str, reply: ModelReply | None) -> None:
        """Count a call of a model for the tenant of the activity; `outcome` is `ok` or
        the type of its error.
        """
        provider = model.partition(":")[0]
        self._see.calls.add(1, {"provider": provider, "outcome": outcome})
        if reply is not None:
            payer = self._payer(model)
            self._see.tokens.add(reply.usage.input_tokens, {**payer, "direction": "input"})
            self._see.tokens.add(reply.usage.output_tokens, {**payer, "direction": "output"})
            self._see.cost.add(reply.usage.cost, payer)
            self._see.first.record(
                timedelta(milliseconds=reply.first_token_ms), {"provider": provider}
            )

    def _payer(self, model: str) -> dict[str, str]:
        tenant = None
        if activity.in_activity():
            tenant = activity.info().priority.fairness_key
        pair = model, tenant or "none"
        if pair not in self._pairs and len(self._pairs) >= MAX_PAIRS:
            pair = "other", "other"
        self._pairs.add(pair)
        return {"model": pair[0], "tenant": pair[1]}

    def pressed(self, limiter: Limiter) -> None:
        """Show a provider's pressure now, and as it falls."""
        if limiter.provider not in self._falling:
            self._falling.add(limiter.provider)
            self._follow(limiter)

    def _follow(self, limiter: Limiter) -> None:
        pressure = limiter.pressure
        calm = pressure < CALM
        self._see.pressure.set(0.0 if calm else pressure, {"provider": limiter.provider})
        if calm:
            self._falling.discard(limiter.provider)
        else:
            asyncio.get_running_loop().call_later(REFRESH_SECONDS, self._follow, limiter)
