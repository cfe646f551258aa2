"""How often a loop of a script goes round, where the script says so."""

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from sennit.workflows.plan.language.text import one_line
from sennit.workflows.plan.programs.source import Source

MANY = 10**18
_WORK = 100_000
_SHOWN = 100
"""So many parts of an expression are written."""
_SIGNS: dict[type, Callable[[int, int], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_READERS = (ast.For, ast.comprehension, ast.UnaryOp, ast.Compare, ast.Return, ast.FormattedValue)
_SAME_SIZE = ("list", "tuple", "sorted", "reversed", "enumerate", "parallel", "settled", "pipeline")


class Size(NamedTuple):
    """How many, from the least to the most; MANY is without a bound."""

    least: int = 0
    most: int = MANY


Values = Mapping[ast.AST, tuple[int | None, Size]]
"""What is known of the arguments of a function: which whole number each is, how many items it has."""


class TooLong(Exception):
    """The script calls too much of itself to be counted."""


class Rounds:
    """Reads numbers and sizes in a script. Raises TooLong after too many steps.

    `assumed` are those of the `inputs` whose numbers it has read.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.inputs: set[ast.AST] = set()
        self.assumed: set[str] = set()
        self._left = _WORK
        self._each: dict[ast.AST, str] = {}
        self._assumed: dict[ast.AST, Size] = {}
        self.stores: dict[str, list[ast.Name]] = {}
        for node in source.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.stores.setdefault(node.id, []).append(node)

    def spend(self, steps: int = 1) -> None:
        """Count steps."""
        self._left -= steps
        if self._left <= 0:
            raise TooLong

    def number(self, node: ast.AST, values: Values) -> int | None:
        """Return the whole number that an expression always is, None if it is not known."""
        self.spend()
        match node:
            case ast.Constant(value=int(value)) if value < MANY:
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.number(operand, values)
                return None if number is None else -number
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                one, other = self.number(left, values), self.number(right, values)
                if one is None or other is None:
                    return None
                made = one * other if isinstance(op, ast.Mult) else one + (other if isinstance(op, ast.Add) else -other)
                return made if abs(made) < MANY else None
            case ast.Call(func=ast.Name(id="len"), args=[items]) if self.is_free(node.func):
                size = self.size(items, values)
                return size.least if size.least == size.most else None
            case ast.Name() if (argument := self._argument(node, values)) is not None:
                if argument in self.inputs:
                    self.assumed.add(node.id)
                return values[argument][0]
            case ast.Name() if (made_of := self.assigned(node)) is not None:
                return self.number(made_of, values)
        return None

    def size(self, node: ast.AST, values: Values) -> Size:
        """Return how many items an expression has."""
        self.spend()
        match node:
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.Constant() | ast.BinOp():
                return self._size_of_literal(node, values)
            case ast.Call(func=ast.Attribute(value=items, attr="items" | "keys" | "values"), args=[]):
                return self.size(items, values)
            case ast.Call(func=ast.Name(id=name), args=args) if self.is_free(node.func):
                return self._size_of_call(name, args, values)
            case ast.Await(value=value):
                return self.size(value, values)
            case ast.IfExp(body=body, orelse=orelse):
                one, other = self.size(body, values), self.size(orelse, values)
                return Size(min(one.least, other.least), max(one.most, other.most))
            case ast.ListComp(generators=all_of) | ast.GeneratorExp(generators=all_of):
                sizes = [self.size(each.iter, values) for each in all_of]
                is_whole = not any(each.ifs for each in all_of)
                return Size(math.prod(each.least for each in sizes) * is_whole, _product(each.most for each in sizes))
            case ast.Subscript(value=value, slice=ast.Constant(str())):
                return Size(0, self._limit(self.assigned(value) if isinstance(value, ast.Name) else value, values))
            case ast.Subscript(slice=ast.Slice(lower=ast.Name() as lower, upper=ast.BinOp() as upper, step=None)):
                is_behind = isinstance(upper.op, ast.Add) and ast.dump(upper.left) == ast.dump(lower)
                return Size(0, self.most(upper.right, values) if is_behind else MANY)
            case ast.Subscript(value=items, slice=ast.Slice(lower=None, upper=ast.expr() as upper, step=None)):
                least, most = self.size(items, values)
                end = self.number(upper, values)
                return Size(0, most) if end is None or end < 0 else Size(min(least, end), min(most, end))
            case ast.Name() if self._only_read(node):
                return self._size_of_name(node, values)
        return Size()

    def _size_of_literal(self, node: ast.expr, values: Values) -> Size:
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return Size(len(items), len(items)) if not _has_stars(items) else Size()
            case ast.Set(elts=items) if not _has_stars(items):
                return Size(min(len(items), 1), len(items))
            case ast.Dict(keys=items) if None not in items:
                return Size(min(len(items), 1), len(items))
            case ast.Constant(value=str(text)):
                return Size(len(text), len(text))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, other = self.size(left, values), self.size(right, values)
                return Size(one.least + other.least, min(one.most + other.most, MANY))
            case ast.BinOp(left=ast.List() as items, op=ast.Mult(), right=right):
                times, once = self.number(right, values), self.size(items, values)
                return (
                    Size() if times is None else Size(once.least * max(times, 0), min(once.most * max(times, 0), MANY))
                )
        return Size()

    def _size_of_call(self, name: str, args: list[ast.expr], values: Values) -> Size:
        if name == "range":
            return self._size_of_range(args, values)
        if name == "zip" and args:
            sizes = [self.size(arg, values) for arg in args]
            return Size(min(each.least for each in sizes), min(each.most for each in sizes))
        return self.size(args[0], values) if name in _SAME_SIZE and args else Size()

    def _size_of_range(self, args: list[ast.expr], values: Values) -> Size:
        numbers = [number for arg in args if (number := self.number(arg, values)) is not None]
        if len(numbers) == len(args) and numbers[2:] != [0] and 0 < len(numbers) < 4:
            steps = range(*numbers)
            return Size(len(steps), len(steps))
        match args:
            case [start, ast.BinOp(left=left, op=ast.Add(), right=many)] if ast.dump(start) == ast.dump(left):
                return Size(0, self.most(many, values))
            case [end]:
                return Size(0, self.most(end, values))
            case [ast.Constant(0), end, ast.Constant(int(step))] if step > 0:
                most = self.most(end, values)
                return Size(0, most if most == MANY else -(-most // step))
        return Size()

    def most(self, node: ast.expr, values: Values) -> int:
        """Return what a number is at most, MANY if that is not known."""
        match node:
            case ast.Call(func=ast.Name(id="min"), args=[_, _, *_] as args) if self.is_free(node.func):
                return max(min(self.most(arg, values) for arg in args), 0)
            case ast.Call(func=ast.Name(id="len"), args=[items]) if self.is_free(node.func):
                return self.size(items, values).most
        number = self.number(node, values)
        return MANY if number is None else max(number, 0)

    def _limit(self, call: ast.expr | None, values: Values) -> int:
        """Return how many items a tool was told to give at most."""
        call = call.value if isinstance(call, ast.Await) else None
        keywords = call.keywords if isinstance(call, ast.Call) and self.is_free(call.func) else []
        return min((self.most(each.value, values) for each in keywords if each.arg in ("k", "max_items")), default=MANY)

    def _size_of_name(self, name: ast.Name, values: Values) -> Size:
        argument, made_of = self._argument(name, values), self.assigned(name)
        if argument is not None:
            return values[argument][1]
        return self.size(made_of, values) if made_of is not None else self._size_of_all(name, values)

    def _size_of_all(self, name: ast.Name, values: Values) -> Size:
        """Return the size of a name that is assigned several times: if what does not depend on it has at most n items,
        and the rest of it has no more where it has n, it never has more.
        """
        meaning = self.source.meaning(name)
        if meaning is None or meaning not in self.source.again or not isinstance(meaning, ast.Name):
            return Size()
        if meaning in self._assumed:
            return self._assumed[meaning]
        scope, most = self.source.function(meaning), 0
        stores = [each for each in self.stores[name.id] if self.source.function(each) is scope]
        around = [self.source.parents[each] for each in stores]
        if not all(isinstance(each, ast.Assign) and len(each.targets) == 1 for each in around):
            return Size()
        made_of = [each.value for each in around if isinstance(each, ast.Assign)]
        for assumed in (None, most):
            self._assumed[meaning] = Size(0, MANY if assumed is None else most)
            sizes = [self.size(each, values).most for each in made_of]
            most = max((each for each in sizes if each < MANY), default=MANY) if assumed is None else max(sizes)
        found = self._assumed.pop(meaning)
        return Size(0, found.most if most <= found.most else MANY)

    def truth(self, test: ast.expr, values: Values) -> bool | None:
        """Return whether a comparison of numbers always holds, None if it is not known."""
        match test:
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _SIGNS:
                one, other = self.number(left, values), self.number(right, values)
                return _SIGNS[type(sign)](one, other) if one is not None and other is not None else None
        return None

    def each(self, items: ast.expr) -> str:
        """Return the words for a round of a loop over `items`."""
        if items not in self._each:
            is_long = len(list(islice(ast.walk(items), _SHOWN + 1))) > _SHOWN
            text = "the items" if is_long else f"`{one_line(ast.unparse(items), 40)}`"
            self._each[items] = f"for each of {text}"
        return self._each[items]

    def assigned(self, name: ast.Name) -> ast.expr | None:
        """Return what a name always stands for; None if it is no name of an assignment, or of several."""
        meaning = self.source.meaning(name)
        around = self.source.parents.get(meaning) if meaning is not None else None
        is_only = isinstance(around, ast.Assign) and around.targets == [meaning] and meaning not in self.source.again
        return around.value if isinstance(around, ast.Assign) and is_only else None

    def is_free(self, name: ast.AST) -> bool:
        """Whether a name is one of Python, a word or a tool: the script does not define it."""
        return isinstance(name, ast.Name) and self.source.meaning(name) is None

    def waiter(self, task: ast.AST) -> str:
        """Return the word in whose call a task is begun, "" if there is none. The calls of one that `parallel` waits
        for are made, unless one fails.
        """
        around = self.source.parents.get(task)
        while isinstance(around, ast.expr | ast.comprehension) and not isinstance(around, ast.Lambda):
            if isinstance(around, ast.Call):
                return around.func.id if isinstance(around.func, ast.Name) and self.is_free(around.func) else ""
            around = self.source.parents.get(around)
        return ""

    def _argument(self, name: ast.Name, values: Values) -> ast.AST | None:
        meaning = self.source.meaning(name)
        return meaning if meaning in values and meaning not in self.source.again else None

    def _only_read(self, name: ast.Name) -> bool:
        """Whether nothing in the script can change how many items a value has."""
        meaning = self.source.meaning(name)
        if meaning is None or self.source.is_top_level(self.source.parents[meaning]):
            return True
        for use in self.source.uses[name.id]:
            self.spend()
            if self.source.meaning(use) is not meaning:
                continue
            around = self.source.parents[use]
            call = self.source.parents[around] if isinstance(around, ast.keyword) else around
            is_argument = isinstance(call, ast.Call) and self.is_free(call.func)
            is_part = isinstance(around, ast.Subscript) and around.value is use and isinstance(around.ctx, ast.Load)
            is_test = isinstance(around, ast.If | ast.While | ast.IfExp) and around.test is use
            if not (is_argument or is_part or is_test or isinstance(around, _READERS)):
                return False
        return True


def _product(numbers: Iterable[int]) -> int:
    return min(math.prod(numbers), MANY)


def _has_stars(items: Sequence[ast.expr | None]) -> bool:
    return any(isinstance(item, ast.Starred) for item in items)
