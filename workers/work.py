"""What a role's seats serve, loaded only as far as the role needs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workers.roles import Role
from workers.settings import WorkerSettings, WrongSetting

if TYPE_CHECKING:
    from activities.toolbox import Registry


@dataclass(frozen=True, slots=True)
class Work:
    """Workflows and activities by kind of seat. `store` is the id of the artifact store, None without activities."""

    runs: Sequence[type] = ()
    tools: Sequence[Callable[..., Any]] = ()
    llm: Sequence[Callable[..., Any]] = ()
    store: str | None = None


def load_work(role: Role, settings: WorkerSettings, identity: str) -> Work:
    """Import and build what `role` serves: a workflow worker never loads tools, a tool worker no workflow.

    Raises WrongSetting for a module in WEFT_TOOLS that cannot be used or a folder that cannot be written.
    """
    runs: tuple[type, ...] = ()
    if role.serves("runs"):
        from workflows.agent_run import AgentRun

        runs = (AgentRun,)
    if not role.serves("tools", "llm"):
        return Work(runs)
    return _with_activities(runs, settings, identity)


def load_registry(settings: WorkerSettings) -> "Registry":
    """Return the tools these settings name; raises WrongSetting when one of their modules cannot be used."""
    from activities.toolbox import ToolSetupError, load_tools

    try:
        return load_tools(settings.tools, settings.tools_path)
    except ToolSetupError as problem:
        raise WrongSetting(f"WEFT_TOOLS: {problem}") from None


def _with_activities(runs: Sequence[type], settings: WorkerSettings, identity: str) -> Work:
    from activities.host import Host, Places
    from activities.metering import CallMeter
    from activities.providers.models import Models

    places = Places(
        artifacts=settings.artifacts,
        index=settings.index,
        docs=settings.docs,
        docs_roots=settings.docs_roots,
        any_docs=settings.docs_any,
    )
    registry = load_registry(settings)
    try:
        host = Host(places, registry, Models.of(settings.models, CallMeter()), identity=identity)
    except OSError as problem:
        where = f"WEFT_ARTIFACTS='{settings.artifacts}' or WEFT_INDEX='{settings.index}'"
        raise WrongSetting(f"{where} cannot be used: {problem.strerror}: {problem.filename}") from None
    return Work(runs, host.tools(), host.llm(), host.store_id)
