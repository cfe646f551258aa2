"""The script of a program with what each of its lines has called, as a line profiler shows it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sennit.workflows.messages.contracts import NodeReply
from sennit.workflows.messages.result import UsageReport
from sennit.workflows.messages.views import ScriptLine, ScriptView
from sennit.workflows.plan.compile.execution_plan import NodeSpec
from sennit.workflows.plan.language.limits import NO_USAGE, Usage
from sennit.workflows.plan.language.text import format_name, format_names, one_line
from sennit.workflows.plan.programs.files import in_call_site, line_in_file, modules_in, shown_text
from sennit.workflows.plan.scheduling.programs import PROGRAM_FAILED, is_left_behind
from sennit.workflows.plan.scheduling.state import RunState
from sennit.workflows.plan.scheduling.termination import handled
from sennit.workflows.plan.scheduling.unit import FAILED
from sennit.workflows.views.call_sites import path_and_line
from sennit.workflows.views.nodes import status_of


@dataclass(slots=True)
class _Sums:
    calls: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    taken_over: int = 0
    error: str = ""
    millis: int = 0
    usage: Usage = NO_USAGE


def script_view(state: RunState, replies: Mapping[int, NodeReply], name: str) -> ScriptView | str:
    """Return a program with the calls that its script, as it is now, has made so far; or why
    there is none to show.

    Without a `name` it is the only program of the run.
    """
    graph = state.graph
    programs: dict[str, int] = {}
    for node, spec in enumerate(graph.specs):
        if spec.is_program:
            programs[spec.id] = node
    if not programs:
        return "the run has no program; its nodes come from a plan"
    if not name and len(programs) > 1:
        return f"the run has several programs: {format_names(list(programs))}; name one"
    program = programs.get(name or next(iter(programs)))
    if program is None:
        return (
            f"{format_name(name)} is not a program; the programs are {format_names(list(programs))}"
        )
    spec = graph.specs[program]
    if not spec.script:
        return f"the script of {format_name(spec.id)} is too long to be shown"
    lines = _lines(state, replies, program)
    for line, error in _script_errors(state, program, spec.script):
        lines.setdefault(line, _Sums()).error = error
    shown = [_line(line, lines[line]) for line in sorted(lines)]
    return ScriptView(node=spec.id, script=shown_text(spec.script), lines=tuple(shown))


def _lines(state: RunState, replies: Mapping[int, NodeReply], program: int) -> dict[int, _Sums]:
    lines: dict[int, _Sums] = {}
    caught = handled(state)
    for node, line in _calls(state, program):
        spec = state.graph.specs[node]
        status = status_of(state, node, caught)
        sums = lines.setdefault(line, _Sums())
        if node in replies:
            sums.usage = sums.usage.plus(replies[node].usage)
        if spec.kind == "task":
            sums.tasks[status] += 1
        elif spec.kind != "join" and path_and_line(spec)[0]:
            sums.calls[status] += 1
            sums.millis += state.units[node].millis
            if node in state.taken_over:
                sums.taken_over += 1
    return lines


def _script_errors(state: RunState, program: int, script: str) -> Iterator[tuple[int, str]]:
    """Yield the line on which the script itself has failed, with the error. The error ends with its
    line and the text of that, which may be cut.
    """
    kind, error = state.notes.get(program, ("", ""))
    if state.units[program].status != FAILED or kind != PROGRAM_FAILED:
        return
    for number, row in enumerate(script.splitlines(), 1):
        place = line_in_file(script, number)
        message, is_there, rest = error.rpartition(f" ({place}: ")
        beginning = rest.removesuffix(")").rstrip("…")
        if is_there and one_line(row.strip()).startswith(beginning):
            yield number, message
            return


def _line_of(spec: NodeSpec, module_starts: Mapping[str, int]) -> int:
    """Return the line of a call in the script; `module_starts` are the lines before the modules."""
    path, line = path_and_line(spec)
    module = ""
    if path.endswith(".py"):
        module = path.rpartition(":")[2]
    return line + module_starts.get(module, 0)


def _calls(state: RunState, program: int) -> Iterator[tuple[int, int]]:
    """Yield the calls that a program has made, in its tasks too, each with its line; not
    those that an earlier script has made and this one has not. The turns of a model call and
    what it calls have its line.
    """
    graph = state.graph
    module_starts: dict[str, int] = {}
    for start, path in modules_in(graph.specs[program].script):
        module_starts[in_call_site(path)] = start
    pending = [(program, 0)]
    while pending:
        node, line = pending.pop()
        for made in graph.made_by(node):
            if is_left_behind(state, made):
                continue
            line_of_call = _line_of(graph.specs[made], module_starts) or line
            yield made, line_of_call
            pending.append((made, line_of_call))


def _line(line: int, sums: _Sums) -> ScriptLine:
    return ScriptLine(
        line=line,
        calls=dict(sorted(sums.calls.items())),
        tasks=dict(sorted(sums.tasks.items())),
        taken_over=sums.taken_over,
        duration_ms=sums.millis,
        usage=UsageReport.of(sums.usage),
        error=sums.error,
    )
