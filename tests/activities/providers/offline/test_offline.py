"""The offline model as a provider: what it serves and refuses, and equal replies to equal requests."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.activities.providers.model import ModelRequest, ProviderError
from sennit.activities.providers.offline import Offline, OfflineCannot
from sennit.activities.toolbox import load_tools
from sennit.workflows.messages.contracts import conclusion_of
from sennit.workflows.plan.checking.validation import problems_of
from sennit.workflows.plan.language.nodes import Plan

Call = Callable[..., Awaitable[Any]]
PAGE = {"path": "o.md", "title": "Oder", "text": "# Oder\n\nThe Oder is 854 km long. Storks nest at it in May."}
TEXTS = {"type": "object", "properties": {name: {"type": "string"} for name in ("path", "title", "text")}}


@pytest.mark.parametrize(
    "goal",
    [
        "How long is the $5 Bridge, or ${x}?",
        "Who designed the Palace?",
        "When was the Palace completed?",
        "Which of A, B, C and D is the longest, and how much longer is it than the shortest?",
        "What is the combined population of Goal, Input, Answer and Sum?",
        "How long are A, A length, a-length, Łódź, 1st and A_?",
        "Write a poem for $5.",
    ],
)
async def test_every_plan_is_valid(call: Call, goal: str) -> None:
    plan = await call("planner", goal.replace("$", "$$"), goal=goal)
    assert problems_of(Plan.model_validate(plan), load_tools().catalogue()) == []


async def test_look_ups_stand_side_by_side_and_arithmetic_needs_all_of_them(call: Call) -> None:
    plan = await call("planner", "", goal="How much longer is X than $Y?")
    found = {node["id"]: node for node in plan["nodes"]}
    assert list(found) == ["x", "x_length", "y", "y_length", "result", "answer"]
    assert found["y_length"]["prompt"] == "Find the length of $$Y in the passages.\n\n$y"
    values = "${x_length.value}, ${y_length.value}"
    assert found["result"]["args"] == {"expression": f"max({values}) - min({values})"}
    assert [test["ref"] for test in found["result"]["when"]["and"]] == ["$x_length.found", "$y_length.found"]
    assert found["answer"]["inputs"] == ["x_length", "y_length", "result"]


@pytest.mark.parametrize(
    ("prompt", "schema", "output"),
    [
        ("Summarise this in One sentence. $a", None, "The Oder is 854 km long."),
        ("Summarise $a", None, "The Oder is 854 km long. Storks nest at it in May."),
        (
            "Summarise this in 1 sentence: $a",
            TEXTS,
            {"path": "o.md", "title": "Oder", "text": "The Oder is 854 km long."},
        ),
        (
            "When do storks nest? $a",
            None,
            (
                "I cannot tell that from the sentences found. The nearest sentences: Storks nest at it in May. "
                "These are rules, no language model. For more, set SENNIT_MODEL and its key: see docs/models.md."
            ),
        ),
        (
            "Find the length of the Oder in the passages, in km. $a",
            {"properties": {"found": {}, "value": {}}, "additionalProperties": False},
            {"found": True, "value": 854},
        ),
    ],
)
async def test_a_worker_summarises_or_quotes(call: Call, prompt: str, schema: Any, output: Any) -> None:
    assert await call("worker", prompt, {"a": PAGE, "input": {"x": "A note."}}, output_schema=schema) == output


async def test_what_the_run_was_given_is_quoted_where_there_is_nothing_else(call: Call) -> None:
    assert "A note." in await call("worker", "Write of ${input.x}", {"input": {"x": "A note."}})


@pytest.mark.parametrize(
    ("role", "prompt", "fields", "why"),
    [
        ("worker", "Write a haiku.", {}, "can only quote"),
        (
            "judge",
            "Good? $a",
            {"output_schema": {"type": "object", "required": ["good"]}},
            "cannot fill this output_sch",
        ),
        ("planner", "\U0001f409 ...", {"goal": "\U0001f409 ..."}, "no word to search for"),
    ],
)
async def test_a_refusal_says_why_and_is_not_retried(call: Call, role: str, prompt: str, fields: Any, why: str) -> None:
    with pytest.raises(OfflineCannot, match=why) as error:
        await call(role, prompt, {"a": PAGE} if "$a" in prompt else {}, **fields)
    assert not error.value.retryable


async def test_usage_is_a_third_of_the_bytes_rounded_up() -> None:
    reply = await Offline().complete(ModelRequest("worker", "offline", "g", "Say ä: abc", "Say ä: $a", {"a": "Again."}))
    assert (reply.usage.input_tokens, reply.usage.cost) == (4, 0)
    assert reply.usage.output_tokens == -(-len(reply.output.encode()) // 3)


WORDS = (
    "which is longer the Oder or Warta how much than of and what , ? : length highest in km 5 2,850 ( - It $x ${y} $$"
)
FIELDS = "found value unit text near quote id status items path subject".split()  # noqa: SIM905
ANY_GOAL = st.text(max_size=200) | st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=24).map(" ".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.just("km"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(ANY_GOAL, ANY_GOAL, JSON)
async def test_any_text_gives_a_valid_output_or_a_refusal_and_always_the_same(goal: str, text: str, value: Any) -> None:
    passage = {"path": "a.md", "title": text[:9], "passage": text}
    for role in ("planner", "worker", "joiner"):
        request = ModelRequest(role, "offline", goal, goal, f"{goal} $a", {"a": [passage, value]})
        try:
            reply = await Offline().complete(request)
        except ProviderError:
            continue
        assert await Offline().complete(request) == reply
        if role == "planner":
            assert problems_of(Plan.model_validate(reply.output)) == []
        if role == "joiner":
            assert isinstance(conclusion_of(reply.output).answer, str)
