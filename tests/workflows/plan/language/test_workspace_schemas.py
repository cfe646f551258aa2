"""Which tools work in workspaces, by their schemas: those of servers may be any JSON."""

from typing import Any

import pytest

from sennit.workflows.plan.language.workspaces import Workspace, left_by, mentions_workspace, takes_workspace

OWN = Workspace.model_json_schema()


@pytest.mark.parametrize("field", [OWN, {"$ref": "#/$defs/W"}, {"anyOf": [{"$ref": "#/$defs/W"}, {"type": "null"}]}])
def test_a_workspace_is_known_by_its_type(field: Any) -> None:
    schema = {"properties": {"workspace": field}, "$defs": {"W": OWN}}
    assert takes_workspace({"schema": schema})
    assert left_by("a", {"output_schema": schema}) == "$a.workspace"
    assert left_by("a", {"output_schema": OWN}) == "$a"
    assert mentions_workspace({"items": [{"deep": schema}]})


@pytest.mark.parametrize("field", [True, {"anyOf": None}, {"anyOf": [True]}, {"properties": [1]}, {"$ref": 3}])
def test_a_schema_that_means_something_else_by_the_word_says_nothing(field: Any) -> None:
    for schema in ({"properties": {"workspace": field}}, {"properties": field}):
        assert not takes_workspace({"schema": schema})
        assert left_by("a", {"output_schema": schema}) == ""
        assert not mentions_workspace(schema)
