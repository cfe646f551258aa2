"""Calls in visible text: a public case of each way that chat templates write them."""

import random
from contextlib import suppress
from typing import Any

import pytest
from doubles.reply_forms import DAMAGED, damaged

from sennit.workflows.plan.planner_format.json_text import Unreadable
from sennit.workflows.plan.planner_format.written_calls import FORMS, calls_of

FIELDS = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOLS: dict[str, Any] = {name: {"type": "object", "properties": FIELDS} for name in ("weather", "get_time")}
PARIS = ("weather", {"city": "Paris, FR", "days": 3})
ROME = ("get_time", {"city": "Rome"})
B, S, E = "\uff5ctool▁calls▁begin\uff5c", "\uff5ctool▁sep\uff5c", "\uff5ctool▁calls▁end\uff5c"

D = "\uff5cDSML\uff5c"

CASES = {
    "Hermes 2 Pro, Qwen 2.5 and 3": (
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris, FR", "days": 3}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call><|im_end|>'
    ),
    "Qwen 3 Coder": (
        "<tool_call>\n<function=weather>\n<parameter=city>\nParis, FR\n</parameter>\n<parameter=days>\n3\n"
        "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_time>\n<parameter=city>\nRome\n</parameter>\n"
        "</function>\n</tool_call>"
    ),
    "Seed OSS": (
        "<seed:tool_call>\n<function=weather>\n<parameter=city>Paris, FR</parameter>\n<parameter=days>3</parameter>\n"
        "</function>\n<function=get_time>\n<parameter=city>Rome</parameter>\n</function>\n</seed:tool_call>"
    ),
    "Llama 3.1, Functionary": (
        '<function=weather>{"city": "Paris, FR", "days": 3}</function><function=get_time>{"city": "Rome"}</function>'
    ),
    "Llama 3 JSON": (
        '{"name": "weather", "parameters": {"city": "Paris, FR", "days": 3}}; '
        '{"name": "get_time", "parameters": {"city": "Rome"}}'
    ),
    "Llama 3 with its tag": (
        '<|python_tag|>{"name": "weather", "parameters": {"city": "Paris, FR", "days": 3}}'
        ';{"name": "get_time", "parameters": {"city": "Rome"}}<|eom_id|>'
    ),
    "Llama 4 pythonic": '[weather(city="Paris, FR", days=3), get_time(city="Rome")]<|eot|>',
    "Llama 4 with its tag": '<|python_start|>[weather(city="Paris, FR", days=3), get_time(city="Rome")]<|python_end|>',
    "Mistral Nemo": (
        '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Paris, FR", "days": 3}, "id": "abcdef123"}, '
        '{"name": "get_time", "arguments": {"city": "Rome"}, "id": "abcdef124"}]</s>'
    ),
    "Mistral Small 3.2": (
        '[TOOL_CALLS]weather[CALL_ID]a1B2c3D4e[ARGS]{"city": "Paris, FR", "days": 3}'
        '[TOOL_CALLS]get_time[ARGS]{"city": "Rome"}</s>'
    ),
    "DeepSeek R1, V3": (
        f"<{B}><\uff5ctool▁call▁begin\uff5c>function<{S}>weather\n```json\n"
        '{"city": "Paris, FR", "days": 3}\n```<\uff5ctool▁call▁end\uff5c>\n<\uff5ctool▁call▁begin\uff5c>function'
        f'<{S}>get_time\n```json\n{{"city": "Rome"}}\n```<\uff5ctool▁call▁end\uff5c><{E}><\uff5cend▁of▁sentence\uff5c>'
    ),
    "DeepSeek V3.1": (
        f'<{B}><\uff5ctool▁call▁begin\uff5c>weather<{S}>{{"city": "Paris, FR", "days": 3}}<\uff5ctool▁call▁end\uff5c>'
        f'<\uff5ctool▁call▁begin\uff5c>get_time<{S}>{{"city": "Rome"}}<\uff5ctool▁call▁end\uff5c><{E}>'
    ),
    "DeepSeek V3.2, DSML": (
        f'<{D}function_calls>\n<{D}invoke name="weather">\n'
        f'<{D}parameter name="city" string="true">Paris, FR</{D}parameter>\n'
        f'<{D}parameter name="days" string="false">3</{D}parameter>\n</{D}invoke>\n'
        f'<{D}invoke name="get_time">\n<{D}parameter name="city" string="true">Rome</{D}parameter>\n'
        f"</{D}invoke>\n</{D}function_calls>"
    ),
    "GLM 4.5, 4.6": (
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris, FR</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>3</arg_value>\n</tool_call>\n<tool_call>get_time\n<arg_key>city</arg_key>\n"
        "<arg_value>Rome</arg_value>\n</tool_call>"
    ),
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
        '{"city": "Paris, FR", "days": 3}<|tool_call_end|><|tool_call_begin|>functions.get_time:1'
        '<|tool_call_argument_begin|>{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "Gemma 3": '```tool_code\n[weather(city="Paris, FR", days=3), get_time(city="Rome")]\n```',
    "FunctionGemma": (
        "<start_function_call>call:weather{city:<escape>Paris, FR<escape>,days:3}<end_function_call>"
        "<start_function_call>call:get_time{city:<escape>Rome<escape>}<end_function_call>"
    ),
    "Gemma 4": (
        '<|tool_call>call:weather{city:<|"|>Paris, FR<|"|>,days:3}<tool_call|>'
        '<|tool_call>call:get_time{city:<|"|>Rome<|"|>}<tool_call|>'
    ),
    "Command R7B, A": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "weather", '
        '"parameters": {"city": "Paris, FR", "days": 3}},\n'
        '    {"tool_call_id": "1", "tool_name": "get_time", "parameters": {"city": "Rome"}}\n]<|END_ACTION|>'
    ),
    "MiniMax M2": (
        '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Paris, FR</parameter>\n'
        '<parameter name="days">3</parameter>\n</invoke>\n<invoke name="get_time">\n'
        '<parameter name="city">Rome</parameter>\n</invoke>\n</minimax:tool_call>'
    ),
    "MiniMax M1": (
        '<tool_calls>\n{"name": "weather", "arguments": {"city": "Paris, FR", "days": 3}}\n'
        '{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_calls>'
    ),
    "LFM2": '<|tool_call_start|>[weather(city="Paris, FR", days=3), get_time(city="Rome")]<|tool_call_end|>',
    "gpt-oss, harmony": (
        '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Paris, FR", "days": 3}'
        "<|call|><|start|>assistant<|channel|>commentary to=functions.get_time<|constrain|>json<|message|>"
        '{"city": "Rome"}<|call|>'
    ),
    "gpt-oss, the other order": (
        "<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>"
        '{"city": "Paris, FR", "days": 3}<|call|><|start|>assistant to=functions.get_time<|channel|>commentary json'
        '<|message|>{"city": "Rome"}<|call|>'
    ),
    "gpt-oss, in its thoughts": (
        "<|start|>assistant to=functions.weather<|channel|>analysis <|constrain|>json<|message|>"
        '{"city": "Paris, FR", "days": 3}<|call|><|start|>assistant to=functions.get_time<|channel|>analysis<|message|>'
        '{"city": "Rome"}<|call|>'
    ),
    "Gemma 4, both behind one mark": (
        '<|tool_call>call:weather{city:<|"|>Paris, FR<|"|>,days:3}call:get_time{city:<|"|>Rome<|"|>}<tool_call|>'
    ),
    "Command R+": (
        'Action:\n```json\n[\n    {"tool_name": "weather", "parameters": {"city": "Paris, FR", "days": 3}},\n'
        '    {"tool_name": "get_time", "parameters": {"city": "Rome"}}\n]\n```'
    ),
    "MiniCPM 5": (
        '<function name="weather"><param name="city">Paris, FR</param><param name="days">3</param></function>\n'
        '<function name="get_time"><param name="city">Rome</param></function>'
    ),
    "Granite 3, Phi 4": (
        '<|tool_call|>[{"name": "weather", "arguments": {"city": "Paris, FR", "days": 3}}, '
        '{"name": "get_time", "arguments": {"city": "Rome"}}]<|/tool_call|>'
    ),
    "Nemotron": (
        '<TOOLCALL>[{"name": "weather", "arguments": {"city": "Paris, FR", "days": 3}}, '
        '{"name": "get_time", "arguments": {"city": "Rome"}}]</TOOLCALL>'
    ),
    "Apertus": (
        '<|tools_prefix|>[{"weather": {"city": "Paris, FR", "days": 3}}, {"get_time": {"city": "Rome"}}]'
        "<|tools_suffix|>"
    ),
    "OpenAI's objects": (
        '[{"id": "a", "type": "function", "function": {"name": "weather", '
        '"arguments": "{\\"city\\": \\"Paris, FR\\", \\"days\\": 3}"}}, '
        '{"id": "b", "type": "function", "function": {"name": "get_time", "arguments": "{\\"city\\": \\"Rome\\"}"}}]'
    ),
}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<|tool_call_start|>[weather(city={"a": [true, null, false]})]<|tool_call_end|>', {"a": [True, None, False]}),
        ('<|tool_call>call:weather{city:<|"|>{"a": 1}}<b<|"|>}<tool_call|>', '{"a": 1}}<b'),
        ('<|tool_call>call:weather{city:{<|"|>3<|"|>:<|"|>c<|"|>}}<tool_call|>', {"3": "c"}),
        ('call:weather{city:"Paris"}', "Paris"),
        ('<function=weather><parameter=city><|"|>a<|"|></parameter></function>', '<|"|>a<|"|>'),
    ],
)
def test_an_argument_is_read_as_its_way_writes_it(text: str, arguments: Any) -> None:
    assert read(text) == ("", [("weather", {"city": arguments})])


