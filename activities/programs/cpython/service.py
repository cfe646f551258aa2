"""The processes that run scripts: each runs one.

The worker and a process take turns on the two pipes, each with one line of JSON: a message for the
script's session, then the calls of the script with the worker's replies, until the session reports
that everything in it waits.
"""

import ast
import gc
import json
from typing import Any, Final

from sennit.activities.programs.cpython import fixed_world, imports, rehearsal
from sennit.activities.programs.cpython.session import ScriptSession
from sennit.activities.sandbox.computing_parent import Lines

_MOST_OBJECTS: Final = 100_000
_DUMPS: Final = json.dumps
_LOADS: Final = json.loads
"""As no script has changed them."""


def prepare() -> None:
    """Load all that a script may import, and all that the parser wants for the first one."""
    imports.load_modules()
    compile(ast.parse("async def main(x: é):\n    pass\n"), "script", "exec")


def settle() -> None:
    """Change this process, and so each copy of it, so that equal scripts do equal things, and run
    what each copy will run.

    Done once, this takes no time and no memory of the process of each script.
    """
    fixed_world.settle()
    # The session collects garbage as calls end. Between two ends only so many objects make the
    # collector begin alone.
    gc.set_threshold(_MOST_OBJECTS)
    rehearsal.rehearse(serve)


def serve(lines: Lines) -> None:
    """Run a session until there are no more messages."""

    def exchange(message: dict[str, Any]) -> dict[str, Any]:
        lines.write(_line_of(message))
        reply = lines.read()
        if reply is None:
            raise SystemExit
        return dict(_LOADS(reply))

    session = ScriptSession(exchange)
    while (line := lines.read()) is not None:
        message = _LOADS(line)
        session.record(message.get("record", []))
        lines.write(_line_of(session.do(message)))


def _line_of(message: dict[str, Any]) -> bytes:
    return _DUMPS(message, allow_nan=False).encode()
