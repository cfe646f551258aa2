"""The kinds of classes that a script may define beside plain ones: enums of constants, named tuples and typed dicts."""

import ast
from collections.abc import Iterator

from sennit.workflows.plan.programs.source import Source

ENUMS = ("Enum", "StrEnum", "IntEnum")


def bases_of(written: ast.ClassDef) -> list[str]:
    """Return the names of a class's bases, "" for what is no name."""
    return [
        base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
        for base in written.bases
    ]


def is_enum(written: ast.ClassDef) -> bool:
    """Whether a class is an enum of constants."""
    bases = bases_of(written)
    is_named = bool(bases) and bases[-1] in ENUMS and all(base in (*ENUMS, "str", "int") for base in bases)
    body = [each for each in written.body if not isinstance(each, ast.Pass) and not is_docstring(each)]
    return is_named and not written.keywords and bool(body) and len(list(enum_members(written))) == len(body)


def enum_members(written: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and the values of an enum, with what `auto()` stands for."""
    highest: float = 0
    for each in written.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if is_auto(value):
                    of_text = bases_of(written)[-1] == "StrEnum"
                    value = ast.Constant(name.lower() if of_text else highest + 1)
                number = _constant(value)
                if number is None:
                    continue
                highest = max(highest, number) if isinstance(number, int | float) else highest
                yield name, value


def is_auto(value: ast.expr) -> bool:
    """Whether the value of an enum's member is made by `auto()`."""
    match value:
        case ast.Call(func=ast.Name(id="auto") | ast.Attribute(attr="auto"), args=[], keywords=[]):
            return True
    return False


def _constant(value: ast.expr) -> str | float | None:
    """Return the text or number that an expression is, None for any other."""
    match value:
        case ast.Constant(value=str() | int() | float() as constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as constant)):
            return -constant
    return None


def is_typed_dict(written: ast.ClassDef) -> bool:
    """Whether a class is a typed dict, which has fields alone."""
    is_plain = all(isinstance(each, ast.AnnAssign | ast.Pass) or is_docstring(each) for each in written.body)
    return bases_of(written) == ["TypedDict"] and is_plain


def is_named_tuple(written: ast.ClassDef) -> bool:
    """Whether a class is a `NamedTuple`, which has fields alone."""
    is_plain = all(isinstance(each, ast.AnnAssign) or is_docstring(each) for each in written.body)
    return bases_of(written) == ["NamedTuple"] and is_plain and not written.keywords and not written.decorator_list


def tuple_fields(written: ast.ClassDef) -> tuple[list[str], list[ast.expr]]:
    """Return the fields of a named tuple, and the defaults of the last of them."""
    fields = [each for each in written.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    return [each.target.id for each in fields], [each.value for each in fields if each.value is not None]  # type: ignore[union-attr]


def is_dataclass(written: ast.ClassDef) -> bool:
    """Whether a class is a dataclass."""
    for each in written.decorator_list:
        name = each.func if isinstance(each, ast.Call) else each
        if (name.id if isinstance(name, ast.Name) else getattr(name, "attr", "")) == "dataclass":
            return True
    return False


def class_named(source: Source, name: ast.AST) -> ast.ClassDef | None:
    """Return the class that a name stands for, None if it is no class of the script."""
    meaning = source.meaning(name) if isinstance(name, ast.Name) else None
    return meaning if isinstance(meaning, ast.ClassDef) and meaning not in source.again else None


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement only says something."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
