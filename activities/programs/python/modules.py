"""Modules that Monty has not: a script that imports one finds it defined."""

import ast
import re
from collections.abc import Iterator

from sennit.activities.programs.python.containers import CONTAINERS, has_containers
from sennit.activities.programs.python.exceptions import ERRORS, has_own_errors
from sennit.activities.programs.python.numbers import HEAPQ, OPERATOR, STATISTICS
from sennit.activities.programs.python.texts import CONTEXTLIB, IO, STRING, TEXTWRAP, URLLIB, UUID

TEXTS = {
    "statistics": STATISTICS, "operator": OPERATOR, "heapq": HEAPQ, "string": STRING, "textwrap": TEXTWRAP,
    "urllib": URLLIB, "io": IO, "uuid": UUID, "contextlib": CONTEXTLIB,
}  # fmt: skip
"""Each a class whose functions are called as those of the module."""
_IMPORTED = re.compile(r"= __(\w+?)(?:_parse)?\b")


def imported_as(node: ast.Import | ast.ImportFrom) -> str:
    """Return what a script does in the place of an import of such a module, "" for any other import."""
    done, others = [], []
    for alias in node.names:
        if isinstance(node, ast.Import):
            root, _, rest = alias.name.partition(".")
            held = f"__{root}_{rest}" if rest and alias.asname else f"__{root}"
            name = alias.asname or root
        else:
            root, held = (
                (node.module or "").partition(".")[0],
                f"__{(node.module or '').replace('.', '_')}.{alias.name}",
            )
            name = alias.asname or alias.name
        if root == "enum":
            done.append("pass")
        elif held in ("__dataclasses.asdict", "__dataclasses.replace"):
            done.append(f"{name} = __{alias.name}")
        elif root in TEXTS:
            done.append(f"{name} = {held}")
        else:
            module = node.module if isinstance(node, ast.ImportFrom) else None
            others.append(ast.unparse(ast.ImportFrom(module, [alias], 0) if module else ast.Import([alias])))
    return "; ".join([*others, *done]) if done else ""


def modules_for(text: str) -> Iterator[str]:
    """Yield what a script as Monty has it is to find defined of modules and exceptions."""
    used = set(_IMPORTED.findall(text))
    yield from (module for name, module in TEXTS.items() if name in used)
    if has_own_errors(text):
        yield ERRORS
    if has_containers(text):
        yield CONTAINERS
