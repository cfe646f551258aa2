"""Workflow ids and summaries."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starter.client.errors import Refused
from starter.client.names import checked_id, markdown_summary, new_id, slug, summary


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


def test_two_runs_of_one_goal_have_two_ids() -> None:
    assert new_id("x") != new_id("x")


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


def test_an_id_may_have_spaces_and_slashes() -> None:
    assert checked_id("team/nightly run 1") == "team/nightly run 1"
