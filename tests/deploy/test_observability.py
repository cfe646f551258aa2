"""Prometheus, its alerts and the dashboard, on what workers really export. Skipped where there is no Prometheus."""

import json
import math
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from doubles.monitored import SHIPPED, available, monitored

ROOT = SHIPPED.parents[1]
NEEDED = pytest.mark.skipif(
    not available(), reason="there is no prometheus or promtool (Debian: apt install prometheus)"
)
DASHBOARD = json.loads((SHIPPED / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ALERTS = [rule for group in yaml.safe_load((SHIPPED / "rules.yml").read_text())["groups"] for rule in group["rules"]]


def anchors(text: str) -> set[str]:
    """Return the anchors that headings of a Markdown file have."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_alert_has_a_section_in_the_runbook_and_every_section_an_alert() -> None:
    text = (SHIPPED / "alerts.md").read_text()
    links = [alert["annotations"]["runbook"] for alert in ALERTS]
    assert [link.partition("#")[0] for link in links] == ["deploy/observability/alerts.md"] * len(ALERTS)
    assert {link.partition("#")[2] for link in links} <= anchors(text)
    assert [alert["alert"] for alert in ALERTS] == re.findall(r"^## (Sennit\w+)$", text, re.MULTILINE)


@NEEDED
@pytest.mark.parametrize(
    "command",
    [["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"], ["check", "config", "prometheus.yml"]],
)
def test_promtool_accepts_what_is_shipped_and_sees_each_alert_come_when_it_should(command: list[str]) -> None:
    done = subprocess.run(["promtool", *command], cwd=SHIPPED, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@NEEDED
@pytest.mark.server
async def test_every_panel_shows_series_of_live_workers_and_every_alert_is_evaluated(tmp_path: Path) -> None:
    async with monitored(tmp_path, waves=3) as seen:
        empty = []
        for panel in PANELS:
            for target in panel["targets"]:
                series = await seen.series(target["expr"])
                if not any(math.isfinite(float(value)) for each in series for _, value in each["values"]):
                    empty.append(f"{panel['title']}: {target['expr']}")
        exported = (await seen.prometheus.ask("query", query='{__name__=~"sennit_.+"}'))["result"]
        groups = (await seen.prometheus.ask("rules"))["groups"]
    assert not empty, "\n".join(empty)
    assert exported
    assert not [label for each in exported for label in each["metric"].values() if "agent-monitored" in label]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"]: rule["health"] for rule in rules} == {alert["alert"]: "ok" for alert in ALERTS}
    assert not [rule["name"] for rule in rules if rule["state"] == "firing"]
