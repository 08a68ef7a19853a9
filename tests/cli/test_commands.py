"""The command line, without Spark."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_events.api import ConfigError
from spark_events.api.toolkit.local_disk import write_whole
from spark_events.cli.main import app
from spark_events.configuration.check import check
from spark_events.listeners.settings import turned_off
from spark_events.submit.cluster_mode import USERS_PYTHON
from spark_events.submit.spark_submit import plain_command, submit_command
from tests.support.applications import cli
from tests.support.forked_commands import run_forked
from tests.support.paths import REPO
from tests.support.waiting import free_port

GOOD = "spark.events.reporter.file.factory.class file_log\nspark.events.reporter.file.path {path}\n"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200", **environment}
    return run_forked(*arguments, env=env, cwd=REPO)


def properties(folder: Path, text: str) -> str:
    path = folder / "spark-defaults.conf"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("columns", ["0", "1", ""])
def test_a_terminal_that_does_not_know_its_width(columns: str) -> None:
    """Its tables are as wide as they need to be, not empty."""
    assert "file_log" in run("plugins", COLUMNS=columns).stdout


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--timeout", "12s", "'12s' is not valid; expected a whole number of seconds, 1 or more"),
        ("--parallel", "0", "'0' is not valid; expected a whole number, 1 or more"),
        ("--parallel", "9" * 30, "is not valid; expected a whole number, 1 or more"),
    ],
)
def test_a_number_that_is_none(option: str, value: str, said: str) -> None:
    arguments = ["sql", "deploy", "queries", "--store", "store", option, value]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})

    assert done.exit_code == 2
    assert f"Invalid value for '{option}': " in done.output
    assert said in done.output


def test_a_script_that_is_not_on_the_path() -> None:
    """The module runs the same command line."""
    command = [sys.executable, "-m", "spark_events", "plugins", "--help"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "-m spark_events plugins" in done.stdout


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        ("Exits", "spark.events.reporter.odd: SystemExit: 5"),
        (
            "WrongKind",
            "spark.events.reporter.odd: its factory tests.support.plugins:WrongKind created CollectingSpans; expected EventReporter",
        ),
    ],
)
@pytest.mark.parametrize("connect", [True, False])
def test_check_of_a_factory_that_creates_no_reporter(factory: str, said: str, connect: bool) -> None:
    checked = check({"spark.events.reporter.odd.factory.class": f"tests.support.plugins:{factory}"}, connect)
    assert checked.problems == [said]


def test_check_of_a_good_configuration(tmp_path: Path) -> None:
    """A good configuration exits 0 and says which reporters would start."""
    path = properties(tmp_path, GOOD.format(path=tmp_path / "x"))
    done = run("check", "--properties-file", path, "--connect")

    assert done.returncode == 0, done.stderr
    assert "file_log" in done.stdout
    assert "is writable" in done.stdout
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end")
def test_a_properties_file_without_an_end() -> None:
    """What is far too long for a configuration is not read to its end, or until memory is used up."""
    done = run("check", "--properties-file", "/dev/zero")

    assert done.returncode == 3
    assert "/dev/zero: cannot be read as a properties file (it has more than 16 MiB" in done.stderr


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_properties_file_with_a_byte_order_mark(tmp_path: Path, command: str) -> None:
    """Spark takes it for a part of the first key, so that this line is missing."""
    file = tmp_path / "bom.conf"
    file.write_text("\ufeffspark.events.reporter.file.factory.class file_log\n", encoding="utf-8")
    done = run(command, "--properties-file", str(file))

    assert "begins with a byte order mark" in " ".join((done.stdout + done.stderr).split())


def test_check_of_the_shipped_configuration() -> None:
    """The file that conf/ ships is right."""
    done = run("check", "--properties-file", str(REPO / "conf" / "spark-defaults.conf"))

    assert done.returncode == 0, done.stderr
    assert "1 reporter" in done.stdout


def test_check_names_each_mistake(tmp_path: Path) -> None:
    """Each mistake is one line with its key, in one run, and the exit code is 3."""
    path = properties(
        tmp_path,
        "spark.events.reporter.a.factory.class otpl\n"
        "spark.events.reporter.b.factory.class = otlp\n"
        "spark.events.reporter.b.exporter.timeout : soon\n"
        "spark.events.reporter.b.exporter.protocl http\n"
        "spark.events.checkpoint.slaa 60s\n"
        "spark.events.checkpoint.sla never\n"
        "spark.metrics.conf.driver.sink.jmx.class x\n"
        "spark.metrics.reporters prom\n",
    )
    done = run("check", "--properties-file", path, "--conf", "spark.events.reporter.c.path=/x")
    keys = [line.split()[1].rstrip(":") for line in done.stderr.splitlines() if line.startswith("error")]

    assert done.returncode == 3
    assert sorted(keys) == [
        "spark.events.checkpoint.sla",
        "spark.events.checkpoint.slaa",
        "spark.events.reporter.a.factory.class",
        "spark.events.reporter.b.exporter.protocl",
        "spark.events.reporter.b.exporter.timeout",
        "spark.events.reporter.c.factory.class",
        "spark.metrics.reporters",
    ]
    assert "did you mean 'exporter.protocol'?" in done.stderr
    assert "did you mean 'spark.events.checkpoint.sla'?" in done.stderr


def test_check_knows_sparks_own_metrics_keys(tmp_path: Path) -> None:
    """``spark.metrics.`` is Spark's as well: only what looks like a key of ours is one that is misspelled."""
    lines = (
        "spark.metrics.ended.retentoin 1s",
        "spark.metrics.scope.qurey x",
        "spark.metrics.conf.*.sink.csv.period 1",
    )
    more = (
        "spark.metrics.namespace x",
        "spark.metrics.appStatusSource.enabled true",
        "spark.metrics.conf /m",
    )
    reporter = "spark.metrics.reporter.p.factory.class prometheus"
    done = run("check", "--properties-file", properties(tmp_path, "\n".join((reporter, *lines, *more))))
    errors = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("error")]

    assert done.returncode == 3
    assert [line.split(" allowed:")[0] for line in errors] == [
        "error spark.metrics.ended.retentoin: unknown key; did you mean 'spark.metrics.ended.retention'?",
        "error spark.metrics.scope.qurey: unknown key; did you mean 'spark.metrics.scope.query'?",
    ]


