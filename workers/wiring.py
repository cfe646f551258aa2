"""Loads what a role serves, and nothing that it does not need; notes the user's modules that this
has imported, for those who ask whether one has changed since.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sennit.workers.roles import ROLES, QueueKind, Role
from sennit.workers.settings import WorkerSettings, WrongSetting, store_setting
from sennit.workflows.messages import queues

if TYPE_CHECKING:
    from temporalio.worker import Interceptor

    from sennit.activities.storage.artifacts import ArtifactStore
    from sennit.activities.toolbox import Registry, Tool
    from sennit.activities.toolbox.approval_rules import ApprovalRules
    from sennit.activities.toolbox.threads import ToolThreads

_noted: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class RoleWork:
    """Workflows, and activities by kind. Without activities there are no artifact `store` and no
    `threads` of tools. `note` says what this machine lacks that work can do without. `warm_up` is
    called in a thread once the worker polls.
    """

    workflows: Sequence[type] = ()
    activities: Mapping[QueueKind, Sequence[Callable[..., Any]]] = field(default_factory=dict)
    store: "ArtifactStore | None" = None
    threads: "ToolThreads | None" = None
    note: str = ""
    warm_up: Callable[[], None] | None = None
    interceptors: Sequence["Interceptor"] = ()


def load_work(role: Role, settings: WorkerSettings, identity: str) -> RoleWork:
    """Import and build what `role` serves: a workflow worker loads no tools, a
    tool worker no workflow.

    Raises WrongSetting for tools that cannot be offered, for an index that cannot be written, for
    variables that no bucket can have, for the role `llm` without a key that its models need, for
    the role `sandbox` where no sandbox works, and for a kernel that cannot confine programs under
    SENNIT_SANDBOX=strict. Another role goes without its sandbox queue then. Whether the store is
    there is not looked at.
    """
    workflows: tuple[type, ...] = ()
    if role.serves("workflows"):
        workflows = _workflows()
    if not role.serves("tools", "llm", "sandbox"):
        return RoleWork(workflows)
    from sennit.activities.definitions import Activities, WorkerPaths
    from sennit.activities.llm.metrics import CallMeter
    from sennit.activities.llm.models import Models
    from sennit.activities.runs.budgets import BudgetRule
    from sennit.activities.runs.quota import QuotaRule
    from sennit.activities.toolbox.threads import tool_threads

    paths = WorkerPaths(
        artifacts=settings.artifacts,
        index=settings.index,
        docs=settings.docs,
        docs_roots=settings.docs_roots,
        grants=settings.grants,
    )
    if role.name == "llm":
        _check_keys(settings)
    registry = load_registry(
        settings, role, lambda reason: _log().warning("tools are not offered", reason=reason)
    )
    try:
        models = Models.of(settings.models, CallMeter())
        with store_setting(settings.artifacts):
            budgets = BudgetRule(settings.budget_default, settings.budget_max)
            host = Activities(
                paths,
                registry,
                models,
                identity=identity,
                approval=settings.approval or "writes",
                rules=load_rules(settings, registry, role),
                budgets=budgets,
                quota=QuotaRule(settings.quota),
                slots=settings.slots,
                learn=settings.learn,
                plan_hints=settings.plan_hints == "on",
                speculate=settings.speculate,
            )
    except OSError as problem:
        cause = f"{problem.strerror}: {problem.filename}"
        raise WrongSetting(f"SENNIT_INDEX='{settings.index}' cannot be used: {cause}") from None
    sandboxed = [f"{tool.name} {tool.hint}" for tool in registry if tool.queue == queues.SANDBOX]
    if sandboxed:
        _log().info("sandbox", tools=sandboxed)
    activities: dict[QueueKind, Sequence[Callable[..., Any]]] = {
        "tools": host.tools(),
        "llm": host.llm(),
        "sandbox": host.sandbox() if sandboxed else (),
    }
    note = confinement_note(settings) if role.serves("tools", "llm") else ""
    # Only tools and models need what is loaded here: a worker that runs workflows
    # alone starts without it.
    warm_up: Callable[[], None] | None = None
    if role.serves("tools"):
        warm_up = host.warm_up
    elif role.serves("llm"):
        warm_up = host.load_prices
    return RoleWork(workflows, activities, host.store, tool_threads, note, warm_up)


def confinement_note(settings: WorkerSettings) -> str:
    """Return what programs and calculations go without on this machine, or nothing. Raises
    WrongSetting if the setting does not allow that.
    """
    from sennit.activities.sandbox.confinement import find_confinement

    missing = find_confinement().missing
    if missing and settings.sandbox == "strict":
        raise WrongSetting(
            f"SENNIT_SANDBOX='strict': {missing}; use a kernel that has it, or another setting"
        )
    return missing


def _log() -> Any:
    import structlog  # with all that it loads, which what only lists tools does without

    return structlog.stdlib.get_logger("workers")


def _workflows() -> tuple[type, ...]:
    from sennit.workflows.agent_run import AgentRun
    from sennit.workflows.dry_run import DryRun
    from sennit.workflows.look_up import LookUp
    from sennit.workflows.note_run import NoteRun
    from sennit.workflows.read_outputs import ReadOutputs
    from sennit.workflows.run_quota import RunQuota
    from sennit.workflows.run_stream import RunStream

    return AgentRun, DryRun, LookUp, NoteRun, ReadOutputs, RunQuota, RunStream


def _check_keys(settings: WorkerSettings) -> None:
    """A worker of this role without its key would take calls from those that
    have it, and fail them.
    """
    for model, variable in settings.models.keyless().items():
        raise WrongSetting(
            f"SENNIT_MODEL names {model} and {variable} is not set; in Kubernetes it is in a Secret"
        )


def load_registry(
    settings: WorkerSettings,
    role: Role = ROLES["all"],
    on_missing: Callable[[str], None] = lambda _: None,
) -> "Registry":
    """Return the tools that these settings name, as far as `role` needs them. Raises WrongSetting.

    `on_missing` is called with the reason when the tools that need a sandbox are not offered.
    """
    from sennit.activities.toolbox import ToolSetupError, load_tools

    left_out: dict[str, str] = {}
    offered = (
        _sandbox_tools(role, settings, on_missing, left_out)
        if role.serves("tools", "sandbox")
        else []
    )
    if role.serves("tools"):
        offered += _configured_tools(settings, left_out)
    for folder in settings.tools_path:
        if not folder.is_dir():
            raise WrongSetting(f"SENNIT_TOOLS_PATH: there is no folder {folder}")
    try:
        registry = load_tools(settings.tools, settings.tools_path, offered)
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_TOOLS: {problem}") from None
    registry.leave_out(left_out)
    if settings.a2a and role.serves("tools"):
        _offer_agents(settings.a2a, registry)
    if settings.mcp and role.serves("tools"):
        _offer_mcp_tools(settings.mcp, settings.logins, registry)
    return registry


def load_rules(
    settings: WorkerSettings, registry: "Registry", role: Role = ROLES["all"]
) -> "ApprovalRules":
    """Return what the operator has decided about writes. Raises WrongSetting for a rule that
    could not do its work.
    """
    from sennit.activities.toolbox import ToolSetupError
    from sennit.activities.toolbox.approval_rules import ApprovalRules, read_rules

    if settings.approval_rules is None or not role.serves("tools", "sandbox"):
        return ApprovalRules()
    knows_all, always_asks = role.serves("tools"), settings.approval == "writes"
    try:
        return read_rules(
            settings.approval_rules, registry, knows_all=knows_all, always_asks=always_asks
        )
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_APPROVAL_RULES: {problem}") from None


def _sandbox_tools(
    role: Role,
    settings: WorkerSettings,
    on_missing: Callable[[str], None],
    left_out: dict[str, str],
) -> "list[Tool]":
    from sennit.activities.sandbox.runner import NoSandbox, find_sandbox
    from sennit.activities.sandbox.tools import code_tools

    try:
        return code_tools(find_sandbox(settings.sandbox, Path(tempfile.gettempdir())))
    except NoSandbox as problem:
        if role.name == "sandbox":
            raise WrongSetting(
                f"SENNIT_SANDBOX={settings.sandbox!r}: no sandbox works here: {problem}"
            ) from None
        on_missing(f"python, shell, diff and apply: no sandbox works here: {problem}")
        left_out |= dict.fromkeys(
            ("python", "shell", "diff", "apply"), f"no sandbox works here: {problem}"
        )
        return []


def _configured_tools(settings: WorkerSettings, left_out: dict[str, str]) -> "list[Tool]":
    """Return the tools of the settings that name a folder or a file, and add
    why others are left out.
    """
    from sennit.activities.toolbox import ToolSetupError
    from sennit.activities.toolbox.files.write import write_tools
    from sennit.activities.toolbox.http.declarations import http_tools

    found: list[Tool] = []
    variable = ""
    try:
        if settings.write_root:
            variable = "SENNIT_WRITE_ROOT"
            found += write_tools(settings.write_root)
        else:
            left_out["write"] = "SENNIT_WRITE_ROOT names no folder below which it may write"
        if settings.http_tools:
            variable = "SENNIT_HTTP_TOOLS"
            declared, without = http_tools(settings.http_tools, os.environ)
            found += declared
            left_out |= without
            for name, reason in without.items():
                _log().warning("a tool is left out", tool=name, reason=reason)
    except ToolSetupError as problem:
        raise WrongSetting(f"{variable}: {problem}") from None
    return found


def _offer_mcp_tools(path: Path, logins: Path, registry: "Registry") -> None:
    from sennit.activities.toolbox import ToolSetupError

    try:
        from sennit.activities.toolbox.mcp.tools import McpServers

        McpServers(path, os.environ, logins).offer(registry)
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_MCP: {problem}") from None
    except ModuleNotFoundError as missing:
        raise WrongSetting(
            f"SENNIT_MCP='{path}': needs sennit[mcp]; {missing.name} is not installed"
        ) from None


def _offer_agents(place: Path | str, registry: "Registry") -> None:
    from sennit.activities.toolbox import ToolSetupError

    try:
        from sennit.activities.toolbox.a2a.tools import a2a_tools

        for tool in a2a_tools(place, os.environ):
            if tool.name in registry:
                raise ToolSetupError(
                    f"{tool.name}: another tool has this name; give the agent another one"
                )
            registry.add(tool)
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_A2A: {problem}") from None
    except ModuleNotFoundError as missing:
        raise WrongSetting(
            f"SENNIT_A2A='{place}': needs sennit[a2a]; {missing.name} is not installed"
        ) from None


def note_imported(note: Path, tools: Sequence[str], folders: Sequence[Path]) -> None:
    """Write a digest of each file of a module that belongs to a package of `tools` or lies
    below one of `folders`.

    A file keeps the digest that it had when it was first noted. The note is replaced at once, and
    only its owner can read it.
    """
    found = {file: _digest(Path(file)) for file in _files(tools, folders) if file not in _noted}
    if _noted and not found:
        return
    _noted.update(found)
    part = note.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):
        with open(part, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as written:
            json.dump(_noted, written, indent=2)
        part.replace(note)


def _files(tools: Sequence[str], folders: Sequence[Path]) -> Iterator[str]:
    tops = {name.partition(".")[0] for name in tools}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and (name.partition(".")[0] in tops or _is_below(Path(file), folders)):
            yield file


def _is_below(file: Path, folders: Sequence[Path]) -> bool:
    """Whether a folder holds a file otherwise than by an environment of Python in it."""
    return any(file.is_relative_to(each) for each in folders) and not file.is_relative_to(
        sys.prefix
    )


def _digest(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:  # it was removed meanwhile, which is a change
        return ""
