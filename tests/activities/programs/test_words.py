from typing import Any

import pytest
from doubles.plan.samples import TOOLS

from sennit.activities.nodes.error_mapping import ProgramFailed
from sennit.activities.programs import words as module
from sennit.activities.programs.cpython.names import BEGUN
from sennit.activities.programs.session import Counts, Session
from sennit.activities.programs.values import Call, Ended, Sleep
from sennit.activities.programs.words import Surroundings, Words
from sennit.workflows.plan.language.nodes import AgentNode, EndedCalls, GateNode, LlmNode, Node, ToolNode, TurnRule

Fields = dict[str, Any]


@pytest.fixture
def words() -> Words:
    session = Session(script="s", function="main", key="main")
    session.begin("main")
    return Words(session, Counts(session, []), Surroundings("", TOOLS, ("openai",)))


def said(words: Words, function: str, *args: Any, **kwargs: Any) -> Ended | None:
    answer = words.answer(Call(len(words.session.open), function, args, kwargs, 3))
    assert not isinstance(answer, Sleep)
    return answer


def only(words: Words, kind: type[Node]) -> Any:
    [node] = words.nodes
    assert isinstance(node, kind)
    return node


@pytest.mark.parametrize(
    ("args", "kwargs", "given"),
    [
        (("a",), {}, {"query": "a"}),
        (("a", 2), {}, {"query": "a", "k": 2}),
        ((), {"query": "$x"}, {"query": "$$x"}),
    ],
)  # fmt: skip
def test_a_tools_arguments_are_bound_by_place_and_name(words: Words, args: Any, kwargs: Fields, given: Fields) -> None:
    assert said(words, "search", *args, **kwargs) is None
    assert only(words, ToolNode).args == given


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "kind", "message"),
    [
        ("search", (), {}, "ValueError", "search: `query` is missing"),
        ("search", ("a", 1, 2), {}, "TypeError", "search: takes 2 arguments, not 3"),
        ("search", ("a",), {"query": "b"}, "TypeError", "search: got two values for `query`"),
        ("search", ("a",), {"q": 1}, "ValueError", "q"),
        ("search", ("a", "two"), {}, "ValueError", "search: k: "),
        ("read_output", (), {}, "NameError", "name 'read_output' is not defined"),
        ("llm", ("a",), {"media": 5}, "TypeError", "llm: `media` is a result to show, or a list of them, not 5"),
        ("sleep", (), {}, "TypeError", "sleep: missing a required argument: 'seconds'"),
        ("sleep", (-1,), {}, "ValueError", "sleep: sleeps 0 to 31,622,400 seconds, not -1"),
        ("sleep", ("1",), {}, "ValueError", "sleep: sleeps 0 to 31,622,400 seconds, not '1'"),
        ("sleep", (True,), {}, "ValueError", "sleep: sleeps 0 to"),
        ("sleep", (10**9,), {}, "ValueError", "sleep: sleeps 0 to"),
        ("sleep_until", ("soon",), {}, "ValueError", "is a datetime, or a text like 2026-01-31T09:00, not 'soon'"),
        ("sleep_until", (5,), {}, "ValueError", "sleep_until: `time` is a datetime"),
        ("sleep_until", ("9999-01-01",), {}, "ValueError", "sleep_until: sleeps at most 31,622,400 seconds"),
        ("llm", (), {}, "TypeError", "llm: missing a required argument: 'prompt'"),
        ("llm", (1,), {}, "TypeError", "llm: `prompt` is a text, not 1"),
        ("llm", ("a",), {"rol": "critic"}, "TypeError", "unexpected keyword argument 'rol'"),
        ("llm", ("a",), {"role": "boss"}, "ValueError", "llm: `role` is one of worker, critic, judge"),
        ("llm", ("a",), {"role": "joiner"}, "ValueError", "llm: `role` is one of "),
        ("llm", ("a",), {"model": "acme:1"}, "ValueError", "llm: there is no model `acme:1`"),
        ("llm", ("a",), {"schema": "Pont"}, "ValueError", "llm: schema: Pont is no type"),
        ("llm", ("a",), {"tools": ["serch"]}, "ValueError", "did you mean `search`?"),
        ("llm", ("a",), {"tools": "search"}, "TypeError", "`tools` is a list"),
        ("llm", ("a",), {"max_turns": 99}, "ValueError", "llm: max_turns: "),
        ("llm", ("a",), {"tools": ["search"], "turn": {"quorum": 0}}, "ValueError", "llm: turn.quorum: "),
        ("llm", ("a",), {"tools": ["search"], "turn": "some"}, "ValueError", '"some" is not a valid `turn`; write all'),
        ("llm", ("a",), {"turn": "first"}, "ValueError", "`turn` says when the next turn of a model with `tools` "),
        ("llm", ("a",), {"temperature": 3}, "ValueError", "llm: settings.temperature: "),
        ("llm", ("a",), {"effort": "huge"}, "ValueError", "llm: settings.effort: "),
        ("llm", ("a",), {"idle_timeout": 0}, "ValueError", "llm: `idle_timeout` is a number of seconds above 0, not 0"),
        ("llm", ("a",), {"first_token_timeout": "5m"}, "ValueError", "is a number of seconds above 0, not '5m'"),
        ("llm", ("a",), {"stop": []}, "ValueError", "llm: settings.stop: "),
        ("llm", ("a",), {"messages": [{"role": "system", "content": "b"}]}, "ValueError", "llm: messages[0].role: "),
        ("llm", ("a",), {"messages": [{"role": "assistant", "content": "b"}]}, "ValueError", "the first turn is the "),
        ("llm", ("a",), {"messages": "b"}, "ValueError", "llm: messages"),
        ("llm", ("a",), {"instructions": 5}, "ValueError", "llm: instructions: "),
        ("llm", ("a",), {"temprature": 0.5}, "TypeError", "unexpected keyword argument 'temprature'"),
        ("agent", ("a",), {"budget": {"tokns": 1}}, "ValueError", "agent: budget.tokns: "),
        ("ask", ("",), {}, "TypeError", "ask: `question` is a text"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_raised_in_the_script_and_makes_no_node(
    words: Words, function: str, args: Any, kwargs: Fields, kind: str, message: str
) -> None:
    ended = said(words, function, *args, **kwargs)
    assert ended is not None
    assert ended.error is not None
    assert ended.error[0] == kind
    assert message in ended.error[1]
    assert words.nodes == []
    assert (words.session.made, words.session.open, words.session.tasks) == (0, {}, {})


def test_equal_calls_have_keys_of_their_own_and_their_place_does_not_matter(words: Words) -> None:
    for _ in range(2):
        said(words, "search", query="a", k=1)
    said(words, "llm", "a")
    said(words, "search", k=1, query="a")
    keys = list(words.keys.values())
    other = Words(
        words.session.model_copy(update={"counts": {}, "key": "other"}), Counts(words.session, []), words.around
    )
    said(other, "search", query="a", k=1)
    assert len({*keys, *other.keys.values()}) == 5


def test_a_model_gets_its_options(words: Words) -> None:
    said(words, "llm", "a", "b", schema="list[str]", role="critic", model="openai:x", tools=["search"], max_turns=3)
    node = only(words, LlmNode)
    assert node.prompt == "a\n\n$material_1"
    assert node.output_schema == {"type": "array", "items": {"type": "string"}}
    assert (node.role, node.model, node.tools, node.max_turns) == ("critic", "openai:x", ("search",), 3)


def test_a_model_is_another_call_only_if_its_turns_do_not_wait_for_all(words: Words) -> None:
    keys: list[str] = []
    rules: list[TurnRule | None] = []
    for turn in ({}, {"turn": None}, {"turn": "all"}, {"turn": {"quorum": 2}}):
        session = words.session.model_copy(update={"counts": {}, "made": 0, "open": {}})
        fresh = Words(session, Counts(session, []), words.around)
        said(fresh, "llm", "a", tools=["search"], **turn)
        keys += fresh.keys.values()
        rules.append(only(fresh, LlmNode).turn_rule)
    assert rules == [None, None, None, EndedCalls(quorum=2)]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_a_model_that_is_shown_nothing_is_the_same_whether_that_is_said_or_not(words: Words) -> None:
    said(words, "llm", "a", media=None)
    assert not only(words, LlmNode).media


def test_an_agent_gets_its_options(words: Words) -> None:
    said(words, "agent", "a $b", tools=["search"], budget={"tokens": 5})
    node = only(words, AgentNode)
    assert (node.goal, node.tools, node.budget.tokens) == ("a $$b", ("search",), 5)


@pytest.mark.parametrize("sign", ["x", "$", "é"])
@pytest.mark.parametrize("sizes", [(10, 5_000), (10, 1_500, 1_500, 3), (5_000,), (1_999, 50), (3, *[700] * 9)])
def test_a_question_has_as_much_of_the_material_as_there_is_room_for(
    words: Words, sign: str, sizes: tuple[int, ...]
) -> None:
    first, *material = (sign * size for size in sizes)
    said(words, "ask", first, *material)
    asked = only(words, GateNode).question
    assert len(asked) <= 2_000
    assert asked.count("$") % 2 == 0
    assert len(asked) > 1_800 or sum(sizes) < 1_800


def test_a_script_cannot_catch_that_it_makes_too_many_calls(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROGRAM_CALLS", 1)
    said(words, "search", query="a")
    for function, args in (("search", ["a"]), (BEGUN, ["/look~0123456789ab.1#1", ""])):
        with pytest.raises(ProgramFailed, match="over 1 calls, the last on line 3"):
            said(words, function, *args)


def test_of_a_long_path_people_see_the_end(words: Words) -> None:
    site = "".join(f"/solve~0123456789ab.1#{number}" for number in range(20))
    words.answer(Call(0, "search", ("a",), {}, 3, site))
    [label] = words.labels.values()
    assert label.startswith("…/solve#1")
    assert label.endswith('/solve#19/search:3 "a"')
    assert len(label) < 70
