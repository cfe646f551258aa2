"""What a script does with its calls: whether each is awaited, and what uses its value."""

import ast
from collections.abc import Collection

from sennit.workflows.plan.language.text import format_name
from sennit.workflows.plan.programs.source import Found, Source, within
from sennit.workflows.plan.programs.vocabulary import AWAITED, BUILTINS, JOINS, NEXT_OF, PLAIN, WORDS

CONTAINERS = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.keyword,
)  # fmt: skip
"""What hands a value on to what is around it."""
_LISTS = (ast.List, ast.ListComp, ast.Tuple, ast.GeneratorExp)
_WAITING = ("sleep", "gather", "wait", "wait_for")
_TAKES_CALL = ("create_task", "ensure_future", "wait_for", "shield")
_ENTERED = ("Semaphore", "BoundedSemaphore", "Lock", "TaskGroup", "timeout")
"""Of asyncio: what is awaited where it is called, what takes a call, and what `async with` enters."""
_OF_FUTURES = ("cancel", "cancelled", "done", "result", "exception", "add_done_callback")
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
        """Whether a function gives a call to who calls it, or a loop to what it does, to be awaited there."""
        if isinstance(user, ast.For | ast.comprehension):
            return self._is_awaited_in_turn(user)
        return isinstance(user, ast.Lambda) or (
            isinstance(user, ast.Return) and isinstance(self.source.function(user), ast.FunctionDef)
        )

    def _is_awaited_in_turn(self, loop: ast.For | ast.comprehension) -> bool:
        """Whether a loop goes through a list of calls and awaits each."""
        if not (isinstance(loop.target, ast.Name) and isinstance(loop.iter, _LISTS)):
            return False
        whole = loop if isinstance(loop, ast.For) else self.source.parents[loop]
        awaited = (
            use for use in self.source.uses.get(loop.target.id, ()) if isinstance(self.source.parents[use], ast.Await)
        )
        return any(whole in self.source.around(use) for use in awaited)

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
        if self._is_list(node.value):
            text = ast.unparse(node.value) if isinstance(node.value, ast.Name) else "[...]"
            yield "await", node, f"a list cannot be awaited: write `await parallel({text})`, or asyncio.gather(*{text})"

    def _is_misused(self, target: ast.expr) -> bool:
        """Whether a call that is not awaited is used as if it were its result."""
        if not isinstance(target, ast.Name) or target in self.source.again:
            return False
        uses = (use for use in self.source.uses.get(target.id, ()) if self.source.meaning(use) is target)
        return any(self._takes_value(self.source.parents[use], use) for use in uses)

    def _is_gather_asked(self, target: ast.expr) -> bool:
        """Whether a `gather` is kept to be asked or cancelled."""
        uses = self.source.uses.get(target.id, ()) if isinstance(target, ast.Name) else ()
        asked = (self.source.parents[use] for use in uses)
        return any(isinstance(each, ast.Attribute) and each.attr in _OF_FUTURES for each in asked)

    def _takes_value(self, around: ast.AST, use: ast.Name) -> bool:
        if isinstance(around, ast.Call):
            return isinstance(around.func, ast.Name) and self.source.meaning(around.func) is None
        if isinstance(around, ast.Return):
            return self.source.is_session(self.source.function(use))
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
        return bool(self._in_asyncio(user.func)) if isinstance(meaning, ast.alias) else meaning is not None

    def _in_asyncio(self, function: ast.expr) -> str:
        """Return the name that a function has in asyncio, "" if it is none of it."""
        module, _, name = self.source.imported(function).rpartition(".")
        return name if module == "asyncio" else ""

    def _asyncio_call(self, node: ast.Call) -> Found:
        """Find what asyncio is given that it does not take, and what of it is never awaited."""
        name, written, given = self._in_asyncio(node.func), ast.unparse(node.func), node.args[0] if node.args else None
        around = self.source.parents[node]
        is_returned = isinstance(around, ast.Return) and self.source.is_session(self.source.function(node))
        if name in _WAITING and (isinstance(around, ast.Expr) or is_returned):
            yield "await", node, f"the call of `{written}` is never awaited: write `await {written}(...)`"
        elif name in _WAITING and isinstance(around, ast.Assign) and self._is_misused(around.targets[0]):
            if name == "gather" and self._is_gather_asked(around.targets[0]):
                return
            held = ast.unparse(around.targets[0])
            yield "await", node, f"`{held}` is the call, not its result: write `{held} = await {written}(...)`"
        if name == "gather":
            for keyword in node.keywords:
                if keyword.arg not in (None, "return_exceptions"):
                    yield "argument", node, f"`gather` has no {format_name(keyword.arg or '')}"
        if name == "gather" and given is not None and self._is_list(given):
            yield "argument", given, f"`gather` takes calls one by one: write `{written}(*{ast.unparse(given):.40})`"
        if name in _TAKES_CALL and isinstance(given, ast.Name) and self._is_async(given):
            yield "function", given, f"`{given.id}` is to be called here: write `{written}({given.id}(...))`"

    def _with(self, node: ast.With) -> Found:
        for item in node.items:
            held = self.source.assigned(item.context_expr)
            if isinstance(held, ast.Call) and (word := self._word(held.func)):
                yield "await", item.context_expr, f"`{word}` is not for `with`: call it on a line of its own"
            elif isinstance(held, ast.Call) and self._in_asyncio(held.func) in _ENTERED:
                yield "await", item.context_expr, f"write `async with {ast.unparse(item.context_expr):.40}`"

    def _is_list(self, value: ast.expr) -> bool:
        """Whether a value is written as a list."""
        return isinstance(self.source.assigned(value), _LISTS)

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

    def _gives_coroutine(self, name: ast.Name) -> bool:
        """Whether the call of an async function is a coroutine: a generator gives none, and a decorator anything."""
        meaning = self.source.meaning(name)
        if not isinstance(meaning, ast.AsyncFunctionDef):
            return True
        yields = (part for statement in meaning.body for part in within(statement) if isinstance(part, ast.Yield))
        return not meaning.decorator_list and next(yields, None) is None