def test_check_knows_the_keys_of_atomic_tables(tmp_path: Path) -> None:
    good = GOOD.format(path=tmp_path)
    keys = "spark.events.ctas.lease.duration 1min\nspark.events.ctas.replaced-files.retention later\nspark.events.ctas.journal.dirr x"
    done = run("check", "--properties-file", properties(tmp_path, f"{good}\n{keys}"))
    errors = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("error")]
    assert done.returncode == 3
    assert [line.split(";")[0] for line in errors] == [
        "error spark.events.ctas.replaced-files.retention: 'later' is not valid",
        "error spark.events.ctas.journal.dirr: unknown key",
    ]


def test_check_reads_what_spark_submit_would_read(tmp_path: Path) -> None:
    """Without a file, SPARK_CONF_DIR's is read; with none at all, that is the mistake."""
    properties(tmp_path, GOOD.format(path=tmp_path))
    (tmp_path / "empty").mkdir()

    assert run("check", SPARK_CONF_DIR=str(tmp_path)).returncode == 0
    nothing = run("check", SPARK_CONF_DIR=str(tmp_path / "empty"))
    assert nothing.returncode == 3
    assert "no reporter is configured" in nothing.stderr
    missing = run("check", "--properties-file", "/nowhere.conf")
    assert missing.returncode == 3
    assert "/nowhere.conf: no such file" in missing.stderr


def test_check_of_what_is_turned_off(tmp_path: Path) -> None:
    """It says nothing of what its reporters would report on."""
    file = properties(tmp_path, GOOD.format(path=tmp_path))
    on, off = (
        run("check", "--properties-file", file, "--conf", f"spark.events.enabled={each}")
        for each in ("true", "false")
    )

    assert (on.returncode, off.returncode) == (0, 0)
    assert "They report on applications" in on.stdout + on.stderr
    assert "They report on applications" not in off.stdout + off.stderr


