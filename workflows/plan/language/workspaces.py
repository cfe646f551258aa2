"""Workspaces as values of a plan: a value names a folder as it was at one time; its
files never travel with it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from sennit.workflows.plan.digests import DIGEST_CHARACTERS
from sennit.workflows.plan.language import json_schema
from sennit.workflows.plan.language.references import parse_reference

FIELD: Final = "workspace"
"""The argument, and the field of a result, by which calls hand a folder on."""
EXAMPLE: Final = "$input.repo, or $fix.workspace of a call that worked in one"


class Workspace(BaseModel):
    """A value that names a folder as it was at one time; its bytes and files are kept with the run. `workspace` is a
    digest that nobody can guess, and means something only in the run that has it.
    """  # noqa: E501 - models read it

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace: str = Field(pattern=rf"^[0-9a-f]{{{DIGEST_CHARACTERS}}}$")
    files: int = Field(ge=0)
    bytes: int = Field(ge=0)


def as_workspace(value: Any) -> Workspace | None:
    """Return the workspace that a value stands for, None for any other value."""
    if not isinstance(value, dict) or "workspace" not in value:
        return None
    try:
        return Workspace.model_validate(value)
    except ValidationError:
        return None


def takes_workspace(tool: Mapping[str, Any]) -> bool:
    """Whether calls of a tool work in a workspace: it has the argument, and this is of that type. A
    tool of a server may mean something else by the word.
    """
    schema = tool.get("schema") or {}
    return _is_type(_field_of(schema), json_schema.definitions(schema))


def mentions_workspace(schema: Any) -> bool:
    """Whether the type of a workspace stands anywhere in a schema."""
    if isinstance(schema, list):
        return any(map(mentions_workspace, schema))
    if not isinstance(schema, dict):
        return False
    return _has_fields(schema) or any(map(mentions_workspace, schema.values()))


def left_by(name: str, tool: Mapping[str, Any]) -> str:
    """Return the reference to the workspace that the call `name` of a tool leaves, "" if it leaves
    none: it stands in the result, or is the result.
    """
    schema = tool.get("output_schema") or {}
    defs = json_schema.definitions(schema)
    if _is_type(schema, defs):
        return f"${name}"
    if _is_type(_field_of(schema), defs):
        return f"${name}.{FIELD}"
    return ""


def _field_of(schema: Mapping[str, Any]) -> Any:
    """Return the schema of the field `workspace`, None if there is none. A server may
    have written any schema.
    """
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return None
    return fields.get(FIELD)


def _is_type(schema: Any, defs: dict[str, Any]) -> bool:
    """Whether a schema is that of a workspace, or lets one be left out."""
    if not isinstance(schema, dict):
        return False
    parts = schema.get("anyOf")
    if not isinstance(parts, list):
        parts = [schema]
    return any(_has_fields(json_schema.resolve(part, defs)) for part in parts)


def _has_fields(schema: Mapping[str, Any]) -> bool:
    fields = schema.get("properties")
    return isinstance(fields, dict) and list(fields) == list(Workspace.model_fields)


def _named(value: Any) -> Any:
    """Return a value that may stand for a workspace: a reference alone, or a workspace."""
    if isinstance(value, str) and parse_reference(value) is not None:
        return value
    if as_workspace(value) is not None:
        return value
    raise ValueError(f"is a reference to a workspace, such as {EXAMPLE}")


WorkspaceValue = Annotated[JsonValue, AfterValidator(_named)]
