"""What no engine can beat: times of a run without anything between its calls, from what was recorded of them."""

from collections.abc import Mapping, Sequence

from benchmarks.oracle import CHARACTERS, Oracle, Said, lines
from benchmarks.questions import Question


def written_at(oracle: Oracle, character: int) -> float:
    """Return the seconds from asking for a reply to that character of it."""
    return (oracle.first_token + -(-character // CHARACTERS) / oracle.rate) / oracle.pace


def whole_at(oracle: Oracle, said: Said) -> float:
    """Return the seconds from asking for a reply to its end."""
    return (oracle.first_token + said.written / oracle.rate) / oracle.pace


def ideal(oracle: Oracle, question: Question, said: Sequence[Said], took: Mapping[int, float]) -> float:
    """Return the seconds of a run in which every call starts the moment that its line is written and its inputs are
    there. `said` are the replies of planner and joiner in order, `took` the seconds of each call by its number.
    """
    planner, *joiners = said
    numbers = lines(question)
    ends: dict[int, float] = {}
    at = [planner.text.index(f"\n{numbers[call.number]}. ") + 1 for call in question.planned]
    for call, begins in zip(question.planned, at, strict=True):
        end = planner.text.index("\n", begins) + 1
        starts = max([written_at(oracle, end), *(ends[need] for need in call.needs)])
        ends[call.number] = starts + took[call.number]
    now = max(whole_at(oracle, planner), *ends.values()) + whole_at(oracle, joiners[0])
    for call in question.replanned:
        ends[call.number] = max([now, *(ends[need] for need in call.needs)]) + took[call.number]
    return max(now, *ends.values()) + sum(whole_at(oracle, joiner) for joiner in joiners[1:])


def bound(oracle: Oracle, question: Question, said: Sequence[Said], took: Mapping[int, float]) -> float:
    """Return the critical path: the planner's first line, the longest path of calls, the joiner."""
    planner, *joiners = said
    first = planner.text.index("\n", planner.text.index("\n1. ") + 1) + 1
    ends: dict[int, float] = {}
    for call in question.calls:
        ends[call.number] = took[call.number] + max((ends[need] for need in call.needs), default=0.0)
    joining = sum(whole_at(oracle, joiner) for joiner in joiners)
    return written_at(oracle, first) + max(ends.values()) + joining
