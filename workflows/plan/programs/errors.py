"""Exceptions of a script's own, and those of calls that it catches by their names: what stands for each in Monty."""

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sennit.workflows.plan.programs.classes import bases_of, is_docstring
from sennit.workflows.plan.programs.source import Function, Source
from sennit.workflows.plan.programs.vocabulary import BUILTINS, CALL_ERRORS

_CARRIERS: dict[str, tuple[tuple[str, str], ...]] = {
    "Exception": (
        ("binascii.Incomplete", "binascii"), ("re.PatternError", "re.error"), ("_csv.Error", "csv"),
        ("decimal.Clamped", "decimal"), ("decimal.Rounded", "decimal"), ("decimal.Subnormal", "decimal"),
        ("decimal.Inexact", "decimal"), ("decimal.InvalidContext", "decimal"), ("decimal.ConversionSyntax", "decimal"),
    ),
    "ValueError": (("binascii.Error", "binascii"), ("tomllib.TOMLDecodeError", "tomllib")),
}  # fmt: skip
"""Errors of modules that stand for a script's own, by what they are caught as: their names in Monty, and the modules
without which nothing else raises them.
"""
_PYTHONS: dict[str, type[Exception]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if name in BUILTINS and isinstance(kind, type) and issubclass(kind, Exception)
}
_OF_CALLS = "RuntimeError"
"""What the error of a call is caught as."""
_SPECIAL = ("__init__", "__str__", "__repr__")


@dataclass(frozen=True, slots=True)
class OwnErrors:
    """What a script raises or catches that Python has not.

    `carriers` has for each the error of Monty that stands for it, `bases` what it is based on, and `bodies` the class
    whose fields and methods it has, of those that have more than a name. `begun` are the calls of the bases'
    `__init__`.
    """

    carriers: dict[str, str] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, ast.ClassDef] = field(default_factory=dict)
    begun: dict[ast.AST, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> "OwnErrors":
        """Return those of a script. An exception that cannot be made, or for which no error is left, is not among
        them.
        """
        free = {base: [kind for kind, module in kinds if _is_free(source, module)] for base, kinds in _CARRIERS.items()}
        found = cls()
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and node not in source.again and len(node.bases) == 1:
                found._add(source, node, free)
        caught = dict.fromkeys(name.id for name in source.nodes if isinstance(name, ast.Name) and _asks(source, name))
        for name in caught:
            if name in CALL_ERRORS and free["Exception"] and not any(name in names for names in source.bound.values()):
                found.carriers[name], found.bases[name] = free["Exception"].pop(0), _OF_CALLS
        return found

    def _add(self, source: Source, node: ast.ClassDef, free: Mapping[str, list[str]]) -> None:
        base = bases_of(node)[0]
        is_known = base in self.carriers or (base in _PYTHONS and base not in source.bound.get(source.tree, ()))
        root = self.python_base({**self.bases, node.name: base}, node.name)
        left = free["ValueError"] if root is ValueError and free["ValueError"] else free["Exception"]
        if not is_known or node.keywords or node.decorator_list or not left:
            return
        if not all(isinstance(each, ast.Pass) or is_docstring(each) for each in node.body):
            begun = _begun(node) if base not in self.bodies else None
            if begun is None or not all(_is_use(source, name) for name in source.uses.get(node.name, ())):
                return
            self.bodies[node.name] = node
            self.begun.update(begun)
        elif base in self.bodies:
            self.bodies[node.name] = self.bodies[base]
        self.carriers[node.name], self.bases[node.name] = left.pop(0), base

    @staticmethod
    def python_base(bases: Mapping[str, str], name: str) -> type[Exception]:
        """Return the exception of Python that one of a script's own is based on."""
        while name in bases:
            name = bases[name]
        return _PYTHONS.get(name, Exception)

    def caught_as(self, name: str) -> list[str]:
        """Return an exception with all of the script's own that are based on it, as far as Monty does not know it."""
        found, kind = [name], _PYTHONS.get(name)
        for error, base in self.bases.items():
            is_python = kind is not None and issubclass(self.python_base(self.bases, error), kind)
            if error not in found and (base in found or is_python):
                found.append(error)
        return [name, *(error for error in found[1:] if kind is not Exception)]


def _asks(source: Source, name: ast.Name) -> bool:
    """Whether a name says what is caught, or what an exception is to be."""
    around = source.parents[name]
    if isinstance(around, ast.Tuple):
        around = source.parents[around]
    is_asked = isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "isinstance"
    return isinstance(around, ast.ExceptHandler) or is_asked


def _is_use(source: Source, name: ast.Name) -> bool:
    """Whether an exception is called, raised or asked for, and no value."""
    around = source.parents[name]
    is_called = isinstance(around, ast.Call) and around.func is name
    return is_called or _asks(source, name) or isinstance(around, ast.Raise | ast.ClassDef | ast.arg | Function)


def _begun(node: ast.ClassDef) -> dict[ast.AST, str] | None:
    """Return the calls of `super().__init__` and the like in a class, each with the name of the instance; None if there
    is more in it than fields and plain methods.
    """
    if node.body[0].lineno == node.lineno:
        return None
    begun = dict[ast.AST, str]()
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            is_special = each.name.startswith("__") and each.name not in _SPECIAL
            if is_special or each.decorator_list or not each.args.args:
                return None
            if each.name == "__init__":
                begun |= {part: each.args.args[0].arg for part in ast.walk(each) if is_begin(part)}
        elif not (isinstance(each, ast.Pass | ast.AnnAssign) or is_docstring(each) or _is_constant(each)):
            return None
    asked = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == "super"]
    return begun if len(asked) <= len(begun) else None


