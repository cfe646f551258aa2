"""What a script may use that it does not define: words, modules, and the names of Monty."""

from sennit.workflows.plan.language.call_settings import CallSettings

JOINS = ("parallel", "settled", "first", "quorum")
"""Words that wait for tickets."""
AWAITED = ("llm", "agent", "ask", "part", "sleep", "sleep_until", *JOINS, "next_of", "pipeline", "budget_left")
PLAIN = ("task", "phase", "cancel", "now")
"""Words that a script calls without `await`."""
NEXT_OF = "next_of"
"""The word that the prelude defines."""
LIMITS = ("timeout", "retry")
"""What a call takes beside its arguments, unless they are among these."""
TIMED = ("llm", "agent", "ask", "part", *JOINS, "pipeline")
RETRIED = ("llm",)
"""Words that take a `timeout`, and how often they are to be attempted, as tools and tasks do."""
OWN = "__own_"
"""Before the name of an argument that a function of the script takes itself: `timeout`, `retry`."""
ROLES = ("worker", "critic", "judge")
"""Of the models that a script calls. The others write plans, and answers in a form of their own."""
WORDS = (*AWAITED, *PLAIN)
RUN_PROGRAM = "run_program"
"""Runs another program as a task. A client puts that program beside the script, and writes its `task` here."""
AS_TASKS = ("llm", "agent", "ask")
"""Words that `task` starts, as it starts tools."""
_BEFORE = "messages=(), instructions=None, media=()"
SILENCES = ("first_token_timeout", "idle_timeout")
"""How many seconds a model may be silent, before its reply and within it."""
_SETTINGS = ", ".join(f"{name}=None" for name in (*CallSettings.model_fields, *SILENCES))
SIGNATURES = {
    "llm": f'prompt, *material, schema=None, role="worker", model=None, tools=(), max_turns=8, {_BEFORE}, {_SETTINGS}',
    "agent": "goal, *, tools=None, budget=None",
    "ask": "question, *material, schema=None",
    "part": "ref, a=0, b=None",
    "sleep": "seconds",
    "sleep_until": "time",
    "parallel": "tickets, *, limit=None",
    "settled": "tickets, *, limit=None",
    "first": "tickets",
    "quorum": "k, tickets",
    "next_of": "tickets",
    "phase": "name",
    "now": "",
    "cancel": "ticket",
    "budget_left": "",
}
"""What words take; `task` and `pipeline` take what the functions do that they are given."""
ASYNCIO = (
    "create_task", "ensure_future", "Task", "Future", "CancelledError", "TimeoutError", "sleep", "gather",
    "as_completed", "wait", "FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED", "timeout", "wait_for", "Semaphore",
    "BoundedSemaphore", "Lock", "Event", "Queue", "QueueEmpty", "QueueFull", "TaskGroup",
    "shield", "PriorityQueue", "LifoQueue",
)  # fmt: skip
"""The names of asyncio that a script has."""
TYPES = (
    "str", "int", "float", "bool", "None", "list", "dict", "tuple", "set", "Any", "Optional", "Union", "Literal",
    "object", "List", "Dict", "Sequence", "Mapping", "frozenset", "NoneType",
)  # fmt: skip
"""Names of types that have a JSON schema."""

