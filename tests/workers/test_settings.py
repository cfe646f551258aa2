"""Settings come from the environment alone; a wrong one names itself."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sennit.activities.providers.settings import ModelSettings
from sennit.workers.settings import ListenAddress, WorkerSettings, WrongSetting, read_settings, unread_variables
from sennit.workflows.plan.language.limits import Limits
from sennit.workflows.plan.quota import QuotaLimits

HOME = {"HOME": "/home/ada"}
DEFAULTS = WorkerSettings(
    artifacts=Path("/home/ada/.local/state/sennit/artifacts"),
    index=Path("/home/ada/.local/state/sennit/index"),
    logins=Path("/home/ada/.local/state/sennit/logins"),
    models=ModelSettings.read({}),
)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", HOME["HOME"])


def test_without_variables_there_are_the_defaults_and_an_empty_value_counts_as_absent() -> None:
    names = ("SENNIT_DRAIN", "SENNIT_SLOTS", "SENNIT_DOCS", "TEMPORAL_DEPLOYMENT_NAME", "SENNIT_LOG", "SENNIT_STATE")
    assert read_settings({}) == read_settings(dict.fromkeys(names, " ")) == DEFAULTS
    assert (DEFAULTS.drain, DEFAULTS.sandbox, DEFAULTS.log, DEFAULTS.cached_workflows) == (25.0, "auto", "auto", 1_000)


@pytest.mark.parametrize(
    ("name", "value", "field", "read"),
    [
        ("SENNIT_ARTIFACTS", "/data/a", "artifacts", Path("/data/a")),
        ("SENNIT_ARTIFACTS", "s3://b.x-1/team/sennit/", "artifacts", "s3://b.x-1/team/sennit"),
        ("SENNIT_INDEX", "~/i", "index", Path("/home/ada/i")),
        ("SENNIT_LOGINS", "~/l", "logins", Path("/home/ada/l")),
        ("SENNIT_DOCS", "docs", "docs", Path.cwd() / "docs"),
        ("SENNIT_MCP", "/m.json", "mcp", Path("/m.json")),
        ("SENNIT_A2A", "/a.json", "a2a", Path("/a.json")),
        ("SENNIT_A2A", "https://agents.example.com/a", "a2a", "https://agents.example.com/a"),
        ("SENNIT_HTTP_TOOLS", "/h.json", "http_tools", Path("/h.json")),
        ("SENNIT_WRITE_ROOT", "/w", "write_root", Path("/w")),
        ("SENNIT_SANDBOX", "off", "sandbox", "off"),
        ("SENNIT_DOCS_ROOTS", f"/a{os.pathsep}/b{os.pathsep}", "docs_roots", (Path("/a"), Path("/b"))),
        ("SENNIT_GRANTS", "/s/grants.json", "grants", Path("/s/grants.json")),
        ("SENNIT_APPROVAL", "never", "approval", "never"),
        ("SENNIT_BUDGET_DEFAULT", "calls=9; a: calls=1", "budget_default", {"": Limits(calls=9), "a": Limits(calls=1)}),
        ("SENNIT_BUDGET_MAX", "tokens=7", "budget_max", {"": Limits(tokens=7)}),
        ("SENNIT_QUOTA", "runs=2, cost_usd_a_day=0.5", "quota", QuotaLimits(runs=2, cost_a_day=500_000)),
        ("SENNIT_WORKFLOW_SANDBOX", "0", "workflow_sandbox", False),
        ("SENNIT_TOOLS", "mytools, acme.search,", "tools", ("mytools", "acme.search")),
        ("SENNIT_TOOLS_PATH", "/t", "tools_path", (Path("/t"),)),
        ("SENNIT_HEALTH_PORT", "8080", "health", ListenAddress("0.0.0.0", 8080)),
        ("SENNIT_HEALTH_PORT", "127.0.0.1:0", "health", ListenAddress("127.0.0.1", 0)),
        ("SENNIT_METRICS_PORT", "[::1]:9090", "metrics", ListenAddress("::1", 9090)),
        ("SENNIT_DRAIN", "0.5", "drain", 0.5),
        ("SENNIT_DRAIN", "0", "drain", 0.0),
        ("SENNIT_SLOTS", "7", "slots", 7),
        ("SENNIT_HEARTBEAT", "5", "heartbeat", 5),
        ("SENNIT_CACHED_WORKFLOWS", "0", "cached_workflows", 0),
        ("SENNIT_WORKFLOW_SANDBOX", "1", "workflow_sandbox", True),
        ("SENNIT_LOG", "JSON", "log", "json"),
        ("SENNIT_LOG_LEVEL", "DEBUG", "log_level", "debug"),
    ],
)
def test_each_variable_sets_its_field_and_no_other(name: str, value: str, field: str, read: object) -> None:
    assert read_settings({name: value}) == replace(DEFAULTS, **{field: read})  # type: ignore[arg-type] # by table


@pytest.mark.parametrize(
    ("env", "state"),
    [
        ({"SENNIT_STATE": "/s", "XDG_STATE_HOME": "/x"}, Path("/s")),
        ({"XDG_STATE_HOME": "/x"}, Path("/x/sennit")),
        ({}, Path("/home/ada/.local/state/sennit")),
    ],
)
def test_artifacts_and_index_live_in_the_state_directory(env: dict[str, str], state: Path) -> None:
    settings = read_settings(env)
    assert (settings.artifacts, settings.index) == (state / "artifacts", state / "index")


def test_a_deployment_needs_name_and_build() -> None:
    settings = read_settings({"TEMPORAL_DEPLOYMENT_NAME": "agents/sennit", "TEMPORAL_WORKER_BUILD_ID": "1.2-abc"})
    assert (settings.deployment, settings.build_id) == ("agents/sennit", "1.2-abc")


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("SENNIT_DRAIN", "soon", "seconds"),
        ("SENNIT_DRAIN", "-1", "seconds"),
        ("SENNIT_DRAIN", "nan", "seconds"),
        ("SENNIT_SLOTS", "0", "1 to 10000"),
        ("SENNIT_SLOTS", "1_0", "whole number"),
        ("SENNIT_HEARTBEAT", "6", "1 to 5"),
        ("SENNIT_CACHED_WORKFLOWS", "-1", "whole number"),
        ("SENNIT_HEALTH_PORT", "http", "65535"),
        ("SENNIT_HEALTH_PORT", "70000", "65535"),
        ("SENNIT_HEALTH_PORT", "tcp://10.0.0.7:80", "enableServiceLinks"),
        ("SENNIT_METRICS_PORT", "0", "fixed port"),
        ("SENNIT_WORKFLOW_SANDBOX", "maybe", "1 or 0"),
        ("SENNIT_TOOLS", "my-tools", "my-tools"),
        ("SENNIT_BUDGET_MAX", "coins=7", "acme: cost_usd=50"),
        ("SENNIT_QUOTA", "coins=7", "write it like runs=20,tokens_a_day="),
        ("SENNIT_QUOTA", "runs=0", "not between 1 and"),
        ("SENNIT_QUOTA", "runs=many", "'many' is no number"),
        ("SENNIT_QUOTA", "runs=1,runs=2", "is there twice"),
        ("SENNIT_QUOTA", "cost_usd_a_day=nan", "is no number"),
        ("SENNIT_ARTIFACTS", "gs://bucket", "s3://BUCKET/PREFIX"),
        ("SENNIT_ARTIFACTS", "s3://key:secret@bucket", "AWS_*"),
        ("SENNIT_ARTIFACTS", "s3://bucket/../p", "s3://BUCKET/PREFIX"),
        ("SENNIT_SECRETS", "DB_LOGIN ACME_ID", "commas between them, like DB_LOGIN,ACME_*"),
        ("SENNIT_SECRETS", "DB_LOGIN;ACME_ID", "is not the name of a variable"),
        ("SENNIT_HTTP_ALLOW", "http://wiki.corp/", "'http://wiki.corp/' is no host"),
        ("SENNIT_HTTP_ALLOW", "wiki.corp, 10.0.0.0/8", "'10.0.0.0/8' is no host"),
        ("SENNIT_HTTP_ALLOW", "*.corp", "like wiki.corp,10.0.0.7:8080"),
        ("SENNIT_HTTP_ALLOW", "wiki.corp blog.corp", "commas between them"),
        ("SENNIT_LOG", "xml", "auto, json, text"),
        ("SENNIT_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("TEMPORAL_DEPLOYMENT_NAME", "sennit", "TEMPORAL_WORKER_BUILD_ID"),
        ("TEMPORAL_WORKER_BUILD_ID", "b1", "TEMPORAL_DEPLOYMENT_NAME"),
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


def test_a_variable_that_nothing_reads_is_named_with_the_one_that_may_be_meant() -> None:
    links = {
        "SENNIT_SERVICE_HOST": "10.0.0.7",
        "SENNIT_WEB_SERVICE_PORT_HTTP": "80",
        "SENNIT_HEALTH_PORT": "8080",
        "SENNIT_WEB_PORT": "tcp://10.0.0.7:80",
        "SENNIT_WEB_PORT_80_TCP_ADDR": "10.0.0.7",
    }
    assert unread_variables({"HOME": "/", "SENNIT_STATE": "/s", "SENNIT_MODEL_JUDGE": "offline", **links}) == []
    assert unread_variables({"SENNIT_BUGDET_MAX": "tokens=5", "SENNIT_SECRET": "DB_*", "SENNIT_ZZZZZZZZ": "1"}) == [
        "nothing reads the variable SENNIT_BUGDET_MAX; did you mean `SENNIT_BUDGET_MAX`?",
        "nothing reads the variable SENNIT_SECRET; did you mean `SENNIT_SECRETS`?",
        "nothing reads the variable SENNIT_ZZZZZZZZ",
    ]
