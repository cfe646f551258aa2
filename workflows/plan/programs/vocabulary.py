"""What a script may use that it does not define: words, modules, and the names of Python."""

JOINS = ("parallel", "settled", "first", "quorum")
"""Words that wait for tickets."""
FROM_RUN = ("budget_left", "width", "load")
"""Words that the run answers at once, with what it is like now."""
MAY_BE_HIDDEN = ("width", "load")
"""Words whose names a script may give to functions of its own, which then stand for these."""
AWAITED = (
    "llm",
    "agent",
    "ask",
    "part",
    "sleep",
    "sleep_until",
    *JOINS,
    "next_of",
    "pipeline",
    *FROM_RUN,
)
PLAIN = ("task", "phase", "cancel", "now")
"""Words that a script calls without `await`."""
NEXT_OF = "next_of"
"""The word that gives one ticket after the other."""
LIMITS = ("timeout", "retry", "budget")
"""What a call takes beside its arguments, unless they are among these."""
TASK_LIMITS = ("tokens", "cost_usd", "calls")
"""What the budget of a task may limit."""
TIMED = ("llm", "agent", "ask", "part", *JOINS, "pipeline")
RETRIED = ("llm",)
BUDGETED = ("llm",)
"""Words that take a `timeout`, and how often they are to be attempted, as tools and tasks do; and a
`budget`, as tasks do.
"""
OWN = "__own_"
"""Before the name of an argument that a function of the script takes itself:
`timeout`, `retry`, `budget`.
"""
ROLES = ("worker", "critic", "judge")
"""Of the models that a script calls. The others write plans, and answers in a form of their own."""
WORDS = (*AWAITED, *PLAIN)
RUN_PROGRAM = "run_program"
"""Runs another program as a task. A client puts that program beside the script, and
writes its `task` here.
"""
AS_TASKS = ("llm", "agent", "ask")
"""Words that `task` starts, as it starts tools."""
SILENCES = ("first_token_timeout", "idle_timeout")
"""How many seconds a model may be silent, before its reply and within it."""
TYPES = (
    "str", "int", "float", "bool", "None", "list", "dict", "tuple", "set", "Any", "Optional",
    "Union", "Literal", "object", "List", "Dict", "Sequence", "Mapping", "frozenset", "NoneType",
)  # fmt: skip
"""Names of types that have a JSON schema."""

_MODULES = """
__future__ abc array ast asyncio base64 binascii bisect calendar cmath codecs collections
collections.abc colorsys contextlib contextvars copy csv dataclasses datetime decimal difflib enum
fnmatch fractions functools graphlib hashlib heapq hmac html html.parser io ipaddress itertools json
keyword logging math numbers operator pprint random re reprlib shlex statistics string struct
textwrap time tomllib traceback types typing unicodedata urllib urllib.parse uuid warnings weakref
xml xml.etree xml.etree.ElementTree zlib
"""
_BUILTINS = """
abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex delattr dict
dir divmod enumerate filter float format frozenset getattr globals hasattr hash hex id int
isinstance issubclass iter len list locals log map max memoryview min next object oct ord pow print
property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type
vars zip Ellipsis False None NotImplemented Ref Ticket True ArithmeticError AssertionError
AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError BufferError
BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError Exception
ExceptionGroup FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit
IOError ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError
KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError
NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError
ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning
StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError
TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError
UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError
"""
_CALL_ERRORS = """
A2aFailed A2aNeedsInput A2aUnavailable AddressRefused AlreadyWritten BadOutput BadReply
BudgetExceeded CalculationFailed CallRefused ContentRefused ContextTooLong DocsNotFound
DocumentNotFound DocumentUnreadable ExpressionRefused ExtraMissing FetchFailed HttpStatusError
IndexUnusable KeyRefused McpToolFailed McpUnavailable MediaRefused ModelRefused ModelTimeout
OfflineCannot OutputCut PathRefused ProviderBusy QuotaUsedUp RateLimited ReplyCut ReplyTooLarge
SandboxFailed SandboxLimit SchemaMismatch ServerFailed ServerUnreachable ToolArgumentError ToolError
ToolResultError TooManyFiles UnknownModel UnknownOutcome UnknownTool
"""
_UNUSABLE = """
argparse atexit concurrent ctypes getpass glob http importlib inspect locale multiprocessing os
pathlib pickle platform queue secrets select shutil signal socket sqlite3 ssl subprocess sys
tempfile threading zoneinfo
"""
CALL_ERRORS = tuple(_CALL_ERRORS.split())
"""Errors of tools and models, which a script may catch by their names."""
MODULES = tuple(_MODULES.split())
UNUSABLE = tuple(_UNUSABLE.split())
"""Modules that scripts have not: one that is imported and not used does no harm."""
BUILTINS = tuple(_BUILTINS.split())

INSTEAD: dict[str, str] = {
    "os": "a script reaches no files and no settings; use a tool, or an argument of `main`",
    "pathlib": "a script reaches no files; use a tool, or an argument of `main`",
    "shutil": "a script reaches no files; use a tool",
    "tempfile": "a script reaches no files; keep the values in variables",
    "sys": "return a value, or raise an exception",
    "secrets": "write uuid.uuid4().hex, or call a tool: what a replay repeats is no secret",
    "threading": "write asyncio.gather(...), or task(...)",
    "multiprocessing": "write asyncio.gather(...), or task(...)",
    "concurrent": "write asyncio.gather(...), or task(...)",
    "queue": "write asyncio.Queue",
    "subprocess": "a script starts no programs; use a tool",
    "socket": "a script reaches no network; use a tool",
    "http": "a script reaches no network; use a tool",
    "requests": "a script reaches no network; use a tool",
    "sqlite3": "a script reaches no files; use a tool",
    "zoneinfo": "give times with their offset, or write timezone(timedelta(hours=1))",
    "open": "a script reaches no files; use a tool, or an argument of `main`",
    "input": 'ask a person with `await ask("...")`',
    "eval": "write the code itself, or compute with a tool",
    "exec": "write the code itself",
    "compile": "write the code itself",
    "Any": "write `from typing import Any`",
    "breakpoint": "write log(...)",
    "exit": "return from main, or raise an exception",
    "quit": "return from main, or raise an exception",
    "dataclass": "write `from dataclasses import dataclass`",
    "to_thread": "call the tool: no call keeps others waiting",
    "create_subprocess_exec": "a script starts no programs; use a tool",
    "create_subprocess_shell": "a script starts no programs; use a tool",
    "open_connection": "a script reaches no network; use a tool",
    "start_server": "a script reaches no network; use a tool",
    "run_program": (
        "only a script that a person starts or edits runs programs, each by the name of its file"
    ),
    "run": "the run calls `main` itself; leave it out",
}
"""What to write in the place of names that Python or its modules have and scripts have not."""
NOT_OF_ASYNCIO = (
    "run", "Runner", "to_thread", "create_subprocess_exec", "create_subprocess_shell",
    "open_connection", "start_server", "open_unix_connection", "start_unix_server",
    "new_event_loop",
    "get_event_loop_policy", "set_event_loop_policy",
)  # fmt: skip
"""What scripts have not of asyncio."""
REFUSED_CALLS = {
    "time.sleep": "write `await sleep(seconds)`",
    "uuid.uuid1": "write uuid.uuid4()",
}
"""Functions of modules that scripts have not, with what to write instead."""
OWN_NAMES = ("__name__", "__doc__", "__debug__")
"""Names that Python defines in each module."""
NO_TOOLS = (*BUILTINS, *CALL_ERRORS, *INSTEAD)
"""Names that a script calls without a tool behind them, beside words."""
