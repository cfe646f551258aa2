"""What sharing activities gains, and that it costs nobody: random plans and latencies on a clock of their own."""

import os
from statistics import mean

import pytest
from simulation.pace import HOP, Pace, latencies, random_plan

PLANS = int(os.environ.get("SENNIT_SCHEDULES", "300"))


@pytest.mark.parametrize("workers", [1, 3])
def test_runs_are_faster_with_shared_activities_and_hardly_any_is_slower(workers: int) -> None:
    gains, losses, saved = [], [], 0
    for seed in range(PLANS):
        plan = random_plan(seed)
        latency = latencies(plan, seed)
        apart, beside = Pace(plan, latency, "off", workers=workers), Pace(plan, latency, "auto", workers=workers)
        before, after = apart.run(), beside.run()
        is_race = any(spec.policy == "first" for spec in plan.specs)  # another one may win
        digests = [{unit: record.digest for unit, record in each.state.units.items()} for each in (apart, beside)]
        assert is_race or digests[0] == digests[1], seed
        gains.append(before / after)
        losses.append(after - 1.05 * before)
        saved += apart.activities - beside.activities
    print(f"{workers} workers: {mean(gains):.2f} times as fast; {saved / PLANS:.1f} activities saved a run")
    assert mean(gains) > 1.03
    assert sorted(losses)[int(len(losses) * 0.99)] <= HOP