def test_what_is_said_behind_calls_is_kept() -> None:
    text = '<tool_call>{"name": "get_time", "arguments": {"city": "Rome"}}</tool_call>\nThis may take a while.'
    assert read(f"I look.\n{text}") == ("I look.\nThis may take a while.", [ROME])


def read(text: str) -> tuple[str, list[tuple[str, Any]]]:
    words, calls = calls_of(text, TOOLS)
    return words, [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_each_way_is_read(case: str) -> None:
    assert read(CASES[case]) == ("", [PARIS, ROME])


@pytest.mark.parametrize("case", [name for name, text in CASES.items() if text[0] not in "[{`" or "TOOL_CALLS" in text])
def test_words_may_stand_before(case: str) -> None:
    assert read(f"I look it up.\n{CASES[case]}") == ("I look it up.", [PARIS, ROME])


@pytest.mark.parametrize("case", CASES)
def test_what_is_cut_is_no_call_and_no_answer(case: str) -> None:
    """At any place behind the first name: it is refused, or has fewer calls, or the whole."""
    text = CASES[case]
    for end in range(text.index("weather") + 10, len(text)):
        try:
            words, calls = read(text[:end])
        except Unreadable:
            continue
        assert calls in ([PARIS], [PARIS, ROME]), text[:end]
        assert words in text[:end]


def test_every_form_of_the_table_has_a_case() -> None:
    used = {name for name, form in FORMS.items() if any(form.head.search(text) for text in CASES.values())}
    assert used == set(FORMS)


@pytest.mark.parametrize(
    "text",
    [
        "A tag such as <tool_call> stays in a sentence.",
        "A call looks like `<tool_call>{...}</tool_call>` in Hermes.",
        "```\n<tool_call>\n{}\n</tool_call>\n```\nis how Hermes writes.".replace("```\n<", "In code:\n```\n<"),
        "Qwen ends turns with `<|im_end|>`.",
        "The list [1, 2] and f(x) = 3.",
        '{"name": "Nile", "parameters": {"km": 6650}}',
        "It is 3 < 4 | 5 > 2.",
    ],
)
def test_what_is_none_is_text(text: str) -> None:
    assert read(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Nile.<|im_end|>", "The Nile."),
        ("The Nile.</s>\n", "The Nile."),
        ("The Nile. <|eot_id|><|end_of_text|>", "The Nile."),
    ],
)
def test_what_ends_a_reply_is_no_part_of_it(text: str, words: str) -> None:
    assert read(text) == (words, [])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<|fim_prefix|>The Nile.", "is a special token"),
        ("The Nile <\uff5cAssistant\uff5c> is long.", "is a special token"),
        ("<|channel|>analysis<|message|>The Nile?", "is a special token"),
        ("<tool_call>weather in Paris</tool_call>", "cannot be read"),
        ("<tool_call>\n<function=weather>\nParis\n</function>", "stands where a parameter or the end is expected"),
        ('<|START_ACTION|>[{"tool": 1}]<|END_ACTION|>', "`name` and `arguments` are expected"),
        ('[TOOL_CALLS]weather[ARGS]{"city": ', "cannot be read"),
        ('<|tool_call_start|>[weather("Paris")]<|tool_call_end|>', "arguments by name"),
        ('<|tool_call_start|>[weather(city=open("x"))]<|tool_call_end|>', "arguments by name"),
        ('weather(city="Paris")', "looks like a call of a tool"),
        ('weather\n{"city": "Paris"}', "looks like a call of a tool"),
        ("call:weather{city:Paris}", "looks like a call of a tool"),
        (
            "Write `<tool_call>\n<function=weather>\n<parameter=city>a</parameter>\n</function>\n</tool_call>` for it.",
            "looks like a call of a tool",
        ),
        ("<|channel>The Nile.", "is a special token"),
        (
            '<invoke name="weather"><parameter name="city">a</parameter><parameter name="city">b</parameter></invoke>',
            '"city" stands twice in one call',
        ),
        ('[weather(city="Paris"), rm(path="/")]', "looks like a call of a tool"),
        ('{"name": "weather", "parameters": {"city": "Paris"}} Good luck.', "looks like a call of a tool"),
    ],
)
def test_what_looks_like_a_call_and_is_none_goes_back(text: str, wrong: str) -> None:
    with pytest.raises(Unreadable, match=wrong):
        read(text)


def test_whatever_is_written_is_calls_or_words_or_refused() -> None:
    """In time that grows with the length, and without any other error."""
    chance = random.Random(7)
    for _ in range(DAMAGED // 4):
        with suppress(Unreadable):
            words, calls = calls_of(damaged(chance, [*CASES.values()]), TOOLS)
            assert isinstance(words, str)
            assert all(isinstance(call.name, str) for call in calls)
    for piece in ("<tool_call>", "[TOOL_CALLS]", "<|im_end|>", "weather(", "[" * 9, "{", "<parameter=a>", "```"):
        with suppress(Unreadable):
            calls_of(piece * 20_000, TOOLS)
