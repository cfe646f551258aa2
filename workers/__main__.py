"""`python -m workers ROLE` serves the queues of a role; `python -m workers catalogue` lists tools, roles and models;
`python -m workers check FILE` checks the types of a program; `python -m workers gc` deletes artifacts that no run can
need.

Exit codes: 0 drained, 1 a worker failed or too many threads are lost, 2 wrong role, setting or tool module. Without a
Temporal server that can be used, a worker waits, and /readyz says for what.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

USAGE = """\
usage: python -m workers ROLE        serve a role: {roles}
       python -m workers catalogue   print all tools, roles and models as JSON
       python -m workers check FILE  print what the types of a program do not allow as JSON
       python -m workers gc          delete what is stored of runs that the server no longer knows
Settings are SENNIT_* variables; the connection is that of the temporal command (TEMPORAL_*, temporal.toml).
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command in `arguments` and return its exit code; a wrong call is answered with one line on stderr."""
    from activities.toolbox.redaction import redact
    from workers.roles import ROLES, UnknownRole
    from workers.settings import WrongSetting

    takes_more = arguments[:1] == ["gc"] or (arguments[:1] == ["check"] and len(arguments) == 2)
    if (len(arguments) != 1 and not takes_more) or arguments[0].startswith("-"):
        help_wanted = list(arguments) in (["-h"], ["--help"])
        (sys.stdout if help_wanted else sys.stderr).write(USAGE.format(roles=", ".join(ROLES)))
        return 0 if help_wanted else 2
    try:
        if arguments[0] == "gc":
            from workers.garbage import main as collect_garbage

            return collect_garbage(arguments[1:])
        if takes_more:
            return check_types(arguments[1])
        return catalogue() if arguments[0] == "catalogue" else serve(arguments[0])
    except (UnknownRole, WrongSetting) as problem:
        sys.stderr.write(redact(f"sennit worker: {problem}\n"))
        return 2


def catalogue() -> int:
    """Write one JSON object to stdout: the tools of a worker with these settings, the roles, the models and prices."""
    from activities.providers.prices import price_list
    from activities.providers.settings import PROVIDERS
    from workers.roles import ROLES
    from workers.settings import read_settings
    from workers.wiring import load_registry

    with contextlib.redirect_stdout(sys.stderr):
        settings = read_settings()
        tools = load_registry(settings).catalogue()
    prices = price_list(settings.models)
    json.dump({"tools": tools, "roles": list(ROLES), "models": list(PROVIDERS), "prices": prices}, sys.stdout)
    sys.stdout.write("\n")
    return 0


def check_types(path: str) -> int:
    """Write a JSON list to stdout: each problem of the types of a program, with its line."""
    from activities.programs.interpreter import Interpreter
    from workers.settings import read_settings
    from workers.wiring import load_registry
    from workflows.plan.programs.stubs import stubs_of

    with contextlib.redirect_stdout(sys.stderr):
        stubs = stubs_of(load_registry(read_settings()).catalogue())
        script = Path(path).read_text()

    async def found() -> list[dict[str, object]]:
        async with Interpreter() as interpreter:
            problems = await interpreter.type_problems(script, stubs)
        return [{"line": problem.where[-1], "message": problem.message} for problem in problems]

    json.dump(asyncio.run(found()), sys.stdout)
    sys.stdout.write("\n")
    return 0


def serve(name: str) -> int:
    """Serve the role called `name` until a signal says to stop."""
    started = time.monotonic()
    from workers.roles import role_named
    from workers.settings import read_settings

    role, settings = role_named(name), read_settings()
    from activities.toolbox.loop import SteadyLoop
    from workers.connection import server_address
    from workers.process import WorkerProcess, build_of, log
    from workers.server_check import with_store
    from workers.shutdown import leave
    from workers.telemetry import start_log, start_runtime
    from workers.wiring import load_work

    start_log(settings.log, settings.log_level)
    sys.excepthook = lambda *error: log.critical("crashed", exc_info=error)
    address = server_address()
    identity = f"{role.name}@{socket.gethostname()}:{os.getpid()} {build_of(settings)}"
    work = load_work(role, settings, identity)
    identity = with_store(identity, work.store)
    role = role if work.activities.get("sandbox") else role.without("sandbox")
    start_runtime(settings.metrics)
    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        try:
            return runner.run(WorkerProcess(role, settings, work, identity, address, started).run())
        except (KeyboardInterrupt, SystemExit) as error:  # its tasks are still there, and would be waited for
            log.critical("the event loop has ended", exc_info=error)
            leave(1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = main(sys.argv[1:])
    from workers.shutdown import leave

    leave(status)
