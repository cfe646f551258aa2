"""`python -m sennit.workers ROLE` serves the queues of a role. With `catalogue` in its place it
lists tools, roles and models, with `check FILE` it checks the types of a program, with `try NAME`
it calls a tool once, with `gc` it deletes artifacts that no run can need, with `learn` it tells
what earlier runs teach, and with `store` it creates the artifact store.

Exit codes: 0 drained, 1 a worker failed or too many threads are lost, 2 wrong role, setting or
tool module. Without an artifact store or a Temporal server that can be used, a worker waits, and
/readyz says for what.
"""

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

ALLOCATIONS = 10_000
"""New objects after which Python looks for garbage. Of its default, 700, a large plan makes
as many for ten nodes.
"""
OTHERS = {
    "gc": ("garbage", "main"),
    "learn": ("learning", "main"),
    "try": ("trial", "main"),
    "login": ("login", "main"),
    "token": ("login", "print_headers"),
}
"""Commands with arguments of their own: the module and the function that take them. A
worker needs none of them.
"""
USAGE = """\
usage: python -m sennit.workers ROLE        serve a role: {roles}
       python -m sennit.workers catalogue   print all tools, roles and models as JSON
       python -m sennit.workers check FILE  print what the types of a program do not allow as JSON
       python -m sennit.workers try NAME    call a tool once, with --arg NAME=VALUE; print what came of it as JSON
       python -m sennit.workers login NAME  log in at an MCP server, in a browser
       python -m sennit.workers token NAME URL   print the headers of that login as JSON
       python -m sennit.workers gc          delete what is stored of runs that the server no longer knows
       python -m sennit.workers learn       show what earlier runs teach, or forget or export it
       python -m sennit.workers store       create the artifact store, if it is not there; print as JSON which
Settings are SENNIT_* variables; the connection is that of the temporal command (TEMPORAL_*, temporal.toml).
"""  # noqa: E501


def main(arguments: Sequence[str]) -> int:
    """Run the command in `arguments` and return its exit code; a wrong call is answered
    with one line on stderr.
    """
    from sennit.activities.toolbox.redaction import redact
    from sennit.workers.roles import ROLES, UnknownRole
    from sennit.workers.settings import WrongSetting

    is_check = arguments[:1] == ["check"] and len(arguments) == 2
    takes_more = is_check or (bool(arguments) and arguments[0] in OTHERS)
    if (len(arguments) != 1 and not takes_more) or arguments[0].startswith("-"):
        usage = USAGE.format(roles=", ".join(ROLES))
        if list(arguments) in (["-h"], ["--help"]):
            sys.stdout.write(usage)
            return 0
        sys.stderr.write(usage)
        return 2
    if takes_more:
        gc.enable()
    try:
        if arguments[0] in OTHERS:
            module, function = OTHERS[arguments[0]]
            status: int = getattr(import_module(f"sennit.workers.{module}"), function)(
                arguments[1:]
            )
            return status
        if is_check:
            return check_types(arguments[1])
        if arguments[0] == "catalogue":
            return catalogue()
        if arguments[0] == "store":
            return create_store()
        return serve(arguments[0])
    except (UnknownRole, WrongSetting) as problem:
        sys.stderr.write(redact(f"sennit worker: {problem}\n"))
        return 2


def catalogue() -> int:
    """Write one JSON object to stdout: the tools of a worker with these settings, why others are
    unavailable or left out, the operator's rules about writes, what programs go without on this
    machine, roles, models and prices.
    """
    from sennit.activities.providers.prices import price_list
    from sennit.workers.roles import ROLES
    from sennit.workers.settings import read_settings
    from sennit.workers.wiring import confinement_note, load_registry, load_rules
    from sennit.workflows.messages.queues import PROVIDERS

    with contextlib.redirect_stdout(sys.stderr):
        settings = read_settings()
        registry = load_registry(settings)
        rules = load_rules(settings, registry)
        note = confinement_note(settings)
    listed = {
        "tools": registry.catalogue(),
        "unavailable": registry.absences,
        "left_out": registry.left_out,
    }
    listed |= {"note": note, "rules": [rule.described() for rule in rules.rules]}
    others = {
        "roles": list(ROLES),
        "models": list(PROVIDERS),
        "prices": price_list(settings.models),
    }
    json.dump({**listed, **others}, sys.stdout)
    sys.stdout.write("\n")
    return 0


