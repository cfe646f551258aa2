"""What the model says: to an agent that calls tools turn by turn, to Sennit's
planner, to Sennit's joiner.

The lengths are chosen once, from transcripts that others published, and are the
same for every client:

- A token is four characters. The first comes after 300 ms, then 60 a second; nothing depends
  on the prompt's length.
- A thought has 80 characters before every turn with calls. The examples in the prompts of ReAct
  (arXiv 2210.03629) for HotpotQA have some 110, those in LLMCompiler's (arXiv 2312.04511) ReAct
  prompts 91 for HotpotQA and 55 for ParallelQA.
- The planner writes no thought: its prompt asks it to begin with the first line, which runs
  while it writes the rest.
- Calls are written as each wire format demands: JSON arguments for the agents, for
  the planner its own form.
- The last message is the same for all, word for word: the answer. With `evidence` all of them add
  what the joiner is asked for: a claim and a quotation for each result.

Results are never taken on trust: the answer is given only to a client whose
request holds every result.
"""

import json
import time
from dataclasses import dataclass, field

from benchmarks.agents.questions import Call, Question, line, questions, renumbered
from sennit.testing.model_rules import Asked, Reply
from sennit.testing.model_rules import Call as Asks

CHARACTERS = 4
THOUGHT = "I need this to answer the question: {}, and then I can see what else is missing."
THOUGHT_CHARACTERS = 80
SERIAL = (
    "Answer the question with the tools, one call at a time. Think before each call. When you "
    "know enough, answer."
)
PARALLEL = (
    "Answer the question with the tools. Think before each turn, and make all calls whose inputs "
    "you know in the same turn. When you know enough, answer."
)
EVIDENCE = (
    ' Write the answer as JSON: {"answer": "... [1][2]", "evidence": [{"node": the call, "claim": '
    "what it shows, "
    '"quote": a short passage of its result}]}.'
)
UNKNOWN = "I do not know."


@dataclass(frozen=True, slots=True)
class Said:
    """One reply: when it was asked for, in seconds since 1970, its text, and
    its tokens in and out.
    """

    at: float
    text: str
    read: int
    written: int


@dataclass
class Oracle:
    """Answers every client. `pace` is by how much everything is faster; with `whole` the planner's
    text comes all at once when it is complete, as from a server or gateway that does not stream:
    the plan is made, and then run.
    """

    pace: float = 1.0
    whole: bool = False
    evidence: bool = False
    first_token: float = 0.3
    rate: float = 60.0
    said: list[Said] = field(default_factory=list)

    def reply(self, asked: Asked) -> Reply:
        """Return what the model says."""
        question = next(each for each in questions() if each.goal in asked.text)
        planner = "You plan work" in asked.system
        text, calls = (plan(question), ()) if planner else self._turn(question, asked)
        written = -(-len(text) // CHARACTERS) + sum(
            1 + -(-len(json.dumps(c.arguments)) // CHARACTERS) for c in calls
        )
        read = (len(asked.text) + len(json.dumps(asked.body.get("tools", "")))) // CHARACTERS
        self.said.append(Said(time.time(), text, read, written))
        first, rate = self.first_token / self.pace, self.rate * self.pace
        if planner and self.whole:
            first, rate = first + written / rate, 0.0
        return Reply(
            text,
            tuple(calls),
            usage=(read, written),
            first_token=first,
            rate=rate,
            characters=CHARACTERS,
        )

    def _turn(self, question: Question, asked: Asked) -> tuple[str, tuple[Asks, ...]]:
        if asked.system.startswith((SERIAL, PARALLEL)):
            return self._act(question, asked.results, one=asked.system.startswith(SERIAL))
        return self._join(question, asked.text), ()

    def _act(
        self, question: Question, results: tuple[str, ...], *, one: bool
    ) -> tuple[str, tuple[Asks, ...]]:
        """An agent's next turn: all calls that can be made, or the first of them, or the answer."""
        done: list[Call] = []
        while len(done) < len(results):
            ready = question.ready(done)
            done += ready[:1] if one else ready
        if [str(call.result) for call in done] != list(results):
            return UNKNOWN, ()
        ready = question.ready(done)[: 1 if one else None]
        if not ready:
            return self.ending(question), ()
        calls = tuple(Asks(c.tool, question.bound(c), id=f"call_{c.number}") for c in ready)
        first = " of ".join(reversed(list(calls[0].arguments.values())))
        return THOUGHT.format(first).ljust(THOUGHT_CHARACTERS)[:THOUGHT_CHARACTERS], calls

    def _join(self, question: Question, read: str) -> str:
        numbers = lines(question)
        held = [
            c
            for c in question.calls
            if f"n{numbers[c.number]}, succeeded:" in read and str(c.result) in read
        ]
        if len(held) == len(question.calls):
            return self.ending(question)
        return more(question) if len(held) == len(question.planned) else UNKNOWN

    def ending(self, question: Question) -> str:
        """Return the last message."""
        if not self.evidence:
            return question.answer
        numbers = lines(question)
        evidence = [
            {"node": f"n{numbers[c.number]}", "claim": " of ".join(reversed(list(question.bound(c).values()))),  # noqa: E501
             "quote": str(c.result)}
            for c in question.calls
        ]  # fmt: skip
        marks = "".join(f"[{number}]" for number in range(1, len(evidence) + 1))
        return json.dumps({"answer": f"{question.answer} {marks}", "evidence": evidence})


def lines(question: Question) -> dict[int, int]:
    """Return the line of each call in the plan; those after a dead end follow the first answer."""
    first = len(question.planned)
    placed = [*question.planned, *question.replanned]
    return {call.number: place + (place > first) for place, call in enumerate(placed, 1)}


def plan(question: Question) -> str:
    """Return what the planner writes."""
    numbers = lines(question)
    written = [line(call, numbers) for call in question.planned]
    return "\n".join([*written, _answer(len(written) + 1, question.planned, numbers)])


def more(question: Question) -> str:
    """Return the joiner's wish for more calls."""
    numbers = lines(question)
    written = [line(call, numbers) for call in question.replanned]
    written.append(_answer(max(numbers.values()) + 1, question.calls, numbers))
    return json.dumps(
        {"replan": {"why": "there is no entry under that name", "nodes": "\n".join(written)}}
    )


def _answer(number: int, calls: tuple[Call, ...], numbers: dict[int, int]) -> str:
    return (
        f"{number}. answer({', '.join(renumbered(f'${call.number}', numbers) for call in calls)})"
    )
