"""The kinds of classes that a script may define beside plain ones: dataclasses,
and enums of constants.
"""

import ast
from collections.abc import Iterator

ENUMS = ("Enum", "StrEnum", "IntEnum")
_BASES = frozenset((*ENUMS, "str", "int"))
"""The bases that an enum of constants may have."""


def is_dataclass(written: ast.ClassDef) -> bool:
    """Whether a class is a dataclass."""
    for decorator in written.decorator_list:
        named = decorator
        if isinstance(decorator, ast.Call):
            named = decorator.func
        if _name_of(named) == "dataclass":
            return True
    return False


def is_enum(written: ast.ClassDef) -> bool:
    """Whether a class is an enum of constants."""
    bases = [_name_of(base) for base in written.bases]
    if not bases or written.keywords:
        return False
    if bases[-1] not in ENUMS or not _BASES.issuperset(bases):
        return False

    # Nothing else stands in it but texts that describe it.
    body = [statement for statement in written.body if not _says_nothing(statement)]
    members = list(enum_members(written))
    return bool(body) and len(members) == len(body)


def enum_members(written: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and the values of an enum, with what `auto()` stands for."""
    highest: float = 0
    for statement in written.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case _:
                continue
        if _is_auto(value):
            if _name_of(written.bases[-1]) == "StrEnum":
                value = ast.Constant(name.lower())
            else:
                value = ast.Constant(highest + 1)
        constant = _constant(value)
        if constant is None:
            continue
        if isinstance(constant, int | float):
            highest = max(highest, constant)
        yield name, value


def _is_auto(value: ast.expr) -> bool:
    """Whether the value of an enum's member is made by `auto()`."""
    if not isinstance(value, ast.Call) or _name_of(value.func) != "auto":
        return False
    return not value.args and not value.keywords


def _constant(value: ast.expr) -> str | float | None:
    """Return the text or number that an expression is, None for any other."""
    match value:
        case ast.Constant(value=str() | int() | float() as constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as constant)):
            return -constant
    return None


def _name_of(written: ast.expr) -> str:
    """Return the last part of a name, "" for what is no name."""
    if isinstance(written, ast.Name):
        return written.id
    if isinstance(written, ast.Attribute):
        return written.attr
    return ""


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement does nothing: `pass`, and texts."""
    if isinstance(statement, ast.Pass):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    return isinstance(statement.value, ast.Constant)
