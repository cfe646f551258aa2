"""How a script uses its calls: whether each is awaited, and what uses its value."""

import ast
from collections.abc import Collection

from sennit.workflows.plan.language.text import format_name
from sennit.workflows.plan.programs.source import Found, Source, module_bound, within
from sennit.workflows.plan.programs.vocabulary import (
    AWAITED,
    BUILTINS,
    JOINS,
    NEXT_OF,
    PLAIN,
    WORDS,
)

CONTAINERS = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.ListComp, ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp, ast.keyword,
)  # fmt: skip
"""Expressions that hand a value on to the expression or statement around them."""
_LISTS = (ast.List, ast.ListComp, ast.Tuple, ast.GeneratorExp)
_ASSIGNING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)
_USING_A_RESULT = (ast.FormattedValue, ast.BinOp, ast.Compare, ast.Subscript, ast.Attribute)
"""Expressions that need a result and fail with a call that is not awaited."""

_WAITING = ("sleep", "gather", "wait", "wait_for")
"""Functions of asyncio that are awaited where they are called."""
_TAKES_CALL = ("create_task", "ensure_future", "wait_for", "shield")
"""Functions of asyncio whose first argument is a call."""
_ENTERED = ("Semaphore", "BoundedSemaphore", "Lock", "TaskGroup", "timeout")
"""Objects of asyncio that `async with` enters."""
_OF_FUTURES = ("cancel", "cancelled", "done", "result", "exception", "add_done_callback")
"""Methods of the future that `gather` returns."""
_SHOWN_LETTERS = 40
"""A sentence shows so much of a long expression."""


