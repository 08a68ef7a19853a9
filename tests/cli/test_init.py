"""``spark-events init``: a first configuration that works, and nothing overwritten without being told."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_events.api.errors import UsageError
from spark_events.cli.main import app
from spark_events.configuration.check import check
from spark_events.spark.conf import read_properties
from tests.support.applications import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def init(*options: str) -> str:
    result = CliRunner().invoke(app, ["init", *options], env={"COLUMNS": "200"})
    if result.exception is not None:
        raise result.exception
    return result.output


def test_without_options(folder: Path) -> None:
    """Files, and what to type next; the file is where it says."""
    said = init()

    assert read_properties(folder / "conf" / "spark-defaults.conf") == {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": (folder / "events").as_uri(),
    }
    assert f"export SPARK_CONF_DIR={folder / 'conf'}" in said
    assert "--properties-file" not in said
    assert f"spark-events show {folder / 'events'}" in said


def test_everything_is_right(folder: Path) -> None:
    """What it writes passes a check, each value in its key."""
    init(
        "--to",
        "files,prometheus",
        "--to",
        "otlp",
        "--sla",
        "60s",
        "--port",
        "9300",
        "--endpoint",
        "http://c:4317",
    )
    settings = read_properties(folder / "conf" / "spark-defaults.conf")
    checked = check(settings, connect=False)

    assert checked.problems == []
    assert {(each.kind, each.factory) for each in checked.reporters} == {
        ("events", "file_log"),
        ("metrics", "prometheus"),
        *((kind, "otlp") for kind in ("events", "metrics", "traces")),
    }
    assert settings["spark.events.checkpoint.sla"] == "60s"
    assert settings["spark.metrics.reporter.prom.port"] == "9300"
    assert settings["spark.traces.reporter.otel.exporter.endpoint"] == "http://c:4317"


def test_what_the_file_refers_to(folder: Path) -> None:
    """Everybody has the commands, whoever installed a wheel too."""
    init("--output", "x.conf")
    text = (folder / "x.conf").read_text()

    assert "docs/" not in text
    assert "`spark-events check`" in text


def test_a_file_of_another_name(folder: Path) -> None:
    """Spark does not look there; nothing is to be overwritten. The port is the reporter's default."""
    said = init("--output", "x.conf", "--to", "prometheus")

    assert "spark-events run --properties-file x.conf app.py" in said
    assert "cp " not in said
    assert read_properties(folder / "x.conf") == {"spark.metrics.reporter.prom.factory.class": "prometheus"}


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_where_spark_submit_looks(folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Then there is nothing to export."""
    monkeypatch.setenv(variable, str(folder / "there"))
    said = init()
    inside = folder / "there" / ("conf" if variable == "SPARK_HOME" else "")

    assert (inside / "spark-defaults.conf").is_file()
    assert "export" not in said


def test_a_file_that_is_there(folder: Path) -> None:
    """It stays as it is, is added to, or is replaced, as the user says."""
    file = folder / "spark-defaults.conf"
    file.write_text("spark.master yarn")
    with pytest.raises(
        UsageError, match="exists already; --append adds the lines to it, --force replaces it"
    ):
        init("--output", str(file))
    assert file.read_text() == "spark.master yarn"

    with pytest.raises(UsageError, match="--to kafka: expected"):
        init("--output", str(file), "--to", "kafka")
    init("--output", str(file), "--append")
    init("--output", str(file), "--append", "--sla", "60s")
    added = read_properties(file)
    assert (added["spark.master"], added["spark.events.checkpoint.sla"]) == ("yarn", "60s")
    assert file.read_text().count("file_log") == 1

    with pytest.raises(
        UsageError, match=r"has spark\.events.checkpoint.sla '60s' already; change it there to '5s'"
    ):
        init("--output", str(file), "--append", "--sla", "5s")
    init("--output", str(file), "--force")
    assert "spark.master" not in read_properties(file)


def test_a_folder_in_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell has seen to the ``~`` of an answer, nor of ``--folder=~/events``."""
    monkeypatch.setenv("HOME", "/home/me")
    init("--folder=~/events")
    assert "file:///home/me/events" in Path("conf/spark-defaults.conf").read_text()


def test_the_folder_that_a_file_names_is_kept(folder: Path) -> None:
    init("--folder", "/var/log/reports")
    said = init("--append", "--sla", "10s")

    lines = read_properties(folder / "conf" / "spark-defaults.conf")
    assert lines["spark.events.reporter.file.path"] == "file:///var/log/reports"
    assert lines["spark.events.checkpoint.sla"] == "10s"
    assert "spark-events show /var/log/reports" in said
    with pytest.raises(UsageError, match="change it there"):
        init("--append", "--folder", "elsewhere")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--endpoint", "http://h:1"),
            "--endpoint http://h:1: only applies to --to otlp, and --to has files; add --to otlp",
        ),
        (
            ("--to", "otlp", "--port", "9249"),
            "--port 9249: only applies to --to prometheus, and --to has otlp; add",
        ),
        (
            ("--to", "otlp", "--folder", "here"),
            "--folder here: only applies to --to files, and --to has otlp; add --to files",
        ),
        (("--to", "kafka"), "--to kafka: expected one or more of files, prometheus, otlp"),
        (("--sla", "10"), "did you mean 10s"),
        (("--to", "otlp", "--endpoint", "http://h:1\nspark.master local"), r"--endpoint 'http://h:1\\nspark"),
        (
            ("--to", "otlp", "--endpoint", "http://h:99999"),
            "--endpoint 'http://h:99999': expected a URL such",
        ),
        (("--to", "otlp", "--endpoint", "http://[h"), r"--endpoint 'http://\[h': expected a URL such as"),
        (("--to", "otlp", "--endpoint", "foo"), "--endpoint 'foo': expected a URL such as"),
        (("--to", "prometheus", "--port", "99999"), "--port: '99999' is not valid; expected a port from 0"),
        (("--output", "/proc/nowhere/x.conf"), "cannot be written.*name another file with --output"),
    ],
)
def test_wrong_options(folder: Path, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        init(*options)
    assert not (folder / "conf").exists()


def test_questions_on_a_terminal(folder: Path) -> None:
    """Three of them; each may be left as it is."""
    ours, its = pty.openpty()
    process = subprocess.Popen(cli("init"), stdin=its, stdout=its, stderr=its, cwd=folder)
    os.close(its)
    os.write(ours, b"files,prometheus\n\n30s\n")
    said = b""
    try:
        while part := os.read(ours, 4_096):
            said += part
    except OSError:  # the terminal is closed
        pass
    finally:
        os.close(ours)

    assert process.wait(60) == 0, said
    settings = read_properties(folder / "conf" / "spark-defaults.conf")
    assert settings["spark.events.reporter.file.path"] == (folder / "events").as_uri()
    assert settings["spark.metrics.reporter.prom.factory.class"] == "prometheus"
    assert settings["spark.events.checkpoint.sla"] == "30s"
    assert said.count(b"?") + said.count(b"]:") + said.count(b"):") == 3


def test_letters_that_the_locale_does_not_have(folder: Path) -> None:
    """A configuration is UTF-8, wherever the command runs."""
    (folder / "mine.conf").write_text("spark.app.name café\n", encoding="utf-8")
    ascii_alone = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = cli("init", "--append", "--output", "mine.conf", "--folder", "events")
    done = subprocess.run(command, env=ascii_alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "mine.conf").read_text(encoding="utf-8").startswith("spark.app.name café\n")
