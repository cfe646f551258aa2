"""Plans as files: read again, each is the same plan."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.starter.plans.plan_file import read_plan
from sennit.starter.plans.plan_text import plan_text
from sennit.starter.plans.yaml_text import YamlText
from sennit.workflows.plan.language.parser import parse_plan

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted([*EXAMPLES.glob("plans/*.yaml"), *EXAMPLES.glob("programs/*.py")])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_example_comes_back(file: Path) -> None:
    plan = read_plan(str(file)).check(None)
    assert parse_plan(YamlText(plan_text(plan)).data) == plan


@given(VALUES)
def test_every_value_comes_back(value: Any) -> None:
    plan = parse_plan({"nodes": [{"id": "a", "kind": "tool", "tool": "say", "args": {"value": value}}]})
    assert parse_plan(YamlText(plan_text(plan)).data) == plan


def test_a_node_begins_with_its_name_and_a_script_stands_line_by_line() -> None:
    script = "async def main():\n    return await search(query='rome')\n"
    plan = parse_plan({"nodes": [{"kind": "program", "script": script, "id": "main"}]})
    assert plan_text(plan) == (
        "nodes:\n"
        "- id: main\n"
        "  kind: program\n"
        "  script: |\n"
        "    async def main():\n"
        "        return await search(query='rome')\n"
    )


def test_equal_values_stand_twice() -> None:
    shared = {"rome": ["lima", "oslo"]}
    nodes = [{"id": name, "kind": "tool", "tool": "say", "args": {"value": shared}} for name in ("a", "b")]
    assert "&" not in plan_text(parse_plan({"nodes": nodes}))
