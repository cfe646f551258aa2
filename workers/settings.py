"""The settings of a worker: one table of environment variables, read once at start."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from sennit.activities.http.addresses import ALLOW_VARIABLE
from sennit.activities.providers.settings import ModelSettings
from sennit.activities.runs.budgets import TenantLimits, tenant_limits
from sennit.activities.runs.quota import quota_limits
from sennit.activities.runs.speculation import SpeculateChoice
from sennit.activities.runs.trajectory import LearnChoice
from sennit.activities.sandbox import SandboxChoice
from sennit.activities.storage.artifacts import StoreUnavailable
from sennit.activities.storage.location import bucket_url
from sennit.activities.toolbox.redaction import NAMES_VARIABLE
from sennit.workflows.plan.language.nodes import ApprovalPolicy, Role
from sennit.workflows.plan.language.text import did_you_mean, printable
from sennit.workflows.plan.quota import QuotaLimits

LogForm = Literal["auto", "json", "text"]
HintChoice = Literal["off", "on"]
LogLevel = Literal["debug", "info", "warning", "error"]

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_SECRET_NAME = re.compile(r"[^\s;:=$]+")
_HOST = re.compile(r"[^\s;/*@?#]+")
_READ_ELSEWHERE = (
    ALLOW_VARIABLE,
    NAMES_VARIABLE,
    "SENNIT_CONTEXT",
    "SENNIT_DEBUG",
    "SENNIT_FIRST_TOKEN_TIMEOUT",
    "SENNIT_IDLE_STOP",
    "SENNIT_IDLE_TIMEOUT",
    "SENNIT_MODEL",
    *(f"SENNIT_MODEL_{role.upper()}" for role in get_args(Role)),
    "SENNIT_MODEL_SETTINGS",
    "SENNIT_PLAN_FORMAT",
    "SENNIT_PRICES",
    "SENNIT_PROGRAMS",
    "SENNIT_RATES",
    "SENNIT_STATE",
    "SENNIT_TEMPORAL_CLI",
    "SENNIT_UI",
)
"""Variables of commands, models and tools."""
_OF_KUBERNETES = re.compile(r"_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_")
"""What a pod is told about services, such as one that is called `sennit`."""
_SWITCH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class WrongSetting(Exception):
    """A variable whose value a worker cannot use. The message is one line naming
    variable, value and remedy.
    """


@contextmanager
def store_setting(place: Path | str) -> Iterator[None]:
    """Raise WrongSetting if the block cannot use the store there."""
    try:
        yield
    except StoreUnavailable as problem:
        raise WrongSetting(f"SENNIT_ARTIFACTS='{place}': {problem}") from None


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a port listens. Port 0 lets the system choose one."""

    host: str
    port: int

    def __str__(self) -> str:
        if ":" in self.host:
            return f"[{self.host}]:{self.port}"
        return f"{self.host}:{self.port}"


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError("the home directory in it is not known") from None


def _store(text: str) -> Path | str:
    if "://" in text:
        return bucket_url(text)
    return _path(text)


def _place(text: str) -> Path | str:
    return text if "://" in text else _path(text)


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ValueError("must be 1 or 0")
    return _SWITCH[text.lower()]


def _between_commas(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(","):
        name = part.strip()
        if name:
            names.append(name)
    return names


def _modules(text: str) -> tuple[str, ...]:
    names = _between_commas(text)
    for name in names:
        if not _MODULE.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a Python module; give names like mytools,acme.search"
            )
    return tuple(names)


def _check_secret_names(text: str) -> None:
    for name in _between_commas(text):
        if not _SECRET_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a variable; give names with commas between "
                "them, like DB_LOGIN,ACME_*"
            )


def _check_hosts(text: str) -> None:
    for host in _between_commas(text):
        if not _HOST.fullmatch(host):
            raise ValueError(
                f"{host!r} is no host; give hosts with commas between them, like "
                "wiki.corp,10.0.0.7:8080"
            )


def _address(text: str) -> ListenAddress:
    if text.startswith("tcp://"):
        raise ValueError(
            "comes from a Kubernetes service of that name; set enableServiceLinks: false on the pod"
        )
    host, _, port = text.rpartition(":")
    return ListenAddress(host.strip("[]") or "0.0.0.0", _whole(0, 65_535)(port))  # noqa: S104 - probes come from outside


def _fixed_address(text: str) -> ListenAddress:
    endpoint = _address(text)
    if endpoint.port == 0:
        raise ValueError("needs a fixed port, for example 9090")
    return endpoint


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86_400:
        raise ValueError("must be seconds from 0 to 86400")
    return value


def _label(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}", text):
        raise ValueError("must be letters, digits, and any of . _ / + -")
    return text


