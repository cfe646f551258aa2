"""Types of `typing` as values: Monty has names for them, and nothing that makes one of another."""

import ast

from sennit.workflows.plan.bundles.text_edits import Edits
from sennit.workflows.plan.programs.source import Source


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
