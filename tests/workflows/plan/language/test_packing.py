"""Plans in their packed form."""

import base64
import json
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.workflows.plan.language.packing import pack_plan, unpack_plan
from sennit.workflows.plan.limits import MAX_PACKED_BYTES, MAX_UNPACKED_BYTES

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_TEXT, _JSON, max_size=5))
def test_a_packed_plan_is_read_back_as_it_was(plan: dict[str, Any]) -> None:
    assert unpack_plan(pack_plan(plan)) == plan


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda body: base64.b64encode(body).decode()))
def test_anything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="plan_packed"):
        unpack_plan(text)


def test_a_plan_over_a_mebibyte_is_refused_with_its_size_and_the_hint_map() -> None:
    noise = "".join(str(hash((number, "x"))) for number in range(90_000))
    with pytest.raises(ValueError, match=r"the plan is [\d,]+ bytes packed; at most 1,048,576 .*`map`"):
        pack_plan({"nodes": [noise]})


@pytest.mark.parametrize("plan", [{"a": float("nan")}, {"a": float("inf")}, {"a": "\ud800"}])
def test_what_is_not_json_is_not_packed(plan: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant|surrogates not allowed"):
        pack_plan(plan)


def _packed(body: bytes) -> str:
    return base64.b64encode(zlib.compress(body, 9)).decode()


def test_a_bomb_is_refused_without_being_unpacked_whole() -> None:
    bomb = _packed(b'{"a": "' + b"x" * MAX_UNPACKED_BYTES + b'"}')
    assert len(bomb) < 200_000
    with pytest.raises(ValueError, match="unpacks to more than 16,777,216 bytes"):
        unpack_plan(bomb)


@pytest.mark.parametrize("part", [b"[],", b"0,", b"{},", b'{"a":0},'])
def test_values_are_counted_before_any_is_built(part: bytes) -> None:
    """Room for what is inflated, its text and the error; the values would take ten times as much."""
    body = b'{"a": [' + part * (MAX_UNPACKED_BYTES // len(part) - 10) + b"0]}"
    tracemalloc.start()
    with pytest.raises(ValueError, match="`plan_packed` holds over 500,000 values; use a `map` node"):
        unpack_plan(_packed(body))
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_UNPACKED_BYTES
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x" * (MAX_PACKED_BYTES + 1), "characters; at most"),
        (_packed(b"[]"), "holds no plan"),
        (_packed(b'{"a": NaN}'), "`plan_packed` holds NaN, which is not JSON"),
        (_packed(b'{"a": ' * 100_000), "is not base64 of zlib of JSON"),
        (base64.b64encode(zlib.compress(b"{}")[:-2]).decode(), "`plan_packed` is cut off"),
        (base64.b64encode(zlib.compress(b"{}") + b"x").decode(), "after its end"),
    ],
)
def test_a_damaged_plan_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        unpack_plan(text)


def test_packing_is_worth_it() -> None:
    nodes = [{"id": f"n{number}", "kind": "tool", "tool": "search"} for number in range(1000)]
    assert len(pack_plan({"nodes": nodes})) < len(json.dumps(nodes)) / 5
