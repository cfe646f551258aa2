"""Thoughts of models: gone from the reply wherever they stand, and nothing else is."""

import time

import pytest

from sennit.workflows.plan.language.text import ThoughtFilter, without_thoughts

FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        ("<think>\nHm.\n</think>\n\n42", "\n\n42"),
        ("<think></think>42", "42"),
        ("<THINKING>a</THINKING> <thought>b</thought>42\n", " 42\n"),
        ("[THINK]a[/THINK]42", "42"),
        ("◁think▷a◁/think▷42", "42"),
        ("<mm:think>a</mm:think>42", "42"),
        ("<seed:think>a</seed:think>42", "42"),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>42<|END_RESPONSE|>", "42"),
        ("<|begin_of_thought|>a\n<|end_of_thought|>\n<|begin_of_solution|>42<|end_of_solution|>", "\n42"),
        ("<|inner_prefix|>a<|inner_suffix|>42", "42"),
        ("<|channel>thought\na<channel|>42", "42"),
        (f"<|channel|>analysis<|message|>41?<|end|>{FINAL}42<|return|>", "42"),
        (
            f"<|channel|>analysis<|message|>a\nb<|end|><|start|>assistant<|channel|>commentary<|message|>c{FINAL}42",
            "42",
        ),
        ("first\n  <think>a\nb</think>second", "first\n  second"),
        ("It is <think>41? no</think> 42", "It is  42"),
        ("So it is 41.\nNo, 42.\n</think>\n42", "\n42"),
        ("So it is 42.</think>\n42", "\n42"),
        ("41?</think>42", "42"),
        ("41?</mm:think>42", "42"),
        ("as `x` and\n```py\nf()\n```\n</think>42", "42"),
        ("41\n<think>no</think>\n42", "41\n\n42"),
        ("<M2_7think>\na\n</M2_7think>\n42", "\n42"),
        ("<think>a</think><response>42</response>", "42"),
        ("41?</M2_7_thinking>42", "42"),
        ("<antThinking>a</antThinking>42", "42"),
        ("analysisIs it 41? No.assistantfinal42", "42"),
        ("analysisIs it 41?\nNo.assistantfinal42\n", "42\n"),
        ("An assistantfinal is no word.", "An assistantfinal is no word."),
        ("analysis of the river", "analysis of the river"),
        ("<rethink>a</rethink>", "<rethink>a</rethink>"),
        ("The tags `<think>` and `</think>`.", "The tags `<think>` and `</think>`."),
        ("```\n<think>\n</think>\n```\n42", "```\n<think>\n</think>\n```\n42"),
        ('{"answer": "a <think> tag, and </think>"}\r\n', '{"answer": "a <think> tag, and </think>"}\r\n'),
        ("", ""),
        ("<response>42</response>", "<response>42</response>"),
    ],
)
def test_what_is_no_thought_stays(reply: str, rest: str) -> None:
    assert without_thoughts(reply) == rest


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        ("<think>never closed\n42", "a thought, `<think>`, is never closed"),
        ("42 <think>never closed", "a thought, `<think>`, is never closed"),
        ("<think>a</thought>42", "a thought, `<think>`, is never closed"),
        ("<M2_7think>a</thinking>42", "a thought, `<M2_7think>`, is never closed"),
        ("analysisa.assistantfinal42assistantfinal43", "`assistantfinal` closes a thought that was never opened"),
        ("<think>a</think>42</think>43", "`</think>` closes a thought that was never opened"),
        ("<think>the tag `</think>` ends</think>42", "`</think>` closes a thought that was never opened"),
        ("41?\n```py\nf()\n</think>42", "`</think>` stands in a code fence that is never closed"),
        ("<|channel|>analysis<|message|>42", "a thought, `<|channel|>analysis<|message|>`, is never closed"),
    ],
)
def test_where_nobody_can_tell_a_thought_nothing_is_told(reply: str, wrong: str) -> None:
    thoughts = ThoughtFilter()
    for row in reply.splitlines(keepends=True):
        thoughts.take(row)
    assert thoughts.wrong == wrong
    assert without_thoughts(reply) == ""


def test_many_thoughts_in_one_row_take_no_square_of_their_number() -> None:
    def seconds(count: int) -> float:
        begun = time.thread_time()
        assert without_thoughts("<think></think>" * count) == ""
        return time.thread_time() - begun

    few, many = (min(seconds(count) for _ in range(3)) for count in (7_000, 70_000))
    assert many < 40 * few