def test_check_connect_tries_endpoints() -> None:
    """An endpoint where nobody answers and a port that is taken are mistakes, with --connect only."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        conf = (
            "--conf=spark.events.reporter.o.factory.class=otlp",
            f"--conf=spark.events.reporter.o.exporter.endpoint=http://127.0.0.1:{free_port()}",
            "--conf=spark.metrics.reporter.p.factory.class=prometheus",
            f"--conf=spark.metrics.reporter.p.port={taken.getsockname()[1]}",
        )
        assert run("check", "--properties-file", "/dev/null", *conf).returncode == 0
        done = run("check", "--properties-file", "/dev/null", "--connect", *conf)

    assert done.returncode == 3
    assert "connection refused; is a collector running there?" in done.stderr
    assert "spark.metrics.reporter.p.port: cannot listen on port" in done.stderr


def test_check_connect_tries_folders(tmp_path: Path) -> None:
    """Those that are there are left as they are; those that would be made are not made."""
    (tmp_path / "file").touch()
    keys = ("spark.events.state.dir", "spark.events.issue.regression.dir")
    console = "--conf=spark.events.reporter.c.factory.class=console"
    checked = ("check", "--properties-file", "/dev/null", "--connect", console)

    good = run(*checked, *(f"--conf={key}={tmp_path}/new" for key in keys))
    assert good.returncode == 0, good.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    wrong = run(*checked, *(f"--conf={key}={tmp_path}/file/below" for key in keys))
    assert wrong.returncode == 3
    for key in keys:
        assert f"{key}: cannot write to folder {tmp_path}/file: Not a directory" in wrong.stderr


def test_plugins() -> None:
    """All plugins by kind, with package, version and options."""
    rows = json.loads(run("plugins", "--json").stdout)
    found = {(row["kind"], row["name"]): row for row in rows}

    assert found.keys() >= {
        ("event reporter", "console"),
        ("event reporter", "file_log"),
        ("event reporter", "otlp"),
        ("span reporter", "otlp"),
        ("metric reporter", "prometheus"),
        ("failure enricher", "type"),
    }
    assert all(row["distribution"] == "spark-events" and not row["problem"] for row in rows)
    options = {option["name"]: option for option in found["event reporter", "file_log"]["options"]}
    assert options["path"]["required"]
    assert options["rotate.max-bytes"]["default"] == "67108864 bytes"
    assert "exporter.endpoint: string" in run("plugins").stdout


def test_paths() -> None:
    """Where conf/ and grafana/ lie."""
    lines = run("paths").stdout.splitlines()

    assert [line.split(": ")[0] for line in lines] == ["conf", "grafana"]
    assert all(Path(line.split(": ")[1]).is_dir() for line in lines)


class TestSubmit:
    """What ``run`` makes of spark-submit's command line."""

    def test_options_go_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All words are kept, in their order, behind the one that is added."""
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            monkeypatch.delenv(name, raising=False)
        words = [
            "--master",
            "local[2]",
            "--py-files",
            "dep.py",
            "--conf=a=b",
            "-v",
            "app.py",
            "--conf",
            "x",
            "y",
        ]
        command, environment = submit_command(words)

        assert command[0].endswith("spark-submit")
        assert command[1] == "--conf"
        assert command[2].startswith("spark.pyspark.driver.python=")
        assert command[2].endswith("spark-events-python")
        assert command[3:] == words
        assert USERS_PYTHON not in environment

    @pytest.mark.parametrize("form", [["--conf", "{}"], ["--conf={}"], ["-c", "{}"]])
    def test_the_users_python_is_kept(self, form: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """The interpreter that the user asked for is what the launcher goes on in."""
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "from-env")
        assert submit_command(["app.py"])[1][USERS_PYTHON] == "from-env"
        option = [word.format("spark.pyspark.driver.python=/opt/py") for word in form]
        command, environment = submit_command([*option, "app.py", "z"])

        assert environment[USERS_PYTHON] == "/opt/py"
        assert command[3:] == ["app.py", "z"]

    def test_the_users_python_in_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It goes before variables, as for spark-submit."""
        monkeypatch.setenv("PYSPARK_PYTHON", "from-env")
        path = properties(tmp_path, "spark.pyspark.driver.python /opt/py\n")
        _, environment = submit_command(["--properties-file", path, "app.py"])
        assert environment[USERS_PYTHON] == "/opt/py"

    def test_sparks_metrics_are_sent_to_the_driver(self) -> None:
        """If a port is configured: Spark is told before it starts; what you configure yourself is kept."""
        port = free_port()
        own = "spark.metrics.conf.driver.sink.sparkEvents.period=1"
        ours = f"spark.metrics.executors.sink.port={port}"
        options = [
            "--master",
            "spark://m:7077",
            "--conf",
            own,
            "--conf",
            ours,
            "--conf",
            "spark.driver.host=d",
        ]
        command, _ = submit_command([*options, "app.py"])
        given = 3 + len(options)
        assert (command[3:given], command[-1]) == (options, "app.py")
        added = dict(word.split("=", 1) for word in command[given:-1] if word != "--conf")
        sinks = [f"spark.metrics.conf.{instance}.sink.sparkEvents." for instance in ("driver", "executor")]
        assert [added[f"{sink}port"] for sink in sinks] == [str(port)] * 2
        assert [added[f"{sink}host"] for sink in sinks] == ["d"] * 2
        assert len({added[f"{sink}prefix"] for sink in sinks}) == 1
        assert f"{sinks[0]}period" not in added
        assert added["spark.metrics.conf.executor.source.jvm.class"].endswith("JvmSource")

    def test_of_a_range_of_ports_one_that_is_free(self) -> None:
        with socket.create_server(("", 0)) as taken:
            port = taken.getsockname()[1]
            ours = f"spark.metrics.executors.sink.port={port}-{port + 20}"
            command, _ = submit_command(["--conf", ours, "app.py"])
        chosen = next(word for word in command if ".sink.sparkEvents.port=" in word).partition("=")[2]
        assert port < int(chosen) <= port + 20

    @pytest.mark.parametrize("words", [["app.jar"], [], ["--master", "local"], ["--class", "X.py"]])
    def test_only_python(self, words: list[str]) -> None:
        """Anything but a Python file is refused, with the way for the others."""
        with pytest.raises(ConfigError, match=r"Python file.* spark-events follow"):
            submit_command(words)

    def test_help_is_spark_submits(self) -> None:
        """Questions go to spark-submit."""
        assert submit_command(["--version"])[0][-1] == "--version"


