"""Conditions are data, never text: `{ref, op, value}` joined by `and`, `or`, `not`.

They are decided on *facts* (`facts.py`), the small values which an activity reports beside its
result, so the workflow never needs the outputs themselves.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, JsonValue

from sennit.workflows.plan.language.facts import Missing, Scalar
from sennit.workflows.plan.language.problems import Where
from sennit.workflows.plan.language.validation_messages import Frozen, wrong_form
from sennit.workflows.plan.limits import MAX_CONDITION_LEVELS

Op = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "exists", "contains"]
_TEST_FIELDS = frozenset(("ref", "op", "value", "at", "is"))
Lookup = Callable[[dict[str, Any]], Scalar | Missing]
_FORM = "{ref: $a.count, op: gt, value: 3}, {and: [...]}, {or: [...]} or {not: ...}"


class ConditionError(Exception):
    """A condition that cannot be decided: a fact is missing or has the wrong
    type. Names the reference.
    """


class Test(Frozen):
    """One comparison of a fact with a constant; `exists` needs no value."""

    __test__ = False

    ref: str
    op: Op
    value: JsonValue = None


class AllOf(Frozen):
    """True when every part is."""

    parts: tuple["Condition", ...] = Field(alias="and", min_length=1)


class AnyOf(Frozen):
    """True when at least one part is."""

    parts: tuple["Condition", ...] = Field(alias="or", min_length=1)


class Not(Frozen):
    """True when its part is not."""

    part: "Condition" = Field(alias="not")


def form_of(condition: dict[str, Any]) -> type[Test | AllOf | AnyOf | Not]:
    """Return which form of a condition an object has."""
    if "and" in condition:
        return AllOf
    if "or" in condition:
        return AnyOf
    if "not" in condition:
        return Not
    return Test


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return form_of(value).model_validate(value)
    if isinstance(value, Frozen):
        return value
    return wrong_form(value, "condition", _FORM)


Condition = Annotated[Test | AllOf | AnyOf | Not, BeforeValidator(_read)]
for _model in (AllOf, AnyOf, Not):
    _model.model_rebuild()


def comparisons_of(condition: Condition | None, where: Where = ()) -> Iterator[tuple[Where, Test]]:
    """Yield every comparison in a condition with its place, in the order
    written; nothing without one.
    """
    if isinstance(condition, Test):
        yield where, condition
    elif isinstance(condition, Not):
        yield from comparisons_of(condition.part, (*where, "not"))
    elif condition is not None:
        name = "or"
        if isinstance(condition, AllOf):
            name = "and"
        for index, part in enumerate(condition.parts):
            yield from comparisons_of(part, (*where, name, index))


def holds(condition: dict[str, Any], lookup: Lookup) -> bool:
    """Decide a condition in its JSON form, part by part as written, so an `exists` may
    guard what follows it.

    `lookup` gets a test as written and returns its fact; a test decided beforehand carries
    the result as `is`. Raises ConditionError when a fact is missing (except for `exists`)
    or cannot be compared.
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
    """Raise ValueError unless this is a condition in its JSON form whose every test has
    its place or is decided.
    """
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


def compiled_tests(condition: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every test of a condition in its JSON form, in the order written."""
    parts = condition.get("and") or condition.get("or") or []
    if "not" in condition and not parts:
        parts = [condition["not"]]
    if not parts:
        yield condition
    for part in parts:
        yield from compiled_tests(part)


def facts_read(condition: dict[str, Any] | None) -> list[tuple[int, str]]:
    """Return the places of the facts that a compiled condition reads."""
    if condition is None:
        return []
    facts: list[tuple[int, str]] = []
    for test in compiled_tests(condition):
        if "at" in test:
            node, name = test["at"]
            facts.append((node, name))
    return facts


def moved(condition: dict[str, Any] | None, to: Callable[[int], int]) -> dict[str, Any] | None:
    """Return a compiled condition with the places that its nodes have elsewhere."""
    if condition is None:
        return None
    copied = deepcopy(condition)
    for test in compiled_tests(copied):
        if "at" in test:
            node, name = test["at"]
            test["at"] = [to(node), name]
    return copied


def _check_test(test: dict[str, Any]) -> None:
    is_known = test.keys() <= _TEST_FIELDS
    is_comparison = isinstance(test.get("ref"), str) and test.get("op") in get_args(Op)
    if "at" in test:
        place = test["at"]
        is_decidable = isinstance(place, list) and list(map(type, place)) == [int, str]
    else:
        is_decidable = isinstance(test.get("is"), bool)
    if not (is_known and is_comparison and is_decidable):
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
    if isinstance(fact, bool) != isinstance(value, bool):
        return False
    return bool(fact == value)


def _ordered(ref: str, op: Op, fact: Scalar, value: Any) -> bool:
    are_numbers = _is_number(fact) and _is_number(value)
    are_texts = isinstance(fact, str) and isinstance(value, str)
    if not are_numbers and not are_texts:
        raise ConditionError(f"{ref}: `{op}` cannot compare {fact!r} with {value!r}")
    left: Any = fact
    if op == "lt":
        return bool(left < value)
    if op == "le":
        return bool(left <= value)
    if op == "gt":
        return bool(left > value)
    return bool(left >= value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
