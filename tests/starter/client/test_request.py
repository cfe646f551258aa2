"""What is sent to start a run."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.starter.client.errors import Refused
from sennit.starter.client.request import (
    build_request,
    checked_goal,
    checked_id,
    checked_new_id,
    docs_folder,
    markdown_summary,
    new_id,
    script_of,
    slug,
    summary,
)
from sennit.workflows.messages.request import parse_request
from sennit.workflows.plan.language.packing import unpack_plan
from sennit.workflows.plan.programs.program_plan import program_plan

PLAN: dict[str, Any] = {"nodes": [{"id": "a", "kind": "tool", "tool": "t", "args": {"x": None}}]}


def test_only_what_was_given_is_sent() -> None:
    assert build_request(goal="x", plan=None, docs=None, inputs={}, window=None) == {"goal": "x"}
    assert build_request(plan=PLAN, on_failure="fail", window=7) == {"plan": PLAN, "on_failure": "fail", "window": 7}
    assert build_request(goal="x", park_for="5m", tools=["a"]) == {"goal": "x", "park_for": "5m", "tools": ["a"]}


def test_a_heavy_plan_is_packed_and_the_run_can_read_it() -> None:
    heavy = {"nodes": [{"id": f"n{n}", "kind": "tool", "tool": "t" * 60} for n in range(1000)]}
    request = build_request(plan=heavy)
    assert set(request) == {"plan_packed"}
    assert unpack_plan(parse_request(request).plan_packed or "") == heavy


def test_a_program_is_a_plan_with_the_inputs_that_are_given() -> None:
    script = "async def main(topic: str, k: int = 3):\n    return topic * k\n"
    plan = program_plan(script_of(script), {"topic": "tides", "more": 1})
    assert plan["inputs"] == {"topic": {"type": "string"}}, "main has its own default for k"
    assert plan["nodes"][0]["arguments"] == {"topic": "$input.topic"}
    with pytest.raises(Refused, match="line 1: this is not Python"):
        script_of("def (")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "a run needs a `goal` or a `plan`"),
        ({"goal": "x" * 40_000}, "`goal`: is 40,000 bytes"),
        ({"goal": "x", "window": 501}, "`window`"),
        ({"goal": "x", "approval": "no"}, "`approval`"),
        ({"goal": "x", "typo": 1}, "unknown field `typo`"),
        ({"plan": {"a": float("nan")}}, "JSON"),
        ({"plan": {"a": "\ud800"}}, "UTF-8"),
        ({"plan": {"a": object()}}, "must be JSON"),
        ({"goal": "x", "inputs": {"a": "x" * 600_000}}, "the inputs are 600,008 bytes"),
    ],
)
def test_what_the_run_would_refuse_is_refused_here(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        build_request(**fields)


def test_a_plan_too_big_to_travel_is_refused_with_its_size_and_the_hint_map() -> None:
    noise = [str(hash((number, "y"))) for number in range(120_000)]
    with pytest.raises(Refused, match=r"bytes packed; at most 1,048,576.*`map`"):
        build_request(plan={"nodes": noise})


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("ä" * 17_000, "34,000 bytes; at most 32,768"),
        ("\udcff", "half a surrogate pair"),
    ],
)
def test_a_goal_is_bounded_text(goal: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        checked_goal(goal)


def test_a_folder_travels_as_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    assert docs_folder("docs/../docs", must_exist=True) == str(tmp_path / "docs")
    assert docs_folder("elsewhere", must_exist=False) == str(tmp_path / "elsewhere")


def test_a_folder_that_must_be_here_and_is_not_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="there is no such folder"):
        docs_folder(str(tmp_path / "nowhere"), must_exist=True)
    with pytest.raises(Refused, match="is not a folder"):
        docs_folder(str(tmp_path / "file"), must_exist=True)


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("Which is longer, the Nile or the Amazon?", "which-is-longer-the-nile-or-the-amazon"),
        ("Wie hoch ist der Großglockner über dem Meer", "wie-hoch-ist-der-groglockner-uber-dem"),
        ("長さ", "run"),
        ("", "run"),
        ("x" * 100, "x" * 40),
        ("../../etc/passwd", "etc-passwd"),
    ],
)
def test_a_slug_is_the_goals_words(goal: str, expected: str) -> None:
    assert slug(goal) == expected


@given(st.text(st.characters()))
def test_an_id_has_its_form_whatever_the_goal(goal: str) -> None:
    assert re.fullmatch(r"agent-[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{8}", new_id(goal))
    assert len(new_id(goal)) <= 55
    assert new_id(goal) != new_id(goal)


@given(st.text(st.characters()))
def test_a_summary_is_one_line_of_at_most_200_characters(goal: str) -> None:
    assert len(summary(goal)) <= 200
    assert "\n" not in summary(goal)


def test_markup_in_a_summary_stays_text() -> None:
    assert markdown_summary("# 1 <b>x</b>\n![a](b)") == r"\# 1 \<b>x\</b> !\[a](b)"
    assert len(markdown_summary("<" * 400)) <= 200


@pytest.mark.parametrize("given_id", ["", "a\nb", "x" * 256, "a\x1b[1m", "é" * 200])
def test_an_id_that_cannot_be_shown_or_kept_is_refused(given_id: str) -> None:
    with pytest.raises(Refused, match="a run's id is 1 to 255 bytes"):
        checked_id(given_id)


def test_an_id_may_have_spaces_and_slashes_but_dots_are_those_of_sub_agents() -> None:
    """A run ends whatever runs under the id of one of its sub-agents."""
    assert checked_new_id("team/nightly run 1") == checked_id("team/nightly run 1") == "team/nightly run 1"
    assert checked_id("nightly.sub") == "nightly.sub"
    with pytest.raises(Refused, match="a run's id has no dot"):
        checked_new_id("nightly.sub")
    with pytest.raises(Refused, match="sennit-quota is the id of the quota of the namespace"):
        checked_new_id("sennit-quota")
