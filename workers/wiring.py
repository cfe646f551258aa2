"""Loads what a role serves, and nothing that it does not need."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from workers.roles import ROLES, QueueKind, Role
from workers.settings import WorkerSettings, WrongSetting
from workflows.messages import queues

if TYPE_CHECKING:
    from activities.toolbox import Registry, Tool
    from activities.toolbox.threads import ToolThreads

log = structlog.stdlib.get_logger("workers")


@dataclass(frozen=True, slots=True)
class RoleWork:
    """Workflows, and activities by kind. Without activities there are no `store`, the id of the artifact store, and no
    `threads` of tools.
    """

    workflows: Sequence[type] = ()
    activities: Mapping[QueueKind, Sequence[Callable[..., Any]]] = field(default_factory=dict)
    store: str | None = None
    threads: "ToolThreads | None" = None


def load_work(role: Role, settings: WorkerSettings, identity: str) -> RoleWork:
    """Import and build what `role` serves: a workflow worker loads no tools, a tool worker no workflow.

    Raises WrongSetting for tools that cannot be offered, for a folder or bucket that cannot be written, for the role
    `llm` without a key that its models need, and for the role `sandbox` where no sandbox works. Another role goes
    without its sandbox queue then.
    """
    workflows: tuple[type, ...] = ()
    if role.serves("workflows"):
        from workflows.agent_run import AgentRun

        workflows = (AgentRun,)
    if not role.serves("tools", "llm", "sandbox"):
        return RoleWork(workflows)
    from activities.definitions import Activities, WorkerPaths
    from activities.llm.metrics import CallMeter
    from activities.llm.models import Models
    from activities.storage.artifacts import StoreUnavailable
    from activities.toolbox.threads import tool_threads

    paths = WorkerPaths(
        artifacts=settings.artifacts,
        index=settings.index,
        docs=settings.docs,
        docs_roots=settings.docs_roots,
        grants=settings.grants,
    )
    if role.name == "llm":
        _check_keys(settings)
    registry = load_registry(settings, role, lambda reason: log.warning("tools are not offered", reason=reason))
    try:
        models = Models.of(settings.models, CallMeter())
        host = Activities(paths, registry, models, identity=identity, approval=settings.approval, slots=settings.slots)
    except OSError as problem:
        where = f"SENNIT_ARTIFACTS='{settings.artifacts}' or SENNIT_INDEX='{settings.index}'"
        raise WrongSetting(f"{where} cannot be used: {problem.strerror}: {problem.filename}") from None
    except StoreUnavailable as problem:
        raise WrongSetting(f"SENNIT_ARTIFACTS='{settings.artifacts}': {problem}") from None
    sandboxed = [f"{tool.name} {tool.hint}" for tool in registry if tool.queue == queues.SANDBOX]
    if sandboxed:
        log.info("sandbox", tools=sandboxed)
    activities: dict[QueueKind, Sequence[Callable[..., Any]]] = {
        "tools": host.tools(),
        "llm": host.llm(),
        "sandbox": host.sandbox() if sandboxed else (),
    }
    return RoleWork(workflows, activities, host.store_id, tool_threads)


def _check_keys(settings: WorkerSettings) -> None:
    """A worker of this role without its key would take calls from those that have it, and fail them."""
    for model, variable in settings.models.keyless().items():
        raise WrongSetting(f"SENNIT_MODEL names {model} and {variable} is not set; in Kubernetes it is in a Secret")


def load_registry(
    settings: WorkerSettings, role: Role = ROLES["all"], on_missing: Callable[[str], None] = lambda _: None
) -> "Registry":
    """Return the tools that these settings name, as far as `role` needs them. Raises WrongSetting.

    `on_missing` is called with the reason when the tools that need a sandbox are not offered.
    """
    from activities.toolbox import ToolSetupError, load_tools

    offered = _sandbox_tools(role, settings, on_missing) if role.serves("tools", "sandbox") else []
    if role.serves("tools"):
        offered += _configured_tools(settings)
    for folder in settings.tools_path:
        if not folder.is_dir():
            raise WrongSetting(f"SENNIT_TOOLS_PATH: there is no folder {folder}")
    try:
        return load_tools(settings.tools, settings.tools_path, offered)
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_TOOLS: {problem}") from None


def _sandbox_tools(role: Role, settings: WorkerSettings, on_missing: Callable[[str], None]) -> "list[Tool]":
    from activities.sandbox.runner import NoSandbox, find_sandbox
    from activities.sandbox.tools import code_tools

    try:
        return code_tools(find_sandbox(settings.sandbox, Path(tempfile.gettempdir())))
    except NoSandbox as problem:
        if role.name == "sandbox":
            raise WrongSetting(f"SENNIT_SANDBOX={settings.sandbox!r}: no sandbox works here: {problem}") from None
        on_missing(f"python and shell: no sandbox works here: {problem}")
        return []


def _configured_tools(settings: WorkerSettings) -> "list[Tool]":
    """Return the tools of the settings that name a folder or a file."""
    from activities.toolbox import ToolSetupError
    from activities.toolbox.files.write import write_tools
    from activities.toolbox.http.endpoints import http_tools

    found: list[Tool] = []
    variable = ""
    try:
        if settings.write_root:
            variable = "SENNIT_WRITE_ROOT"
            found += write_tools(settings.write_root)
        if settings.http_tools:
            variable = "SENNIT_HTTP_TOOLS"
            found += http_tools(settings.http_tools, os.environ)
        if settings.mcp:
            variable = "SENNIT_MCP"
            from activities.toolbox.mcp.tools import mcp_tools

            found += mcp_tools(settings.mcp, os.environ)
    except ToolSetupError as problem:
        raise WrongSetting(f"{variable}: {problem}") from None
    except ModuleNotFoundError as missing:
        raise WrongSetting(f"SENNIT_MCP='{settings.mcp}': needs sennit[mcp]; {missing.name} is not installed") from None
    return found