PYTHON = "spark.pyspark.driver.python"
FILES = "spark.yarn.dist.files"


class TestClusterMode:
    """The driver's Python attaches where the driver runs, by configuration alone."""

    @pytest.mark.parametrize(
        "words",
        [
            ["--master", "yarn", "--deploy-mode", "cluster"],
            ["--master=yarn", "--deploy-mode=cluster"],
            ["--conf", "spark.master=yarn", "--conf", "spark.submit.deployMode=cluster"],
        ],
    )
    def test_yarn(self, words: list[str]) -> None:
        """However it is asked for: options, application and arguments stay; a script goes with the files."""
        command, environment = submit_command([*words, "--conf", f"{FILES}=mine.txt", "a.py", "x"])
        settings = dict(word.split("=", 1) for word in command if "=" in word and word.startswith("spark."))

        assert command[1 : len(words) + 1] == words
        assert command[-2:] == ["a.py", "x"]
        assert settings[PYTHON] == "./spark-events-python"
        mine, script = settings[FILES].split(",")
        assert mine == "mine.txt"
        assert script.endswith("driver_python.sh#spark-events-python")
        assert not [word for word in command if USERS_PYTHON in word]
        assert USERS_PYTHON not in environment

    def test_cluster_mode_in_the_file(self, tmp_path: Path) -> None:
        """So it is in a properties file, unless the command line says otherwise."""
        lines = "spark.submit.deployMode cluster\nspark.master yarn\nspark.pyspark.python ./env/bin/python\n"
        path = properties(tmp_path, lines)
        command, _ = submit_command(["--properties-file", path, "a.py"])
        assert f"{PYTHON}=./spark-events-python" in command
        assert f"spark.yarn.appMasterEnv.{USERS_PYTHON}=./env/bin/python" in command
        command, _ = submit_command(["--properties-file", path, "--deploy-mode", "client", "a.py"])
        assert not [word for word in command if FILES in word]

    def test_kubernetes(self) -> None:
        """The image has the launcher; it goes on in the interpreter that the driver would have had."""
        own = "spark.kubernetes.driverEnv.PYSPARK_PYTHON=/opt/py"
        words = ["--master", "k8s://https://h", "--deploy-mode", "cluster", "--conf", own]
        command, _ = submit_command([*words, "local:///opt/a.py"])
        assert command[1:] == [
            *words,
            "--conf",
            f"{PYTHON}=spark-events-python",
            "--conf",
            f"spark.kubernetes.driverEnv.{USERS_PYTHON}=/opt/py",
            "local:///opt/a.py",
        ]

    def test_the_users_python_is_kept(self) -> None:
        """In place of the option that named it: of two, spark-submit would take the last."""
        words = ["--master", "yarn", "--deploy-mode", "cluster", "--conf", f"{PYTHON}=/opt/py"]
        command, _ = submit_command([*words, "a.py"])
        assert [word for word in command if word.startswith(PYTHON)] == [f"{PYTHON}=./spark-events-python"]
        assert f"spark.yarn.appMasterEnv.{USERS_PYTHON}=/opt/py" in command

    @pytest.mark.parametrize("master", [["--master", "spark://m:7077"], []])
    def test_where_it_cannot_be(self, master: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """Spark itself has no Python drivers in other clusters."""
        monkeypatch.delenv("MASTER", raising=False)
        with pytest.raises(ConfigError, match=r"YARN and Kubernetes; .* --deploy-mode client"):
            submit_command([*master, "--deploy-mode", "cluster", "a.py"])

    def test_metrics_that_cannot_be_sent(self, caplog: pytest.LogCaptureFixture) -> None:
        """Nobody knows yet where the driver will take them."""
        words = [
            "--master",
            "yarn",
            "--deploy-mode",
            "cluster",
            "--conf",
            "spark.metrics.executors.sink.port=9999",
        ]
        command, _ = submit_command([*words, "a.py"])
        assert "spark.metrics.executors.sink.port has no effect in cluster mode" in caplog.text
        assert not [word for word in command if "sparkEvents" in word]


LAUNCHER = REPO / "spark_events" / "submit" / "driver_python.sh"


def launched(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program as Spark does in a container."""
    path = folder / "app.py"
    path.write_text(
        "import sys; print(__file__, sys.argv, 'spark_events.submit.driver_python' in sys.modules)"
    )
    env = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(
        [str(LAUNCHER), str(path), "x y"], env=env, capture_output=True, text=True, cwd=folder, check=False
    )


@pytest.mark.parametrize("named", [USERS_PYTHON, "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"])
def test_the_drivers_python_in_a_container(tmp_path: Path, named: str) -> None:
    """The first that is named, with spark-events in it; a relative one is of an archive in the container."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    names = (USERS_PYTHON, "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
    later = names[names.index(named) + 1 :]
    done = launched(tmp_path, PYTHONPATH=str(REPO), **{named: "./python"}, **dict.fromkeys(later, "nowhere"))
    assert (done.returncode, done.stderr) == (0, "")
    path = str(tmp_path / "app.py")
    assert done.stdout == f"{path} {[path, 'x y']} True\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [("", "No module named 'spark_events'"), (str(REPO), "No module named ")],
    ids=["without it", "without what it needs"],
)
def test_a_driver_whose_python_has_no_spark_events(tmp_path: Path, path: str, said: str) -> None:
    """It runs all the same, and says what to do."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    done = launched(tmp_path, PYSPARK_PYTHON=str(venv / "bin" / "python"), PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    app = str(tmp_path / "app.py")
    assert done.stdout == f"{app} {[app, 'x y']} False\n"
    assert f"cannot import spark-events (ModuleNotFoundError: {said}" in done.stderr
    assert "so this application is not reported on: ship an environment" in done.stderr


def test_an_application_that_is_not_there(tmp_path: Path) -> None:
    """One sentence, and the exit code that Python has for it; no Spark is started."""
    done = run("run", "--master", "local[1]", str(tmp_path / "nosuch.py"))

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"error can't open file '{tmp_path / 'nosuch.py'}': there is no such file\n"


def test_an_application_that_is_no_file(tmp_path: Path) -> None:
    """It is there, so the sentence says what it is."""
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    for name, why in (("folder.py", "it is a folder"), ("loop.py", "Too many levels of symbolic links")):
        done = run("run", "--master", "local[1]", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"error can't open file '{tmp_path / name}': {why}\n"


def test_an_option_that_takes_the_application_for_its_value(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    done = run("run", "--bogus", str(tmp_path / "app.py"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--bogus takes '{tmp_path / 'app.py'}' for its value, so there is no application" in done.stderr


class TestTurnedOff:
    """``spark.events.enabled=false``, or the environment variable, turns everything off."""

    def test_run_is_spark_submit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing of ours is in its command line; only the interpreter stays the one that there would be."""
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            monkeypatch.delenv(name, raising=False)
        python = f"spark.pyspark.driver.python={sys.executable}"
        workers = f"spark.pyspark.python={sys.executable}"

        assert plain_command(["a.py", "x"])[0][1:] == ["--conf", python, "--conf", workers, "a.py", "x"]
        command, _ = plain_command(["--master", "spark://m:7077", "a.py"])
        assert command[1:] == ["--conf", python, "--master", "spark://m:7077", "a.py"]
        for words in (
            ["--deploy-mode", "cluster", "a.py"],
            ["a.jar"],
            ["--conf", "spark.pyspark.python=p", "a.py"],
        ):
            assert plain_command(words)[0][1:] == words
        monkeypatch.setenv("PYSPARK_PYTHON", "/opt/py")
        assert plain_command(["a.py"])[0][1:] == ["a.py"]

    @pytest.mark.parametrize("variable", ["", "FALSE", "0", "no", "off"])
    def test_check_says_so(self, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With reporters or without any, nothing is wrong."""
        conf = {} if variable else {"spark.events.enabled": "false"}
        by_what = "spark.events.enabled=false"
        if variable:
            monkeypatch.setenv("SPARK_EVENTS_ENABLED", variable)
            by_what = f"SPARK_EVENTS_ENABLED={variable} in the environment"
        result = check(conf, False)

        assert result.problems == []
        assert result.warnings == [f"nothing is reported: {by_what}"]

    def test_a_wrong_value_turns_nothing_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPARK_EVENTS_ENABLED", "perhaps")
        assert turned_off({}) == ""
        said = "environment variable SPARK_EVENTS_ENABLED: 'perhaps' is not valid; expected true or false"
        assert said in check({}, False).problems
        assert turned_off({"spark.events.enabled": "perhaps"}) == ""
        monkeypatch.setenv("SPARK_EVENTS_ENABLED", "true")
        assert turned_off({"spark.events.enabled": "false"}) == "spark.events.enabled=false"


NEAR_MISSES = {
    "spark.event.reporter.f.path": "spark.events.reporter.f.path",
    "spark.Events.reporter.f.path": "spark.events.reporter.f.path",
    "spark.events.reporters.f.path": "spark.events.reporter.f.path",
    "spark.events.repoter.f.path": "spark.events.reporter.f.path",
    "spark.metric.reporter.p.port": "spark.metrics.reporter.p.port",
    "spark.metrics.reporters.p.port": "spark.metrics.reporter.p.port",
    "spark.trace.reporter.t.factory.class": "spark.traces.reporter.t.factory.class",
    "spark.event.checkpoint.sla": "spark.events.checkpoint.sla",
    "spark.job-status-change.listener.l.path": "spark.job-status-changed.listener.l.path",
    "events.reporter.f.path": "spark.events.reporter.f.path",
    "spark.events.enable": "spark.events.enabled",
    "spark.events.sla": "spark.events.checkpoint.sla",
}
SPARKS_OWN = (
    "spark.eventLog.dir",
    "spark.metrics.staticSources.enabled",
    "spark.metrics.conf.*.sink.csv.class",
    "spark.memory.fraction",
    "spark.executor.metrics.pollingInterval",
    "spark.sql.metrics.x",
    "events.x",
)


@pytest.mark.parametrize("key", [*NEAR_MISSES, *SPARKS_OWN])
def test_near_misses_of_a_namespace(key: str) -> None:
    """A key that nobody reads, and that was meant for us; Spark's own are none."""
    problems = [problem for problem in check({key: "1"}, False).problems if problem.startswith(key)]

    if key in NEAR_MISSES:
        assert problems == [f"{key}: unknown key; did you mean {NEAR_MISSES[key]!r}?"]
    else:
        assert problems == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"factory.class": "file_log", "path": "/proc/x"},
            ": cannot write to folder /proc: its file system takes no new files",
        ),
        ({"factory.class": "file_log", "path": "{}/a file/x"}, "a file: Not a directory"),
        (
            {
                "factory.class": "tests.plugin_example.spark_events_sqlite:SqliteReporterFactory",
                "path": "{}/no/x.db",
            },
            "unable to open database file",
        ),
        ({"factory.class": "tests.support.plugins:Raising", "in": "open"}, "no open today"),
    ],
    ids=["proc", "file", "plugin", "open"],
)
def test_connect_tries_what_the_reporter_will_do(tmp_path: Path, options: dict[str, str], said: str) -> None:
    """Also of a plugin that has no probe of its own."""
    (tmp_path / "a file").touch()
    conf = {f"spark.events.reporter.r.{key}": value.format(tmp_path) for key, value in options.items()}
    (problem,) = check(conf, True).problems

    assert said in problem


