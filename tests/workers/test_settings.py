"""Settings come from the environment alone; a wrong one names itself."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from activities.providers.settings import ModelSettings
from workers.settings import Endpoint, WorkerSettings, WrongSetting, read_settings

HOME = {"HOME": "/home/ada"}
DEFAULTS = WorkerSettings(
    artifacts=Path("/home/ada/.local/state/weft/artifacts"),
    index=Path("/home/ada/.local/state/weft/index"),
    docs=None,
    docs_roots=(),
    docs_any=False,
    tools=(),
    tools_path=(),
    mcp=None,
    http_tools=None,
    write_root=None,
    sandbox="auto",
    health=None,
    metrics=None,
    drain=25.0,
    slots=None,
    cached_workflows=200,
    sandboxed=False,
    deployment=None,
    build_id=None,
    log="auto",
    log_level="info",
    models=ModelSettings.read({}),
)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", HOME["HOME"])


def test_an_empty_environment_gives_the_defaults() -> None:
    assert read_settings({}) == DEFAULTS


def test_an_empty_value_counts_as_absent() -> None:
    names = ("WEFT_DRAIN", "WEFT_SLOTS", "WEFT_DOCS", "WEFT_DEPLOYMENT", "WEFT_LOG", "WEFT_STATE")
    assert read_settings(dict.fromkeys(names, " ")) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value", "field", "read"),
    [
        ("WEFT_ARTIFACTS", "/data/a", "artifacts", Path("/data/a")),
        ("WEFT_INDEX", "~/i", "index", Path("/home/ada/i")),
        ("WEFT_DOCS", "/docs", "docs", Path("/docs")),
        ("WEFT_DOCS_ROOTS", f"/a{os.pathsep}/b{os.pathsep}", "docs_roots", (Path("/a"), Path("/b"))),
        ("WEFT_DOCS_ANY", "1", "docs_any", True),
        ("WEFT_DOCS_ANY", "0", "docs_any", False),
        ("WEFT_TOOLS", "mytools, acme.search,", "tools", ("mytools", "acme.search")),
        ("WEFT_TOOLS_PATH", "/t", "tools_path", (Path("/t"),)),
        ("WEFT_HEALTH_PORT", "8080", "health", Endpoint("0.0.0.0", 8080)),
        ("WEFT_HEALTH_PORT", "127.0.0.1:0", "health", Endpoint("127.0.0.1", 0)),
        ("WEFT_METRICS_PORT", "[::1]:9090", "metrics", Endpoint("::1", 9090)),
        ("WEFT_DRAIN", "0.5", "drain", 0.5),
        ("WEFT_DRAIN", "0", "drain", 0.0),
        ("WEFT_SLOTS", "7", "slots", 7),
        ("WEFT_CACHED_WORKFLOWS", "0", "cached_workflows", 0),
        ("WEFT_WORKFLOW_SANDBOX", "1", "sandboxed", True),
        ("WEFT_LOG", "JSON", "log", "json"),
        ("WEFT_LOG_LEVEL", "DEBUG", "log_level", "debug"),
    ],
)
def test_each_variable_sets_its_field_and_no_other(name: str, value: str, field: str, read: object) -> None:
    assert read_settings({name: value}) == replace(DEFAULTS, **{field: read})  # type: ignore[arg-type] # by table


@pytest.mark.parametrize(
    ("env", "state"),
    [
        ({"WEFT_STATE": "/s", "XDG_STATE_HOME": "/x"}, Path("/s")),
        ({"XDG_STATE_HOME": "/x"}, Path("/x/weft")),
        ({}, Path("/home/ada/.local/state/weft")),
    ],
)
def test_artifacts_and_index_live_in_the_state_directory(env: dict[str, str], state: Path) -> None:
    settings = read_settings(env)
    assert (settings.artifacts, settings.index) == (state / "artifacts", state / "index")


def test_a_relative_folder_becomes_absolute() -> None:
    assert read_settings({"WEFT_DOCS": "docs"}).docs == Path.cwd() / "docs"


def test_a_deployment_needs_name_and_build() -> None:
    settings = read_settings({"WEFT_DEPLOYMENT": "weft", "WEFT_BUILD_ID": "1.2-abc"})
    assert (settings.deployment, settings.build_id) == ("weft", "1.2-abc")


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("WEFT_DRAIN", "soon", "seconds"),
        ("WEFT_DRAIN", "-1", "seconds"),
        ("WEFT_DRAIN", "nan", "seconds"),
        ("WEFT_SLOTS", "0", "1 to 10000"),
        ("WEFT_SLOTS", "1_0", "whole number"),
        ("WEFT_CACHED_WORKFLOWS", "-1", "whole number"),
        ("WEFT_HEALTH_PORT", "http", "65535"),
        ("WEFT_HEALTH_PORT", "70000", "65535"),
        ("WEFT_HEALTH_PORT", "tcp://10.0.0.7:80", "enableServiceLinks"),
        ("WEFT_METRICS_PORT", "0", "fixed port"),
        ("WEFT_DOCS_ANY", "maybe", "1 or 0"),
        ("WEFT_TOOLS", "my-tools", "my-tools"),
        ("WEFT_LOG", "xml", "auto, json, text"),
        ("WEFT_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("WEFT_DEPLOYMENT", "weft", "WEFT_BUILD_ID"),
        ("WEFT_BUILD_ID", "b1", "WEFT_DEPLOYMENT"),
    ],
)
def test_a_wrong_value_is_one_line_with_variable_value_and_remedy(name: str, value: str, hint: str) -> None:
    with pytest.raises(WrongSetting) as caught:
        read_settings({name: value})
    message = str(caught.value)
    assert name in message
    assert value in message
    assert hint in message
    assert "\n" not in message