def create_store() -> int:
    """Create the artifact store of a worker with these settings, unless it is there, and
    say so in JSON on stdout.

    Nothing else does, no worker and no `gc`: what they find empty may be a volume that is not
    mounted. Raises WrongSetting.
    """
    from sennit.activities.storage.location import open_store
    from sennit.workers.settings import read_settings, store_setting

    place = read_settings().artifacts
    with store_setting(place):
        created = open_store(place).create()
    json.dump({"store": str(place), "created": created}, sys.stdout)
    sys.stdout.write("\n")
    return 0


def check_types(path: str) -> int:
    """Write a JSON list to stdout: each problem of the types of a program, and
    each doubt, with its line.
    """
    from sennit.activities.programs.interpreter import Interpreter
    from sennit.workers.settings import read_settings
    from sennit.workers.wiring import load_registry
    from sennit.workflows.plan.programs.stubs import stubs_of
    from sennit.workflows.plan.programs.syntax import doubts_in

    with contextlib.redirect_stdout(sys.stderr):
        catalogue = load_registry(read_settings()).catalogue()
        stubs = stubs_of(catalogue)
        script = sys.stdin.read() if path == "-" else Path(path).read_text()

    async def found() -> list[dict[str, object]]:
        async with Interpreter() as interpreter:
            problems = await interpreter.type_problems(script, stubs)
        problems += doubts_in(script, {entry["name"]: entry for entry in catalogue})
        ordered = sorted(problems, key=lambda problem: str(problem.where[-1]))
        return [
            {"line": each.where[-1], "message": each.message, "code": each.code} for each in ordered
        ]

    json.dump(asyncio.run(found()), sys.stdout)
    sys.stdout.write("\n")
    return 0


def serve(name: str) -> int:
    """Serve the role called `name` until a signal says to stop."""
    started = time.monotonic()
    from sennit.workers.roles import role_named
    from sennit.workers.settings import read_settings, unread_variables

    role, settings = role_named(name), read_settings()
    from sennit.activities.toolbox.loop import SteadyLoop
    from sennit.workers.connection import server_address
    from sennit.workers.process import WorkerProcess, build_of, log
    from sennit.workers.shutdown import leave
    from sennit.workers.telemetry import start_log, start_runtime, start_traces
    from sennit.workers.wiring import load_work, note_imported

    start_log(settings.log, settings.log_level)
    sys.excepthook = lambda *error: log.critical("crashed", exc_info=error)
    for line in unread_variables():
        log.warning(line)
    address = server_address()
    identity = f"{role.name}@{socket.gethostname()}:{os.getpid()} {build_of(settings)}"
    work = load_work(role, settings, identity)
    if settings.imported:
        note_imported(settings.imported, settings.tools, settings.tools_path)
    role = role if work.activities.get("sandbox") else role.without("sandbox")
    start_runtime(settings.metrics)
    traces = start_traces(settings.trace_contents)
    if traces is not None:
        work = dataclasses.replace(work, interceptors=(traces,))
    gc.freeze()  # what is loaded stays: looking through it again takes longer than a node does
    gc.set_threshold(ALLOCATIONS)
    gc.enable()
    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        try:
            return runner.run(WorkerProcess(role, settings, work, identity, address, started).run())
        except (
            KeyboardInterrupt,
            SystemExit,
        ) as error:  # its tasks are still there, and would be waited for
            log.critical("the event loop has ended", exc_info=error)
            leave(1)
        finally:
            if traces is not None:
                traces.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # what is being loaded is no garbage, and to look for it is an eighth of the start
    if len(sys.argv) == 2 and sys.argv[1] not in (
        "catalogue",
        "store",
    ):  # it serves a role, and tools print what they like
        from sennit.workers.output import redact_output

        redact_output()
    status = main(sys.argv[1:])
    from sennit.workers.shutdown import leave

    leave(status)
