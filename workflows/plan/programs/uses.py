"""What a script does with its calls: whether each is awaited, and what uses its value."""

import ast
from collections.abc import Collection, Iterator

from sennit.workflows.plan.programs.endings import is_session
from sennit.workflows.plan.programs.source import Source
from sennit.workflows.plan.programs.vocabulary import AWAITED, BUILTINS, JOINS, NEXT_OF, PLAIN, WORDS

Found = Iterator[tuple[str, ast.AST, str]]
CONTAINERS = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.keyword,
)  # fmt: skip
"""What hands a value on to what is around it."""
_ASSIGNING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)


class Uses:
    """Finds calls that are used as if they were their results."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        self.source = source
        self.tools = tools
        self._dropped: dict[ast.AST, bool] = {}

    def _awaited(self, call: ast.Call, name: ast.Name) -> Found:
        """Find a call that is never awaited, or used as if it were its result."""
        user, via = self._user(call)
        if isinstance(user, ast.Await):
            return
        if self._is_dropped(user):
            yield "await", call, f"the call of `{name.id}` is never awaited: write `await {name.id}(...)`"
        elif isinstance(user, _ASSIGNING):
            if isinstance(user, ast.Assign) and not via and self._is_misused(user.targets[0]):
                held = ast.unparse(user.targets[0])
                yield "await", call, f"`{held}` is the call, not its result: write `{held} = await {name.id}(...)`"
        elif isinstance(user, ast.Call) and self._word(user.func) in ("task", "pipeline"):
            return  # which says more of it
        elif isinstance(user, ast.AsyncFor) or (isinstance(user, ast.comprehension) and user.is_async):
            return  # so does that
        elif isinstance(user, ast.Call) and self._word(user.func) in (*JOINS, NEXT_OF):
            yield "await", call, f"write `await parallel([task({name.id}, ...), ...])`: it waits for tickets"
        elif (isinstance(user, ast.Call) and self._takes_calls(user)) or self._is_given_on(user):
            return
        else:
            yield "await", call, f"this uses the call of `{name.id}`, not its result: write `await {name.id}(...)`"

    def _is_given_on(self, user: ast.AST) -> bool:
        """Whether a function gives a call to who calls it, to be awaited there."""
        return isinstance(user, ast.Lambda) or (
            isinstance(user, ast.Return) and isinstance(self.source.function(user), ast.FunctionDef)
        )

    def _gives_call(self, function: ast.FunctionDef) -> bool:
        """Whether what a function returns may be a call, which can be awaited."""
        returned = (
            node.value
            for node in self.source.nodes
            if isinstance(node, ast.Return) and self.source.function(node) is function
        )
        return any(
            (isinstance(value, ast.Name) and not isinstance(self.source.meaning(value), ast.arg))
            or (isinstance(value, ast.Call) and not (isinstance(value.func, ast.Name) and value.func.id in BUILTINS))
            for value in returned
        )

    def _awaited_list(self, node: ast.Await) -> Found:
        """Find a list of tickets or calls that is awaited itself."""
        value: ast.AST = node.value
        name = ast.unparse(node.value)
        if isinstance(value, ast.Name) and (meaning := self.source.meaning(value)) not in self.source.again:
            around = self.source.parents.get(meaning) if isinstance(meaning, ast.Name) else None
            value = around.value if isinstance(around, ast.Assign) and around.targets == [meaning] else value
        if isinstance(value, ast.List | ast.ListComp | ast.Tuple | ast.GeneratorExp):
            text = name if isinstance(node.value, ast.Name) else "[...]"
            yield "await", node, f"a list cannot be awaited: write `await parallel({text})`, or asyncio.gather(*{text})"

    def _is_misused(self, target: ast.expr) -> bool:
        """Whether a call that is not awaited is used as if it were its result."""
        if not isinstance(target, ast.Name) or target in self.source.again:
            return False
        uses = (use for use in self.source.uses.get(target.id, ()) if self.source.meaning(use) is target)
        return any(self._takes_value(self.source.parents[use], use) for use in uses)

    def _takes_value(self, around: ast.AST, use: ast.Name) -> bool:
        if isinstance(around, ast.Call):
            return isinstance(around.func, ast.Name) and self.source.meaning(around.func) is None
        if isinstance(around, ast.Return):
            return is_session(self.source, self.source.function(use))
        return isinstance(around, ast.FormattedValue | ast.BinOp | ast.Compare | ast.Subscript | ast.Attribute) or (
            isinstance(around, ast.For | ast.comprehension) and around.iter is use
        )

    def _user(self, call: ast.expr) -> tuple[ast.AST, bool]:
        """Return what uses the value of a call, and whether a list or the like stands between."""
        via = False
        for around in self.source.around(call):
            if isinstance(around, ast.comprehension):
                return around, via
            if not isinstance(around, CONTAINERS):
                return around, via
            via = True
        return self.source.tree, via

    def _is_dropped(self, user: ast.AST) -> bool:
        """Whether a statement does nothing with a value, or gives it a name that is never read."""
        if not isinstance(user, _ASSIGNING):
            return isinstance(user, ast.Expr)
        if user not in self._dropped:
            targets = user.targets if isinstance(user, ast.Assign) else [user.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            read = self.source.read.get(self.source.function(user), ())
            self._dropped[user] = len(names) == len(targets) and not any(name in read for name in names)
        return self._dropped[user]

    def _takes_calls(self, user: ast.Call) -> bool:
        """Whether a call may take calls that are not awaited: asyncio's, methods such as append, the script's own."""
        if isinstance(user.func, ast.Attribute):
            return self._module(user.func.value) in ("", "asyncio")
        meaning = self.source.meaning(user.func) if isinstance(user.func, ast.Name) else None
        if isinstance(meaning, ast.alias):
            around = self.source.parents[meaning]
            return isinstance(around, ast.ImportFrom) and around.module == "asyncio"
        return meaning is not None

    def _is_gather(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute):
            return function.attr == "gather" and self._module(function.value) == "asyncio"
        meaning = self.source.meaning(function) if isinstance(function, ast.Name) else None
        return isinstance(meaning, ast.alias) and meaning.name == "gather"

    def _module(self, node: ast.AST | None) -> str:
        """Return the module that a name was imported as, or ""."""
        if isinstance(node, ast.Attribute) and self._module(node.value) == "urllib" and node.attr == "parse":
            return "urllib.parse"
        meaning = self.source.meaning(node) if isinstance(node, ast.Name) else None
        is_module = isinstance(meaning, ast.alias) and isinstance(self.source.parents[meaning], ast.Import)
        if not (is_module and isinstance(meaning, ast.alias)):
            return ""
        return meaning.name if meaning.asname else meaning.name.partition(".")[0]

    def _word(self, function: ast.expr) -> str:
        """Return the word that a name stands for, or ""."""
        is_word = isinstance(function, ast.Name) and function.id in WORDS and self.source.meaning(function) is None
        return function.id if is_word and isinstance(function, ast.Name) else ""

    def _tool(self, function: ast.expr) -> str:
        """Return the tool that a name stands for, or ""."""
        is_tool = isinstance(function, ast.Name) and function.id in self.tools and self.source.meaning(function) is None
        return function.id if is_tool and isinstance(function, ast.Name) else ""

    def _is_async(self, name: ast.Name) -> bool:
        """Whether a name stands for what must be awaited when it is called."""
        meaning = self.source.meaning(name)
        if meaning is None:
            return name.id in AWAITED or (name.id in self.tools and name.id not in PLAIN)
        return isinstance(meaning, ast.AsyncFunctionDef)
