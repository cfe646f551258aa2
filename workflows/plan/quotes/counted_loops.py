"""How often a `while` loop goes round that counts: by a number that grows in each round, or by what it collects."""

import ast

from sennit.workflows.plan.programs.rounds import MANY, Rounds, Size, Values

_LEAVES = (ast.Break, ast.Return, ast.Raise)


class CountedLoops:
    """Reads the bounds of loops."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds

    def size(self, node: ast.While, values: Values) -> Size:
        """Return how often a loop goes round that counts: by a number that grows each time, or by what it collects."""
        if isinstance(node.test, ast.Constant):
            ends = [each for each in node.body if isinstance(each, ast.If) and isinstance(each.body[-1], _LEAVES)]
            tests = [each for end in ends for each in _parts(end.test, ast.Or)]
            found = [self._counted(test, node, values, (ast.GtE, ast.Gt, ast.Eq)) for test in tests]
            return Size(0, min((each + 1 for each in found if each is not None), default=MANY))
        tests = _parts(node.test, ast.And)
        counts = [
            self._counted(test, node, values, (ast.Lt, ast.LtE, ast.NotEq)) or self._counted_down(test, node, values)
            for test in tests
        ]
        known = [each for each in counts if each is not None]
        return Size(known[0] if len(tests) == len(known) == 1 else 0, min(known, default=MANY))

    def left_at(self, node: ast.For, values: Values) -> int:
        """Return how many rounds a loop begins at most that leaves by the number of `enumerate`, MANY for any other."""
        match node:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name() as name, _]),
                iter=ast.Call(func=ast.Name(id="enumerate"), args=[_, *more], keywords=keywords),
            ):
                begin = next(iter([*more, *(each.value for each in keywords)]), ast.Constant(0))
            case _:
                return MANY
        source, start = self.rounds.source, self.rounds.number(begin, values)
        stores = [each for each in self.rounds.stores[name.id] if source.function(each) is source.function(node)]
        is_kept = len(stores) == 1
        if start is None or not is_kept or any(isinstance(part, ast.Continue) for part in ast.walk(node)):
            return MANY
        ends = [each for each in node.body if isinstance(each, ast.If) and isinstance(each.body[-1], _LEAVES)]
        found = [self._end(each.test, name, values) for each in ends]
        return min((max(end - start, 0) + 1 for end in found if end is not None), default=MANY)

    def _end(self, test: ast.expr, name: ast.Name, values: Values) -> int | None:
        match test:
            case ast.Compare(left=ast.Name(id=id_), ops=[ast.GtE() | ast.Gt() as sign], comparators=[right]):
                end = self.rounds.number(right, values) if id_ == name.id else None
                return None if end is None else end + isinstance(sign, ast.Gt)
        return None

    def _counted(self, test: ast.expr, loop: ast.While, values: Values, signs: tuple[type, ...]) -> int | None:
        match test:
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if isinstance(sign, signs):
                end, steps = self.rounds.number(right, values), self._steps(left, loop, values)
                if end is None or steps is None or (isinstance(sign, ast.Eq | ast.NotEq) and steps[1] != 1):
                    return None
                start, step = steps
                return max(0, -(-(end + isinstance(sign, ast.LtE | ast.Gt) - start) // step))
        return None

    def _counted_down(self, test: ast.expr, loop: ast.While, values: Values) -> int | None:
        """Return how often a loop goes round while a number, which shrinks each time, is above zero."""
        match test:
            case ast.Compare(left=ast.Name() as name, ops=[ast.Gt()], comparators=[ast.Constant(0)]):
                stores = self._stores(name, loop)
            case _:
                return None
        match stores:
            case [ast.Assign(value=start), ast.AugAssign(op=ast.Sub(), value=step) as shrinks] if shrinks in loop.body:
                begin, less = self.rounds.number(start, values), self.rounds.number(step, values)
                return max(0, -(-begin // less)) if begin is not None and less is not None and less > 0 else None
        return None

    def _stores(self, name: ast.Name, loop: ast.While) -> list[ast.AST]:
        """Return the statements that give a name its values, the first of them before the loop; else nothing."""
        if any(isinstance(part, ast.Continue) for part in ast.walk(loop)):
            return []
        source = self.rounds.source
        found, function = self.rounds.stores.get(name.id, ()), source.function(loop)
        stores = [source.parents[each] for each in found if source.function(each) is function]
        first = stores[0] if stores else None
        is_before = isinstance(first, ast.Assign) and len(first.targets) == 1 and first not in ast.walk(loop)
        return stores if is_before else []

    def _steps(self, left: ast.expr, loop: ast.While, values: Values) -> tuple[int, int] | None:
        """Return where a count begins and by how much it grows in each round."""
        name = left.args[0] if isinstance(left, ast.Call) and len(left.args) == 1 else left
        stores = self._stores(name, loop) if isinstance(name, ast.Name) else []
        first = stores[0] if stores else None
        if not isinstance(name, ast.Name) or not isinstance(first, ast.Assign):
            return None
        if name is not left:
            return self._collected(left, name, loop) if len(stores) == 1 and _is_empty(first.value) else None
        match stores:
            case [_, ast.AugAssign(op=ast.Add(), value=value) as grows] if grows in loop.body:
                start, step = self.rounds.number(first.value, values), self.rounds.number(value, values)
                return (start, step) if start is not None and step is not None and step > 0 else None
        return None

    def _collected(self, left: ast.expr, name: ast.Name, loop: ast.While) -> tuple[int, int] | None:
        if not (isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len"):
            return None
        grows = 0
        for use in self.rounds.source.uses.get(name.id, ()):
            method, call = self.rounds.source.parents[use], self.rounds.source.parents[self.rounds.source.parents[use]]
            if isinstance(method, ast.Attribute) and method.attr != "append":
                return None
            if isinstance(method, ast.Attribute):
                grows += self.rounds.source.parents[call] in loop.body
        return (0, 1) if grows == 1 and self.rounds.is_free(left.func) else None


def _parts(test: ast.expr, kind: type[ast.boolop]) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, kind) else [test]


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.List) and not value.elts
