"""f-strings as calls of `format`: before Python 3.12 nobody knows where in a script the parts of an f-string stand."""

import ast
import copy
from collections.abc import Callable

from sennit.workflows.plan.bundles.text_edits import Edits
from sennit.workflows.plan.programs.source import Source

PYTHON = "__python"
"""Where the prelude keeps `repr`, whatever a script binds that to."""


def as_calls(source: Source, text: str, is_meant: Callable[[ast.AST], bool]) -> str:
    """Return a script whose f-strings are calls of `format` where they have a part that is meant."""
    edits = Edits(text)
    for node in source.nodes:
        if not isinstance(node, ast.JoinedStr) or any(isinstance(each, ast.JoinedStr) for each in source.around(node)):
            continue
        if any(map(is_meant, ast.walk(node))):
            edits.expression(node, ast.unparse(_Called().visit(copy.deepcopy(node))))
    return edits.changed()


class _Called(ast.NodeTransformer):
    """Writes f-strings, also those within others, as calls: each part is shown before the next is evaluated."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts = ast.List([self._part(part) for part in node.values], ast.Load())
        called = ast.Call(ast.Attribute(ast.Constant(""), "join", ast.Load()), [parts], [])
        return ast.fix_missing_locations(ast.copy_location(called, node))

    def _part(self, part: ast.expr) -> ast.expr:
        if isinstance(part, ast.Constant):
            return part
        values = list[ast.expr]()
        text = self._text(part, values)
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), values, [])

    def _text(self, part: ast.expr, values: list[ast.expr]) -> str:
        """Return what stands for a part in the text of the call, and add what it shows to the values."""
        if isinstance(part, ast.Constant):
            return str(part.value).replace("{", "{{").replace("}", "}}")
        assert isinstance(part, ast.FormattedValue)
        value, how = self.visit(part.value), f"!{chr(part.conversion)}" if part.conversion >= 0 else ""
        if how == "!r":
            value, how = ast.Call(ast.Attribute(ast.Name(PYTHON, ast.Load()), "repr", ast.Load()), [value], []), ""
        values.append(value)
        spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
        return f"{{{how}{':' if spec else ''}{''.join(self._text(each, values) for each in spec)}}}"
