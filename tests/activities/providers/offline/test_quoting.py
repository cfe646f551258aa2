"""Summaries and comparisons of whatever a prompt is given: whole sentences and figures from it, nothing else."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from activities.providers.offline.quoting import summary, wanted_length
from activities.providers.offline.sentences import Passage

Call = Callable[..., Awaitable[Any]]

TIDES = (
    "# Tides\n\nHome | Sea | Contact\n\nTides are raised by the pull of the Moon on the sea. Boats wait for them. "
    "The sea rises where the Moon pulls, and the tides follow the Moon. A harbour may sell fish."
)


@pytest.mark.parametrize(
    ("instruction", "length"),
    [
        ("Summarise this.", 3),
        ("Summarize the page in at most 5 sentences, for a child.", 5),
        ("Please sum up these notes in two sentences.", 2),
        ("Write a short summary in one sentence", 1),
        ("Summarise it in a single sentence.", 1),
        ("Summarise these in ten short sentences", 10),
        ("Summarise in 900 sentences", 50),
        ("Summarise in 0 sentences", 1),
        ("Find the length of the Nile in two sentences.", None),
        ("", None),
    ],
)
def test_an_order_for_a_summary_says_how_long(instruction: str, length: int | None) -> None:
    assert wanted_length(instruction) == length


def test_a_summary_has_the_sentences_that_say_most_in_their_order_and_no_menu() -> None:
    chosen = [item.text for item in summary([Passage("t.md", "Tides", TIDES)], 2)]
    assert chosen == [
        "Tides are raised by the pull of the Moon on the sea.",
        "The sea rises where the Moon pulls, and the tides follow the Moon.",
    ]


def test_each_document_has_its_say_before_any_has_a_second() -> None:
    documents = [Passage(f"{name}.md", name, f"The {name} is old. The {name} is {name} and old.") for name in "abc"]
    assert [item.passage.path for item in summary(documents, 3)] == ["a.md", "b.md", "c.md"]
    assert len(summary(documents, 50)) == 6


def test_nothing_has_no_summary() -> None:
    assert summary([Passage("e.md", "Empty", "# Empty\n")], 3) == []
    assert summary([], 3) == []


async def test_a_worker_summarises_as_text_or_in_the_fields_asked_for(call: Call) -> None:
    page = {"url": "http://a/t", "status": 200, "content_type": "text/html", "title": "Tides", "text": TIDES}
    first = "Tides are raised by the pull of the Moon on the sea."
    assert await call("worker", "Summarise the page in one sentence.\n\n${p.text}", {"p": page}) == first
    note = {"path": "t.md", "title": "Tides", "text": TIDES, "truncated": False}
    names = ["path", "title", "text"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    assert await call("worker", "Summarise it in one sentence. $n", {"n": note}, output_schema=schema) == {
        "path": "t.md",
        "title": "Tides",
        "text": first,
    }
    empty = note | {"text": "# Tides\n"}
    assert await call("worker", "Summarise it. $n", {"n": empty}) == ""


async def test_a_joiner_summarises_with_a_mark_for_each_sentence(call: Call) -> None:
    notes = [{"path": f"{name}.md", "text": f"The {name} is made of iron."} for name in ("anvil", "kettle")]
    said = await call("joiner", "Summarise these in two sentences. $n", {"n": notes}, goal="How long is the Nile?")
    assert said["answer"] == "The anvil is made of iron. [1] The kettle is made of iron. [2]"
    assert [(piece["n"], piece["source"]) for piece in said["evidence"]] == [(1, "anvil.md"), (2, "kettle.md")]


def figure(name: str, value: float | None, unit: str = "km") -> dict[str, Any]:
    if value is None:
        return {"found": False, "subject": name, "attribute": "length", "reason": "no passage gives it"}
    quote = f"The {name} is {value:,} {unit} long."
    more = {"text": f"{value:,} {unit}", "quote": quote, "source": f"{name.lower()}.md", "year": None}
    return {"found": True, "subject": name, "name": name, "attribute": "length", "value": value, "unit": unit} | more


async def test_a_joiner_compares_all_findings_it_is_given(call: Call) -> None:
    given = [figure("Oder", 854), figure("Elbe", 1094), figure("Saale", None)]
    said = await call("joiner", "Compare the length of these rivers. $f", {"f": given}, goal="anything")
    assert said["answer"] == (
        "Of those found, Elbe has the greater length: 1,094 km [1] against 854 km [2], a difference of 240 km. "
        "The length of Saale was not found: the search found no passage."
    )
    assert [piece["source"] for piece in said["evidence"]] == ["elbe.md", "oder.md"]


async def test_what_cannot_be_set_against_each_other_is_not(call: Call) -> None:
    mixed = await call("joiner", "Compare these. $f", {"f": [figure("Oder", 854), figure("Sun", 5, "kg")]}, goal="x")
    assert "cannot be set against each other" in mixed["answer"]
    lone = await call("joiner", "Compare these. $f", {"f": [figure("Oder", 854)]}, goal="x")
    assert lone["answer"] == "The Oder is 854 km long. [1]"


async def test_what_the_run_was_given_is_no_source_where_there_is_one(call: Call) -> None:
    note = {"path": "t.md", "title": "Tides", "text": TIDES}
    given = {"input": {"topic": "The Moon is made of cheese."}, "n": note}
    assert "cheese" not in await call("worker", "Write of ${input.topic}: $n", given)
    assert "cheese" in await call("worker", "Write of ${input.topic}", {"input": given["input"]})