class Uses:
    """Finds calls that are used as if they were their results."""

    def __init__(self, source: Source, tools: Collection[str]) -> None:
        self.source = source
        self.tools = tools
        self._dropped: dict[ast.AST, bool] = {}

    # Calls of words, tools and async functions of the script.

    def _awaited(self, call: ast.Call, name: ast.Name) -> Found:
        """Find a call that is never awaited, or used as if it were its result."""
        user, is_in_container = self._user(call)
        if isinstance(user, ast.Await):
            return

        # A statement drops the call, or gives it a name.
        if self._is_dropped(user):
            yield (
                "await",
                call,
                f"the call of `{name.id}` is never awaited: write `await {name.id}(...)`",
            )
            return
        if isinstance(user, _ASSIGNING):
            if not isinstance(user, ast.Assign) or is_in_container:
                return
            if self._is_misused(user.targets[0]):
                held = ast.unparse(user.targets[0])
                yield (
                    "await",
                    call,
                    f"`{held}` is the call, not its result: write `{held} = await {name.id}(...)`",
                )
            return

        # Other checks say more of `task`, `pipeline` and `async for`.
        if _is_async_loop(user):
            return
        if isinstance(user, ast.Call):
            word = self._word(user.func)
            if word in ("task", "pipeline"):
                return
            if word in (*JOINS, NEXT_OF):
                yield (
                    "await",
                    call,
                    f"write `await parallel([task({name.id}, ...), ...])`: it waits for tickets",
                )
                return
            if self._takes_calls(user):
                return

        # Anything else needs the result, unless the call is awaited further on.
        if not self._is_given_on(user):
            yield (
                "await",
                call,
                f"this uses the call of `{name.id}`, not its result: write `await {name.id}(...)`",
            )

    def _user(self, call: ast.expr) -> tuple[ast.AST, bool]:
        """Return what uses the value of a call, and whether a list or the like stands between."""
        is_in_container = False
        for around in self.source.around(call):
            if not isinstance(around, CONTAINERS):
                return around, is_in_container
            is_in_container = True
        return self.source.tree, is_in_container

    def _is_dropped(self, user: ast.AST) -> bool:
        """Whether a statement does nothing with a value, or gives it a name that is never read."""
        if not isinstance(user, _ASSIGNING):
            return isinstance(user, ast.Expr)
        # The answer is kept: one statement may assign a long list of calls.
        if user not in self._dropped:
            self._dropped[user] = self._is_never_read(user)
        return self._dropped[user]

    def _is_never_read(
        self, user: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign
    ) -> bool:
        """Whether an assignment binds names only, and its function reads none of them."""
        targets: list[ast.expr]
        if isinstance(user, ast.Assign):
            targets = user.targets
        else:
            targets = [user.target]
        function = self.source.function(user)
        names_read = self.source.read.get(function, ())
        for target in targets:
            if not isinstance(target, ast.Name):
                return False
            if target.id in names_read:
                return False
        return True

    def _is_misused(self, target: ast.expr) -> bool:
        """Whether the script uses a name, which holds a call that is not awaited, as
        if it held the result.
        """
        if not isinstance(target, ast.Name) or target in self.source.again:
            return False
        for use in self.source.uses.get(target.id, ()):
            is_of_target = self.source.meaning(use) is target
            if is_of_target and self._takes_value(self.source.parents[use], use):
                return True
        return False

    def _takes_value(self, around: ast.AST, use: ast.Name) -> bool:
        """Whether the code around a name needs a result and not a call."""
        if isinstance(around, ast.Call):
            # A function of the script may await the call, one of Python or a tool does not.
            return isinstance(around.func, ast.Name) and self.source.meaning(around.func) is None
        if isinstance(around, ast.Return):
            return self.source.is_session(self.source.function(use))
        if isinstance(around, ast.For | ast.comprehension):
            return around.iter is use
        return isinstance(around, _USING_A_RESULT)

    def _takes_calls(self, user: ast.Call) -> bool:
        """Whether a call may take calls that are not awaited: asyncio's, methods such as
        append, the script's own.
        """
        if isinstance(user.func, ast.Attribute):
            return self._module(user.func.value) in ("", "asyncio")
        if not isinstance(user.func, ast.Name):
            return False
        meaning = self.source.meaning(user.func)
        if isinstance(meaning, ast.alias):
            return self._in_asyncio(user.func) != ""
        return meaning is not None

    def _is_given_on(self, user: ast.AST) -> bool:
        """Whether a function gives a call to its caller, or a loop to its
        body, to be awaited there.
        """
        if isinstance(user, ast.For | ast.comprehension):
            return self._is_awaited_in_turn(user)
        if isinstance(user, ast.Return):
            return isinstance(self.source.function(user), ast.FunctionDef)
        return isinstance(user, ast.Lambda)

    def _is_awaited_in_turn(self, loop: ast.For | ast.comprehension) -> bool:
        """Whether a loop goes through a list of calls and awaits each."""
        if not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, _LISTS):
            return False
        whole_loop: ast.AST = loop
        if isinstance(loop, ast.comprehension):
            whole_loop = self.source.parents[loop]
        for use in self.source.uses.get(loop.target.id, ()):
            is_awaited = isinstance(self.source.parents[use], ast.Await)
            if is_awaited and whole_loop in self.source.around(use):
                return True
        return False

    # Awaited values.

    def _gives_call(self, function: ast.FunctionDef) -> bool:
        """Whether a function may return a call, which its caller can await."""
        for node in self.source.nodes:
            if not isinstance(node, ast.Return):
                continue
            is_of_function = self.source.function(node) is function
            if is_of_function and self._may_be_call(node.value):
                return True
        return False

    def _may_be_call(self, returned: ast.expr | None) -> bool:
        if isinstance(returned, ast.Name):
            return not isinstance(self.source.meaning(returned), ast.arg)
        if isinstance(returned, ast.Call):
            is_of_python = isinstance(returned.func, ast.Name) and returned.func.id in BUILTINS
            return not is_of_python
        return False

    def _awaited_list(self, node: ast.Await) -> Found:
        """Find a list of tickets or calls that is awaited itself."""
        if not self._is_list(node.value):
            return
        text = "[...]"
        if isinstance(node.value, ast.Name):
            text = node.value.id
        yield (
            "await",
            node,
            f"a list cannot be awaited: write `await parallel({text})`, or asyncio.gather(*{text})",
        )

    # Calls of asyncio.

    def _asyncio_call(self, node: ast.Call) -> Found:
        """Find wrong arguments of asyncio's functions, and calls of these
        that are never awaited.
        """
        name = self._in_asyncio(node.func)
        if not name:
            return
        if name == "gather" and self._is_kept_as_future(node):
            return
        written = ast.unparse(node.func)
        if name in _WAITING:
            yield from self._waiting_call(node, written)
        if name == "gather":
            yield from self._gather_arguments(node, written)
        if name in _TAKES_CALL and node.args:
            function = node.args[0]
            if isinstance(function, ast.Name) and self._is_async(function):
                text = (
                    f"`{function.id}` is to be called here: write `{written}({function.id}(...))`"
                )
                yield "function", function, text

    def _waiting_call(self, node: ast.Call, written: str) -> Found:
        """Find a call that has to be awaited where it stands, and is not."""
        around = self.source.parents[node]
        is_lost = isinstance(around, ast.Expr)
        if isinstance(around, ast.Return):
            # The caller of another function may await what it returns. Nobody
            # awaits what a task returns.
            is_lost = self.source.is_session(self.source.function(node))
        if is_lost:
            yield (
                "await",
                node,
                f"the call of `{written}` is never awaited: write `await {written}(...)`",
            )
        elif isinstance(around, ast.Assign) and self._is_misused(around.targets[0]):
            held = ast.unparse(around.targets[0])
            yield (
                "await",
                node,
                f"`{held}` is the call, not its result: write `{held} = await {written}(...)`",
            )

    def _is_kept_as_future(self, gather: ast.Call) -> bool:
        """Whether a `gather` has a name, by which the script asks it how
        far it is, or cancels it.
        """
        around = self.source.parents[gather]
        if not isinstance(around, ast.Assign):
            return False
        target = around.targets[0]
        return self._is_misused(target) and self._is_gather_asked(target)

    def _is_gather_asked(self, target: ast.expr) -> bool:
        """Whether the script reads a method of futures on a name."""
        if not isinstance(target, ast.Name):
            return False
        for use in self.source.uses.get(target.id, ()):
            around = self.source.parents[use]
            if isinstance(around, ast.Attribute) and around.attr in _OF_FUTURES:
                return True
        return False

    def _gather_arguments(self, node: ast.Call, written: str) -> Found:
        for keyword in node.keywords:
            # A keyword without a name is `**arguments`: only the run knows the names in it.
            if keyword.arg is not None and keyword.arg != "return_exceptions":
                yield "argument", node, f"`gather` has no {format_name(keyword.arg)}"
        if node.args and self._is_list(node.args[0]):
            calls = node.args[0]
            shown = ast.unparse(calls)[:_SHOWN_LETTERS]
            yield "argument", calls, f"`gather` takes calls one by one: write `{written}(*{shown})`"

    def _with(self, node: ast.With) -> Found:
        """Find calls that `with` enters and that need `async with`, or none of both."""
        for item in node.items:
            entered = self.source.assigned(item.context_expr)
            if not isinstance(entered, ast.Call):
                continue
            word = self._word(entered.func)
            if word:
                yield (
                    "await",
                    item.context_expr,
                    f"`{word}` is not for `with`: call it on a line of its own",
                )
            elif self._in_asyncio(entered.func) in _ENTERED:
                shown = ast.unparse(item.context_expr)[:_SHOWN_LETTERS]
                yield "await", item.context_expr, f"write `async with {shown}`"

    # What an expression stands for.

    def _is_list(self, value: ast.expr) -> bool:
        """Whether a value is written as a list."""
        return isinstance(self.source.assigned(value), _LISTS)

    def _in_asyncio(self, function: ast.expr) -> str:
        """Return the name that a function has in asyncio, "" for any other function."""
        module, _, name = self.source.imported(function).rpartition(".")
        if module != "asyncio":
            return ""
        return name

    def _module(self, node: ast.AST | None) -> str:
        """Return the module that a name was imported as, or ""."""
        if isinstance(node, ast.Attribute):
            is_parse = node.attr == "parse" and self._module(node.value) == "urllib"
            if not is_parse:
                return ""
            return "urllib.parse"
        if not isinstance(node, ast.Name):
            return ""
        meaning = self.source.meaning(node)
        if not isinstance(meaning, ast.alias):
            return ""
        around = self.source.parents[meaning]
        if not isinstance(around, ast.Import):
            return ""
        return module_bound(meaning)

    def _word(self, function: ast.expr) -> str:
        """Return the word that a name stands for, or ""."""
        return self._among(WORDS, function)

    def _tool(self, function: ast.expr) -> str:
        """Return the tool that a name stands for, or ""."""
        return self._among(self.tools, function)

    def _among(self, names: Collection[str], function: ast.expr) -> str:
        """Return a name if it is one of several and the script does not define it, ""
        for any other expression.
        """
        if not isinstance(function, ast.Name) or function.id not in names:
            return ""
        if self.source.meaning(function) is not None:
            return ""
        return function.id

    def _is_async(self, name: ast.Name) -> bool:
        """Whether a name stands for a function whose call must be awaited."""
        meaning = self.source.meaning(name)
        if meaning is not None:
            return isinstance(meaning, ast.AsyncFunctionDef)
        is_tool = name.id in self.tools and name.id not in PLAIN
        return is_tool or name.id in AWAITED

    def _gives_coroutine(self, name: ast.Name) -> bool:
        """Whether the call of an async function is a coroutine: a generator gives none,
        and a decorator anything.
        """
        function = self.source.meaning(name)
        if not isinstance(function, ast.AsyncFunctionDef):
            return True
        if function.decorator_list:
            return False
        for statement in function.body:
            for part in within(statement):
                if isinstance(part, ast.Yield):
                    return False
        return True


def _is_async_loop(user: ast.AST) -> bool:
    if isinstance(user, ast.comprehension):
        return bool(user.is_async)
    return isinstance(user, ast.AsyncFor)
