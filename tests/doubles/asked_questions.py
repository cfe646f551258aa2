"""Eighty questions as data sets have them, documents that hold the facts, and a model that answers from these alone.

Each shape is twenty questions: which of two, by how much, of the teacher of somebody, which of four. The model gives
the answer only to a request that holds every fact; else it says that it does not know.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sennit.testing.model_rules import Asked, Reply

SEED, EACH = 20_261_123, 20
SSE = {"content-type": "text/event-stream"}
UNKNOWN = "I do not know."
Step = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Question:
    """A goal, the calls that lead to the answer, the facts that it rests on, and what single models are asked."""

    goal: str
    steps: tuple[Step, ...]
    facts: tuple[str, ...]
    answer: str
    asides: dict[str, tuple[str, Any]] = field(default_factory=dict)

    @property
    def results(self) -> list[str]:
        return [f"${place}" for place in range(1, len(self.steps) + 1)]


def questions(folder: Path) -> list[Question]:
    """Return the questions, and write the documents that they are about."""
    chance = random.Random(SEED)
    names = _names(chance)
    hills = [(next(names), chance.randrange(1_000, 9_000)) for _ in range(EACH * 8)]
    people = [(next(names), next(names), next(names)) for _ in range(EACH)]
    for name, height in hills:
        (folder / f"{name.lower()}.md").write_text(f"# {name}\n\n{_height(name, height)} It lies far from any road.\n")
    for pupil, teacher, town in people:
        (folder / f"{pupil.lower()}.md").write_text(f"# {pupil}\n\n{pupil} was a painter. {_taught(pupil, teacher)}\n")
        (folder / f"{teacher.lower()}.md").write_text(f"# {teacher}\n\n{_born(teacher, town)} It was a cold year.\n")
    pairs = [hills[at : at + 2] for at in range(0, EACH * 4, 2)]
    fours = [hills[at : at + 4] for at in range(EACH * 4, EACH * 8, 4)]
    found = [_higher(pair) for pair in pairs[:EACH]] + [_difference(pair) for pair in pairs[EACH:]]
    return found + [_teacher(*each) for each in people] + [_higher(four) for four in fours]


def _names(chance: random.Random) -> Iterator[str]:
    begins, ends, seen = (
        ["Bra", "Dor", "Fel", "Gri", "Hal", "Ker", "Lum", "Mor", "Nev", "Orl", "Pas", "Quin", "Ros", "Syl", "Tar"],
        ["adan", "ebor", "ildur", "omar", "uvel", "yssa"],
        set(),
    )
    while True:
        name = (
            chance.choice(begins)
            + chance.choice(["ba", "ke", "li", "mo", "nu", "ra", "so", "ti"])
            + chance.choice(ends)
        )
        if name not in seen:
            seen.add(name)
            yield name


def _height(name: str, height: int) -> str:
    return f"{name} is {height:,} metres high."


def _taught(pupil: str, teacher: str) -> str:
    return f"The teacher of {pupil} was {teacher}."


def _born(name: str, town: str) -> str:
    return f"{name} was born in {town}."


def _search(query: str) -> Step:
    return "search", {"query": query}


def _higher(hills: list[tuple[str, int]]) -> Question:
    listed = " or ".join(name for name, _ in hills)
    best, height = max(hills, key=lambda each: each[1])
    steps = tuple(_search(f"height of {name}") for name, _ in hills)
    facts = tuple(_height(*hill) for hill in hills)
    return Question(f"Which is higher, {listed}?", steps, facts, f"{best}, with {height:,} metres.")


def _difference(hills: list[tuple[str, int]]) -> Question:
    (high, most), (low, least) = sorted(hills, key=lambda each: -each[1])
    prompts = [f"Give the height of {name} in metres as a number. ${place}" for place, name in ((1, high), (2, low))]
    steps = (
        _search(f"height of {high}"),
        _search(f"height of {low}"),
        *(("llm", {"prompt": prompt, "output_schema": {"type": "number"}}) for prompt in prompts),
        ("calculate", {"expression": "$3 - $4"}),
    )
    asides: dict[str, tuple[str, Any]] = {
        f"Give the height of {name}": (_height(name, height), height) for name, height in ((high, most), (low, least))
    }
    facts = (_height(high, most), _height(low, least), str(most - least))
    return Question(f"How much higher is {high} than {low}?", steps, facts, f"By {most - least:,} metres.", asides)


def _teacher(pupil: str, teacher: str, town: str) -> Question:
    steps = (
        _search(f"teacher of {pupil}"),
        ("llm", {"prompt": f"Name the teacher of {pupil}, and nothing else. $1"}),
        _search("birthplace of $2"),
    )
    asides: dict[str, tuple[str, Any]] = {f"Name the teacher of {pupil}": (_taught(pupil, teacher), teacher)}
    facts = (_taught(pupil, teacher), _born(teacher, town))
    return Question(f"Where was the teacher of {pupil} born?", steps, facts, f"In {town}.", asides)


@dataclass
class Scripted:
    """A model server's replies. A `share` of the calls fails, by `seed` the same whatever the order of the calls;
    `made` counts how.
    """

    asked_for: list[Question]
    seed: int
    share: float = 0.1
    made: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)

    def reply(self, asked: Asked) -> Reply:
        """Return what the model says to a request, or a fault in its place."""
        question = next(each for each in self.asked_for if each.goal in asked.text or self._aside(each, asked))
        kind = asked.system[:30] + (self._aside(question, asked) or "")
        good = self._good(question, asked)
        self._times[f"{question.goal} {kind}"] += 1
        die = random.Random(f"{self.seed} {question.goal} {kind} {self._times[f'{question.goal} {kind}']}")
        if die.random() >= self.share:
            return good
        name = die.choice([*FAULTS])
        self.made[name] += 1
        return FAULTS[name](good, asked)

    def _aside(self, question: Question, asked: Asked) -> str:
        return next((begins for begins in question.asides if begins in asked.text and "You plan" not in asked.text), "")

    def _good(self, question: Question, asked: Asked) -> Reply:
        if "You plan work" in asked.system:
            return _plan(question)
        if aside := self._aside(question, asked):
            fact, value = question.asides[aside]
            return Reply(_valued(value, asked) if fact in asked.text else UNKNOWN)
        missing = [fact for fact in question.facts if fact not in asked.text]
        self.wrong += [f"{question.goal} lacks {fact}" for fact in missing]
        evidence = [{"node": "n1", "claim": question.facts[0], "quote": question.facts[0]}]
        return Reply(UNKNOWN if missing else json.dumps({"answer": f"{question.answer} [1]", "evidence": evidence}))


def _valued(value: Any, asked: Asked) -> str:
    return json.dumps({"value": value}) if asked.schema is not None else str(value)


def _plan(question: Question) -> Reply:
    written = [
        f"{place}. {tool}({', '.join(f'{name}={json.dumps(value)}' for name, value in args.items())})"
        for place, (tool, args) in enumerate(question.steps, 1)
    ]
    return Reply("\n".join([*written, f"{len(written) + 1}. answer({', '.join(question.results)})"]))


def _half(good: Reply, reason: str | None, *, end: bool = True) -> Reply:
    """Return half of a reply that ends so; without an `end` its stream is closed."""
    text = good.text[: len(good.text) // 2]
    deltas: list[Any] = [{"delta": {"content": text}}] if text else []
    for index, call in enumerate(good.calls[: len(good.calls) // 2]):
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        deltas.append({"delta": {"tool_calls": [{"index": index, "id": f"c{index}", "function": function}]}})
    deltas += [{"delta": {}, "finish_reason": reason}] if reason else []
    events = [f"data: {json.dumps({'choices': [delta]})}\n\n" for delta in deltas]
    return Reply(body="".join(events) + ("data: [DONE]\n\n" if end else ""), headers=SSE)


def _page(kind: str, body: str) -> Reply:
    return Reply(body=body, headers={"content-type": kind})


Fault = Callable[[Reply, Asked], Reply]
FAULTS: dict[str, Fault] = {
    "500": lambda _, __: Reply("overloaded", status=500, headers={"retry-after-ms": "5"}),
    "503": lambda _, __: Reply("loading", status=503, headers={"retry-after-ms": "5"}),
    "429": lambda _, __: Reply("slow down", status=429, headers={"retry-after-ms": "5"}),
    "cut": lambda good, _: replace(good, fault="cut"),
    "reset": lambda good, _: replace(good, fault="reset"),
    "hang in stream": lambda good, _: replace(good, fault="hang in stream"),
    "no JSON": lambda good, _: replace(good, fault="not json"),
    "odd JSON": lambda good, _: replace(good, fault="odd json"),
    "error event": lambda good, _: replace(good, fault="error event"),
    "closed": lambda good, _: _half(good, None, end=False),
    "aborted": lambda good, _: _half(good, "abort"),
    "out of resources": lambda good, _: _half(good, "insufficient_system_resource"),
    "at its limit": lambda good, _: _half(good, "length"),
    "web page": lambda _, __: _page("text/html", "<html><title>Sign in</title></html>"),
    "web page as JSON": lambda _, __: _page("application/json", "<html><title>502</title></html>"),
    "other JSON": lambda _, __: _page("application/json", '{"status": "ok"}'),
    "nothing": lambda _, __: _page("text/event-stream", ""),
    "empty": lambda _, __: Reply(),
    "a thought": lambda _, asked: Reply(f"<think>Let me see {len(asked.text)}"),
    "special tokens": lambda _, asked: Reply(f"<|fim_prefix|>{len(asked.text)}<|fim_suffix|>"),
    "a cut call": lambda _, asked: Reply(
        f'<tool_call>\n{{"name": "search", "arguments": {{"query": "{len(asked.text)}'
    ),
    "wrong type": lambda good, _: replace(good, fault="wrong type"),
}