def test_a_value_with_quotation_marks() -> None:
    """Spark leaves them there, and the path would begin with one."""
    conf = {"spark.events.reporter.f.factory.class": "file_log", "spark.events.reporter.f.path": '"/tmp/x"'}
    assert check(conf, False).problems == [
        "spark.events.reporter.f.path: begins with a quotation mark; spark-defaults.conf takes values without quotes"
    ]


def test_connect_leaves_nothing_behind(tmp_path: Path) -> None:
    conf = {
        "spark.events.reporter.f.factory.class": "file_log",
        "spark.events.reporter.f.path": str(tmp_path / "events"),
        "spark.events.reporter.r.factory.class": "tests.support.plugins:CollectingFactory",
    }
    found = check(conf, True)

    assert [each.reached for each in found.reporters] == [
        f"{tmp_path / 'events'} is writable",
        "opened and closed the reporter",
    ]
    assert not list(tmp_path.iterdir())


def test_help_of_run() -> None:
    """It says what run adds to spark-submit, and then what spark-submit says."""
    done = run("run", "--help")

    assert "Usage: spark-events run [spark-submit options] app.py [arguments]" in done.stdout
    assert "In cluster mode, on YARN and Kubernetes, the driver's Python in the container" in done.stdout
    assert "--deploy-mode" in done.stdout + done.stderr


