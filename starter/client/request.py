"""What a client sends to start a run: its id, its title, and its input, checked
before anything is sent.
"""

import json
import os
import re
import secrets
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, TypedDict

from sennit.folders import ScriptFolders, program_in
from sennit.starter.client.errors import InvalidRequest
from sennit.starter.limits import (
    MAX_GOAL_SUMMARY_CHARACTERS,
    MAX_ID_BYTES,
    MAX_INPUTS_BYTES,
    MAX_SLUG_CHARACTERS,
)
from sennit.workflows.limits import MAX_PLAIN_PLAN_BYTES
from sennit.workflows.messages import request as messages
from sennit.workflows.messages.quota import QUOTA_ID
from sennit.workflows.messages.request import parse_request
from sennit.workflows.plan.bundles.bundle import BadBundle, bundled
from sennit.workflows.plan.language.nodes import ApprovalPolicy, Fuse, OnFailure
from sennit.workflows.plan.language.packing import pack_plan
from sennit.workflows.plan.language.summary import clipped
from sennit.workflows.plan.language.text import format_names, one_line, text_bytes
from sennit.workflows.plan.programs.program_plan import in_file, script_problems

REQUEST = "request"
"""The memo of a run: a digest of each field of its request."""
_OF_THE_CLIENT = ("title", "grant")
_MARKUP = re.compile(r"[<\[]|^[#>]")


class RunOptions(TypedDict, total=False):
    """How a run is done. None means the default. `budget` has the fields of Limits; queues serve
    `tenant`s in turn; `model` serves every role; `settings` has the fields of CallSettings, for
    every model call; `instructions` are told to all models; with `approve_plan` a person approves
    the plan before any of it starts; with `trust_program` its programs also run where the kernel
    cannot confine them, on a local stack.
    """

    inputs: dict[str, Any] | None
    tools: Sequence[str] | None
    model: str | None
    settings: dict[str, Any] | None
    instructions: str | None
    approval: ApprovalPolicy | None
    approve_plan: bool | None
    trust_program: bool | None
    on_failure: OnFailure | None
    window: int | None
    in_flight: int | None
    fuse: Fuse | None
    speculate: Literal["off", "on"] | None
    budget: dict[str, Any] | None
    max_replans: int | None
    tenant: str | None


class ForkOptions(RunOptions, total=False):
    """What a fork takes. None means as it was in the run that is forked."""

    docs: str | None
    id: str | None
    again: bool
    title: str


class StartOptions(ForkOptions, total=False):
    """What `Sennit.start` takes, beside the type of the result. `continues` is the id of a run
    whose conversation goes on; `history` are turns `{role, content}` of a conversation that no run
    has kept. `attachments` are files with images, PDFs or recordings, as the workers see them: of a
    plan by the names of its inputs, of a goal by any names. `agents_above` is how many agents have
    asked each other before. `caller` says whose agent asks for the run, if its program serves
    several: see `Sennit.look_up`.
    """

    continues: str | None
    history: Sequence[dict[str, Any]] | None
    attachments: Mapping[str, str | Path] | None
    agents_above: int
    caller: str
    goal: str
    plan: dict[str, Any] | None
    program: str | Path


def build_request(**fields: Any) -> dict[str, Any]:
    """Return the run's input from the fields of RunRequest that are set; a big plan is packed.

    Raises InvalidRequest for any form that the run would refuse.
    """
    request = {name: value for name, value in fields.items() if value not in (None, "", {}, [])}
    try:
        size = _size(request.get("inputs", {}))
        if size > MAX_INPUTS_BYTES:
            raise InvalidRequest(
                f"the inputs are {size:,} bytes; at most {MAX_INPUTS_BYTES:,}. Put long text in a "
                "document"
            )
        plan = request.get("plan")
        if plan is not None and _size(plan) > MAX_PLAIN_PLAN_BYTES:
            request["plan_packed"] = pack_plan(request.pop("plan"))
        return parse_request(request).model_dump(mode="json", exclude_unset=True)
    except (messages.InvalidRequest, ValueError) as error:
        raise InvalidRequest(str(error)) from None


