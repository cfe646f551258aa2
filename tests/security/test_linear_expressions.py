"""No regular expression takes more time than its text is long: one that does can be fed until its worker stops.

Every expression of the source is found by itself, so that a new one is held to this too.
"""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.expressions import Expression, expressions, nasty_texts

from sennit.activities.limits import MAX_RULED_CHARACTERS
from sennit.activities.providers.anthropic import Anthropic
from sennit.activities.providers.openai import OpenAI
from sennit.activities.toolbox import redaction

NAME = r"(?:the |an? )?nile(?: river)?(?!\w)"
SECRETS = ('p+ss "wo/rd"', "aaaaaaaa1")
CORES = [core for secret in SECRETS for core in redaction._base64_cores(secret)]
LOCAL: dict[str, list[Any]] = {
    "forms": [[*map(redaction._any_spelling, SECRETS), *map(redaction._any_alphabet, CORES)]],
    "closing": ["</think>"],
    "inner": ["reasoning_content"],
    "letters": [[redaction._any_spelling(letter) for letter in "s3c"]],
    "letter": [redaction._any_spelling("s")],
    "args": [SimpleNamespace(find="x")],
    "name": [NAME],
    "tool": [NAME],
    "field": ["tool"],
    "module": ["helpers"],
    "names": ["a|b"],
    "form": [r"\b(?!(?:(?:1[5-9]|20)\d\d|101)\b)\d", r"\w is the\ van\b|\bthe\ van is \S", r"\w owns\ the\ van\b"],
    "pattern": [r"(?<![\w$\u2212-])(?<!\d[.,'])6,650 km(?!\w)"],
    "word": [40],
    "words": [words for wire in (OpenAI, Anthropic) for words in wire.optional.values()],
}
"""What the names may be in expressions that functions build."""
BOUNDED = {
    "activities/providers/offline/questions.py:_RULES": MAX_RULED_CHARACTERS,
    "activities/providers/offline/questions.py:_BETWEEN_NAMES": MAX_RULED_CHARACTERS,
    "activities/providers/offline/figures.py": 1_000,
}
"""Expressions that never see a longer text."""
SHORT, LONG = 800, 8_000
UNNOTICED = 0.003
"""Seconds of CPU for a long text; the fastest engine needs more for the square of its length."""


def seconds(expression: Expression, text: str) -> float:
    begun = time.thread_time()
    expression.run(text)
    return time.thread_time() - begun


@pytest.mark.timeout(600)  # hundreds of expressions, each several times
def test_ten_times_the_text_takes_about_ten_times_the_time() -> None:
    for expression in expressions(LOCAL):
        most = next((most for place, most in BOUNDED.items() if expression.place.startswith(place)), None)
        long = most or LONG
        texts = [list(nasty_texts(expression.pattern, length)) for length in (30, long * SHORT // LONG, long)]
        for tiny, small, large in zip(*texts, strict=True):
            assert seconds(expression, tiny) < 0.1, (expression, tiny)
            if most is not None:
                assert seconds(expression, large) < 0.1, (expression, large)
            elif seconds(expression, large) > UNNOTICED:
                few, many = (min(seconds(expression, text) for _ in range(3)) for text in (small, large))
                assert many < 30 * few or many < UNNOTICED, (expression, large[:60], few, many)
