"""The fields of a script's classes, for the schemas that name them."""

import ast

from sennit.workflows.plan.programs.classes import enum_members, is_enum
from sennit.workflows.plan.programs.source import parsed

Classes = dict[str, list[tuple[str, str, bool]]]
"""The fields of each class: name, type as it is written, whether there is a default; of an enum its values alone."""


def classes_of(script: str) -> Classes:
    """Return the fields of a script's classes: name, type, whether there is a default."""
    try:
        classes = [node for node in parsed(script).body if isinstance(node, ast.ClassDef)]
    except SyntaxError:
        return {}
    found = {written.name: _fields_of(written) for written in classes}
    for alias in parsed(script).body:  # a name for a type: its only field has no name
        match alias:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp() | ast.Name() as value):
                found.setdefault(name, [("", ast.unparse(value), False)])
    return found


def _fields_of(written: ast.ClassDef) -> list[tuple[str, str, bool]]:
    if is_enum(written):
        values = ", ".join(ast.unparse(value) for _, value in enum_members(written))
        return [("", f"Literal[{values}]", False)]
    return [
        (field.target.id, ast.unparse(field.annotation), field.value is not None)
        for field in written.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    ]
