"""Conditions are data, never text: `{ref, op, value}` joined by `and`, `or`, `not`.

They are decided on *facts* (`facts.py`), the small values which an activity reports beside its result, so the
workflow never needs the outputs themselves.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from sennit.workflows.plan.language.facts import Missing, Scalar
from sennit.workflows.plan.limits import MAX_CONDITION_LEVELS

Op = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "exists", "contains"]
Lookup = Callable[[dict[str, Any]], Scalar | Missing]


class ConditionError(Exception):
    """A condition that cannot be decided: a fact is missing or has the wrong type. Names the reference."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Test(_Frozen):
    """One comparison of a fact with a constant; `exists` needs no value."""

    __test__ = False

    ref: str
    op: Op
    value: JsonValue = None


class AllOf(_Frozen):
    """True when every part is."""

    parts: tuple["Condition", ...] = Field(alias="and", min_length=1)


class AnyOf(_Frozen):
    """True when at least one part is."""

    parts: tuple["Condition", ...] = Field(alias="or", min_length=1)


class Not(_Frozen):
    """True when its part is not."""

    part: "Condition" = Field(alias="not")


def _tag(value: Any) -> str:
    for name, model in (("and", AllOf), ("or", AnyOf), ("not", Not)):
        if isinstance(value, model) or (isinstance(value, dict) and name in value):
            return name
    return "test"


Condition = Annotated[
    Annotated[Test, Tag("test")]
    | Annotated[AllOf, Tag("and")]
    | Annotated[AnyOf, Tag("or")]
    | Annotated[Not, Tag("not")],
    Discriminator(_tag),
]
for _model in (AllOf, AnyOf, Not):
    _model.model_rebuild()


def tests_of(condition: Condition) -> Iterator[Test]:
    """Yield every comparison in `condition`, in the order written."""
    if isinstance(condition, Test):
        yield condition
    elif isinstance(condition, Not):
        yield from tests_of(condition.part)
    else:
        for part in condition.parts:
            yield from tests_of(part)


def holds(condition: dict[str, Any], lookup: Lookup) -> bool:
    """Decide a condition in its JSON form, part by part as written, so an `exists` may guard what follows it.

    `lookup` gets a test as written and returns its fact; a test decided beforehand carries the result as `is`.
    Raises ConditionError when a fact is missing (except for `exists`) or cannot be compared.
    """
    if "is" in condition:
        return bool(condition["is"])
    if "and" in condition:
        return all(holds(part, lookup) for part in condition["and"])
    if "or" in condition:
        return any(holds(part, lookup) for part in condition["or"])
    if "not" in condition:
        return not holds(condition["not"], lookup)
    return _compare(condition["ref"], condition["op"], lookup(condition), condition.get("value"))


def check_compiled(condition: object, levels: int = MAX_CONDITION_LEVELS) -> None:
    """Raise ValueError unless this is a condition in its JSON form whose every test has its place or is decided."""
    if not isinstance(condition, dict) or not levels:
        raise ValueError("this is no condition")
    parts = condition.get("and", condition.get("or"))
    if len(condition) == 1 and isinstance(parts, list) and parts:
        for part in parts:
            check_compiled(part, levels - 1)
    elif len(condition) == 1 and "not" in condition:
        check_compiled(condition["not"], levels - 1)
    else:
        _check_test(condition)


def facts_read(condition: Any) -> list[tuple[int, str]]:
    """Return the places of the facts that a compiled condition, or a part of it, reads."""
    if isinstance(condition, list):
        return [place for part in condition for place in facts_read(part)]
    if not isinstance(condition, dict):
        return []
    if "at" in condition:
        return [(condition["at"][0], condition["at"][1])]
    return [place for name in ("and", "or", "not") for place in facts_read(condition.get(name))]


def moved(condition: Any, to: Callable[[int], int]) -> Any:
    """Return a compiled condition, or a part of it, with the places that its nodes have elsewhere."""
    if isinstance(condition, list):
        return [moved(part, to) for part in condition]
    if not isinstance(condition, dict):
        return condition
    if "at" in condition:
        return condition | {"at": [to(condition["at"][0]), condition["at"][1]]}
    return {name: moved(part, to) if name in ("and", "or", "not") else part for name, part in condition.items()}


def _check_test(test: dict[str, Any]) -> None:
    known = all(name in ("ref", "op", "value", "at", "is") for name in test)
    is_comparison = isinstance(test.get("ref"), str) and test.get("op") in get_args(Op)
    place = test.get("at")
    is_place = isinstance(place, list) and [type(part) for part in place] == [int, str]
    if not (known and is_comparison and (is_place if "at" in test else isinstance(test.get("is"), bool))):
        raise ValueError("this is no condition")


def _compare(ref: str, op: Op, fact: Scalar | Missing, value: Any) -> bool:
    if op == "exists":
        return not isinstance(fact, Missing)
    if isinstance(fact, Missing):
        raise ConditionError(f"{ref} has no value, so `{op}` cannot be decided")
    if op in ("eq", "ne"):
        return _same(fact, value) == (op == "eq")
    if op == "in":
        if not isinstance(value, list):
            raise ConditionError(f"{ref}: `in` needs a list, not {value!r}")
        return any(_same(fact, item) for item in value)
    if op == "contains":
        if not isinstance(fact, str) or not isinstance(value, str):
            raise ConditionError(f"{ref}: `contains` looks for text in text")
        return value in fact
    return _ordered(ref, op, fact, value)


def _same(fact: Scalar, value: Any) -> bool:
    """Equality without Python's `True == 1`."""
    return isinstance(fact, bool) == isinstance(value, bool) and fact == value


def _ordered(ref: str, op: Op, fact: Scalar, value: Any) -> bool:
    numbers = _is_number(fact) and _is_number(value)
    if not numbers and not (isinstance(fact, str) and isinstance(value, str)):
        raise ConditionError(f"{ref}: `{op}` cannot compare {fact!r} with {value!r}")
    left: Any = fact
    return bool({"lt": left < value, "le": left <= value, "gt": left > value, "ge": left >= value}[op])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
