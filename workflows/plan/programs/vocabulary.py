"""What a script may use that it does not define: words, modules, and the names of Monty."""

JOINS = ("parallel", "settled", "first", "quorum")
"""Words that wait for tickets."""
AWAITED = ("llm", "agent", "ask", "part", *JOINS, "pipeline", "budget_left")
PLAIN = ("task", "phase")
"""Words that a script calls without `await`."""
ROLES = ("worker", "critic", "judge")
"""Of the models that a script calls. The others write plans, and answers in a form of their own."""
WORDS = (*AWAITED, *PLAIN)

_MODULES = """
__future__ asyncio base64 binascii bisect collections copy csv dataclasses datetime decimal functools hashlib itertools
json math random re tomllib typing unicodedata
"""
_BUILTINS = """
abs all any bin bool bytes chr complex dict divmod enumerate filter float format frozenset getattr hasattr hash hex id
int isinstance iter len list map max min next object oct ord pow print property range repr reversed round set setattr
slice sorted str sum tuple type zip Ellipsis NotImplemented Ref Ticket

ArithmeticError AssertionError AttributeError BaseException Exception FileExistsError FileNotFoundError ImportError
IndexError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
NotADirectoryError NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError StopIteration
SyntaxError SystemExit TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError ValueError
ZeroDivisionError
"""
MODULES = tuple(_MODULES.split())
BUILTINS = tuple(_BUILTINS.split())

INSTEAD: dict[str, str] = {
    "os": "a script reaches no files and no settings; use a tool, or an argument of `main`",
    "pathlib": "a script reaches no files; use a tool, or an argument of `main`",
    "sys": "return a value, or raise an exception",
    "time": "a script has no clock; leave it out",
    "enum": "write constants at the top of the script",
    "open": "a script reaches no files; use a tool, or an argument of `main`",
    "input": 'ask a person with `await ask("...")`',
    "eval": "write the code itself, or compute with a tool",
    "exec": "write the code itself",
    "globals": "write the name itself",
    "locals": "write the name itself",
    "super": "classes have no bases here",
    "issubclass": "classes have no bases here",
    "Any": "write `from typing import Any`",
    "dataclass": "write `from dataclasses import dataclass`",
    "create_task": "write `ticket = task(function, ...)`, and `await parallel([ticket, ...])`",
    "ensure_future": "write `ticket = task(function, ...)`, and `await parallel([ticket, ...])`",
    "TaskGroup": "write `await parallel([task(function, ...), ...])`",
    "wait": "write `await settled([...])`, `await first([...])` or `await quorum(k, [...])` over tickets",
    "as_completed": "write `await pipeline(items, stage, ...)`",
    "sleep": "a script has no clock; leave it out",
    "run": "the run calls `main` itself; leave it out",
}
"""What to write in the place of names that Python or its modules have and scripts have not."""
