"""The kinds of classes that a script may define beside plain ones: dataclasses, and enums of constants."""

import ast
from collections.abc import Iterator

ENUMS = ("Enum", "StrEnum", "IntEnum")


def is_dataclass(written: ast.ClassDef) -> bool:
    """Whether a class is a dataclass."""
    for decorator in written.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _name_of(named) == "dataclass":
            return True
    return False


def is_enum(written: ast.ClassDef) -> bool:
    """Whether a class is an enum of constants."""
    bases = [_name_of(base) for base in written.bases]
    if not bases or bases[-1] not in ENUMS or written.keywords:
        return False
    if any(base not in (*ENUMS, "str", "int") for base in bases):
        return False
    # Nothing else stands in it but texts that describe it.
    body = [statement for statement in written.body if not _says_nothing(statement)]
    return bool(body) and len(list(enum_members(written))) == len(body)


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
            is_text = _name_of(written.bases[-1]) == "StrEnum"
            value = ast.Constant(name.lower() if is_text else highest + 1)
        constant = _constant(value)
        if constant is None:
            continue
        if isinstance(constant, int | float):
            highest = max(highest, constant)
        yield name, value


def _is_auto(value: ast.expr) -> bool:
    """Whether the value of an enum's member is made by `auto()`."""
    return isinstance(value, ast.Call) and not value.args and not value.keywords and _name_of(value.func) == "auto"


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
    return written.attr if isinstance(written, ast.Attribute) else ""


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement does nothing: `pass`, and texts."""
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
