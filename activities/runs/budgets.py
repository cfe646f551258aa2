"""What a run may spend at most, as the operator of the workers has it: defaults
and ceilings, by tenant.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sennit.workflows.messages.request import RunRequest
from sennit.workflows.plan.language.limits import Limits, format_duration
from sennit.workflows.plan.language.limits_text import parse_limits

EXAMPLE = "tokens=500000,cost_usd=2; acme: cost_usd=50"
EVERYBODY = ""
"""In the place of a tenant: all that have no limits of their own."""

TenantLimits = Mapping[str, Limits]


def tenant_limits(text: str) -> dict[str, Limits]:
    """Return the limits of each tenant from `tokens=500000,cost_usd=2; acme: cost_usd=50`; without
    a name they are everybody's. Raises ValueError with a sentence about the part that is wrong.
    """
    found: dict[str, Limits] = {}
    for piece in text.split(";"):
        part = piece.strip()
        if not part:
            continue
        tenant, colon, limits = part.rpartition(":")
        name = tenant.strip()
        if (colon and not name) or name in found:
            raise ValueError(f"{part[:60]!r}: give each tenant once, like {EXAMPLE}")
        found[name] = parse_limits(limits, EXAMPLE)
    return found


@dataclass(frozen=True, slots=True)
class BudgetRule:
    """The budget of a run: each limit that it does not name is the `defaults`', and none is
    above the `ceilings`'. A limit in a tenant's own entry counts in the place of
    everybody's limit of that name.
    """

    defaults: TenantLimits = field(default_factory=dict)
    ceilings: TenantLimits = field(default_factory=dict)

    def of(self, request: RunRequest) -> tuple[Limits | None, tuple[str, ...]]:
        """Return a run's budget, and a sentence on each limit that is not the run's own. A
        sub-agent has its share of a budget that is bounded already.
        """
        if request.depth:
            return request.budget, ()
        asked = _values(request.budget)
        default = _of_tenant(self.defaults, request.tenant)
        ceiling = _of_tenant(self.ceilings, request.tenant)
        limits: dict[str, Any] = {}
        bounds: list[str] = []
        for name in Limits.model_fields:
            value = asked.get(name)
            if value is None and name in default:
                value = default[name]
                bounds.append(_bound(name, value, "SENNIT_BUDGET_DEFAULT"))
            if name in ceiling and (value is None or value > ceiling[name]):
                value = ceiling[name]
                of_default = f"budget: {name} "
                bounds = [bound for bound in bounds if not bound.startswith(of_default)]
                bounds.append(_bound(name, value, "SENNIT_BUDGET_MAX"))
            if value is not None:
                limits[name] = value
        if not bounds:
            return request.budget, ()
        # Each value comes from limits that were validated.
        return Limits.model_construct(**limits), tuple(bounds)

    def ceiling_of(self, request: RunRequest) -> Limits | None:
        """Return what a person may raise a run's limits to at most. None is no bound at all, and
        for a sub-agent, whose share a person may raise: the run above it counts what it spends.
        """
        if request.depth:
            return None
        ceiling: dict[str, Any] = _of_tenant(self.ceilings, request.tenant)
        if not ceiling:
            return None
        return Limits.model_construct(**ceiling)


def _of_tenant(limits: TenantLimits, tenant: str) -> dict[str, Any]:
    """Return the limits of a tenant: its own, and everybody's where it has none of that name."""
    everybodys = _values(limits.get(EVERYBODY))
    return everybodys | _values(limits.get(tenant))


def _values(limits: Limits | None) -> dict[str, int | float]:
    values: dict[str, int | float] = {}
    for name in Limits.model_fields:
        value = getattr(limits, name, None)
        if value is not None:
            values[name] = value
    return values


def _bound(name: str, value: float, variable: str) -> str:
    shown = f"{value:,}"
    if name == "time":
        shown = format_duration(value)
    return f"budget: {name} {shown} at most, by {variable} of the workers"
