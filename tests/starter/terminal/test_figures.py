"""The figures of many runs as text."""

from sennit.starter.terminal.figures import many_text
from sennit.workflows.plan.figures.figures import Figures
from sennit.workflows.plan.figures.many import together
from sennit.workflows.plan.figures.speculated import speculated


def test_calls_made_early_are_summed_over_the_runs_that_made_any() -> None:
    runs = [
        Figures(calls=9, speculation=speculated(calls=4, hits=3, missed=1, saved=1_500)),
        Figures(calls=2),
        Figures(calls=7, speculation=speculated(calls=2, hits=0, missed=1, saved=0)),
    ]
    figures = together(runs)
    assert figures.speculation == speculated(calls=6, hits=3, missed=2, saved=1_500)
    assert figures.speculation is not None
    assert figures.speculation.accuracy == 0.5
    lines = [" ".join(line.split()) for line in many_text(figures).splitlines()]
    assert lines[-3:] == ["early calls of use 3 of 6", "saved by early calls 1.5 s", "calls that early ones missed 2"]


def test_where_nothing_was_called_early_nothing_is_said_of_it() -> None:
    figures = together([Figures(calls=9)])
    assert figures.speculation is None
    assert "early" not in many_text(figures)
