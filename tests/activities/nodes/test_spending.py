"""What a tool may book."""

import threading
from typing import Any

import pytest

from sennit.activities.nodes.attempts import Attempts
from sennit.activities.nodes.spending import Spending
from sennit.workflows.plan.language.limits import Usage


@pytest.mark.parametrize(
    "amounts",
    [{"tokens": -1}, {"tokens": True}, {"tokens": 1.5}, {"cost": -0.1}, {"cost": float("nan")}, {"cost": float("inf")}],
)
def test_what_is_no_amount_is_refused_and_counts_for_nothing(amounts: dict[str, Any]) -> None:
    spending = Spending(Attempts(1, 0))
    with pytest.raises(ValueError, match="spent:"):
        spending.add(**amounts)
    assert spending.total == Usage()


def test_threads_lose_nothing() -> None:
    spending = Spending(Attempts(1, 0))

    def book() -> None:
        for _ in range(2_000):
            spending.add(tokens=1, cost=0.000001)

    threads = [threading.Thread(target=book) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spending.total == spending.attempts.open == Usage(input_tokens=8_000, cost=8_000)
