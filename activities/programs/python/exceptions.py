"""Exceptions of a script's own: an error of Monty stands for each; what it has beside a text is known by that text."""

import ast
from collections.abc import Collection

from sennit.workflows.plan.bundles.text_edits import Edits
from sennit.workflows.plan.programs.errors import OwnErrors
from sennit.workflows.plan.programs.source import Source, modules_in

OWN = "#own "

ERRORS = """
__raised_as = {}
def __made_error(name, carrier, error, args):
    if not hasattr(error, 'args'):
        error.args = args
    error.__name, error.__carrier = name, carrier
    return error
def __args(error, *args):
    error.args = args
def __error_text(error):
    return '' if not error.args else str(error.args[0]) if len(error.args) == 1 else str(error.args)
def __error_shown(error):
    return error.__name + (f'({error.args[0]!r})' if len(error.args) == 1 else repr(error.args))
def __raised(error):
    if not hasattr(error, '__carrier'):
        return error
    raised = error.__carrier(str(error))
    kind, text = str(type(raised)), str(raised)
    for known in ((kind, text), (kind, text, __me())):
        __raised_as.pop(known, None)
        __raised_as[known] = error
    while len(__raised_as) > 4000:
        __raised_as.pop(next(iter(__raised_as)))
    return raised
def __carried(value):
    return value.__carrier('') if hasattr(value, '__carrier') else value
def __caught(error):
    kind, text = str(type(error)), str(error)
    if (kind, text) not in __raised_as:
        return error
    return __raised_as.get((kind, text, __me()), __raised_as[(kind, text)])
"""
"""What a script finds defined that has exceptions with more than a name. Of those it keeps the last 2,000 that were
raised: at most 1,000 calls are open, so that many may be on their way. Two that read the same are told apart by the
coroutines that raised them.
"""


def has_own_errors(text: str) -> bool:
    """Whether a script, as Monty has it, has exceptions with more than a name."""
    return "__new_" in text


_CAUGHT_IN = (ast.ExceptHandler, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Exceptions(Edits):
    """Rewrites what a script does with exceptions."""

    def __init__(self, source: Source, text: str, exceptions: Collection[str]) -> None:
        super().__init__(text)
        self.source = source
        self.exceptions = exceptions
        self._modules = tuple(name for _, name in modules_in(text))
        self._errors = OwnErrors.of(source)
        self._behind: list[str] = []
        if carriers := self._errors.carriers:
            self._behind.append(OWN + " ".join(f"{name}={kind}" for name, kind in carriers.items()))
        defined = {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}
        self._behind += [self._import_of(name) for name in carriers if name not in defined]

    def _import_of(self, name: str) -> str:
        module, _, kind = self._errors.carriers[name].lstrip("_").rpartition(".")
        return f"from {module} import {'error' if module == 're' else kind} as {name}"

    def _exception(self, node: ast.ClassDef) -> None:
        """Write an own exception as what stands for it, and what it has beside as a class of its own."""
        if self._errors.bodies.get(node.name) is not node:
            if node.name in self._errors.bodies:
                self._new(node.name)
            self._statement(node, self._import_of(node.name))
            return
        begin, last = self._at(node)[0], self._at(node.bases[0])[1]
        end = self.body.index(b")", last) + 1
        rows = self.body[begin:end].count(b"\n")
        self._before(node, self._import_of(node.name))
        self._instead(begin, end, f"class __own_{node.name}" + (f"({chr(10) * rows})" if rows else ""))
        methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
        lacking = {
            "__init__": "(self, *args): self.args = args",
            "__str__": "(self): return __error_text(self)",
            "__repr__": "(self): return __error_shown(self)",
        }
        for name, does in lacking.items():
            if name not in methods:
                self._before(node.body[0], f"def {name}{does}")
        self._new(node.name)

    def _new(self, name: str) -> None:
        written = self._written(name)
        made = f"__own_{self._errors.bodies[name].name}(*a, **k)"
        self._behind.append(f"def __new_{name}(*a, **k): return __made_error({written!r}, {name}, {made}, a)")

    def _written(self, name: str) -> str:
        """Return a name as its module has it."""
        for module in self._modules:
            name = name.removeprefix(f"{module}__")
        return name

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is None and self._errors.bodies:
            around = next((each for each in self.source.around(node) if isinstance(each, _CAUGHT_IN)), None)
            if isinstance(around, ast.ExceptHandler) and around.name:
                self._instead(*self._at(node), f"__raised({around.name}); raise")
        for each in (node.exc, node.cause) if self._errors.bodies else ():
            if each is not None and not isinstance(each, ast.Constant):
                self._around(each, "__raised(", ")")

    def _handler(self, node: ast.ExceptHandler) -> None:
        """Have what is caught be the instance that was raised."""
        if self._errors.bodies and node.name:
            known, first = f"{node.name} = __caught({node.name})", node.body[0]
            if first.lineno == node.lineno:
                self._instead(self._at(first)[0], self._at(first)[0], f"{known}; ")
            else:
                self._before(first, known)

    def _begin(self, node: ast.Call) -> None:
        """Write `super().__init__(text)` as what it does."""
        owner = self._errors.begun[node]
        begin, end = self._at(node)[0], self._at(node.func)[1]
        is_super = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
        end = self.body.index(b"(", end) + 1
        self._instead(begin, end, f"__args({owner}, " if is_super else "__args(")

    def _ask(self, call: ast.Call) -> None:
        """Have `isinstance` and `type` ask for what stands for an own exception: related ones may have one body."""
        if self._errors.bodies and call.args and not isinstance(call.args[0], ast.Starred):
            self._around(call.args[0], "__carried(", ")")

    def _error_name(self, node: ast.Name) -> bool:
        """Write the name of an exception where more than Monty's is meant by it; return whether it was one."""
        name, around, errors = node.id, self.source.parents[node], self._errors
        asks = self.source.parents[around] if isinstance(around, ast.Tuple) else around
        is_asked = isinstance(asks, ast.Call) and isinstance(asks.func, ast.Name) and asks.func.id == "isinstance"
        if name in errors.bodies and isinstance(around, ast.Call | ast.Raise) and not is_asked:
            self._instead(*self._at(node), f"__new_{name}{'()' if isinstance(around, ast.Raise) else ''}")
        elif is_asked or isinstance(asks, ast.ExceptHandler | ast.Assign):
            many = errors.caught_as(name)
            if many[1:] and (around is not asks or not isinstance(asks, ast.Assign)):
                names = ", ".join(many)
                self._instead(*self._at(node), names if isinstance(around, ast.Tuple) else f"({names})")
        return name in errors.carriers
