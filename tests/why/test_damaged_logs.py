"""One damaged log among others: it is told, and so are the answers of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_events.api import ConfigError
from spark_events.cli.main import app
from spark_events.why.reading import read_logs
from spark_events.why.reading.read_logs import explain_logs
from spark_events.why.written import as_json
from tests.support.event_log_sample import T0, line
from tests.support.slow_log import slow_log

ODD = line(
    {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": {
            "Stage ID": 77,
            "Stage Attempt ID": 0,
            "Stage Name": "odd",
            "Number of Tasks": 1,
            "Parent IDs": ["x"],
            "Submission Time": T0 + 1_000,
        },
    }
)


def test_an_id_that_is_none_in_a_stage_that_never_ends(tmp_path: Path) -> None:
    """It is a record that is skipped, counted and told."""
    before, job, after = slow_log().partition(b'{"Event":"SparkListenerStageSubmitted"')
    assert job
    (tmp_path / "app-1").write_bytes(before + ODD + job + after)
    ((explained,), notes) = explain_logs([str(tmp_path)], {})

    assert sum((explained.parts or {}).values()) == explained.duration_ms
    assert explained.unread == 1
    assert [note for note in notes if "app-1: 1 line skipped" in note] == notes != []


def test_a_log_that_cannot_be_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("app-1", "app-2"):
        log = slow_log().replace(b"app-20261118120000-0001", name.encode())
        (tmp_path / name).write_bytes(log)
    explain = read_logs.explain

    def odd(app_name: str, app_id: str, *others: Any) -> Any:
        if app_id == "app-1":
            raise ZeroDivisionError("odd")
        return explain(app_name, app_id, *others)

    monkeypatch.setattr(read_logs, "explain", odd)
    ((explained,), (note,)) = explain_logs([str(tmp_path)], {})

    assert explained.app_id == "app-2"
    assert note.startswith(f"{tmp_path / 'app-1'}: cannot be explained")
    assert "ZeroDivisionError: odd" in note


def test_a_wrong_configuration_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "app-1").write_bytes(slow_log())
    with pytest.raises(ConfigError):
        explain_logs([str(tmp_path)], {"spark.events.issue.min-duration": "soon"})


def test_numbers_that_no_json_of_64_bits_has(tmp_path: Path) -> None:
    log = slow_log().replace(b'"Completion Time":', b'"Completion Time":"1795791540000000000000","Was":')
    (tmp_path / "app-1").write_bytes(log)
    explanations, _ = explain_logs([str(tmp_path)], {})
    assert json.loads(as_json(explanations))["applications"][0]["app_id"] == "app-20261118120000-0001"


@pytest.mark.parametrize("digits", [20, 400])
@pytest.mark.parametrize("form", ["as Spark writes it", "with blanks", "with half a pair of characters"])
def test_a_task_that_ends_at_a_time_of_too_many_digits(tmp_path: Path, digits: int, form: str) -> None:
    """Whichever way such a line is read, nothing is computed with the time."""
    odd = slow_log().replace(b'"Finish Time":', b'"Finish Time":' + b"9" * digits, 40)
    if form == "with blanks":
        odd = odd.replace(b',"Finish Time":', b', "Finish Time" : ')
    elif form == "with half a pair of characters":
        odd = odd.replace(b'"Host":"', b'"Host":"\\ud800')
    (tmp_path / "app-1").write_bytes(odd)
    result = CliRunner().invoke(app, ["why", str(tmp_path)])

    assert isinstance(result.exception, SystemExit)
    assert "app-1: 4 lines skipped" in result.output
    assert "2 min 20 s from " in result.output