_MODULES = """
__future__ asyncio base64 binascii bisect collections collections.abc contextlib copy csv dataclasses datetime decimal
enum functools hashlib heapq io itertools json math operator random re statistics string textwrap
tomllib typing unicodedata urllib urllib.parse uuid
"""
_BUILTINS = """
abs all any bin bool bytes chr complex dict divmod enumerate filter float format frozenset getattr hasattr hash hex
id int isinstance iter len list log map max min next object oct ord pow print property range repr reversed round set
setattr slice sorted str sum tuple type zip Ellipsis NotImplemented Ref Ticket

ArithmeticError AssertionError AttributeError BaseException Exception FileExistsError FileNotFoundError ImportError
IndexError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
NotADirectoryError NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError StopIteration
SyntaxError SystemExit TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError ValueError
ZeroDivisionError
"""
_CALL_ERRORS = """
AddressRefused AlreadyWritten BadOutput BadReply CalculationFailed CallRefused ContentRefused ContextTooLong
DocsNotFound DocumentNotFound DocumentUnreadable ExpressionRefused ExtraMissing FetchFailed HttpStatusError
IndexUnusable KeyRefused
McpToolFailed McpUnavailable MediaRefused ModelRefused ModelTimeout OfflineCannot OutputCut PathRefused ProviderBusy
QuotaUsedUp RateLimited ReplyCut ReplyTooLarge SandboxFailed SandboxLimit SchemaMismatch ServerFailed ServerUnreachable
ToolArgumentError ToolError ToolResultError TooManyFiles UnknownModel UnknownOutcome UnknownTool
"""
_UNUSABLE = """
abc argparse atexit concurrent contextvars getpass glob html http inspect logging multiprocessing os
pathlib pickle platform pprint queue shutil signal socket sqlite3 ssl subprocess sys tempfile threading time traceback
types warnings weakref zoneinfo
"""
CALL_ERRORS = tuple(_CALL_ERRORS.split())
"""Errors of tools and models, which a script may catch by their names."""
MODULES = tuple(_MODULES.split())
UNUSABLE = tuple(_UNUSABLE.split())
"""Modules of Python that scripts have not: one that is imported and not used does no harm."""
BUILTINS = tuple(_BUILTINS.split())

INSTEAD: dict[str, str] = {
    "os": "a script reaches no files and no settings; use a tool, or an argument of `main`",
    "pathlib": "a script reaches no files; use a tool, or an argument of `main`",
    "sys": "return a value, or raise an exception",
    "time": "write `await sleep(seconds)`, and now() for the time",
    "zoneinfo": "give times with their offset, or write timezone(timedelta(hours=1))",
    "open": "a script reaches no files; use a tool, or an argument of `main`",
    "input": 'ask a person with `await ask("...")`',
    "eval": "write the code itself, or compute with a tool",
    "exec": "write the code itself",
    "globals": "write the name itself",
    "locals": "write the name itself",
    "super": "classes have no bases here",
    "issubclass": "classes have no bases here",
    "ExceptionGroup": "a TaskGroup raises the first error: catch that by its type",
    "Any": "write `from typing import Any`",
    "contextvars": "give the value as an argument",
    "abc": "leave it out: classes have no bases here",
    "logging": "write log(...)",
    "warnings": "write log(...)",
    "traceback": "write str(error)",
    "secrets": "write uuid.uuid4().hex, or call a tool",
    "fractions": "write decimal.Decimal",
    "pprint": "write json.dumps(value, indent=2)",
    "html": "write .replace(...), or call a tool",
    "callable": "write a check of your own: functions are known when you write the script",
    "vars": "name the fields",
    "dir": "name the fields",
    "ascii": "write repr(...)",
    "compile": "write the code itself",
    "bytearray": "write bytes, or a list of numbers",
    "memoryview": "write bytes",
    "delattr": "write a dict, and `del found[key]`",
    "ConnectionError": "catch ServerUnreachable, or RuntimeError, which every error of a call is",
    "BaseExceptionGroup": "raise one exception, whose text names the others",
    "breakpoint": "write log(...)",
    "exit": "return from main, or raise an exception",
    "quit": "return from main, or raise an exception",
    "dataclass": "write `from dataclasses import dataclass`",
    "to_thread": "call the tool: no call keeps others waiting",
    "Condition": "wait with an asyncio.Event, or a Queue",
    "get_event_loop": "write asyncio.create_task(...), or now() for the time",
    "get_running_loop": "write asyncio.create_task(...), or now() for the time",
    "run_program": "only a script that a person starts or edits runs programs, each by the name of its file",
    "__cause__": "write what it was into the text of the exception",
    "__context__": "write what it was into the text of the exception",
    "__traceback__": "write what it was into the text of the exception",
    "__dict__": "name the fields; a dataclass has JSON as it is",
    "run": "the run calls `main` itself; leave it out",
}
"""What to write in the place of names that Python or its modules have and scripts have not."""
NO_TOOLS = (*BUILTINS, *CALL_ERRORS, *INSTEAD)
"""Names that a script calls without a tool behind them, beside words."""