def with_memo(
    request: dict[str, Any], title: str, plan: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a run's input with its title, unless it has a goal, and the memo of the run."""
    if title and not request.get("goal"):
        request = {**request, "title": title}
    memo: dict[str, Any] = {
        "sennit": version("sennit"),
        "title": title,
        REQUEST: request_digests(request),
    }
    nodes = (plan or {}).get("nodes")
    if isinstance(nodes, list):  # a packed plan cannot be read in the web UI
        memo |= {"nodes": len(nodes)}
    return request, memo


def request_digests(request: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each field of a request, by which a later one is known to ask for the
    same. What the client adds by itself does not count.
    """
    digests = {}
    for name, value in sorted(request.items()):
        if name not in _OF_THE_CLIENT:
            text = json.dumps(value, sort_keys=True)
            digests[name] = sha256(text.encode()).hexdigest()[:16]
    return digests


def check_same(name: str, title: str, request: Mapping[str, Any], memo: Mapping[str, Any]) -> None:
    """Raise InvalidRequest if the run of that id, which has this memo, was started by another
    request. Nothing is known of a run whose memo does not say it, such as one that was
    started by another client.
    """
    known = memo.get(REQUEST)
    if not isinstance(known, dict):
        return
    wanted = request_digests(request)
    fields = sorted({**known, **wanted})
    differing = [field for field in fields if known.get(field) != wanted.get(field)]
    if differing:
        known_title = str(memo.get("title") or name)
        ways = "choose another --id, or once that run is over start it anew with --again"
        raise InvalidRequest(
            f"the id {name} belongs to the run {known_title[:200]!r}, and this asks for "
            f"{title[:200]!r} (they differ in {format_names(differing)}); {ways}"
        )


def script_of(program: str | Path) -> str:
    """Return a program's script with the modules that it imports: those beside it, if it is a
    Path, and those of the library and of SENNIT_PROGRAMS. Raises InvalidRequest with every
    problem of the script.
    """
    try:
        if isinstance(program, Path):
            program = Path(program_in(str(program)))
            folders = ScriptFolders(program.parent)
            script = bundled(program.read_bytes().decode("utf-8-sig"), folders, str(program)).script
        else:
            script = bundled(program, ScriptFolders()).script
    except (BadBundle, OSError, UnicodeError) as error:
        raise InvalidRequest(str(error)) from None
    problems = [str(in_file(problem, script)) for problem in script_problems(script, None)]
    if problems:
        raise InvalidRequest("\n".join(problems))
    return script


def with_modules(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan whose programs have their modules with them. Raises InvalidRequest."""
    nodes = plan.get("nodes")
    if not isinstance(nodes, list):
        return plan
    try:
        return {**plan, "nodes": [_with_modules(node) for node in nodes]}
    except (BadBundle, OSError, UnicodeError) as error:
        raise InvalidRequest(str(error)) from None


def _with_modules(node: Any) -> Any:
    script = None
    if isinstance(node, dict) and node.get("kind") == "program":
        script = node.get("script")
    if not isinstance(script, str):
        return node
    return {**node, "script": bundled(script, ScriptFolders()).script}


def _size(value: Any) -> int:
    try:
        body = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except (UnicodeEncodeError, TypeError) as error:
        raise ValueError(f"plan and inputs must be JSON in UTF-8: {error}") from None
    return len(body)


def checked_goal(goal: str) -> str:
    """Return the goal; raises InvalidRequest if a run would refuse it."""
    if not goal.strip():
        raise InvalidRequest(
            "the goal is empty; say what you want to know, or `-` to read it from standard input"
        )
    build_request(goal=goal)
    return goal


def docs_folder(docs: str, *, must_exist: bool) -> str:
    """Return the folder as an absolute path; raises InvalidRequest if it must exist on
    this machine and does not.
    """
    path = _absolute(docs)
    if must_exist and not path.is_dir():
        problem = "is not a folder" if path.exists() else "there is no such folder"
        raise InvalidRequest(f"--docs {docs}: {problem}")
    return str(path)


def attached_files(files: Mapping[str, str | Path], *, must_exist: bool) -> dict[str, str]:
    """Return attached files and folders by absolute paths; raises InvalidRequest for one that must
    exist on this machine and does not.
    """
    attached: dict[str, str] = {}
    for name, file in files.items():
        path = _absolute(file)
        if must_exist and not (path.is_file() or path.is_dir()):
            problem = "there is no such file"
            if path.exists():
                problem = "is neither a file nor a folder"
            raise InvalidRequest(f"--attach {file}: {problem}")
        attached[name] = str(path)
    return attached


def _absolute(path: str | Path) -> Path:
    """Return an absolute path, in which a link stays a link: the roots of
    the workers may name it.
    """
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100


def new_id(goal: str) -> str:
    """Return a fresh workflow id, `agent-<slug of the goal>-<8 hex>`."""
    return f"agent-{slug(goal)}-{secrets.token_hex(4)}"


def slug(text: str) -> str:
    """Return at most 40 characters of `text` as words of a-z and 0-9 joined by dashes;
    `run` if none is left.
    """
    plain = unicodedata.normalize("NFKD", text[:1000]).encode("ascii", "ignore").decode().lower()
    kept = ""
    for word in re.findall(r"[a-z0-9]+", plain):
        longer = word[:MAX_SLUG_CHARACTERS]
        if kept:
            longer = f"{kept}-{word}"
        if len(longer) > MAX_SLUG_CHARACTERS:
            break
        kept = longer
    return kept or "run"


def checked_id(chosen: str) -> str:
    """Return an id that a person chose; raises InvalidRequest if Temporal or a
    terminal could not take it.
    """
    if not chosen or text_bytes(chosen) > MAX_ID_BYTES or not chosen.isprintable():
        raise InvalidRequest(
            f"a run's id is 1 to {MAX_ID_BYTES} bytes of printable text, not {chosen[:40]!r}"
        )
    return chosen


def checked_new_id(chosen: str) -> str:
    """Return the id that a person chose for a new run.

    Raises InvalidRequest if a sub-agent might end what has that id, or if the quota of the
    namespace has it: while a run had that, no run could ask for its place.
    """
    if chosen == QUOTA_ID:
        raise InvalidRequest(
            f"{QUOTA_ID} is the id of the quota of the namespace; choose another one for a run"
        )
    if "." in chosen:
        raise InvalidRequest(
            "a run's id has no dot, because RUN.NODE is the sub-agent of a node: not "
            f"{chosen[:40]!r}"
        )
    return checked_id(chosen)


def summary(goal: str) -> str:
    """Return the goal as one line of at most 200 characters."""
    return clipped(one_line(goal), MAX_GOAL_SUMMARY_CHARACTERS)


def markdown_summary(goal: str) -> str:
    """Return the summary for the web UI, which renders it as Markdown: HTML, pictures and
    links in it stay text.
    """
    return clipped(_MARKUP.sub(r"\\\g<0>", one_line(goal)), MAX_GOAL_SUMMARY_CHARACTERS)


def current_trace() -> str:
    """Return the W3C `traceparent` of the caller: that of its current OpenTelemetry span, else what
    TRACEPARENT says, empty without.

    Where nobody has imported OpenTelemetry there is no current span.
    """
    trace = sys.modules.get("opentelemetry.trace")
    found = None
    if trace is not None:
        found = trace.get_current_span().get_span_context()
    if found is None or not found.is_valid:
        return os.environ.get("TRACEPARENT", "")
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
