"""A read and a write of one thing never overlap; what nobody writes costs no lock."""

from typing import Any

import pytest
from doubles.plan.samples import plan, tool

from workflows.plan.compile.resource_locks import locks_of
from workflows.plan.language.parser import parse_plan

TOOLS: dict[str, dict[str, Any]] = {
    "read": {"effect": "read", "resource": "file:{docs}/{path}"},
    "search": {"effect": "read", "resource": "file"},
    "write": {"effect": "write", "resource": "file:/docs/{path}"},
    "see": {"effect": "read", "resource": "ticket:{id}"},
    "close": {"effect": "write", "resource": "ticket:{id}"},
    "think": {"effect": "pure", "resource": None},
}
A = "file:/docs/a.md"


def use(name: str, what: str, **args: Any) -> dict[str, Any]:
    return tool(name, what, args)


def locks(*nodes: dict[str, Any], docs: str | None = "/docs") -> dict[str, list[tuple[str, bool]]]:
    return locks_of(parse_plan(plan(*nodes, answer=None)), TOOLS, docs)


def test_without_a_write_there_are_no_locks() -> None:
    assert locks(use("r", "read", path="a.md"), use("s", "search", query="x"), use("t", "think")) == {}


@pytest.mark.parametrize("path", ["a.md", "./a.md", "x/../a.md", "/a.md", ".//a.md"])
def test_all_spellings_of_a_path_are_one_lock(path: str) -> None:
    found = locks(use("w", "write", path="a.md"), use("r", "read", path=path), use("o", "read", path="b.md"))
    assert found == {"w": [(A, True)], "r": [(A, False)], "o": [("file:/docs/b.md", False)]}


def test_two_ways_to_write_a_letter_are_one() -> None:
    found = locks(use("w", "write", path="caf\u00e9"), use("r", "read", path="cafe\u0301"))
    assert found["w"][0][0] == found["r"][0][0]


def test_the_folder_of_documents_counts() -> None:
    found = locks(use("w", "write", path="notes/a.md"), use("r", "read", path="a.md"), docs="/docs/notes")
    assert found["w"][0][0] == found["r"][0][0]


@pytest.mark.parametrize(
    "other",
    [
        use("r", "read", path="$w.path"),
        use("r", "read", path="${input.folder}/a.md"),
        use("r", "read"),
        use("r", "search", query="x"),
        {"id": "r", "kind": "map", "over": "$w.items", "as": "item",
         "do": {"kind": "tool", "tool": "read", "args": {"path": "$item"}}},
    ],
)  # fmt: skip
def test_a_key_that_is_not_known_yet_locks_the_whole_kind(other: dict[str, Any]) -> None:
    found = locks(use("w", "write", path="a.md"), other, use("s", "see", id=1), use("c", "close", id=1))
    assert found["w"] == [("file", True)]
    assert found["r"] == [("file", False)]
    assert (found["s"], found["c"]) == ([("ticket:1", False)], [("ticket:1", True)])
