"""Arguments of a call that is made early, from what the call before was given and has returned."""

from typing import Any

import pytest

from sennit.workflows.plan.language.references import BindError
from sennit.workflows.plan.learning.patterns import mapping_of
from sennit.workflows.plan.learning.trajectory import Source
from sennit.workflows.plan.speculation.mapping import bind_mapping, candidates, parse_mapping

MARK = "0123456789abcdef"
VALUES: dict[str, Any] = {
    "output": {"items": [{"path": "a.txt"}, {"path": "b.txt"}], "total": 2},
    "argument": {"query": "sea", "limit": 5},
    "goal": "find it",
    "input": {"language": "en"},
}


def bound(text: str) -> dict[str, Any]:
    sources = parse_mapping(text)
    assert sources is not None
    return bind_mapping(sources, VALUES, {MARK: "brief"}.__getitem__)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("path <- output items[1].path", {"path": "b.txt"}),
        (f"mode <- constant {MARK}; path <- output items[0].path", {"mode": "brief", "path": "a.txt"}),
        ("count <- output total; query <- argument query; why <- goal", {"count": 2, "query": "sea", "why": "find it"}),
        ("about.language <- input language; all <- output", {"about": {"language": "en"}, "all": VALUES["output"]}),
        ("paths[0] <- output items[0].path; paths[1] <- output items[1].path", {"paths": ["a.txt", "b.txt"]}),
        ("rows[0].name <- output items[0].path", {"rows": [{"name": "a.txt"}]}),
    ],
)
def test_a_mapping_is_bound_to_values(text: str, arguments: dict[str, Any]) -> None:
    assert bound(text) == arguments


@pytest.mark.parametrize(
    "text",
    [
        "path <- other; mode <- output mode",
        "path <- text items[0]",
        "path <- output items[*].path",
        "accounts.* <- output total",
        "path",
        "",
        "path <- constant",
        "p <- output $(rm)",
    ],
)
def test_a_mapping_that_nobody_can_bind_is_none_or_fails_to_bind(text: str) -> None:
    sources = parse_mapping(text)
    if sources is not None:
        with pytest.raises((BindError, KeyError)):
            bind_mapping(sources, VALUES, dict[str, Any]().__getitem__)


@pytest.mark.parametrize(
    "text",
    [
        "path <- output items[9].path",
        "path <- output total.deeper",
        "a <- output total; a.b <- output total",
        "a[5000] <- output total",
        "a.b <- output total; a[0] <- output total",
        ". <- output total",
    ],
)
def test_what_does_not_fit_the_values_is_not_bound(text: str) -> None:
    with pytest.raises(BindError):
        bound(text)


def test_what_a_table_writes_is_read_again() -> None:
    sources = [
        Source(argument="path", origin="output", call=3, path="items[0].path"),
        Source(argument="mode", origin="constant", mark=MARK),
        Source(argument="query", origin="argument", call=3, path="query"),
    ]
    assert bound(mapping_of(sources, 3)) == {"path": "a.txt", "mode": "brief", "query": "sea"}


def test_a_constant_may_be_what_a_schema_names_or_the_call_before_was_given() -> None:
    schema = {"properties": {"mode": {"enum": ["brief", "full"]}, "most": {"default": 2_500}}}
    found = list(candidates(schema, VALUES["argument"]))
    for value in ("brief", "full", 2_500, "sea", 5, 1_000, True, None):
        assert value in found
