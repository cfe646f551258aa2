"""The fields of a script's classes, for the schemas that name them."""

import ast
import copy
from typing import Any

from sennit.workflows.plan.programs.classes import enum_members, is_enum
from sennit.workflows.plan.programs.source import Source, source_of

Classes = dict[str, list[tuple[str, str, bool]]]
"""The fields of each class: name, type as it is written, whether there is a default; of an enum its
values alone. A class of a module has the name of that before its own: `helpers.Fact`.
"""
_ALIASED = ast.Subscript | ast.BinOp | ast.Name


def classes_of(script: str) -> Classes:
    """Return the fields of a script's classes: name, type, whether there is a default."""
    try:
        source = source_of(script)
    except SyntaxError:
        return {}
    found: Classes = {}
    for module, tree in source.trees.items():
        prefix = f"{module}." if module else ""
        types = _WrittenTypes(source)
        for written in tree.body:
            if isinstance(written, ast.ClassDef):
                found[f"{prefix}{written.name}"] = _fields_of(written, types)
        for alias in tree.body:  # a name for a type: its only field has no name
            match alias:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if isinstance(
                    value, _ALIASED
                ):
                    alias_of = types.text(value)
                    found.setdefault(f"{prefix}{name}", [("", alias_of, False)])
    return found


def _fields_of(written: ast.ClassDef, types: "_WrittenTypes") -> list[tuple[str, str, bool]]:
    if is_enum(written):
        values = ", ".join(ast.unparse(value) for _, value in enum_members(written))
        return [("", f"Literal[{values}]", False)]
    fields = list[tuple[str, str, bool]]()
    for field in written.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            annotation = types.text(field.annotation)
            has_default = field.value is not None
            fields.append((field.target.id, annotation, has_default))
    return fields


class _WrittenTypes:
    """Writes types with the names that their classes have in the whole script."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def text(self, written: ast.expr) -> str:
        """Return a type of a script as a text."""
        copied = copy.deepcopy(written)
        pairs = zip(ast.walk(written), ast.walk(copied), strict=True)
        for node, copied_node in pairs:
            if isinstance(node, ast.Name) and isinstance(copied_node, ast.Name):
                copied_node.id = self._whole_name(node, node.id)
            elif isinstance(node, ast.Constant) and isinstance(copied_node, ast.Constant):
                copied_node.value = self._whole_text(node)
        return ast.unparse(copied)

    def _whole_text(self, node: ast.Constant) -> Any:
        """Return the value of a constant; a text that is a type with whole names."""
        if not isinstance(node.value, str) or self._is_choice(node):
            return node.value
        try:
            tree = ast.parse(node.value.strip(), mode="eval")
        except (SyntaxError, ValueError):
            return node.value
        is_changed = False
        for part in ast.walk(tree):
            if not isinstance(part, ast.Name):
                continue
            whole_name = self._whole_name(node, part.id)
            if whole_name != part.id:
                part.id = whole_name
                is_changed = True
        return ast.unparse(tree) if is_changed else node.value

    def _is_choice(self, node: ast.Constant) -> bool:
        """Whether a text is one of the values of a Literal, and no type."""
        for around in self._source.around(node):
            if isinstance(around, ast.Subscript):
                return ast.unparse(around.value).endswith("Literal")
        return False

    def _whole_name(self, place: ast.AST, name: str) -> str:
        """Return the whole name of what a name stands for at the top of its module."""
        source = self._source
        module, _, of_module = name.rpartition(".")
        if not module:
            module, of_module = source.module_of(place), name
        defined = source.defined(module, of_module)
        if defined is None or isinstance(defined, ast.alias):
            return name
        where = source.module_of(defined)
        known = getattr(defined, "name", getattr(defined, "id", of_module))
        return f"{where}.{known}" if where else str(known)
