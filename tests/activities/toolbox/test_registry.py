import pytest
from pydantic import BaseModel

from activities.toolbox import Registry, ToolDefinitionError, UnknownTool, load_tools, tool


class Nothing(BaseModel):
    pass


def filled(*names: str) -> Registry:
    registry = Registry()

    def same(args: Nothing) -> None: ...

    for name in names:
        tool(effect="pure", name=name, registry=registry)(same)
    return registry


def test_two_tools_of_a_name_are_refused_with_both_functions_named() -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        filled("search", "search")
    assert str(caught.value).count("same") == 2
    assert "the name 'search' is taken by" in str(caught.value)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownTool, match=r"no tool is called 'serch'; did you mean `search`\?"):
        filled("search", "read").get("serch")


def test_an_unknown_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(UnknownTool, match="no tool is called 'zzzzzz'; known: read, search"):
        filled("search", "read").get("zzzzzz")


def test_an_endless_name_makes_a_short_error() -> None:
    with pytest.raises(UnknownTool) as caught:
        filled("search").get("x" * 100_000)
    assert len(str(caught.value)) < 300


def test_the_catalogue_is_sorted_by_name() -> None:
    assert [each["name"] for each in filled("c", "a", "b").catalogue()] == ["a", "b", "c"]


def test_the_built_in_catalogue_is_complete_and_forbids_unknown_arguments() -> None:
    catalogue = load_tools().catalogue()
    assert {each["name"]: each["effect"] for each in catalogue} == {
        "calculate": "pure",
        "http_get": "read",
        "list_files": "read",
        "read": "read",
        "search": "read",
        "table": "pure",
    }
    for each in catalogue:
        assert each["schema"]["additionalProperties"] is False
        assert each["output_schema"]["type"] == "object"
        assert 0 < each["timeout"] <= 65
        assert each["description"]
