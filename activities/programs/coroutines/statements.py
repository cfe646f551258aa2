"""What scripts write to run coroutines side by side, as Monty and the prelude take it: each line keeps its number."""

import ast
import re

from sennit.workflows.plan.bundles.text_edits import MARK, Edits
from sennit.workflows.plan.programs.source import Source
from sennit.workflows.plan.programs.vocabulary import AWAITED, LIMITS, NEXT_OF, NO_TOOLS, OWN, PLAIN

_STARTING = ("create_task", "ensure_future", "gather", "as_completed", "shield")


def is_side_by_side(source: Source) -> bool:
    """Whether a script may run coroutines of its own side by side: with anything of asyncio but an awaited gather of
    calls, with `next_of`, and with calls that it does not await where they stand.
    """
    is_next_of = any(source.meaning(use) is None for use in source.uses.get(NEXT_OF, ()))
    if is_next_of or any(isinstance(node, ast.Call) and _is_begun_later(source, node) for node in source.nodes):
        return True
    modules, gathers = dict[str, bool](), dict[str, bool]()
    for node in source.nodes:
        if isinstance(node, ast.AsyncWith) or (isinstance(node, ast.ImportFrom) and node.module == "asyncio"):
            names = [] if isinstance(node, ast.AsyncWith) else [alias for alias in node.names if alias.name == "gather"]
            if isinstance(node, ast.AsyncWith) or len(names) < len(node.names):
                return True
            gathers |= {alias.asname or alias.name: True for alias in names}
        elif isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: True for alias in node.names if alias.name == "asyncio"}
    for name in [use for each in (*modules, *gathers) for use in source.uses.get(each, ())]:
        found: ast.AST = name
        if name.id in modules:
            found = source.parents[name]
            if not (isinstance(found, ast.Attribute) and found.attr == "gather"):
                return True
        call = source.parents[found]
        is_awaited = isinstance(source.parents[call], ast.Await)
        if not (isinstance(call, ast.Call) and is_awaited and call.func is found and not call.keywords):
            return True
        if not all(_is_call(source, argument) for argument in call.args):
            return True
    return False


def _is_call(source: Source, argument: ast.expr) -> bool:
    """Whether an argument of a gather is a call of a tool or a word, or some of them."""
    if isinstance(argument, ast.Starred):
        inner = argument.value
        if isinstance(inner, ast.ListComp | ast.GeneratorExp):
            return _is_call(source, inner.elt)
        return isinstance(inner, ast.List | ast.Tuple) and all(_is_call(source, each) for each in inner.elts)
    if not isinstance(argument, ast.Call) or not isinstance(argument.func, ast.Name):
        return False
    return source.meaning(argument.func) is None


def _waits(source: Source, name: ast.Name) -> bool:
    """Whether a name is that of a tool, or of a word that waits."""
    if source.meaning(name) is not None or name.id == NEXT_OF:
        return False
    return name.id in AWAITED or name.id not in (*PLAIN, *NO_TOOLS)


def _is_gather(source: Source, call: ast.AST) -> bool:
    """Whether something is a call of asyncio's `gather`."""
    return isinstance(call, ast.Call) and source.imported(call.func) == "asyncio.gather"


def _is_begun_later(source: Source, call: ast.Call) -> bool:
    """Whether a call of a tool or a word is neither awaited where it stands, nor one of a gather that is."""
    if not isinstance(call.func, ast.Name) or not _waits(source, call.func):
        return False
    around = source.parents[call]
    while isinstance(around, ast.ListComp | ast.GeneratorExp | ast.List | ast.Tuple | ast.Starred):
        around = source.parents[around]
    if _is_gather(source, around):
        around = source.parents[around]
    return not isinstance(around, ast.Await)


