"""What the environment tells a worker, read once at start."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args

from activities.providers.settings import ModelSettings

LogForm = Literal["auto", "json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]
SandboxChoice = Literal["auto", "bwrap", "landlock", "off"]
T = TypeVar("T")

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_YES, _NO = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})


class WrongSetting(Exception):
    """A variable whose value a worker cannot use. The message is one line naming variable, value and remedy."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a port listens. Port 0 lets the system choose one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Everything a worker takes from the environment: seconds, absolute paths, None where nothing was given."""

    artifacts: Path
    index: Path
    docs: Path | None
    docs_roots: tuple[Path, ...]
    docs_any: bool
    tools: tuple[str, ...]
    tools_path: tuple[Path, ...]
    mcp: Path | None
    http_tools: Path | None
    write_root: Path | None
    sandbox: SandboxChoice
    health: Endpoint | None
    metrics: Endpoint | None
    drain: float
    slots: int | None
    cached_workflows: int
    sandboxed: bool
    deployment: str | None
    build_id: str | None
    log: LogForm
    log_level: LogLevel
    models: ModelSettings


def read_settings(env: Mapping[str, str] = os.environ) -> WorkerSettings:
    """Return the settings in `env`; an empty variable counts as absent. Raises WrongSetting for a wrong value."""
    state = _state(env)
    deployment, build_id = _deployment(env)
    return WorkerSettings(
        artifacts=_value(env, "SENNIT_ARTIFACTS", _path) or state / "artifacts",
        index=_value(env, "SENNIT_INDEX", _path) or state / "index",
        docs=_value(env, "SENNIT_DOCS", _path),
        docs_roots=_value(env, "SENNIT_DOCS_ROOTS", _paths) or (),
        docs_any=_value(env, "SENNIT_DOCS_ANY", _switch) or False,
        tools=_value(env, "SENNIT_TOOLS", _modules) or (),
        tools_path=_value(env, "SENNIT_TOOLS_PATH", _paths) or (),
        mcp=_value(env, "SENNIT_MCP", _path),
        http_tools=_value(env, "SENNIT_HTTP_TOOLS", _path),
        write_root=_value(env, "SENNIT_WRITE_ROOT", _path),
        sandbox=_value(env, "SENNIT_SANDBOX", _sandbox) or "auto",
        health=_value(env, "SENNIT_HEALTH_PORT", _endpoint),
        metrics=_metrics(env),
        drain=_or(_value(env, "SENNIT_DRAIN", _seconds), 25.0),
        slots=_value(env, "SENNIT_SLOTS", _whole(1, 10_000)),
        cached_workflows=_or(_value(env, "SENNIT_CACHED_WORKFLOWS", _whole(0, 100_000)), 200),
        sandboxed=_value(env, "SENNIT_WORKFLOW_SANDBOX", _switch) or False,
        deployment=deployment,
        build_id=build_id,
        log=_value(env, "SENNIT_LOG", _log_form) or "auto",
        log_level=_value(env, "SENNIT_LOG_LEVEL", _log_level) or "info",
        models=_model_settings(env),
    )


def _model_settings(env: Mapping[str, str]) -> ModelSettings:
    try:
        return ModelSettings.read(env)
    except ValueError as problem:
        raise WrongSetting(str(problem)) from None


def _value(env: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    try:
        return parse(text)
    except ValueError as problem:
        raise WrongSetting(f"{name}={text!r}: {problem}") from None


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _state(env: Mapping[str, str]) -> Path:
    given = _value(env, "SENNIT_STATE", _path)
    if given is not None:
        return given
    xdg = _value(env, "XDG_STATE_HOME", _path)
    return (xdg or Path.home() / ".local" / "state") / "sennit"


def _metrics(env: Mapping[str, str]) -> Endpoint | None:
    endpoint = _value(env, "SENNIT_METRICS_PORT", _endpoint)
    if endpoint is not None and endpoint.port == 0:
        raise WrongSetting("SENNIT_METRICS_PORT='0': needs a fixed port, for example 9090")
    return endpoint


def _deployment(env: Mapping[str, str]) -> tuple[str | None, str | None]:
    name, build_id = _value(env, "SENNIT_DEPLOYMENT", _label), _value(env, "SENNIT_BUILD_ID", _label)
    if name and not build_id:
        raise WrongSetting(f"SENNIT_DEPLOYMENT={name!r}: is set without SENNIT_BUILD_ID; set both or neither")
    if build_id and not name:
        raise WrongSetting(f"SENNIT_BUILD_ID={build_id!r}: is set without SENNIT_DEPLOYMENT; set both or neither")
    return name, build_id


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError("the home directory in it is not known") from None


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


def _switch(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise ValueError("must be 1 or 0")


def _modules(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not _MODULE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a Python module; give names like mytools,acme.search")
    return names


def _endpoint(text: str) -> Endpoint:
    if text.startswith("tcp://"):
        raise ValueError("comes from a Kubernetes service of that name; set enableServiceLinks: false on the pod")
    host, _, port = text.rpartition(":")
    return Endpoint(host.strip("[]") or "0.0.0.0", _whole(0, 65_535)(port))  # noqa: S104 - probes come from outside


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
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}", text):
        raise ValueError("must be letters, digits, and any of . _ + -")
    return text


def _log_form(text: str) -> LogForm:
    return _one_of(text, get_args(LogForm))


def _log_level(text: str) -> LogLevel:
    return _one_of(text, get_args(LogLevel))


def _sandbox(text: str) -> SandboxChoice:
    return _one_of(text, get_args(SandboxChoice))


def _one_of(text: str, choices: tuple[T, ...]) -> T:
    for choice in choices:
        if choice == text.lower():
            return choice
    raise ValueError(f"must be one of {', '.join(map(str, choices))}")
