"""What no engine can beat, and what streaming can save at most: computed from what
was recorded of a run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.agents.oracle import CHARACTERS, Oracle, Said, lines
from benchmarks.agents.questions import Call, Question


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of Sennit. Times are seconds since 1970; `said` are the replies of the planner and of
    the joiner, in order, `calls` begin and end of each call by its number, taken inside the tool.
    """

    question: Question
    began: float
    ended: float
    said: tuple[Said, ...]
    calls: Mapping[int, tuple[float, float]]

    def took(self, call: Call) -> float:
        """Return the seconds of a call."""
        begin, end = self.calls[call.number]
        return end - begin

    @property
    def opening(self) -> float:
        """Seconds until the planner is asked."""
        return self.said[0].at - self.began


def written_at(oracle: Oracle, character: int) -> float:
    """Return the seconds from asking for a reply to that character of it."""
    return (oracle.first_token + -(-character // CHARACTERS) / oracle.rate) / oracle.pace


def whole_at(oracle: Oracle, said: Said) -> float:
    """Return the seconds from asking for a reply to its end."""
    return (oracle.first_token + said.written / oracle.rate) / oracle.pace


def lines_at(oracle: Oracle, run: Recorded) -> dict[int, float]:
    """Return for each call of the plan the seconds from asking for the plan
    to the end of its line.
    """
    text, numbers = run.said[0].text, lines(run.question)
    begins = {
        call.number: f"\n{text}".index(f"\n{numbers[call.number]}. ")
        for call in run.question.planned
    }
    return {
        number: written_at(oracle, text.index("\n", begin) + 1) for number, begin in begins.items()
    }


def bound(oracle: Oracle, run: Recorded) -> float:
    """Return the critical path: the planner's first line, the longest path of calls, the joiner."""
    ends: dict[int, float] = {}
    for call in run.question.calls:
        ends[call.number] = run.took(call) + max((ends[need] for need in call.needs), default=0.0)
    joining = sum(whole_at(oracle, joiner) for joiner in run.said[1:])
    return min(lines_at(oracle, run).values()) + max(ends.values()) + joining


def ideal(oracle: Oracle, run: Recorded) -> float:
    """Return the seconds of a run without anything between its calls: each begins the moment that
    its line is written and its inputs are there.
    """
    planner, *joiners = run.said
    ends: dict[int, float] = {}
    written = lines_at(oracle, run)
    for call in run.question.planned:
        ends[call.number] = max(
            [written[call.number], *(ends[need] for need in call.needs)]
        ) + run.took(call)
    now = max(whole_at(oracle, planner), *ends.values()) + whole_at(oracle, joiners[0])
    for call in run.question.replanned:
        ends[call.number] = max([now, *(ends[need] for need in call.needs)]) + run.took(call)
    return max(now, *ends.values()) + sum(whole_at(oracle, joiner) for joiner in joiners[1:])


def overlapped(oracle: Oracle, run: Recorded) -> float:
    """Return the seconds that a run which was planned first and then run would have taken
    with its plan streamed.

    All that was recorded stays: opening and end, what the engine takes from the end of a call to
    the begin of the next and to the joiner. Only nothing waits for the plan to be whole but the
    joiner: a call without inputs begins the moment that its line is written.
    """
    planner, joiner, *_ = run.said
    written = lines_at(oracle, run)
    ends: dict[int, float] = {}
    for call in run.question.planned:
        ready = max((ends[need] for need in call.needs), default=0.0)
        if call.needs:
            ready += run.calls[call.number][0] - max(run.calls[need][1] for need in call.needs)
        ends[call.number] = max(written[call.number], ready) + run.took(call)
    asked = max(whole_at(oracle, planner), *ends.values())
    asked += joiner.at - max(run.calls[call.number][1] for call in run.question.planned)
    return run.opening + asked + run.ended - joiner.at