def test_check_says_what_the_settings_are_for(tmp_path: Path) -> None:
    """The settings alone report nothing."""
    done = run("check", "--properties-file", properties(tmp_path, GOOD.format(path=tmp_path)))

    assert "spark-events run starts, or that call spark_events.attach(spark)" in done.stdout


def test_check_says_what_spark_has_to_be_told(tmp_path: Path) -> None:
    """For those who attach in their code: the lines with which Spark sends its own metrics."""
    port = "spark.metrics.executors.sink.port 9270"
    path = properties(tmp_path, f"{GOOD.format(path=tmp_path)}\n{port}\nspark.driver.host driver-7")
    done = run("check", "--properties-file", path)
    assert done.returncode == 0
    lines = dict(line.split(maxsplit=1) for line in done.stderr.splitlines() if line.startswith("  spark."))
    assert lines["spark.metrics.conf.executor.sink.sparkEvents.host"] == "driver-7"
    assert lines["spark.metrics.conf.driver.sink.sparkEvents.port"] == "9270"
    told = "\n".join(f"{key} {value}" for key, value in lines.items())
    path = properties(tmp_path, f"{GOOD.format(path=tmp_path)}\n{port}\n{told}")
    assert "warning" not in run("check", "--properties-file", path).stderr


@pytest.mark.parametrize(
    "command",
    [
        ("report",),
        ("report", "--engine", "local", "--store"),
        ("replay",),
        ("follow",),
        ("why",),
        ("lineage",),
    ],
)
@pytest.mark.parametrize(
    "url",
    [
        pytest.param("sftp://me:hunter2@127.0.0.1:1/x", marks=pytest.mark.extended),
        "s3a://AKIA:hunter2@bucket/x",
        pytest.param("http://127.0.0.1:1/x.json?token=hunter2", marks=pytest.mark.extended),
    ],
)
def test_secrets_of_a_url_are_not_shown(command: tuple[str, ...], url: str) -> None:
    """The error of a path that cannot be read names it without its password or token."""
    done = run(*command, url)

    assert done.returncode in (2, 3, 4), done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert "******" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_value_is_not_shown_whole() -> None:
    """A value of 100 kB would scroll all else away."""
    done = run("check", "--conf", "spark.events.close.timeout=" + "9x" * 50_000)

    assert done.returncode == 3
    assert len(done.stderr) < 10_000
    assert "spark.events.close.timeout" in done.stderr
    assert "characters)" in done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_an_output_of_few_characters(encoding: str, tmp_path: Path) -> None:
    """What it does not have becomes a question mark, and JSON has escapes."""
    event = {
        "eventName": "JobStatusChangeEvent",
        "eventId": "1",
        "timeUnixNano": "1764081000000000000",
        "attributes": {
            "app_name": "größe→",
            "app_id": "a",
            "job_kind": "application",
            "newJobStatus": "RUNNING",
        },
    }
    (tmp_path / "a.events.000001.jsonl").write_text(json.dumps(event) + "\n")
    command = cli("report", str(tmp_path))
    env = {**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, env=env, cwd=REPO, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode(encoding)[-2_000:]
    assert {"latin-1": "größe?", "ascii": "gr??e?"}[encoding] in done.stdout.decode(encoding)


def test_json_is_json_in_any_encoding() -> None:
    code = "from spark_events.cli.terminal.console import print_json; print_json({'a': 'ü→\U0001f600'})"
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert json.loads(done.stdout) == {"a": "ü→\U0001f600"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("command", [("plugins",), ("paths",)])
def test_an_output_that_is_full(command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            cli(*command), cwd=REPO, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error the output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_links_in_a_circle(tmp_path: Path) -> None:
    """Each command names what it cannot read or write."""
    link = tmp_path / "link"
    link.symlink_to(link)
    done = run("follow", str(link), "--state", str(tmp_path / "state"))
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    assert f"{link}: cannot be listed" in done.stderr
    done = run("follow", str(link))
    assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
    with pytest.raises(ConfigError, match=f"{link}: cannot be written"):
        write_whole(link, b"")


@pytest.mark.parametrize(
    ("path", "of_spark", "key"),
    [
        ("/tmp/spark-events", {}, "spark.eventLog.dir"),
        ("file:///logs/x/", {"spark.eventLog.dir": "file:/logs/x"}, "spark.eventLog.dir"),
        ("/logs/h", {"spark.history.fs.logDirectory": "/logs/h"}, "spark.history.fs.logDirectory"),
        ("/logs/mine", {"spark.eventLog.dir": "hdfs:///logs/mine"}, ""),
        ("/tmp/spark-events", {"spark.eventLog.dir": "/a", "spark.history.fs.logDirectory": "/a"}, ""),
    ],
)
def test_a_folder_that_is_sparks_own(path: str, of_spark: dict[str, str], key: str) -> None:
    """Two kinds of files in one folder, and neither reader knows which is whose."""
    reporter = "spark.events.reporter.f"
    result = check({f"{reporter}.factory.class": "file_log", f"{reporter}.path": path, **of_spark}, False)
    warnings = [warning for warning in result.warnings if "Spark's own event logs" in warning]

    assert result.problems == []
    assert [f"({key})" in warning for warning in warnings] == ([True] if key else [])


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        *((words, ">&- <&- 2>&-") for words in ("show {}", "init --folder {0} --output {0}/x.conf")),
        *(("show {} --json", closed) for closed in (">&-", "<&-", "2>&-")),
    ],
)
def test_standard_streams_that_are_closed(tmp_path: Path, words: str, closed: str) -> None:
    """As a service may have them: what is written there is lost, and nothing else."""
    event = {"eventName": "E", "timeUnixNano": "1", "body": "b", "attributes": {"app_name": "a"}}
    (tmp_path / "a.events.000001.jsonl").write_text(json.dumps(event) + "\n")
    command = f"exec {shlex.join(cli(*words.format(tmp_path).split()))} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    words = shlex.join(cli("init", "--folder", "events"))
    command = ["sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && exec {words}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 1
    assert "the working folder is gone: it was removed; change to another one" in done.stderr