def is_begin(node: ast.AST) -> bool:
    """Whether a node is a call of the `__init__` of an exception that another is based on."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("super"), args=[]), attr="__init__")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="__init__"), args=[ast.Name(), *_]):
            return name in _PYTHONS
    return False


def parts_begun(errors: OwnErrors) -> Iterator[ast.AST]:
    """Yield the names in calls of the bases' `__init__` that are only good for these."""
    for call in errors.begun:
        yield from (part for part in ast.walk(call.func) if isinstance(part, ast.Name | ast.Attribute))  # type: ignore[attr-defined]


def args_lost(source: Source, errors: OwnErrors) -> Iterator[ast.Call]:
    """Yield the calls of exceptions that are given what may be more than one text, if a script reads their `.args`."""
    if not any(isinstance(node, ast.Attribute) and node.attr == "args" for node in source.nodes):
        return
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        name, first = node.func.id, node.args[0]
        is_text = isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Constant) and isinstance(first.value, str))
        is_plain = name not in errors.bodies and (name in errors.carriers or name in _PYTHONS)
        if is_plain and (len(node.args) > 1 or not is_text):
            yield node


_NO_BASE = "classes have no bases here: write a dataclass with all of its fields"
_REFUSED = (
    ("Enum", "an enum has names with texts or numbers alone here: write its methods as functions"),
    ("NamedTuple", "a NamedTuple has fields alone here: write its methods as functions, or a dataclass"),
    ("Protocol", "classes have no bases here: leave the class out, and its name in annotations"),
    ("ABC", "classes have no bases here: leave the class out, and its name in annotations"),
)
"""Why classes with these bases cannot be made, and what to write instead."""


def class_refused(node: ast.ClassDef) -> str:
    """Return why a class with a base cannot be made, and what to write instead."""
    if not any(base == "BaseException" or base in _PYTHONS or base.endswith("Error") for base in bases_of(node)):
        return next(
            (why for end, why in _REFUSED if bases_of(node)[-1:] and bases_of(node)[-1].endswith(end)), _NO_BASE
        )
    what = "an exception has at most fields, plain methods and an `__init__` that calls `super().__init__(text)`"
    return f"{what} here; it is called by its name, and based on one of Python's, or one with a name alone"


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)


def _is_free(source: Source, module: str) -> bool:
    """Whether nothing in a script raises the errors of a module, or names what they are caught as."""
    name = module.partition(".")[0]
    names = source.bound.get(source.tree, {})
    return name not in names and (name != "decimal" or "ArithmeticError" not in source.uses)
