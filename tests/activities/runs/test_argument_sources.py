"""Where the arguments of calls came from that have only values, and what it costs to find out."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import pytest

from sennit.activities.nodes.binding import Unit
from sennit.activities.runs import argument_sources
from sennit.activities.runs.argument_sources import SourceTracer, leaves
from sennit.activities.storage.learned import Marks
from sennit.activities.storage.run_context import StoredPlan
from sennit.workflows.messages.trajectory import CallEnded
from sennit.workflows.plan.language.nodes import JoinNode, LlmNode, Turn


class PlanOfNothing:
    goal = "Find the open orders"


def tracer(*spans: tuple[int, int]) -> SourceTracer:
    """Trace calls that began and ended at these milliseconds."""
    calls = [
        CallEnded(node=f"c{number}", began=began, millis=ended - began, is_made=True)
        for number, (began, ended) in enumerate(spans)
    ]
    return SourceTracer(calls, cast("StoredPlan", PlanOfNothing()), Marks(b"key"))


def source_of(traced: SourceTracer, number: int, arguments: Any) -> tuple[str, int | None, str]:
    [source] = traced.of_made(number, arguments).sources
    return source.origin, source.call, source.path


def test_the_call_that_ended_last_before_is_the_source_and_its_output_before_its_arguments() -> None:
    traced = tracer((0, 90), (10, 50), (20, 60), (70, 80), (100, 110))
    for number in range(3):
        traced.know(number, "argument", {"asked": "order-7"})
        traced.know(number, "output", [{"id": "order-7"}, {"id": "order-7"}])
    assert source_of(traced, 3, {"id": "order-7"}) == ("output", 2, "[0].id")
    assert source_of(traced, 4, {"id": "order-7"}) == ("output", 0, "[0].id")
    assert source_of(traced, 4, {"id": "order-8"}) == ("constant", None, "")


def test_a_value_that_every_row_has_is_compared_once_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute went by without a beat of any activity where 200 outputs had the same status 1,000 times."""
    kept: list[object] = []

    def insort(places: list[object], place: object) -> None:
        kept.append(place)
        places.append(place)

    monkeypatch.setattr(argument_sources, "insort", insort)
    traced = tracer(*((number, number + 1) for number in range(20)))
    for number in range(20):
        traced.know(number, "output", [{"status": "open"}] * 1_000)
    assert len(kept) == 20


def test_the_parts_of_a_long_list_are_read_one_after_the_other() -> None:
    class Long(list[int]):
        def __iter__(self) -> Iterator[int]:
            yield from (1, 2, 3)
            raise AssertionError("read to its end")

    found = list(islice(leaves({"a": Long([1]), "b": 4}), 3))
    assert found == [(("a", 0), 1), (("a", 1), 2), (("a", 2), 3)]
    assert list(leaves({"a": [1, {"b": 2}], "c": [], "d": "x"})) == [
        (("a", 0), 1),
        (("a", 1, "b"), 2),
        (("c",), []),
        (("d",), "x"),
    ]


def test_a_key_that_is_a_value_is_not_kept() -> None:
    traced = tracer((0, 1), (2, 3))
    traced.know(0, "output", {"accounts": {"ann@example.com": {"balance": 7_512}}})
    made = traced.of_made(1, {"amount": 7_512, "rights": {"bob@example.com": "all rights"}})
    assert [(source.argument, source.path) for source in made.sources] == [
        ("amount", "accounts.*.balance"),
        ("rights.*", ""),
    ]


class PlanOfTurns:
    """A model's first turn has called `a` and `b`; `t2` has begun when `a` had ended, and `t3` when `b` had, too."""

    goal = "Find the open orders"
    nodes = (
        JoinNode(id="t1_all", kind="join", inputs=("a", "b"), policy="settled"),
        JoinNode(id="t2_all", kind="join", inputs=("b",), policy="settled"),
    )

    def find(self, name: str) -> Any:
        return next((node for node in self.nodes if node.id == name), None)


@pytest.mark.parametrize(("rule", "before"), [("first", [0]), (None, [0, 1])])
def test_a_turn_has_read_what_had_ended_when_it_began(rule: Any, before: list[int]) -> None:
    """Of a turn that waits for all calls the plan says it, whatever the clocks of workers say."""
    spans = {"a": (0, 10), "b": (0, 50), "t2": (20, 30), "t3": (60, 70)}
    calls = [
        CallEnded(node=name, began=began, millis=end - began, is_made=True) for name, (began, end) in spans.items()
    ]
    traced = SourceTracer(calls, cast("StoredPlan", PlanOfTurns()), Marks(b"key"))

    def uses(number: int, name: str, results: str) -> list[int]:
        turn = Turn(number=2, node="n", results=results, rule=rule)
        node = LlmNode(id=name, kind="llm", prompt="Go on", tools=("search",), turn=turn)
        return sorted(traced.of_written(number, node, Unit(name, None, 1)).uses)

    assert uses(2, "t2", "$t1_all") == before
    assert uses(3, "t3", "$t2_all") == [1]