class SideBySide(Edits):
    """Rewrites these statements of one script, whose meaning is in `source`."""

    source: Source
    is_alone: bool

    def _import_asyncio(self, node: ast.Import | ast.ImportFrom) -> None:
        if self.is_alone:
            return
        if isinstance(node, ast.ImportFrom):
            lines = [f"{alias.asname or alias.name} = __asyncio.{alias.name}" for alias in node.names]
        else:
            rest = [alias for alias in node.names if alias.name != "asyncio"]
            lines = [f"{alias.asname or alias.name} = __asyncio" for alias in node.names if alias not in rest]
            lines += [f"import {', '.join(map(ast.unparse, rest))}"] if rest else []
        self._instead(*self._at(node), "; ".join(lines) + "\n" * ((node.end_lineno or 0) - node.lineno))

    def _await_value(self, node: ast.Await) -> None:
        """Have the prelude await what is no call of a tool, a word or a plain function of the script."""
        name = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(name, ast.Name):
            meaning = self.source.meaning(name)
            if isinstance(meaning, ast.AsyncFunctionDef) and not meaning.decorator_list:
                return
            if _waits(self.source, name):
                return
        if self.is_alone:
            self._around(node.value, "__ended((", f"), {node.lineno})")
        else:
            self._around(node.value, "__awaited((", f"), {node.lineno})")

    def _begin_as_asyncio(self, call: ast.Call) -> None:
        """Have a call that is not awaited begin when asyncio would begin it: one of a tool when it is awaited or
        started, a gather at once. What starts coroutines knows its line.
        """
        function = call.func
        if self.is_alone or isinstance(self.source.parents[call], ast.Await):
            return
        if isinstance(function, ast.Name) and _waits(self.source, function):
            self._instead(*self._at(function), f"__later({function.id}, '{function.id}', {call.lineno})")
        elif _is_gather(self.source, call):
            self._instead(*self._at(function), "__gather_now")
        name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        first = next(iter(call.args), None)
        first = first.value if isinstance(first, ast.Starred) else first
        if name in _STARTING and first is not None and not isinstance(first, ast.GeneratorExp):
            self._around(first, f"__on({call.lineno}, (", "))")

    def _own_limits(self, call: ast.Call) -> None:
        """Name those arguments of a task that its function takes itself, so that they are none of `task`."""
        function = self.source.meaning(call.args[0]) if call.args and isinstance(call.args[0], ast.Name) else None
        if not isinstance(function, ast.AsyncFunctionDef):
            return
        args = function.args
        takes = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        for given in call.keywords:
            if given.arg in LIMITS and given.arg in takes:
                begin, _ = self._at(given)
                self._instead(begin, begin + len(given.arg), f"{OWN}{given.arg}")

    def _async_with(self, node: ast.AsyncWith) -> None:
        """Write `async with` as `try`, with the managers entered in its first line."""
        end = self._at(node)[1]
        name, (first, last) = f"__w{node.lineno}", (node.items[0], node.items[-1])
        outer, mark = " " * node.col_offset, MARK.decode()
        is_in_line = node.body[0].lineno == (last.optional_vars or last.context_expr).end_lineno
        inner = outer + "    " if is_in_line else " " * node.body[0].col_offset
        begin, until = self._lines[node.lineno - 1], self._at(first.context_expr)[0]
        entered = self._enters(name, first) + "\n" * self.body.count(b"\n", begin, until)
        self._instead(
            begin, until, f"{outer}{name} = __With({node.lineno})  {mark}\n{outer}try:  {mark}\n{inner}{entered}"
        )
        for item, following in zip(node.items, [*node.items[1:], None], strict=True):
            until = self._at(following.context_expr)[0] if following is not None else self._colon(item) + 1
            after = self._at(item.context_expr)[1]
            lines = "\n" * self.body.count(b"\n", after, until)
            more = f"; {self._enters(name, following)}" if following is not None else ""
            self._instead(after, until, f"){lines}){more}")
        if is_in_line:
            start = self._at(node.body[0])[0]
            self._instead(start, start, f"\n{inner}")
        stop = self.body.find(b"\n", end)
        stop = stop if stop >= 0 else len(self.body)
        behind = (
            f"{outer}except BaseException as __e:", f"{outer}    __f = await {name}.exit(__e)",
            f"{outer}    if __f is __e: raise", f"{outer}    if __f is not None: raise __f",
            f"{outer}finally:", f"{outer}    await {name}.leave()",
        )  # fmt: skip
        text = (f"  {mark}" if is_in_line else "") + "".join(f"\n{line}  #{node.lineno}{mark}" for line in behind)
        self._after(stop, text)

    def _enters(self, name: str, item: ast.withitem) -> str:
        target = f"{ast.unparse(item.optional_vars)} = " if item.optional_vars is not None else ""
        return f"{target}await {name}.enter(("

    def _colon(self, item: ast.withitem) -> int:
        """Return where the colon is behind the last item of a header: nothing but brackets and comments is there."""
        _, after = self._at(item.optional_vars or item.context_expr)
        between = re.compile(rb"(?:[^:#]|#[^\n]*)*").match(self.body, after)
        return between.end() if between is not None else after
