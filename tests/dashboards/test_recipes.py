"""docs/alert-recipes.md: each rule fires when it should, and each command finds the event that says the same."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_events.diagnosis.thresholds import KINDS as ISSUES
from spark_events.runtime.event_names import all_names
from tests.support.applications import cli
from tests.support.history_story import HOUR, MIN, T0, Story, write
from tests.support.paths import REPO
from tests.support.requirements import need

PAGE = (REPO / "docs" / "alert-recipes.md").read_text()
RECIPES: dict[str, str] = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
FOUND = {
    "A nightly run is missing": 1,
    "A run takes too long": 0,
    "A query is down": 1,
    "An error that is new": 0,
}
"""The exit codes of the commands that are no ``show``, with the events below."""


def rule_of(text: str) -> dict[str, Any]:
    (rule,) = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", text, re.S)[0])
    return dict(rule)


def command_of(text: str) -> str:
    blocks = re.findall(r"^```(\w*)\n(.*?)\n```$", text, re.M | re.S)
    (command,) = (block for language, block in blocks if not language)
    return str(command).replace("\\\n  ", "")


def test_the_rules(tmp_path: Path) -> None:
    need("promtool", "prometheus")
    rules = [rule_of(text) for text in RECIPES.values()]
    assert len(rules) == 12
    (tmp_path / "recipes.yml").write_text(yaml.safe_dump({"groups": [{"name": "recipes", "rules": rules}]}))
    tests = Path(shutil.copy(Path(__file__).with_name("recipes_test.yml"), tmp_path))
    tested = {
        each["alertname"]
        for test in yaml.safe_load(tests.read_text())["tests"]
        for each in test["alert_rule_test"]
    }
    assert tested == {rule["alert"] for rule in rules}
    done = subprocess.run(
        ["promtool", "test", "rules", str(tests)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_that_are_said_to_be_shipped() -> None:
    rules = yaml.safe_load((REPO / "conf/prometheus/rules/alerts.yml").read_text())["groups"][0]["rules"]
    shipped = {rule["alert"] for rule in rules}
    named = set(re.findall(r"\bSpark[A-Z]\w+", PAGE))
    assert named
    assert named <= shipped


def test_each_alert_has_its_section() -> None:
    """``runbook_url`` leads to it, and the table says when it fires."""
    page = (REPO / "docs" / "alerts.md").read_text()
    rules = yaml.safe_load((REPO / "conf/prometheus/rules/alerts.yml").read_text())["groups"][0]["rules"]
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"
        assert f"\n### {rule['alert']}\n" in page
        assert page.count(rule["alert"]) > 1
    assert page.count("\n### ") == len(rules)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events of the last minutes, one for each recipe."""
    now = time.time_ns() // 1_000_000 - T0 - MIN
    shop = Story("shop").application(now - HOUR, "RUNNING").query(now - HOUR, "RUNNING")
    for number in range(5):
        shop.run(f"run-{number}").query(now - 20 * MIN + number * MIN, "FAILED", "RESTARTING", "RUNNING")
    shop.event(now, "CheckpointOverdueEvent", "orders", owedMs=90_000).failure(now, "KAFKA_GONE")
    shop.query(now, "FAILED")
    for issue in ("stream-behind", "state-growth", "skew"):
        shop.event(
            now,
            "PerformanceIssueEvent",
            "orders",
            issue=issue,
            subject="s",
            summary="x",
            advice="y",
            lostMs=1,
        )
    shop.event(now, "ExecutorLostEvent", executor_id="1", host="a", reason="out_of_memory")
    shop.event(now, "RecordsDroppedEvent", count=3, cause="queue_full")
    nightly = Story("nightly", "app-2").application(now - HOUR, "RUNNING")
    nightly.event(now, "JobFailureEvent", errorClass="NO_SPACE").application(now, "FAILED")
    folder = tmp_path_factory.mktemp("recipes")
    write(folder, shop, nightly)
    return folder


@pytest.mark.parametrize("title", RECIPES)
def test_the_commands(folder: Path, title: str) -> None:
    command = command_of(RECIPES[title])
    arguments, filtered = re.findall(r"spark-events (.*?)(?: \| (.*)|$)", command, re.M)[0]
    arguments = arguments.removesuffix(' "$@"')
    done = subprocess.run(
        cli(*arguments.replace("PATH", str(folder)).split()), capture_output=True, text=True, check=False
    )

    assert done.stdout
    if arguments.startswith("show"):
        assert done.returncode == 0, done.stderr
        (name,) = re.findall(r"--name (\w+)", arguments)
        assert name in all_names()
    for issue in re.findall(r'issue == "([\w-]+)"', filtered):
        assert issue in ISSUES
        assert f'"issue":"{issue}"' in done.stdout


def test_codes_and_filters(folder: Path) -> None:
    need("jq", "jq")

    def run(title: str, **replaced: str) -> subprocess.CompletedProcess[str]:
        command = command_of(RECIPES[title]).replace("PATH", str(folder))
        for old, new in replaced.items():
            assert old in command
            command = command.replace(old, new)
        script = f'spark-events() {{ {shlex.join(cli())} "$@"; }}\n{command}'
        return subprocess.run(["bash", "-c", script], capture_output=True, check=False, text=True)

    assert {title: run(title).returncode for title in FOUND} == FOUND
    assert run("An error that is new").stdout.split() == ["KAFKA_GONE", "out_of_memory"]
    assert run("An error that is new", until="from").returncode == 1  # all that is new was there before
    for title, text in RECIPES.items():
        if "jq -es" in text:
            assert run(title).returncode == 0
            assert run(title, **{'issue == "': 'issue == "no-'}).returncode == 4
