"""The prompts that planned nodes carry: plain English for any model, and read back by the rules."""

import re
from dataclasses import dataclass
from typing import Any

from activities.providers.offline.extract import Wanted
from activities.providers.offline.words import ATTRIBUTES, Attribute, dated, is_known, named

_FIRST_REFERENCE = re.compile(r"\$(?:\{[A-Za-z]|[A-Za-z])")
_FACT = re.compile(
    r"Find the (?P<what>.+?) in the (?P<where>passages|document)"
    r"(?:, in (?P<unit>[^\s,.]+))?(?:, for the year (?P<year>\d{4}))?\.(?=\s|$)",
    re.DOTALL,
)
_DATED = re.compile(r"year in which (?P<subject>.+) was (?P<event>[a-z ]+)")
_KIND = re.compile(r"(?P<attribute>.+) of the (?P<kind>[a-z -]+) that it describes")
_SENTENCE = re.compile(r"Find the sentence that answers \"(?P<question>.+?)\" in the passages\.(?=\s|$)", re.DOTALL)
_COMPARE = re.compile(r"(?:please\s+)?compare\b", re.IGNORECASE)
_ANSWER = re.compile(r"(?P<question>.+?)\n+Answer from these findings alone", re.DOTALL)

FACT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "found": {"type": "boolean"},
        "subject": {"type": "string"},
        "attribute": {"type": "string"},
        "value": {"type": "number"},
        "unit": {"type": "string"},
        "text": {"type": "string"},
        "year": {"type": ["integer", "null"]},
        "quote": {"type": "string"},
        "source": {"type": "string"},
        "reason": {"type": "string"},
    },
    "required": ["found"],
}
QUOTE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "found": {"type": "boolean"},
        "text": {"type": "string"},
        "quote": {"type": "string"},
        "source": {"type": "string"},
        "reason": {"type": "string"},
    },
    "required": ["found"],
}


@dataclass(frozen=True, slots=True)
class OfKind:
    """A fact wanted of the one thing a document describes, if it is of that kind; without attribute its name."""

    kind: str
    attribute: Attribute | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The sentence wanted that answers a question."""

    question: str


Order = Wanted | OfKind | Sentence


def find_fact(attribute: Attribute, subject: str, year: int | None) -> str:
    """Return the instruction to find one fact in passages."""
    what = (
        f"year in which {subject} was {event_of(attribute)}"
        if attribute.name.startswith("year ")
        else f"{attribute.name} of {subject}"
    )
    when = f", for the year {year}" if year is not None else ""
    return f"Find the {escaped(what)} in the passages{_in_unit(attribute)}{when}."


def find_of_kind(attribute: Attribute | None, kind: str) -> str:
    """Return the instruction to find a fact of whatever a document describes, if it is of that kind."""
    if attribute is None:
        return f"Find the name of the {kind} that it describes in the document."
    return f"Find the {escaped(attribute.name)} of the {kind} that it describes in the document{_in_unit(attribute)}."


def find_sentence(question: str) -> str:
    """Return the instruction to find the sentence that answers a question."""
    return f'Find the sentence that answers "{escaped(question.replace(chr(34), chr(39)))}" in the passages.'


def give_answer(goal: str) -> str:
    """Return the instruction to answer a goal from findings."""
    return f"{escaped(goal)}\n\nAnswer from these findings alone, with a mark [n] for each source."


def _in_unit(attribute: Attribute) -> str:
    return f", in {attribute.unit}" if attribute.unit else ""


def event_of(attribute: Attribute) -> str:
    """Return the participle of a dated attribute: `completed`."""
    return attribute.name.removeprefix("year ")


def escaped(text: str) -> str:
    """Return text as a prompt writes it: a dollar sign is no reference."""
    return text.replace("$", "$$")


def instruction(template: str) -> str:
    """Return what a prompt says before its first reference, dollar signs as they were meant."""
    parts = re.split(r"(\$\$)", template)
    text = ""
    for part in parts:
        found = _FIRST_REFERENCE.search(part) if part != "$$" else None
        if found:
            return f"{text}{part[: found.start()]}".strip()
        text += "$" if part == "$$" else part
    return text.strip()


def read_order(template: str) -> Order | None:
    """Return what a worker's prompt asks for, if it is worded as the planner words it."""
    text = instruction(template)
    if found := _SENTENCE.match(text):
        return Sentence(found["question"])
    found = _FACT.match(text)
    if not found:
        return None
    if found["where"] == "document" and (kind := _KIND.fullmatch(found["what"])):
        attribute = _attribute(kind["attribute"])
        known = attribute is not None or kind["attribute"] == "name"
        return OfKind(kind["kind"], attribute, found["unit"] or "") if known else None
    year = int(found["year"]) if found["year"] else None
    if (event := _DATED.fullmatch(found["what"])) and (attribute := dated(event["event"])):
        return Wanted(attribute, event["subject"], "", year)
    for attribute, subject in _splits(found["what"]):
        return Wanted(attribute, subject, found["unit"] or "", year)
    return None


def _attribute(text: str) -> Attribute | None:
    return ATTRIBUTES.get(text) or (dated(text.removeprefix("year ")) if text.startswith("year ") else named(text))


def _splits(what: str) -> list[tuple[Attribute, str]]:
    """Split `length of the Bridge of Sighs`: the longest attribute that is known, else the first."""
    cuts = list(re.finditer(" of ", what))
    pairs = [(attribute, what[cut.end() :]) for cut in cuts if (attribute := _attribute(what[: cut.start()]))]
    exact = [pair for pair in pairs if is_known(pair[0]) and what.startswith(f"{pair[0].name} of ")]
    return exact[-1:] if exact and exact[-1][0].name in ATTRIBUTES else exact[:1] or pairs[:1]


def is_comparison(instruction: str) -> bool:
    """Whether a prompt begins by asking for a comparison of what follows."""
    return bool(_COMPARE.match(instruction))


def read_goal(template: str) -> str:
    """Return the goal inside a joiner's prompt, or the prompt's own words."""
    text = instruction(template)
    found = _ANSWER.match(text)
    return found["question"].strip() if found else text
