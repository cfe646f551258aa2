"""Lists and sets: Monty adds only lists to a list, and unites a set with one other."""

import ast

from sennit.workflows.plan.bundles.text_edits import Edits
from sennit.workflows.plan.programs.source import Source

CONTAINERS = """
def __plus(value, more):
    if type(value) is list:
        value.extend(more)
    else:
        value += more
    return value
def __delete(value, key):
    if not str(type(value)).endswith(".deque'>"):
        value.pop(key)
        return
    value[key]
    key %= len(value)
    value.rotate(-key)
    value.popleft()
    value.rotate(key)
def __of_sets(name, found, *others):
    for other in map(set, others):
        found = found | other if name == 'union' else found & other if name == 'intersection' else found - other
    return found if others else found.copy()
"""
"""What a script finds defined that adds, deletes or unites more than Monty does."""
_OF_SETS = ("union", "intersection", "difference")
_ITERABLES = ("map", "filter", "range", "zip", "reversed", "enumerate", "tuple", "set", "iter", "dict")
_VIEWS = ("keys", "values", "items")


def has_containers(text: str) -> bool:
    """Whether a script, as Monty has it, adds, deletes or unites more than Monty does."""
    return any(name in text for name in ("__plus(", "__delete(", "__of_sets("))


class Containers(Edits):
    """Rewrites what a script does with lists and sets."""

    source: Source
    _own: set[str]

    def _unite(self, node: ast.Call) -> None:
        """Write methods of sets with more or fewer than one other set, and as functions of the type, as a function."""
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in _OF_SETS or function.attr in self._own:
            return
        owner = function.value
        is_builtin = isinstance(owner, ast.Name) and self.source.meaning(owner) is None
        is_type = is_builtin and ast.unparse(owner) in ("set", "frozenset")
        if is_type or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
            name, end = f"__of_sets('{function.attr}', ", self.body.index(b"(", self._at(function)[1]) + 1
            if is_type:
                self._instead(self._at(function)[0], end, name)
            else:
                self._around(function, name, "")
                self._instead(self._dot(function), end, ", " if node.args else "")

    def _list_views(self, call: ast.Call) -> None:
        """Give the values of a dict as a list, which is what leaves Monty as one."""
        for each in call.args:
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _VIEWS:
                self._around(each, "list(", ")")

    def _add(self, node: ast.AugAssign) -> None:
        """Write `found += ...` as what it does where a list may get what is none."""
        if isinstance(node.op, ast.Add) and _is_iterable(node.value):
            begin = self.body.index(b"+=", self._at(node.target)[1])
            self._instead(begin, begin + 2, f"= __plus({ast.unparse(node.target)}, (")
            self._around(node, "", "))")


def _is_iterable(value: ast.expr) -> bool:
    """Whether a value may be one to go through that is no list."""
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name in _ITERABLES
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _VIEWS
    return isinstance(value, ast.Tuple | ast.GeneratorExp | ast.Dict | ast.Set | ast.SetComp | ast.DictComp)
