"""What a script can cost before it runs: how often it calls what, about how many tokens that takes, what it may write.

The least is that of a run in which no call fails, but for those whose failure the script catches.
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sennit.workflows.plan.compile.forecast import AGENT_TOKENS, GUESSED_TOKENS
from sennit.workflows.plan.language.text import text_bytes
from sennit.workflows.plan.limits import MAX_QUOTED_CALLS, MAX_QUOTED_LEVELS
from sennit.workflows.plan.programs.rounds import MANY, Rounds, Size, TooLong, Values
from sennit.workflows.plan.programs.source import Function, Source, line_of, source_of
from sennit.workflows.plan.programs.syntax import parameters_of
from sennit.workflows.plan.programs.vocabulary import AS_TASKS
from sennit.workflows.plan.quotes.counted_loops import CountedLoops
from sennit.workflows.plan.quotes.counts import NONE, Count, Counts, Flow, after, either, merged, perhaps, total
from sennit.workflows.plan.quotes.estimate import Quote, Round
from sennit.workflows.plan.quotes.reach import reached

_CALLS, _TASKS, _TOKENS, _COST, _MODELS = "#calls", "#tasks", "#tokens", "#cost", "#models"
_TURNS = 8
_ANY = Count(more=True)
_PER_DOLLAR = 10**12
Prices = Callable[[str], tuple[int, int] | None]
"""Micro-dollars per million input and output tokens, by the name of a model, or by role for the model it has."""


def quote_of(
    script: str, tools: Mapping[str, Mapping[str, Any]], prices: Prices, inputs: Mapping[str, Any] | None = None
) -> Quote:
    """Return the quote of a script that has no problems; inputs that are not given have their defaults."""
    reader = _Reader(source_of(script), tools, prices)
    arguments = {name: parameter.default for name, parameter in parameters_of(script).items()} | dict(inputs or {})
    may_write: tuple[str, ...] = ()
    try:
        counts = reader.main(arguments)
        unseen, may_write = reader.unseen()
        counts = total(counts, unseen)
    except (TooLong, RecursionError):
        counts = dict.fromkeys((_CALLS, _TASKS, _TOKENS, "llm", "agent", "ask", "part", *tools), _ANY)
        reader.may_use(tools)
        reader.unknown.clear()
    least, most, _ = counts.get(_COST, NONE)
    return Quote(
        calls=_capped(counts.get(_CALLS, NONE)),
        functions=_functions(counts),
        tasks=_capped(counts.get(_TASKS, NONE)),
        tokens=counts.get(_TOKENS, NONE),
        cost=(round(least / _PER_DOLLAR, 6), round(most / _PER_DOLLAR, 6)) if reader.is_priced else None,
        rounds=tuple(sorted(reader.unknown.values(), key=lambda each: each.line)),
        writes=tuple(sorted(reader.writes)),
        may_write=may_write,
        assumed={name: arguments[name] for name in sorted(reader.rounds.assumed)},
        models=_capped(counts.get(_MODELS, NONE)).least,
    )


class _Reader:
    """Counts what a script calls."""

    def __init__(self, source: Source, tools: Mapping[str, Mapping[str, Any]], prices: Prices) -> None:
        self.source = source
        self.tools = tools
        self.prices = prices
        self.rounds = Rounds(source)
        self.loops = CountedLoops(self.rounds)
        self.unknown: dict[ast.AST, Round] = {}
        self.writes: set[str] = set()
        self.is_priced = True
        self._counted: dict[Any, Counts] = {}
        self._within: list[tuple[ast.AST, Any]] = []
        self._recursive: set[ast.AST] = set()
        self._seen: set[ast.AST] = set()
        """The names by which what was counted is called."""
        self._left_out: set[ast.AST] = set()
        """What did not run somewhere with these inputs."""
        self._run: set[ast.AST] = set()
        """What did run."""
        self._methods: dict[str, list[Function]] = {}
        for node in source.nodes:
            if isinstance(node, Function) and isinstance(source.parents[node], ast.ClassDef):
                self._methods.setdefault(node.name, []).append(node)

    def main(self, arguments: Mapping[str, Any]) -> Counts:
        """Return what the program calls with these arguments."""
        main = self.source.top["main"]
        if not isinstance(main, Function):
            return {}
        values: dict[ast.AST, tuple[int | None, Size]] = {}
        for arg in _parameters(main):
            value = arguments.get(arg.arg)
            if type(value) is int and abs(value) < MANY:
                values[arg] = value, Size()
                self.rounds.inputs.add(arg)
            elif isinstance(value, list):
                values[arg] = None, Size(len(value), len(value))
        return self._function(main, values)

    def unseen(self) -> tuple[Counts, tuple[str, ...]]:
        """Return what the script calls in ways that were not counted, any number of times, and which tools that write
        are among it.
        """
        counts: Counts = {}
        writes = set[str]()
        for node in reached(self.source, self._left_out - self._run):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if node in self._seen or self.source.meaning(node) is not None:
                continue
            if node.id in self.tools:
                counts |= {_CALLS: _ANY, node.id: _ANY}
                writes.update(self._writing([node.id]))
            elif node.id in ("llm", "agent", "ask", "part"):
                counts |= {_CALLS: _ANY, node.id: _ANY}
            if node.id in ("llm", "agent"):
                counts[_TOKENS] = _ANY
                writes.update(self._writing(self._tools_of(node)))
        return counts, tuple(sorted(writes - self.writes))

    def _tools_of(self, word: ast.Name) -> list[str]:
        """Return the tools that a model or an agent may have whose call was not counted."""
        call = self.source.parents[word]
        if not isinstance(call, ast.Call):
            return self._tools(None)
        listed = next((given.value for given in call.keywords if given.arg == "tools"), None)
        if listed is None and word.id == "llm":
            return []
        return self._tools(listed)

    def _writing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.tools[name].get("effect") == "write"]

    def may_use(self, names: Iterable[str]) -> None:
        """Note which of the tools write."""
        self.writes.update(self._writing(names))

    def _function(self, node: Function, values: Values) -> Counts:
        self.rounds.spend()
        key = node, tuple(values.get(arg) for arg in _parameters(node))
        if key in self._counted:
            return self._counted[key]
        if key in self._within or sum(node is each for each, _ in self._within) > MAX_QUOTED_LEVELS:
            self._recursive.add(node)
            return {}
        self._within.append(key)
        flow = self._block(node.body, values)
        self._within.pop()
        raised = flow.get("raise", {})
        found = (
            either(*(flow[way] for way in ("next", "return") if way in flow))
            if len(flow) > ("raise" in flow)
            else raised
        )
        found = {
            name: count._replace(least=found.get(name, NONE).least) for name, count in either(found, raised).items()
        }
        if node in self._recursive:
            self._recursive.remove(node)
            found = total(found, self._times(found, Size(), node, f"each further call of `{node.name}`"))
        if not self._recursive:
            self._counted[key] = found
        return found

    def _block(self, body: Iterable[ast.stmt], values: Values) -> Flow:
        flow: Flow = {"next": {}}
        for statement in body:
            if "next" not in flow:
                self._left_out.add(statement)
                continue
            self._run.add(statement)
            before = flow.pop("next")
            self.rounds.spend(sum(map(len, flow.values()), len(before)))
            flow = merged(flow, after(before, self._statement(statement, values)))
        return flow

    def _statement(self, node: ast.stmt, values: Values) -> Flow:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return {"next": {}}
            case ast.If(test=test) if (is_so := self.rounds.truth(test, values)) is not None:
                self._left_out.update(node.orelse if is_so else node.body)
                return self._block(node.body if is_so else node.orelse, values)
            case ast.If(test=test, body=body, orelse=orelse):
                return after(self._cost(test, values), merged(self._block(body, values), self._block(orelse, values)))
            case ast.For() | ast.While():
                return self._loop(node, values)
            case ast.Try():
                return self._try(node, values)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return after(total(*(self._cost(item, values) for item in items)), self._block(body, values))
            case ast.Match(subject=subject, cases=cases):
                guards = [perhaps(self._cost(case.guard, values)) for case in cases if case.guard]
                flows = [self._block(case.body, values) for case in cases]
                is_whole = isinstance(cases[-1].pattern, ast.MatchAs) and not (
                    cases[-1].pattern.pattern or cases[-1].guard
                )
                none: Flow = {} if is_whole else {"next": {}}
                return after(total(self._cost(subject, values), *guards), merged(*flows, none))
            case ast.Break() | ast.Continue() | ast.Return() | ast.Raise():
                return {type(node).__name__.lower(): self._parts(node, values)}
        return {"next": self._parts(node, values)}

    def _loop(self, node: ast.For | ast.While, values: Values) -> Flow:
        if isinstance(node, ast.For):
            what, test, is_endless = self.rounds.each(node.iter), {}, False
            head, size = self._cost(node.iter, values), self.rounds.size(node.iter, values)
            size = Size(*(min(each, self.loops.left_at(node, values)) for each in size))
        else:
            head, size, what = {}, self.loops.size(node, values), "each round"
            test = self._cost(node.test, values)
            is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if not size.most:
            self._left_out.update(node.body)
            return {"next": head}
        body = self._block(node.body, values)
        rounds = [body.pop(way) for way in ("next", "continue") if way in body]
        once = total(test, either(*rounds)) if rounds else {}
        before = self._times(once, Size(0, size.most - (size.most < MANY)), node, what)
        left = after(total(before, test), body)
        flow = {"next": left.pop("break")} if "break" in left else {}
        if is_endless:
            left = merged(left, {"raise": before})
        elif rounds or not size.least:
            whole = total(self._times(once, size, node, what), test)
            flow = merged(flow, after(whole, self._block(node.orelse, values)))
        return after(head, merged(flow, left))

    def _try(self, node: ast.Try, values: Values) -> Flow:
        flow = self._block(node.body, values)
        broken = perhaps(either(*flow.values()))
        if node.handlers:
            flow.pop("raise", None)
        if "next" in flow:
            flow = merged(flow, after(flow.pop("next"), self._block(node.orelse, values)))
        flow = merged(flow, *(after(broken, self._block(handler.body, values)) for handler in node.handlers))
        final = self._block(node.finalbody, values)
        if "next" not in final:
            return after(either(*flow.values()), final)
        return {way: total(counts, either(*final.values())) for way, counts in flow.items()}

    def _cost(self, node: ast.AST, values: Values) -> Counts:
        self.rounds.spend()
        match node:
            case ast.Lambda(body=body):
                return self._times(self._cost(body, values), Size(), node, "each call of the lambda")
            case ast.IfExp(test=test) if (is_so := self.rounds.truth(test, values)) is not None:
                self._left_out.add(node.orelse if is_so else node.body)
                self._run.add(node.body if is_so else node.orelse)
                return self._cost(node.body if is_so else node.orelse, values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return total(self._cost(test, values), either(self._cost(body, values), self._cost(orelse, values)))
            case ast.BoolOp(values=[start, *others]):
                return total(self._cost(start, values), *(perhaps(self._cost(each, values)) for each in others))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, values)
            case ast.Call():
                return total(self._parts(node, values), self._called(node, values))
            case ast.Name() if (table := self._table(node)) is not None:
                return self._cost(table, values)
            case ast.Name() if self._is_value(node):
                called = self._called(ast.Call(func=node, args=[], keywords=[]), values)
                return self._times(called, Size(), node, f"each call of `{node.id}`")
        return self._parts(node, values)

    def _table(self, node: ast.Name) -> ast.expr | None:
        """Return the value of a name at the top of the script, which may be a table of functions."""
        meaning = self.source.meaning(node)
        around = self.source.parents.get(meaning) if isinstance(meaning, ast.Name) else None
        is_at_top = isinstance(around, ast.Assign) and self.source.is_top_level(around)
        is_read = not isinstance(self.source.function(node), ast.Module)
        return around.value if is_read and is_at_top and isinstance(around, ast.Assign) else None

    def _is_value(self, node: ast.Name) -> bool:
        """Whether a name does not stand for a call, so that what it stands for may be called any number of times."""
        around = self.source.parents[node]
        if not isinstance(around, ast.Call):
            return True
        is_word = isinstance(around.func, ast.Name) and around.func.id in ("task", "pipeline")
        return around.func is not node and not (is_word and node in around.args)

    def _parts(self, node: ast.AST, values: Values) -> Counts:
        return total(*(self._cost(child, values) for child in ast.iter_child_nodes(node)))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, values: Values
    ) -> Counts:
        items = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner = total(*(self._cost(item, values) for item in items))
        for each in reversed(node.generators):
            tests = [self._cost(test, values) for test in each.ifs]
            once = total(*tests, perhaps(inner) if tests else inner)
            rounds = self._times(once, self.rounds.size(each.iter, values), each, self.rounds.each(each.iter))
            inner = total(self._cost(each.iter, values), rounds)
        return inner

    def _times(self, counts: Counts, size: Size, node: ast.AST, what: str) -> Counts:
        if size.most == MANY and (functions := _functions(counts)):
            line = line_of(node.iter if isinstance(node, ast.comprehension) else node)
            self.unknown[node] = Round(line, what, functions)
        return {name: count.times(size) for name, count in counts.items()}

    def _called(self, node: ast.Call, values: Values) -> Counts:
        """Return what the call of a word, a tool, or a function or method of the script calls."""
        named = {each.arg: each.value for each in node.keywords if each.arg}
        match node.func:
            case ast.Attribute(attr=name):
                return perhaps(either(*(self._function(each, {}) for each in self._methods.get(name, ()))))
            case ast.Name(id=word) if word in self.tools or not self.rounds.is_free(node.func):
                return self._callee(node.func, node.args, named, values)
            case ast.Name(id="llm" | "agent" | "ask" | "part"):
                return self._word(node.func, node.args, named, values)
            case ast.Name(id="task") if node.args:
                called = self._begun(node.args[0], node.args[1:], named, values)
                around = self.rounds.waiter(node)
                if around != "parallel":  # it may be cancelled before it has called any
                    called = {**called, _MODELS: called.get(_MODELS, NONE)._replace(least=0)}
                if around in ("first", "quorum"):
                    called = perhaps(called)
                return total({_TASKS: Count(1, 1)}, called)
            case ast.Name(id="pipeline") if node.args:
                stages = [self._callee(stage, [], {}, values) for stage in node.args[1:]]
                size = self.rounds.size(node.args[0], values)
                return self._times(total({_TASKS: Count(1, 1)}, *stages), size, node, self.rounds.each(node.args[0]))
        return {}

    def _word(self, word: ast.Name, args: list[ast.expr], named: dict[str, ast.expr], values: Values) -> Counts:
        """Return what a word calls that is a call itself."""
        self._seen.add(word)
        if word.id == "llm":
            return self._llm(args, named, values)
        if word.id == "agent":
            return self._agent(named, values)
        return {_CALLS: Count(1, 1), word.id: Count(1, 1)}

    def _begun(self, name: ast.expr, args: list[ast.expr], named: dict[str, ast.expr], values: Values) -> Counts:
        """Return what a task calls: that of a word is its call, that of a function is what the function calls."""
        if isinstance(name, ast.Name) and name.id in AS_TASKS and self.rounds.is_free(name):
            return self._word(name, args, named, values)
        return self._callee(name, [], named, values)

    def _callee(self, name: ast.expr, args: list[ast.expr], named: dict[str, ast.expr], values: Values) -> Counts:
        """Return what a tool, or a function of the script, calls with these arguments."""
        meaning = self.source.meaning(name) if isinstance(name, ast.Name) else None
        if meaning is None and isinstance(name, ast.Name) and name.id in self.tools:
            self._seen.add(name)
            self.may_use([name.id])
            return {_CALLS: Count(1, 1), name.id: Count(1, 1)}
        if not isinstance(meaning, Function):
            return {}
        if meaning.decorator_list:
            called = total(self._function(meaning, {}), *(self._cost(each, values) for each in meaning.decorator_list))
            return self._times(called, Size(), meaning, f"each call of `{meaning.name}`")
        parameters = _parameters(meaning)
        has_stars = any(isinstance(arg, ast.Starred) for arg in args)
        bound = {} if has_stars else dict(zip(parameters, args, strict=False))
        bound |= {arg: named[arg.arg] for arg in parameters if arg.arg in named}
        known = {arg: (self.rounds.number(each, values), self.rounds.size(each, values)) for arg, each in bound.items()}
        return self._function(meaning, {arg: each for arg, each in known.items() if each != (None, Size())})

    def _llm(self, args: list[ast.expr], named: dict[str, ast.expr], values: Values) -> Counts:
        texts = [_text(part) for arg in args[:1] for part in ast.walk(arg)]
        self.rounds.spend(len(texts))
        tokens = GUESSED_TOKENS + text_bytes("".join(texts)) // 3
        tools = self._tools(named.get("tools", ast.List([])))
        turns = self.rounds.number(named.get("max_turns", ast.Constant(_TURNS)), values) or _TURNS
        self.may_use(tools)
        model = _text(named.get("model")) or _text(named.get("role")) or "worker"
        called = self._model("llm", model, tokens, Count(1, max(turns, 1) if tools else 1))
        return total(called, dict.fromkeys((_CALLS, *tools), _ANY) if tools else {})

    def _agent(self, named: dict[str, ast.expr], values: Values) -> Counts:
        self.may_use(self._tools(named.get("tools")))
        tokens = AGENT_TOKENS
        if isinstance(budget := named.get("budget"), ast.Dict):
            limits = {
                _text(key): self.rounds.number(value, values)
                for key, value in zip(budget.keys, budget.values, strict=True)
            }
            tokens = limits.get("tokens") or AGENT_TOKENS
        return self._model("agent", "worker", tokens, Count(1, 1))

    def _model(self, name: str, model: str, tokens: int, called: Count) -> Counts:
        """Return the count of a model call: the least if it only reads, the most if it only writes."""
        price = self.prices(model)
        self.is_priced = self.is_priced and price is not None
        least, most = tokens * called.least, tokens * called.most
        cost = Count(least * min(price), most * max(price)) if price else NONE
        models = {_MODELS: called} if name == "llm" else {}
        return {_CALLS: called, name: called, _TOKENS: Count(least, most), _COST: cost, **models}

    def _tools(self, listed: ast.expr | None) -> list[str]:
        """Return the tools that a list may name, all if that cannot be seen."""
        while isinstance(listed, ast.Subscript | ast.Name):
            self.rounds.spend()
            listed = listed.value if isinstance(listed, ast.Subscript) else self.rounds.assigned(listed)
        parts = list(ast.walk(listed)) if isinstance(listed, ast.List | ast.Tuple | ast.Dict) else []
        if not parts or any(isinstance(part, ast.Name | ast.Call) for part in parts):
            self.rounds.spend(len(self.tools))
            return list(self.tools)
        return [name for name in map(_text, parts) if name in self.tools]


def _capped(count: Count) -> Count:
    if count.most <= MAX_QUOTED_CALLS:
        return count
    return Count(min(count.least, MAX_QUOTED_CALLS), MAX_QUOTED_CALLS, more=True)


def _functions(counts: Counts) -> Counts:
    return {name: _capped(each) for name, each in counts.items() if name[0] != "#" and each != NONE}


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _parameters(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
