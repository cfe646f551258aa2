"""What a case expects of its answer, and whether an answer meets it. Pure: a
judge is asked elsewhere.
"""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from sennit.workflows.plan.language.json_schema import violations
from sennit.workflows.plan.language.text import format_value
from sennit.workflows.plan.language.validation_messages import Frozen

_MARK = re.compile(r"\s?\[\d+\]")
_NUMBER = re.compile(
    r"(?<![\w.,])[-−]?"  # noqa: RUF001
    r"(?:\d{1,3}(?:[,\u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)"
)
"""A number as English text has it. `K2`, `1st` and the parts of `2024.11.28` are none."""


def _one_or_more(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [value]


class Expectation(Frozen):
    """All that is given must hold. `number` holds if a number of the answer differs from
    it by `within` at most.
    """

    equals: JsonValue = None
    contains: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = ()
    number: float | None = None
    within: Annotated[float, Field(ge=0)] = 0
    answer_schema: dict[str, JsonValue] = Field(default_factory=dict, alias="schema")
    judge: str = ""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set - {"within"}:
            raise ValueError(
                "expects nothing; write one of equals, contains, number, schema and judge"
            )
        if "within" in self.model_fields_set and self.number is None:
            raise ValueError("`within` says how far a `number` may be off, and there is none")
        if any(not text.strip() for text in self.contains):
            raise ValueError("`contains` has an empty text, which every answer contains")
        return self

    def failures(self, answer: Any) -> Iterator[str]:
        """Yield why the answer is not what is expected, nothing if it is. The rubric of a
        judge is not looked at.

        Marks of evidence, such as `[1]`, do not count. A text that is JSON is taken for its value
        where a value is expected.
        """
        text = json.dumps(answer, ensure_ascii=False)
        if isinstance(answer, str):
            text = _MARK.sub("", answer).strip()
        if "equals" in self.model_fields_set and not self._is_equal(answer, text):
            yield f"it does not equal {format_value(self.equals)}"
        for wanted in self.contains:
            if _folded(wanted) not in _folded(text):
                yield f"it does not contain {format_value(wanted)}"
        if self.number is not None and not self._has_number(answer, text):
            margin = ""
            if self.within:
                margin = f" within {self.within:g}"
            yield f"it has no number {self.number:g}{margin}"
        if "answer_schema" in self.model_fields_set:
            yield from self._schema_failures(answer, text)

    def _is_equal(self, answer: Any, text: str) -> bool:
        if isinstance(self.equals, str) and isinstance(answer, str):
            return " ".join(text.split()) == " ".join(self.equals.split())
        value = answer
        if isinstance(answer, str):
            value = _value_of(text)
        return _same(value, self.equals)

    def _has_number(self, answer: Any, text: str) -> bool:
        assert self.number is not None
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            numbers = [float(answer)]
        else:
            numbers = numbers_in(text)
        # A figure such as 0.3 is not exact in binary, so that 0.1 off may be
        # a little more than 0.1.
        margin = self.within + 1e-9 * max(1.0, abs(self.number))
        return any(abs(number - self.number) <= margin for number in numbers)

    def _schema_failures(self, answer: Any, text: str) -> Iterator[str]:
        schema = self.answer_schema
        found = list(violations(answer, schema))
        if found and isinstance(answer, str):
            found = list(violations(_value_of(text), schema))
        for where, sentence in found[:3]:
            place = ""
            for step in where:
                place += f"[{step}]" if isinstance(step, int) else f".{step}"
            if place:
                sentence = f"{place} {sentence}"
            yield f"its schema: {sentence}"


def numbers_in(text: str) -> list[float]:
    """Return the numbers of an English text, in order: `4,805.59`, `-3`."""
    numbers = []
    for found in _NUMBER.finditer(text):
        digits = re.sub(r"[,\u00a0\u202f]", "", found[0]).replace("−", "-")  # noqa: RUF001
        numbers.append(float(digits))
    return numbers


def _value_of(text: str) -> Any:
    """Return the value that a text is as JSON, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, but not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