def _choice(choices: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text.lower()

    return parse


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Everything a worker takes from the environment: variable, parser and default of each setting.

    Paths are absolute, times in seconds.
    """

    artifacts: Annotated[Path | str, "SENNIT_ARTIFACTS", _store]
    index: Annotated[Path, "SENNIT_INDEX", _path]
    logins: Annotated[Path, "SENNIT_LOGINS", _path]
    docs: Annotated[Path | None, "SENNIT_DOCS", _path] = None
    docs_roots: Annotated[tuple[Path, ...], "SENNIT_DOCS_ROOTS", _paths] = ()
    grants: Annotated[Path | None, "SENNIT_GRANTS", _path] = None
    approval: Annotated[
        ApprovalPolicy | None, "SENNIT_APPROVAL", _choice(get_args(ApprovalPolicy))
    ] = None
    """None counts as `writes`, but for rules that allow some of these."""
    approval_rules: Annotated[Path | None, "SENNIT_APPROVAL_RULES", _path] = None
    budget_default: Annotated[TenantLimits, "SENNIT_BUDGET_DEFAULT", tenant_limits] = field(
        default_factory=dict
    )
    budget_max: Annotated[TenantLimits, "SENNIT_BUDGET_MAX", tenant_limits] = field(
        default_factory=dict
    )
    quota: Annotated[QuotaLimits, "SENNIT_QUOTA", quota_limits] = field(default_factory=QuotaLimits)
    tools: Annotated[tuple[str, ...], "SENNIT_TOOLS", _modules] = ()
    tools_path: Annotated[tuple[Path, ...], "SENNIT_TOOLS_PATH", _paths] = ()
    imported: Annotated[Path | None, "SENNIT_IMPORTED", _path] = None
    mcp: Annotated[Path | None, "SENNIT_MCP", _path] = None
    a2a: Annotated[Path | str | None, "SENNIT_A2A", _place] = None
    http_tools: Annotated[Path | None, "SENNIT_HTTP_TOOLS", _path] = None
    write_root: Annotated[Path | None, "SENNIT_WRITE_ROOT", _path] = None
    sandbox: Annotated[SandboxChoice, "SENNIT_SANDBOX", _choice(get_args(SandboxChoice))] = "auto"
    learn: Annotated[LearnChoice, "SENNIT_LEARN", _choice(get_args(LearnChoice))] = "off"
    plan_hints: Annotated[HintChoice, "SENNIT_PLAN_HINTS", _choice(get_args(HintChoice))] = "off"
    speculate: Annotated[
        SpeculateChoice, "SENNIT_SPECULATE", _choice(get_args(SpeculateChoice))
    ] = "asked"
    health: Annotated[ListenAddress | None, "SENNIT_HEALTH_PORT", _address] = None
    trace_contents: Annotated[bool, "SENNIT_TRACE_CONTENTS", _switch] = False
    metrics: Annotated[ListenAddress | None, "SENNIT_METRICS_PORT", _fixed_address] = None
    drain: Annotated[float, "SENNIT_DRAIN", _seconds] = 25.0
    slots: Annotated[int | None, "SENNIT_SLOTS", _whole(1, 10_000)] = None
    heartbeat: Annotated[int, "SENNIT_HEARTBEAT", _whole(1, 5)] = 1
    """Temporal takes a worker for dead after ten seconds without one."""
    cached_workflows: Annotated[int, "SENNIT_CACHED_WORKFLOWS", _whole(0, 100_000)] = 1_000
    workflow_sandbox: Annotated[bool, "SENNIT_WORKFLOW_SANDBOX", _switch] = False
    deployment: Annotated[str | None, "TEMPORAL_DEPLOYMENT_NAME", _label] = None
    build_id: Annotated[str | None, "TEMPORAL_WORKER_BUILD_ID", _label] = None
    log: Annotated[LogForm, "SENNIT_LOG", _choice(get_args(LogForm))] = "auto"
    log_level: Annotated[LogLevel, "SENNIT_LOG_LEVEL", _choice(get_args(LogLevel))] = "info"
    models: ModelSettings


def read_settings(env: Mapping[str, str] = os.environ) -> WorkerSettings:
    """Return the settings in `env`; an empty variable counts as absent. Raises
    WrongSetting for a wrong value.

    Artifacts, indexes and logins are by default in SENNIT_STATE, or in `sennit` of
    XDG_STATE_HOME or ~/.local/state.
    """
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(WorkerSettings, include_extras=True).items():
        if get_origin(hint) is Annotated and (value := _read(env, *hint.__metadata__)) is not None:
            values[name] = value
    if len({"deployment", "build_id"} & values.keys()) == 1:
        deployment, build = values.get("deployment"), values.get("build_id")
        raise WrongSetting(
            f"TEMPORAL_DEPLOYMENT_NAME={deployment!r} and TEMPORAL_WORKER_BUILD_ID={build!r}: set "
            "both or neither"
        )
    state = _read(env, "SENNIT_STATE", _path)
    if state is None:
        state = (_read(env, "XDG_STATE_HOME", _path) or Path.home() / ".local" / "state") / "sennit"
    # Others read these where they are used, and could only pass over what names nothing.
    _read(env, NAMES_VARIABLE, _check_secret_names)
    _read(env, ALLOW_VARIABLE, _check_hosts)
    try:
        models = ModelSettings.read(env)
    except ValueError as problem:
        raise WrongSetting(str(problem)) from None
    places = {
        "artifacts": state / "artifacts",
        "index": state / "index",
        "logins": state / "logins",
    }
    return WorkerSettings(**{**places, **values}, models=models)


def unread_variables(env: Mapping[str, str] = os.environ) -> list[str]:
    """Return a line for each variable that looks like one of Sennit and that nothing reads: with
    a letter wrong, the bound or the rule in it would not hold, and nobody would know.
    """
    known = list(_READ_ELSEWHERE)
    for hint in get_type_hints(WorkerSettings, include_extras=True).values():
        if get_origin(hint) is Annotated:
            known.append(hint.__metadata__[0])
    lines: list[str] = []
    for name in sorted(env):
        if not name.startswith("SENNIT_") or name in known:
            continue
        if _OF_KUBERNETES.search(name) or env[name].startswith("tcp://"):
            continue
        shown = printable(name, 80)
        likely = did_you_mean(name, known)
        lines.append(f"nothing reads the variable {shown}{likely}")
    return lines


def _read(env: Mapping[str, str], name: str, parse: Callable[[str], Any]) -> Any:
    """Return the parsed value of a variable, or None if it is not set."""
    text = env.get(name, "").strip()
    try:
        return parse(text) if text else None
    except ValueError as problem:
        raise WrongSetting(f"{name}={text!r}: {problem}") from None
