"""What a role's seats serve, loaded only as far as the role needs it."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import structlog

from workers.roles import ROLES, Role
from workers.settings import WorkerSettings, WrongSetting
from workflows.messages import queues

if TYPE_CHECKING:
    from activities.toolbox import Registry, Tool

log = structlog.stdlib.get_logger("workers")


@dataclass(frozen=True, slots=True)
class Work:
    """Workflows and activities by kind of seat. `store` is the id of the artifact store, None without activities."""

    runs: Sequence[type] = ()
    tools: Sequence[Callable[..., Any]] = ()
    llm: Sequence[Callable[..., Any]] = ()
    sandbox: Sequence[Callable[..., Any]] = ()
    store: str | None = None

    def activities(self, kind: Literal["tools", "llm", "sandbox"]) -> Sequence[Callable[..., Any]]:
        """Return what a seat of that kind serves."""
        return {"tools": self.tools, "llm": self.llm, "sandbox": self.sandbox}[kind]


def load_work(role: Role, settings: WorkerSettings, identity: str) -> Work:
    """Import and build what `role` serves: a workflow worker never loads tools, a tool worker no workflow.

    Raises WrongSetting for tools that cannot be offered, a folder that cannot be written, and for the role `sandbox`
    where no sandbox works. Another role with a seat there goes without it.
    """
    runs: tuple[type, ...] = ()
    if role.serves("runs"):
        from workflows.agent_run import AgentRun

        runs = (AgentRun,)
    if not role.serves("tools", "llm", "sandbox"):
        return Work(runs)
    return _with_activities(role, runs, settings, identity)


def load_registry(
    settings: WorkerSettings, role: Role = ROLES["all"], missing: Callable[[str], None] = lambda _: None
) -> "Registry":
    """Return the tools that these settings name, as far as `role` needs them; `missing` is told why some are not
    offered here. Raises WrongSetting.
    """
    from activities.toolbox import ToolSetupError, load_tools

    offered = _code(role, settings, missing) if role.serves("tools", "sandbox") else []
    if role.serves("tools"):
        offered += _declared(settings)
    missing_folder = next((folder for folder in settings.tools_path if not folder.is_dir()), None)
    if missing_folder:
        raise WrongSetting(f"SENNIT_TOOLS_PATH: there is no folder {missing_folder}")
    try:
        return load_tools(settings.tools, settings.tools_path, offered)
    except ToolSetupError as problem:
        raise WrongSetting(f"SENNIT_TOOLS: {problem}") from None


def _code(role: Role, settings: WorkerSettings, missing: Callable[[str], None]) -> "list[Tool]":
    from activities.sandbox.runner import NoSandbox, find_sandbox
    from activities.sandbox.tools import code_tools

    try:
        return code_tools(find_sandbox(settings.sandbox, Path(tempfile.gettempdir())))
    except NoSandbox as problem:
        if role.name == "sandbox":
            raise WrongSetting(f"SENNIT_SANDBOX={settings.sandbox!r}: no sandbox works here: {problem}") from None
        missing(f"python and shell: no sandbox works here: {problem}")
        return []


def _declared(settings: WorkerSettings) -> "list[Tool]":
    from activities.toolbox import ToolSetupError
    from activities.toolbox.files.write import write_tools
    from activities.toolbox.http.endpoints import http_tools

    found: list[Tool] = []
    for variable, path, load in (
        ("SENNIT_WRITE_ROOT", settings.write_root, lambda path, _: write_tools(path)),
        ("SENNIT_HTTP_TOOLS", settings.http_tools, http_tools),
        ("SENNIT_MCP", settings.mcp, _mcp),
    ):
        try:
            found += load(path, os.environ) if path else []
        except ToolSetupError as problem:
            raise WrongSetting(f"{variable}: {problem}") from None
    return found


def _mcp(path: Path, env: Mapping[str, str]) -> "list[Tool]":
    try:
        from activities.toolbox.mcp.tools import mcp_tools
    except ModuleNotFoundError as missing:
        raise WrongSetting(f"SENNIT_MCP='{path}': needs sennit[mcp]; {missing.name} is not installed") from None
    return mcp_tools(path, env)


def _with_activities(role: Role, runs: Sequence[type], settings: WorkerSettings, identity: str) -> Work:
    from activities.definitions import Activities, WorkerPaths
    from activities.llm.metrics import CallMeter
    from activities.llm.models import Models

    paths = WorkerPaths(
        artifacts=settings.artifacts,
        index=settings.index,
        docs=settings.docs,
        docs_roots=settings.docs_roots,
        any_docs=settings.docs_any,
    )
    registry = load_registry(settings, role, lambda what: log.warning("tools are not offered", reason=what))
    try:
        host = Activities(paths, registry, Models.of(settings.models, CallMeter()), identity=identity)
    except OSError as problem:
        where = f"SENNIT_ARTIFACTS='{settings.artifacts}' or SENNIT_INDEX='{settings.index}'"
        raise WrongSetting(f"{where} cannot be used: {problem.strerror}: {problem.filename}") from None
    confined = any(each.queue == queues.SANDBOX for each in registry)
    return Work(runs, host.tools(), host.llm(), host.sandbox() if confined else (), host.store_id)
