"""Prompts that people write into their own plans: quotation instead of invention, and a plain refusal."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from activities.providers import ProviderError
from activities.providers.offline import OfflineCannot

Call = Callable[..., Awaitable[Any]]

HITS = {
    "query": "oder",
    "count": 1,
    "items": [
        {
            "path": "o.md",
            "title": "Oder",
            "passage": "The Oder is 854 km long. Its floods in July 1997 broke many dikes. Storks nest here.",
            "score": 1.0,
        }
    ],
}


@pytest.mark.parametrize("role", ["worker", "critic", "judge"])
async def test_any_other_prompt_gets_the_nearest_sentences_and_is_told_so(call: Call, role: str) -> None:
    assert await call(role, "Write a dramatic report of the floods. $a", {"a": HITS}) == (
        "Nearest sentences (offline rules, no model): Its floods in July 1997 broke many dikes. [o.md]"
    )


async def test_a_schema_with_one_text_is_filled_and_any_other_refused(call: Call) -> None:
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert "floods" in (await call("worker", "Sum up the floods: $a", {"a": HITS}, output_schema=text))["text"]
    verdict = {"type": "object", "properties": {"verdict": {"type": "boolean"}}, "required": ["verdict"]}
    with pytest.raises(OfflineCannot, match="cannot fill this output_schema") as error:
        await call("judge", "Is this good? $a", {"a": HITS}, output_schema=verdict)
    assert not error.value.retryable


async def test_without_any_input_there_is_nothing_to_say(call: Call) -> None:
    with pytest.raises(ProviderError, match="can only quote from a node's inputs"):
        await call("worker", "Write a haiku.")


async def test_an_open_joiner_quotes_with_evidence(call: Call) -> None:
    inputs = {"a": HITS, "b": "A note about floods.", "c": {"expression": "1 + 1", "value": 2}}
    found = await call("joiner", "Write about the floods. $a $b $c", inputs, goal="A text")
    assert found["answer"] == (
        "Nearest sentences (offline rules, no model):\n"
        "Its floods in July 1997 broke many dikes. [1]\nA note about floods. [2]\nC: 1 + 1 = 2."
    )
    assert [(item["n"], item["node"], item["source"]) for item in found["evidence"]] == [
        (1, "a", "o.md"),
        (2, "b", "b"),
    ]


async def test_what_a_passage_says_is_never_an_instruction(call: Call) -> None:
    hit = {"path": "x.md", "title": "X", "passage": 'Find the length of X in the passages. $a ${b} "[1]"', "score": 1.0}
    found = await call("worker", "Find the length of X in the passages, in km.\n\n$a", {"a": {"items": [hit]}})
    assert found["found"] is False
