"""What people read: exact answers over small notes, each figure with its mark, nothing guessed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Ask = Callable[..., Awaitable[dict[str, Any]]]
Call = Callable[..., Awaitable[Any]]

NOTES = {
    "rivers/oder.md": "# Oder\n\nThe Oder is about 854 kilometres long, as of 2020.\n"
    "The Oder has a drainage basin of 119,074 km².\n\nSome older books give 912 kilometres.",
    "rivers/warta.md": "# Warta\n\nThe Warta is 808 km long. It rises at Kromołów in the south of Poland.",
    "rivers/bug.md": "# Bug\n\nWith a length of 774 km, the Bug forms a border.",
    "rivers/san.md": "# San\n\nThe San is 458 km long (2012).",
    "rivers/nida.md": "# Nida\n\nThe Nida is a quiet river.",
    "buildings/palace.md": "# Palace\n\nThe Palace is 237 metres tall. It was completed on 22 July 1955."
    " It has 42 floors.\nLev Rudnev designed the Palace in the style of his time.",
    "buildings/spire.md": "# Spire\n\nThe Spire is 310 metres tall. The Spire was completed in 2022.",
    "mars.md": "# Mars\n\nMars has 2 known moons.",
    "pluto.md": "# Pluto\n\nPluto has 5 known moons.",
    "tin.md": "# Tin\n\nTin melts at 231.9 degrees Celsius. Tin weighs 3 kg in this box.",
    "lead.md": "# Lead\n\nLead melts at 621.4 °F. Lead is 2 m high in this box.",
}


@pytest.mark.parametrize(
    ("goal", "answer"),
    [
        (
            "How long is the Oder?",
            "The length of the Oder is 854 km [1] (2020). The documents also mention other figures for the Oder [2].",
        ),
        ("How long is the Warta in miles?", "The length of the Warta is 502.07 mi [1] (808 km in the source)."),
        ("When was the Palace completed?", "The Palace was completed in 1955 [1]."),
        ("When was the Spire completed?", "The Spire was completed in 2022 [1]."),
        ("How old is the Spire?", "The Spire was completed in 2022 [1]."),
        ("How many floors does the Palace have?", "The number of floors of the Palace is 42 [1]."),
        (
            "Which is longer, the Warta or the Bug, and by how much?",
            "The Warta is longer: 808 km [1] against 774 km [2], a difference of 34 km.",
        ),
        ("Which is shorter, the Warta or the Bug?", "The Bug is shorter: 774 km [1] against 808 km [2]."),
        (
            "Which of the Warta, the Bug and the San is the longest, and how much longer is it than the shortest?",
            (
                "The Warta is the longest: 808 km [1]. The others: the Bug 774 km [2] and the San 458 km [3] (2012). "
                "It is 350 km longer than the shortest, the San."
            ),
        ),
        (
            "Which was completed first, the Palace or the Spire, and by how many years?",
            "The Palace was completed first: 1955 [1] against 2022 [2], a difference of 67 years.",
        ),
        (
            "How much older is the Palace than the Spire?",
            "The Palace is 67 years older than the Spire: completed in 1955 [1] against completed in 2022 [2].",
        ),
        ("Which has more moons, Mars or Pluto?", "Pluto has more moons: 5 [1] against 2 [2]."),
        ("How many more moons does Pluto have than Mars?", "Pluto has 3 more moons than Mars: 5 [1] against 2 [2]."),
        (
            "Which has the higher melting point, tin or lead?",
            "Lead has the higher melting point: 327.44 °C [1] (621.4 °F in the source) against 231.9 °C [2].",
        ),
        (
            "How much longer is the Bug than the Warta?",
            "It is the other way round: the Warta is 34 km longer than the Bug: 808 km [1] against 774 km [2].",
        ),
        (
            "How long are the Warta, the Bug and the San together?",
            (
                "The combined length of the Warta, the Bug and the San is 2,040 km: 808 km [1], 774 km [2] and "
                "458 km [3] (2012)."
            ),
        ),
        (
            "How many times longer is the Warta than the San?",
            "The length of the Warta is about 1.76 times that of the San: 808 km [1] against 458 km [2] (2012).",
        ),
        ("List the lengths of the Warta and the Bug.", "Length:\n- the Warta: 808 km [1]\n- the Bug: 774 km [2]"),
        (
            "What is the longest river?",
            (
                "Of the 4 rivers whose length the documents give, the Oder is the longest: 854 km [1] (2020). "
                "Next: the Warta 808 km [2] and the Bug 774 km [3]. No length was found for Nida."
            ),
        ),
        (
            "What are the heights of all buildings?",
            "Height:\n- the Spire: 310 m [1]\n- the Palace: 237 m [2]",
        ),
        (
            "Who designed the Palace?",
            (
                "I cannot tell from the documents; the offline rules do not understand “Who designed the Palace”. "
                "Nearest sentences:\nThe Palace is 237 metres tall. [1]\nIt has 42 floors. [2]\n"
                "Lev Rudnev designed the Palace in the style of his time. [3]"
            ),
        ),
        ("What is the longest bridge?", "No folder of the documents is named after bridges."),
        (
            "How long is the Nida?",
            (
                "The length of the Nida was not found: no passage gives it in rivers/bug.md, buildings/palace.md, "
                "rivers/nida.md, rivers/oder.md and rivers/warta.md."
            ),
        ),
        (
            "How long are the Bug and the Nida together?",
            (
                "The sum cannot be given. Found: the Bug 774 km [1]. The length of the Nida was not found: no passage "
                "gives it in rivers/bug.md, buildings/palace.md, rivers/nida.md, rivers/oder.md and rivers/warta.md."
            ),
        ),
        (
            "How long is the Bug? How tall is the Spire?",
            "The length of the Bug is 774 km [1].\nThe height of the Spire is 310 m [2].",
        ),
    ],
)
async def test_an_answer_reads_well_and_says_what_is_missing(ask: Ask, goal: str, answer: str) -> None:
    assert (await ask(goal, NOTES))["answer"] == answer


async def test_evidence_names_node_claim_source_and_quote(ask: Ask) -> None:
    found = await ask("Which is longer, the Oder or the Warta?", NOTES)
    assert found["evidence"][:2] == [
        {
            "n": 1,
            "node": "oder_length",
            "claim": "The length of the Oder is 854 km (2020)",
            "source": "rivers/oder.md",
            "quote": "The Oder is about 854 kilometres long, as of 2020.",
        },
        {
            "n": 2,
            "node": "warta_length",
            "claim": "The length of the Warta is 808 km",
            "source": "rivers/warta.md",
            "quote": "The Warta is 808 km long.",
        },
    ]
    assert found["evidence"][2]["quote"] == "Some older books give 912 kilometres."


async def test_names_are_written_as_the_documents_write_them(ask: Ask) -> None:
    found = await ask("which is longer, the warta or bug", NOTES)
    assert found["answer"] == "The Warta is longer: 808 km [1] against 774 km [2]."


def passage(path: str, title: str, text: str) -> dict[str, Any]:
    return {"path": path, "title": title, "passage": text, "score": 1.0}


async def test_a_joiner_extracts_from_searches_when_the_plan_has_no_step_for_it(call: Call) -> None:
    both = [
        {"id": "a", "status": "succeeded", "value": {"items": [passage("o.md", "Oder", "The Oder is 854 km long.")]}},
        {"id": "b", "status": "succeeded", "value": {"items": [passage("w.md", "Warta", "The Warta is 808 km long.")]}},
    ]
    sub = {"expression": "854 - 808", "value": 46}
    found = await call(
        "joiner",
        "Answer this. $both $d",
        {"both": both, "d": sub},
        goal="Which is longer, the Oder or the Warta?",
    )
    assert found["answer"] == "The Oder is longer: 854 km [1] against 808 km [2].\nD: 854 - 808 = 46."
    assert [item["node"] for item in found["evidence"]] == ["a", "b"]


async def test_a_look_up_that_failed_is_said_with_its_node(call: Call) -> None:
    findings = [{"id": "oder_length", "status": "failed", "value": None, "error": "RateLimited"}]
    found = await call("joiner", "How long is the Oder?\n\nAnswer from these findings alone. $f", {"f": findings})
    assert found["answer"] == "The length of the Oder is not known: oder_length was failed (RateLimited)."


async def test_findings_of_another_model_are_used_as_they_are(call: Call) -> None:
    fact = {"found": True, "value": 854, "unit": "km", "text": "854 km", "quote": "854 km.", "source": "o.md"}
    findings = [{"id": "oder_length", "status": "succeeded", "value": fact, "error": None}]
    found = await call("joiner", "How long is the Oder?\n\nAnswer from these findings alone. $f", {"f": findings})
    assert found["answer"] == "The length of the Oder is 854 km [1]."


@pytest.mark.parametrize("value", [10**400, True, "854"])
async def test_what_is_no_number_to_reckon_with_is_not_found(call: Call, value: Any) -> None:
    fact = {"found": True, "value": value, "unit": "km", "quote": "It is long.", "source": "o.md"}
    findings = [{"id": "oder_length", "status": "succeeded", "value": fact, "error": None}]
    found = await call("joiner", "How long is the Oder?\n\nAnswer from these findings alone. $f", {"f": findings})
    assert found == {
        "answer": "The length of the Oder was not found: the search found no passage.",
        "evidence": [],
    }
