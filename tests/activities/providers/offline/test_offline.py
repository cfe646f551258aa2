"""The offline model as a provider: refusals, usage, the same reply for the same request, and no crash on any text."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.providers import ModelRequest, ProviderError
from activities.providers.offline import CannotPlan, Offline
from activities.providers.offline.extract import Wanted, extract
from activities.providers.offline.quantities import quantities
from activities.providers.offline.sentences import Passage
from activities.providers.offline.words import ATTRIBUTES, named
from workflows.plan.checking.validation import problems_of
from workflows.plan.language.nodes import Plan

FRAGMENTS = """which is longer the Oder or Warta how much than of and what are rivers , ? : length long highest in km
5 2,850 ( ) - combined together A B $x ${y} $$ it was completed first most moons by average ratio times list how 1990"""
WORDS = st.sampled_from([*FRAGMENTS.split(), "\n"])
GOALS = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=24).map(" ".join))


def plan_call(goal: str, **fields: Any) -> ModelRequest:
    return ModelRequest("planner", "offline", goal, goal, goal, **fields)


async def test_a_refusal_names_the_part_and_gives_one_example_for_each_shape() -> None:
    with pytest.raises(CannotPlan) as error:
        await Offline().complete(plan_call("How long is the Oder? Then write a long poem about it, please."))
    text = str(error.value)
    assert text.startswith('The offline rules do not understand "Then write a long poem')
    for shape in ("look-up", "compare", "difference", "sum", "ratio", "superlative", "list"):
        assert shape in text
    assert text.endswith("Anything else needs a language model: set SENNIT_MODEL.")
    assert len(text) <= 500
    assert not error.value.retryable


async def test_a_plan_uses_only_the_tools_that_the_run_may_use() -> None:
    with pytest.raises(CannotPlan, match="calculate, which this run may not use"):
        await Offline().complete(plan_call("How long are A and B together?", tools=({"name": "search"},)))
    plan = await Offline().complete(plan_call("How long are A and B?", tools=({"name": "search"},)))
    assert plan.output["answer"] == "$answer"


async def test_usage_is_a_third_of_the_bytes_rounded_up() -> None:
    reply = await Offline().complete(
        ModelRequest("worker", "offline", "g", "Say ä: abc", "Say ä: $a", {"a": "Say it again."})
    )
    assert (reply.usage.input_tokens, reply.usage.cost) == (4, 0)
    assert reply.usage.output_tokens == -(-len(reply.output.encode()) // 3)


@settings(max_examples=300, deadline=None)
@given(GOALS)
async def test_any_goal_gives_a_valid_plan_or_a_refusal_and_always_the_same(goal: str) -> None:
    try:
        plan = (await Offline().complete(plan_call(goal))).output
    except ProviderError:
        return
    assert problems_of(Plan.model_validate(plan)) == []
    assert (await Offline().complete(plan_call(goal))).output == plan


@settings(max_examples=200, deadline=None)
@given(GOALS, GOALS, st.sampled_from(["worker", "critic", "judge", "joiner"]))
async def test_any_prompt_over_any_text_gives_an_output_or_a_refusal(prompt: str, text: str, role: Any) -> None:
    inputs = {"a": {"items": [{"path": "a.md", "title": text[:9], "passage": text, "score": 1.0}]}, "b": text}
    request = ModelRequest(role, "offline", prompt, f"{prompt} {text}", f"{prompt} $a $b", inputs)
    try:
        reply = await Offline().complete(request)
    except ProviderError:
        return
    assert (await Offline().complete(request)) == reply


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOWN_FIELDS = "value unit text year quote source subject name attribute reason looked_in range differs of_kind"
FIELDS = KNOWN_FIELDS.split()
FACTS = st.builds(
    lambda found, fields: {"found": found, **fields},
    st.booleans(),
    st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(["km", "A", "length", "5 km", 5, 5.5, "year"])),
)
ENTRIES = st.builds(
    lambda name, value: {"id": name, "status": "succeeded", "value": value, "error": None},
    st.sampled_from(["a_length", "b_length", "difference", "river_length", "sentence"]),
    FACTS | JSON | st.builds(lambda value: {"expression": "1", "value": value}, st.integers() | st.floats(-9, 9)),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ENTRIES, max_size=5),
    st.sampled_from(
        [
            "How long is A?",
            "Which is longer, A or B, and by how much?",
            "How much longer is A than B?",
            "How many times longer is A than B?",
            "How long are A and B together?",
            "When was A completed?",
            "What is the longest river?",
            "List the rivers.",
            "Who built A?",
            "Say something.",
        ]
    ),
)
async def test_a_joiner_answers_whatever_its_inputs_hold(entries: list[dict[str, Any]], goal: str) -> None:
    inputs = {"findings": entries}
    reply = await Offline().complete(ModelRequest("joiner", "offline", goal, "p", f"{goal} $findings", inputs))
    assert set(reply.output) == {"answer", "evidence"}
    assert isinstance(reply.output["answer"], str)
    assert [item["n"] for item in reply.output["evidence"]] == list(range(1, len(reply.output["evidence"]) + 1))


@settings(max_examples=300, deadline=None)
@given(GOALS, st.sampled_from([*ATTRIBUTES, "wingspan", "number of moons", "distance from the Sun"]))
def test_a_finding_quotes_the_text_it_was_given(text: str, attribute: str) -> None:
    known = named(attribute) or ATTRIBUTES[attribute]
    found = extract(Wanted(known, "the Oder"), [Passage("oder.md", "Oder", f"The Oder {text}")])
    if found["found"]:
        assert "".join(found["quote"].split())[:20] in "".join(f"The Oder {text}".split()).replace("*", "").replace(
            "_", ""
        )


@given(st.text(max_size=300))
def test_figures_lie_inside_the_text_and_do_not_overlap(text: str) -> None:
    end = 0
    for item in quantities(text):
        assert end <= item.start < item.end <= len(text)
        end = item.end
