"""Classes of a script's own: enums, named tuples, typed dicts and dataclasses, and the values of JSON made of them."""

import ast
from collections.abc import Collection

from sennit.activities.programs.python.exceptions import Exceptions
from sennit.workflows.plan.bundles.text_edits import MARK
from sennit.workflows.plan.programs.classes import (
    bases_of,
    class_named,
    enum_members,
    is_auto,
    is_dataclass,
    is_enum,
    is_named_tuple,
    is_typed_dict,
    tuple_fields,
)
from sennit.workflows.plan.programs.source import Source

_LEVELS = 20
_MORE = ast.dump(ast.Constant(...))
FIELD_WORDS = ("asdict", "replace")
"""Functions of `dataclasses` that the prelude defines."""


class OwnClasses(Exceptions):
    """Rewrites the classes of a script, and what names them."""

    def __init__(self, source: Source, text: str, exceptions: Collection[str]) -> None:
        super().__init__(source, text, exceptions)
        self._aliases = dict[str, str]()
        self._has_instances = any(is_dataclass(node) for node in source.nodes if isinstance(node, ast.ClassDef))

    def _class(self, node: ast.ClassDef) -> None:
        if node.name in self._errors.carriers:
            self._exception(node)
        elif is_named_tuple(node):
            names, defaults = tuple_fields(node)
            fields = "".join(f"{ast.unparse(each)}, " for each in defaults)
            made = f"__namedtuple('{node.name}', {names!r}, defaults=({fields}))"
            self._statement(node, f"from collections import namedtuple as __namedtuple; {node.name} = {made}")
        elif is_enum(node) or is_typed_dict(node):
            if is_typed_dict(node):
                self._behind.append(f"def __as_{node.name}(v): return {self._fields_made(node)}")
            begin = self.body.index(b"(", self._at(node)[0])
            last = self._at([*node.bases, *(each.value for each in node.keywords)][-1])[1]
            self._instead(begin, self.body.index(b")", last) + 1, "")
        if is_enum(node):
            self._enum(node)
        elif is_dataclass(node) and "__getitem__" not in self.source.bound.get(node, ()):
            first = node.body[0]
            if first.lineno > node.lineno and self.source.is_top_level(node):
                line = self._lines[first.lineno - 1]
                indent = self.body[line : line + first.col_offset].decode()
                methods = [f"{indent}def __getitem__(self, name): return getattr(self, name)  {MARK.decode()}\n"]
                written = self._written(node.name)
                if written != node.name and "__repr__" not in self.source.bound.get(node, ()):
                    shown = f"__shown_fields({written!r}, self)"
                    methods.append(f"{indent}def __repr__(self): return {shown}  {MARK.decode()}\n")
                self._instead(line, line, "".join(methods))
                names = [
                    each
                    for each, place in self.source.bound[node].items()
                    if isinstance(self.source.parents[place], ast.AnnAssign)
                ]
                self._behind.append(f"__fields[str({node.name})] = {names!r}")
                made = f"{node.name}(**{self._fields_made(node)}) if type(v) is dict else v"
                self._behind.append(f"def __as_{node.name}(v): return {made}")

    def _is_field_word(self, node: ast.Attribute) -> bool:
        return node.attr in FIELD_WORDS and self.source.imported(node.value) == "dataclasses"

    def _enum(self, node: ast.ClassDef) -> None:
        """Have the members of an enum be instances of its class, which knows how they are compared and shown."""
        bases, values = bases_of(node), dict(enum_members(node))
        for each in node.body:
            if isinstance(each, ast.Assign) and is_auto(each.value) and isinstance(each.targets[0], ast.Name):
                self._instead(*self._at(each.value), ast.unparse(values[each.targets[0].id]))
        text = "__enum_value" if bases[-1] in ("StrEnum", "IntEnum") else "__enum_name"
        methods = f"__eq__ = __enum_equals; __hash__ = __enum_hash; __str__ = {text}; __repr__ = __enum_shown"
        first = self._at(node.body[0])[0]
        kind = f"__kind = {self._written(node.name)!r}; __is_plain = {bases == ['Enum']}"
        self._instead(first, first, f"{methods}; {kind}; ")
        end, indent = self.body.find(b"\n", self._at(node)[1]), " " * node.col_offset
        line = f"\n{indent}__enum({node.name}, {list(values)})  {MARK.decode()}"
        self._after(end if end >= 0 else len(self.body), line)

    def _fields_made(self, node: ast.ClassDef) -> str:
        parts = ["**v"]
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                made = self._made(field.annotation, f"v['{field.target.id}']")
                if made:
                    parts.append(f"**({{'{field.target.id}': {made}}} if '{field.target.id}' in v else {{}})")
        return f"{{{', '.join(parts)}}}"

    def _dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None and self._has_instances:
                self._around(value, "__mapping(", ")")

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and self._error_name(node):
            return
        written, around = class_named(self.source, node), self.source.parents[node]
        if written is None or not isinstance(node.ctx, ast.Load):
            return
        is_called = isinstance(around, ast.Call) and around.func is node
        if is_typed_dict(written) and is_called:
            self._instead(*self._at(node), "dict")
        elif is_enum(written):
            members = self._members(written)
            if is_called:
                self._instead(
                    *self._at(node), f"(lambda __v: __member({self._written(written.name)!r}, {members}, __v))"
                )
            elif isinstance(around, ast.Subscript) and around.value is node:
                named = (f"{name!r}: {written.name}.{name}" for name, _ in enum_members(written))
                self._instead(*self._at(node), f"{{{', '.join(named)}}}")
            elif _takes_members(around):
                self._instead(*self._at(node), members)

    def _members(self, written: ast.ClassDef) -> str:
        known = dict[str, str]()
        for name, value in enum_members(written):
            known.setdefault(ast.unparse(value), name)
        return f"({', '.join(f'{written.name}.{name}' for name in known.values())},)"

    def _made(self, written: ast.expr, value: str, level: int = 0) -> str:
        """Return an expression that makes of a value in JSON what a type says, "" if that is the value itself."""
        if level > _LEVELS:
            return ""
        match written:
            case ast.Name():
                return self._made_of_name(written, value, level)
            case ast.Constant(value=str(text)):
                try:
                    return self._made(ast.parse(text, mode="eval").body, value, level + 1)
                except SyntaxError:
                    return ""
            case ast.Subscript(value=ast.Name(id="list" | "List"), slice=one) | ast.List(elts=[one]):
                inner = self._made(one, f"__v{level}", level + 1)
                return f"[{inner} for __v{level} in {value}]" if inner else ""
            case (
                ast.Subscript(value=ast.Name(id="Optional"), slice=one) | ast.BinOp(left=one, right=ast.Constant(None))
            ):
                inner = self._made(one, value, level + 1)
                return f"(None if {value} is None else {inner})" if inner else ""
            case ast.Dict(keys=keys, values=values):
                pairs = [
                    (key, self._made(each, f"{value}[{ast.unparse(key)}]", level + 1))
                    for key, each in zip(keys, values, strict=True)
                    if key
                ]
                made = [f"{ast.unparse(key)}: {inner}" for key, inner in pairs if inner]
                return f"{{**{value}, {', '.join(made)}}}" if made else ""
        return self._made_of_parts(written, value, level)

    def _made_of_parts(self, written: ast.expr, value: str, level: int) -> str:
        """Return an expression that makes what is in a dict or a tuple, or one type of several."""
        each = f"__v{level}"
        match written:
            case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[_, one])):
                inner = self._made(one, each, level + 1)
                return f"{{__k{level}: {inner} for __k{level}, {each} in {value}.items()}}" if inner else ""
            case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=[one, *others])):
                inner = self._made(one, each, level + 1)
                is_same = all(ast.dump(other) in (ast.dump(one), _MORE) for other in others)
                return f"[{inner} for {each} in {value}]" if inner and is_same else ""
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                known = [text for part in (left, right) if (text := self._made(part, value, level + 1))]
                return f"({known[0]} if type({value}) is dict else {value})" if len(known) == 1 else ""
        return ""

    def _made_of_name(self, written: ast.Name, value: str, level: int) -> str:
        is_in_text = written not in self.source.parents
        at_top = self.source.bound[self.source.tree].get(written.id) if is_in_text else None
        found = at_top if isinstance(at_top, ast.ClassDef) else class_named(self.source, written)
        if found is not None and is_enum(found):
            return f"__member({self._written(found.name)!r}, {self._members(found)}, {value})"
        if found is not None:
            is_plain = is_dataclass(found) and "__getitem__" not in self.source.bound.get(found, ())
            is_made = (is_plain or is_typed_dict(found)) and self.source.is_top_level(found)
            return f"__as_{found.name}({value})" if is_made else ""
        stands_for = self.source.assigned(written)
        if stands_for is written:
            return ""
        if not self.source.is_top_level(self.source.parents[stands_for]):
            return self._made(stands_for, value, level + 1)
        return f"__as_{written.id}({value})" if self._is_made_by_name(written.id, stands_for) else ""

    def _is_made_by_name(self, name: str, written: ast.expr) -> bool:
        """Whether something is made of what a name for a type stands for: a function then does it, however often the
        name is used.
        """
        if name not in self._aliases:
            self._aliases[name] = ""
            self._aliases[name] = made = self._made(written, "v")
            if made:
                self._behind.append(f"def __as_{name}(v): return {made}")
        return bool(self._aliases[name])


def _takes_members(around: ast.AST) -> bool:
    """Whether what stands around an enum takes its members, and not the class."""
    if isinstance(around, ast.Compare):
        return isinstance(around.ops[-1], ast.In | ast.NotIn)
    if isinstance(around, ast.Call):
        return not (isinstance(around.func, ast.Name) and around.func.id == "isinstance")
    return isinstance(around, ast.For | ast.comprehension | ast.Starred)
