"""Quotes a script before it runs: how often it calls each tool and model, about how many tokens
that takes, and which writes it may make.

A quote counts what stands in the script: calls, branches, and loops over what has a known length.
Elsewhere it has no upper bound. The least is that of a run that comes to its end and in which no
call fails, but for those whose failure the script catches.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

from sennit.workflows.plan.compile.forecast import AGENT_TOKENS, GUESSED_TOKENS
from sennit.workflows.plan.language.text import one_line, text_bytes
from sennit.workflows.plan.limits import MAX_QUOTED_CALLS
from sennit.workflows.plan.programs.sizes import Sizes
from sennit.workflows.plan.programs.source import Function, Source, line_of, source_of, within
from sennit.workflows.plan.programs.syntax import parameters_of
from sennit.workflows.plan.programs.vocabulary import AS_TASKS
from sennit.workflows.plan.quotes.counts import ANY, NONE, NOTHING, Count, Counts, either, total
from sennit.workflows.plan.quotes.estimate import Quote, Round
from sennit.workflows.plan.quotes.reach import reached

_CALLS, _TASKS, _TOKENS, _COST = "#calls", "#tasks", "#tokens", "#cost"
_TURNS = 8
_PER_DOLLAR = 10**12
_BOUNDED = {"tokens": (_TOKENS, 1), "cost_usd": (_COST, _PER_DOLLAR), "calls": ("llm", 1)}
"""What a quote counts of what the budget of a task limits, and how much of
that is 1 of the limit.
"""
_SHOWN = 40
"""Characters of the items of a loop."""
_ONCE = Count(1, 1)
_CALLED = ("llm", "agent", "ask", "part")
"""Words that are calls themselves."""
_HANDS_ON = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
"""Expressions that hand the tickets in them on to the word around them."""
Prices = Callable[[str], tuple[int, int] | None]
"""Micro-dollars per million input and output tokens, by the name of a model, or by
role for the model it has.
"""


def quote_of(
    script: str,
    tools: Mapping[str, Mapping[str, Any]],
    prices: Prices,
    inputs: Mapping[str, Any] | None = None,
) -> Quote:
    """Return the quote of a script that has no problems; inputs that are not
    given have their defaults.
    """
    arguments: dict[str, Any] = {}
    for name, parameter in parameters_of(script).items():
        arguments[name] = parameter.default
    arguments.update(inputs or {})
    reader = _Reader(source_of(script), tools, prices, arguments)
    may_write: tuple[str, ...] = ()
    try:
        counts = reader.main()
        unseen, may_write = reader.unseen()
        counts = total(counts, unseen)
    except RecursionError:
        # Its functions call each other over too many levels to be followed.
        everything = (_CALLS, _TASKS, _TOKENS, *_CALLED, *tools)
        counts = Counts(dict.fromkeys(everything, ANY))
        reader.may_use(tools)
        reader.unbounded.clear()

    cost: tuple[float, float | None] | None = None
    if reader.is_priced:
        least, most = counts.of(_COST)
        highest = None
        if most is not None:
            highest = _dollars(most)
        cost = (_dollars(least), highest)
    rounds = sorted(reader.unbounded.values(), key=attrgetter("line"))
    assumed = {name: arguments[name] for name in sorted(reader.sizes.assumed)}
    return Quote(
        calls=_capped(counts.of(_CALLS)),
        functions=_functions(counts),
        tasks=_capped(counts.of(_TASKS)),
        tokens=counts.of(_TOKENS),
        cost=cost,
        rounds=tuple(rounds),
        writes=tuple(sorted(reader.writes)),
        may_write=may_write,
        assumed=assumed,
        models=_capped(counts.of("llm")).least,
    )


class _Reader:
    """Counts the calls that a script makes."""

    def __init__(
        self,
        source: Source,
        tools: Mapping[str, Mapping[str, Any]],
        prices: Prices,
        arguments: Mapping[str, Any],
    ) -> None:
        self.source = source
        self.tools = tools
        self.prices = prices
        self.unbounded: dict[ast.AST, Round] = {}
        """The loops, lambdas and functions that run an unknown number of times."""
        self.writes: set[str] = set()
        self.is_priced = True
        self._main = source.top.get("main")
        given: dict[ast.AST, Any] = {}
        if isinstance(self._main, Function):
            for parameter in _parameters(self._main):
                given[parameter] = arguments.get(parameter.arg)
        self.sizes = Sizes(source, given)
        self._counted: dict[ast.AST, Counts] = {}
        self._within: list[ast.AST] = []
        """The functions that are being counted, each called by the one before it."""
        self._recursive: set[ast.AST] = set()
        self._seen: set[ast.AST] = set()
        """The names of words and tools whose calls are counted."""

    def main(self) -> Counts:
        """Return what the program calls."""
        if not isinstance(self._main, Function):
            return NOTHING
        return self._function(self._main)

    def unseen(self) -> tuple[Counts, tuple[str, ...]]:
        """Return the calls that the script may make in ways that were not counted, any number of
        times, and which tools that write are among them.
        """
        of_functions = [NOTHING]
        of_names: dict[str, Count] = {}
        writes: set[str] = set()
        for node in reached(self.source):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if node in self._seen:
                continue
            # A function of the script that is handed around as a value.
            meaning = self.source.meaning(node)
            if meaning is not None:
                if isinstance(meaning, Function) and self._is_value(node):
                    of_functions.append(self._function(meaning).times(0, None))
                continue
            # A tool or a word.
            if node.id in self.tools or node.id in _CALLED:
                of_names[_CALLS] = ANY
                of_names[node.id] = ANY
                writes.update(self._writing([node.id]))
            if node.id in ("llm", "agent"):
                of_names[_TOKENS] = ANY
                writes.update(self._writing(self._tools_of(node)))
        counts = total(*of_functions, Counts(of_names))
        return counts, tuple(sorted(writes - self.writes))

    def may_use(self, names: Iterable[str]) -> None:
        """Note which of the tools write."""
        self.writes.update(self._writing(names))

    def _writing(self, names: Iterable[str]) -> list[str]:
        writing: list[str] = []
        for name in names:
            if name in self.tools and self.tools[name].get("effect") == "write":
                writing.append(name)
        return writing

    def _tools_of(self, word: ast.Name) -> Collection[str]:
        """Return the tools that a model or an agent may have whose call was not counted."""
        call = self.source.parents[word]
        if not isinstance(call, ast.Call):
            return self._tools(None)
        listed = _named_arguments(call).get("tools")
        if listed is None and word.id == "llm":
            return []
        return self._tools(listed)

    def _is_value(self, node: ast.Name) -> bool:
        """Whether a name does not stand for a call, so that what it stands for may be
        called any number of times.
        """
        around = self.source.parents[node]
        if not isinstance(around, ast.Call):
            return True
        if around.func is node:
            return False
        starts_tasks = isinstance(around.func, ast.Name) and around.func.id in ("task", "pipeline")
        return not (starts_tasks and node in around.args)

    # Functions and statements. The statements after a statement are counted before it, so that a
    # branch which leaves early can leave them out.

    def _function(self, node: Function) -> Counts:
        if node in self._counted:
            return self._counted[node]
        if node in self._within:
            # Each function on the way calls itself, through the others.
            self._recursive.update(self._within[self._within.index(node) :])
            return NOTHING
        self._within.append(node)
        counts = self._block(node.body, NOTHING)
        self._within.pop()
        if node in self._recursive:
            counts = total(counts, counts.times(0, None))
        self._counted[node] = counts
        return counts

    def _block(self, body: Iterable[ast.stmt], after: Counts) -> Counts:
        """Return the counts of a block and of what comes after it."""
        for statement in reversed([*body]):
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, after: Counts) -> Counts:
        """Return the counts of a statement and of what comes after it."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return after
            case ast.If(test=test, body=body, orelse=orelse):
                tested = self._cost(test)
                branches = either(self._block(body, after), self._block(orelse, after))
                return total(tested, branches)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, after)
            case ast.Try() | ast.TryStar():
                return self._try(node, after)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return total(*map(self._cost, items), self._with(items, body, after))
            case ast.Match():
                return self._match(node, after)
            case ast.Return():
                return self._parts(node)
            case ast.Raise():
                return Counts(self._parts(node).by_name, ends=False)
            case ast.Break() | ast.Continue():
                return NOTHING
        return total(self._parts(node), after)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, after: Counts) -> Counts:
        has_break = False
        has_return = False
        for statement in node.body:
            for part in within(statement):
                has_break = has_break or isinstance(part, ast.Break)
                has_return = has_return or isinstance(part, ast.Return)

        # How often the loop goes round.
        is_endless = False
        if isinstance(node, ast.While):
            is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
            most = None
            words = "each round"
            least = int(is_endless)
            head = self._cost(node.test)
            once = total(head, self._block(node.body, NOTHING))
        else:
            most = self.sizes.length(node.iter)
            words = _each(node.iter)
            least = most or 0
            head = self._cost(node.iter)
            once = self._block(node.body, NOTHING)
        if has_break or has_return:
            least = min(least, 1)
        rounds = self._times(once, least, most, node, words)

        # The statements after the loop, unless it never ends.
        if is_endless and not has_break:
            return rounds
        after = self._block(node.orelse, after)
        if has_return or (has_break and node.orelse):
            after = after.perhaps
        return total(head, rounds, after)

    def _match(self, node: ast.Match, after: Counts) -> Counts:
        blocks = [self._block(case.body, after) for case in node.cases]
        if not _takes_all(node.cases[-1]):
            blocks.append(after)
        guards: list[Counts] = []
        for case in node.cases:
            if case.guard:
                guards.append(self._cost(case.guard).perhaps)
        subject = self._cost(node.subject)
        return total(subject, *guards, either(*blocks))

    def _try(self, node: ast.Try | ast.TryStar, after: Counts) -> Counts:
        whole = self._block([*node.body, *node.orelse], after)
        broken = self._block(node.body, NOTHING).perhaps
        handled: list[Counts] = []
        for handler in node.handlers:
            handled.append(total(broken, self._block(handler.body, after)))
        final = self._block(node.finalbody, NOTHING)
        return total(final, either(whole, *handled))

    def _with(
        self, items: Iterable[ast.withitem], body: Iterable[ast.stmt], after: Counts
    ) -> Counts:
        whole = self._block(body, after)
        for item in items:
            manager = item.context_expr
            # `suppress` goes on behind the block as soon as something in it fails.
            if isinstance(manager, ast.Call) and ast.unparse(manager.func).endswith("suppress"):
                broken = self._block(body, NOTHING).perhaps
                return either(whole, total(broken, after))
        return whole

    def _times(
        self, counts: Counts, least: int, most: int | None, node: ast.AST, words: str
    ) -> Counts:
        """Return the counts of so many rounds, and note what each round calls if nobody
        knows how many there are.
        """
        functions = _functions(counts)
        if most is None and functions:
            place = node
            if isinstance(node, ast.comprehension):
                place = node.iter
            self.unbounded[node] = Round(line_of(place), words, functions)
        return counts.times(least, most)

    # Expressions.

    def _cost(self, node: ast.AST) -> Counts:
        match node:
            case ast.Lambda(body=body):
                return self._times(self._cost(body), 0, None, node, "each call of the lambda")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                tested = self._cost(test)
                return total(tested, either(self._cost(body), self._cost(orelse)))
            case ast.BoolOp(values=[start, *following]):
                counts = self._cost(start)
                for value in following:
                    counts = total(counts, self._cost(value).perhaps)
                return counts
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Call():
                return total(self._parts(node), self._called(node))
        return self._parts(node)

    def _parts(self, node: ast.AST) -> Counts:
        return total(*map(self._cost, ast.iter_child_nodes(node)))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Counts:
        if isinstance(node, ast.DictComp):
            key = self._cost(node.key)
            inner = total(key, self._cost(node.value))
        else:
            inner = self._cost(node.elt)
        for loop in reversed(node.generators):
            if loop.ifs:
                inner = inner.perhaps
            once = total(*map(self._cost, loop.ifs), inner)
            length = self.sizes.length(loop.iter)
            words = _each(loop.iter)
            rounds = self._times(once, length or 0, length, loop, words)
            inner = total(self._cost(loop.iter), rounds)
        return inner

    def _called(self, node: ast.Call) -> Counts:
        """Return what the call of a word, a tool, or a function of the script calls.
        Methods are not followed.
        """
        named = _named_arguments(node)
        function = node.func
        if not isinstance(function, ast.Name):
            return NOTHING
        if self.source.meaning(function) is not None or function.id in self.tools:
            return self._callee(function)
        if function.id in _CALLED:
            return self._word(function, node.args, named)
        if function.id == "task" and node.args:
            begun = self._begun(node.args[0], node.args[1:], named)
            begun = self._within_budget(begun, named)
            # A task that nothing waits for at once may be cancelled before it has called any.
            if self._waiter(node) not in ("parallel", "await"):
                begun = begun.perhaps
            return total(Counts({_TASKS: _ONCE}), begun)
        if function.id == "pipeline" and node.args:
            items, *stages = node.args
            once = total(Counts({_TASKS: _ONCE}), *map(self._callee, stages))
            length = self.sizes.length(items)
            return self._times(once, length or 0, length, node, _each(items))
        return NOTHING

    def _waiter(self, task: ast.AST) -> str:
        """Return the word in whose call a task is begun, `await` if it is awaited
        itself, "" for any other.
        """
        for around in self.source.around(task):
            if isinstance(around, ast.Await):
                return "await"
            if isinstance(around, ast.Call):
                if isinstance(around.func, ast.Name) and self.source.meaning(around.func) is None:
                    return around.func.id
                return ""
            if not isinstance(around, _HANDS_ON):
                return ""
        return ""

    def _word(self, word: ast.Name, args: list[ast.expr], named: dict[str, ast.expr]) -> Counts:
        """Return what a word calls that is a call itself."""
        self._seen.add(word)
        if word.id == "llm":
            return self._within_budget(self._llm(args, named), named)
        if word.id == "agent":
            return self._agent(named)
        return Counts({_CALLS: _ONCE, word.id: _ONCE})

    def _begun(self, name: ast.expr, args: list[ast.expr], named: dict[str, ast.expr]) -> Counts:
        """Return what a task calls: that of a word is its call, that of a function is
        what the function calls.
        """
        if isinstance(name, ast.Name) and name.id in AS_TASKS and self.source.meaning(name) is None:
            return self._word(name, args, named)
        return self._callee(name)

    def _callee(self, name: ast.expr) -> Counts:
        """Return what a tool, or a function of the script, calls."""
        if not isinstance(name, ast.Name):
            return NOTHING
        meaning = self.source.meaning(name)
        if meaning is None and name.id in self.tools:
            self._seen.add(name)
            self.may_use([name.id])
            return Counts({_CALLS: _ONCE, name.id: _ONCE})
        if not isinstance(meaning, Function):
            return NOTHING
        called = self._function(meaning)
        if meaning.decorator_list:
            return self._times(called, 0, None, meaning, f"each call of `{meaning.name}`")
        return called

    def _llm(self, args: list[ast.expr], named: dict[str, ast.expr]) -> Counts:
        prompt = ""
        for prompt_argument in args[:1]:
            prompt = "".join(map(_text, ast.walk(prompt_argument)))
        tokens = GUESSED_TOKENS + text_bytes(prompt) // 3
        model = _text(named.get("model")) or _text(named.get("role")) or "worker"
        tools: Collection[str] = []
        if "tools" in named:
            tools = self._tools(named["tools"])
        self.may_use(tools)
        turns: int | None = None
        if "max_turns" in named:
            turns = self.sizes.number(named["max_turns"])
        if not tools:
            return self._model("llm", model, tokens, _ONCE)

        # In a tool loop, each turn is a model call, and each turn may call any of the tools.
        most_turns = max(turns or _TURNS, 1)
        called = self._model("llm", model, tokens, Count(1, most_turns))
        of_tools = dict.fromkeys((_CALLS, *tools), ANY)
        return total(called, Counts(of_tools))

    def _agent(self, named: dict[str, ast.expr]) -> Counts:
        self.may_use(self._tools(named.get("tools")))
        tokens = AGENT_TOKENS
        budget = named.get("budget")
        if isinstance(budget, ast.Dict):
            for key, value in zip(budget.keys, budget.values, strict=True):
                if _text(key) == "tokens":
                    tokens = self.sizes.number(value) or AGENT_TOKENS
        return self._model("agent", "worker", tokens, _ONCE)

    def _within_budget(self, counts: Counts, named: dict[str, ast.expr]) -> Counts:
        """Return the counts of a task whose budget bounds them, as far as
        it is written as it is.
        """
        budget = named.get("budget")
        if not isinstance(budget, ast.Dict):
            return counts
        most = dict[str, int]()
        for key, value in zip(budget.keys, budget.values, strict=True):
            counted, scale = _BOUNDED.get(_text(key), ("", 1))
            try:
                amount = self.sizes.number(value) or ast.literal_eval(value)
            except ValueError:
                continue  # it is worked out when the script runs
            if counted and isinstance(amount, int | float):
                most[counted] = round(amount * scale)
        return counts.at_most(most)

    def _model(self, name: str, model: str, tokens: int, called: Count) -> Counts:
        """Return the count of a model call: the least if it only reads, the
        most if it only writes.
        """
        price = self.prices(model)
        self.is_priced = self.is_priced and price is not None
        cheap, dear = (0, 0)
        if price:
            cheap, dear = min(price), max(price)
        spent = called.times(tokens, tokens)
        most = None
        if spent.most is not None:
            most = spent.most * dear
        cost = Count(spent.least * cheap, most)
        return Counts({_CALLS: called, name: called, _TOKENS: spent, _COST: cost})

    def _tools(self, listed: ast.expr | None) -> Collection[str]:
        """Return the tools that a list may name, all if that cannot be seen."""
        # Follow a name to its value, and an item to its list.
        while isinstance(listed, ast.Subscript | ast.Name):
            if isinstance(listed, ast.Subscript):
                listed = listed.value
                continue
            assigned = self.source.assigned(listed)
            if assigned is listed:
                listed = None
            else:
                listed = assigned

        everything = list(self.tools)
        if not isinstance(listed, ast.List | ast.Tuple | ast.Dict):
            return everything
        names = []
        for part in ast.walk(listed):
            if isinstance(part, ast.Name | ast.Call):
                return everything
            names.append(_text(part))
        return [name for name in names if name in self.tools]


def _each(items: ast.expr) -> str:
    """Return the words for a round of a loop over `items`."""
    return f"for each of `{one_line(ast.unparse(items), _SHOWN)}`"


def _takes_all(case: ast.match_case) -> bool:
    """Whether a case of `match` takes any value."""
    if case.guard or not isinstance(case.pattern, ast.MatchAs):
        return False
    return case.pattern.pattern is None


def _dollars(cost: int) -> float:
    return round(cost / _PER_DOLLAR, 6)


def _capped(count: Count) -> Count:
    """Return a count of calls: more than a program may make are not told apart."""
    most = count.most
    if most is not None and most > MAX_QUOTED_CALLS:
        most = None
    return Count(min(count.least, MAX_QUOTED_CALLS), most)


def _functions(counts: Counts) -> dict[str, Count]:
    """Return how often each word and each tool is called."""
    functions = {}
    for name, count in counts.by_name.items():
        if count != NONE and not name.startswith("#"):
            functions[name] = _capped(count)
    return functions


def _named_arguments(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _text(node: ast.AST | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""


def _parameters(function: Function) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
