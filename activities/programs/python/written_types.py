"""Types of `typing` as values: Monty has names for them, and nothing that makes one of another."""

import ast
from collections.abc import Callable

from sennit.workflows.plan.bundles.text_edits import Edits
from sennit.workflows.plan.programs.source import Source

_MORE = ast.dump(ast.Constant(...))


class WrittenTypes(Edits):
    """Rewrites types that have a name, or are given to `schema`."""

    source: Source

    def _literal(self, node: ast.Subscript) -> None:
        """Write a type that has a name, or is a schema, as its text, which `schema` reads; annotations may stay."""
        if not self._is_type(node.value):
            return
        whole: ast.expr = node
        for around in self.source.around(node):
            if not isinstance(around, ast.Subscript | ast.BinOp | ast.Tuple):
                break
            whole = around
        around = self.source.parents[whole]
        if getattr(around, "annotation", None) is whole or getattr(around, "returns", None) is whole:
            return
        module = f"{ast.unparse(node.value.value)}." if isinstance(node.value, ast.Attribute) else "typing."
        self._instead(*self._at(whole), repr(ast.unparse(whole).replace(module, "")))

    def _is_type(self, name: ast.expr) -> bool:
        """Whether a name is one of `typing`, or for those who read types."""
        owner = name.value if isinstance(name, ast.Attribute) else name
        meaning = self.source.meaning(owner) if isinstance(owner, ast.Name) else None
        around = self.source.parents[meaning] if isinstance(meaning, ast.alias) else None
        if isinstance(around, ast.Import) and isinstance(meaning, ast.alias):
            return owner is not name and meaning.name == "typing"
        return isinstance(around, ast.ImportFrom) and around.module in ("typing", "collections.abc")

    def _made_of_parts(self, written: ast.expr, value: str, level: int) -> str:
        """Return an expression that makes what is in a dict or a tuple, or one type of several."""
        made: Callable[[ast.expr, str, int], str] = self._made  # type: ignore[attr-defined]
        each = f"__v{level}"
        match written:
            case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[_, one])):
                inner = made(one, each, level + 1)
                return f"{{__k{level}: {inner} for __k{level}, {each} in {value}.items()}}" if inner else ""
            case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=[one, *others])):
                inner = made(one, each, level + 1)
                is_same = all(ast.dump(other) in (ast.dump(one), _MORE) for other in others)
                return f"[{inner} for {each} in {value}]" if inner and is_same else ""
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                texts = [text for part in (left, right) if (text := made(part, value, level + 1))]
                return f"({texts[0]} if type({value}) is dict else {value})" if len(texts) == 1 else ""
        return ""
