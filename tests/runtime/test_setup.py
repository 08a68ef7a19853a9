"""Which reporters a configuration starts, and what a wrong one is told."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from spark_events.runtime.plugins import EVENTS, JOB_LISTENERS, KINDS, METRICS, SPANS, Kind, installed
from spark_events.runtime.setup import read_setups

FILE = {"spark.events.reporter.file.factory.class": "file_log", "spark.events.reporter.file.path": "/tmp/x"}


def read(conf: dict[str, str], kind: Kind = EVENTS) -> tuple[list[str], str]:
    setups, errors = read_setups(conf, kind)
    return [setup.name for setup in setups], "\n".join(p for error in errors for p in error.problems)


def test_all_configured_reporters_start() -> None:
    """Without a list of names, all that are configured start."""
    two = {**FILE, "spark.events.reporter.screen.factory.class": "console"}

    assert read(two) == (["file", "screen"], "")


def test_the_list_of_names_decides() -> None:
    """With a list of names, those start, and one that is not configured is an error."""
    two = {**FILE, "spark.events.reporter.screen.factory.class": "console"}

    assert read({**two, "spark.events.reporters": "screen"}) == (["screen"], "")
    names, problems = read({**two, "spark.events.reporters": "screen,flie"})
    assert names == ["screen"]
    assert problems.startswith(
        "spark.events.reporters: 'flie' is not configured; set spark.events.reporter.flie."
    )


@pytest.mark.parametrize(("second", "is_said"), [("b", True), ("a", False)])
def test_two_lists_of_listeners(second: str, is_said: bool) -> None:
    """Flink's own key is another name of ours: with both, one is ignored, and it says which."""
    prefix = "spark.job-status-changed.listener"
    conf = {f"{prefix}.a.factory.class": "file_log", f"{prefix}.a.path": "/tmp/a"}
    conf |= {f"{prefix}s": "a", "spark.execution.job-status-changed-listeners": second}
    setups, errors = read_setups(conf, JOB_LISTENERS)
    assert [setup.name for setup in setups] == ["a"]
    said = "spark.execution.job-status-changed-listeners: 'b' is ignored"
    assert [said in str(error) for error in errors] == ([True] if is_said else [])


def test_a_setting_without_a_key_names_no_reporters() -> None:
    """A line such as ``= x`` is nobody's list of names."""
    assert read({**FILE, "": "x"}) == (["file"], "")


@pytest.mark.parametrize("raises", ["sys.exit(2)", "raise BaseException", "raise TextlessError"])
def test_a_plugin_whose_module_raises_affects_no_other(
    raises: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module may be a program that exits; whatever comes out of it, the other reporters start."""
    (tmp_path / "a_program.py").write_text(
        f"import sys\nfrom tests.support.plugins import TextlessError\n{raises}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    names, problems = read({**FILE, "spark.events.reporter.own.factory.class": "a_program:Factory"})
    assert names == ["file"]
    assert problems.startswith(
        "spark.events.reporter.own.factory.class: 'a_program:Factory' cannot be imported ("
    )


def test_a_signal_ends_the_process_while_a_plugin_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the application's own handler of a signal raises is no error of the plugin."""
    (tmp_path / "a_slow_one.py").write_text("import signal\nsignal.raise_signal(signal.SIGUSR1)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def leave(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with pytest.raises(SystemExit):
            read({"spark.events.reporter.own.factory.class": "a_slow_one:Factory"})
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_plugin_with_odd_options_affects_no_other() -> None:
    """What is wrong with a factory itself leaves its reporter out, and no other."""
    names, problems = read(
        {**FILE, "spark.events.reporter.own.factory.class": "tests.support.plugins:OddOptions"}
    )
    assert names == ["file"]
    assert (
        "spark.events.reporter.own.factory.class: 'tests.support.plugins:OddOptions': its factory" in problems
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_built_in_reporters_are_found_as_plugins(kind: Kind) -> None:
    """Each built-in is an entry point of its kind, and its factory is of the kind's class."""
    from spark_events.runtime.plugins import load_factory

    assert installed(kind.entry_points)
    for name in installed(kind.entry_points):
        assert isinstance(load_factory(kind, name, "key"), kind.factory)


@pytest.mark.parametrize("kind", [EVENTS, SPANS, METRICS], ids=lambda kind: kind.name)
def test_the_three_kinds_are_read_alike(kind: Kind) -> None:
    """One set of mistakes gets the same words in each kind."""
    conf = {
        f"{kind.prefix}a.factory.class": "nothing",
        f"{kind.prefix}b.path": "/tmp",
        f"{kind.prefix}c": "x",
    }
    names, problems = read(conf, kind)

    assert names == []
    lines = sorted(problems.splitlines())
    assert lines[0].startswith(f"{kind.prefix}a.factory.class: unknown {kind.title} 'nothing'")
    assert lines[1].startswith(f"{kind.prefix}b.factory.class: missing; set it to one of ")
    assert lines[2] == f"{kind.prefix}c: not an option; expected {kind.prefix}<name>.<option>"


def test_a_misspelled_factory_class() -> None:
    _, problems = read({"spark.events.reporter.f.factory.clas": "file_log"})

    assert problems.splitlines()[0].endswith("or to module:Class; found 'factory.clas'")


def test_a_factory_of_another_kind_is_told_where_it_belongs() -> None:
    """Prometheus as an event reporter is a likely slip: the error gives the right key."""
    _, problems = read({"spark.events.reporter.prom.factory.class": "prometheus"})

    assert problems == (
        "spark.events.reporter.prom.factory.class: 'prometheus' is not one of the event reporters; "
        "configure it as spark.metrics.reporter.<name>.factory.class"
    )


def test_all_mistakes_of_a_reporter_at_once() -> None:
    """A slip in a key gets a suggestion; every mistake is named, and only once."""
    _, problems = read(
        {
            **FILE,
            "spark.events.reporter.file.pahth": "/tmp",
            "spark.events.reporter.file.rotate.max-bytes": "big",
            "spark.events.reporter.file.queue.max-items": "0",
            "spark.events.reporter.file.filter.includes": "a:b:c",
        }
    )

    keys = sorted(
        line.split(": ")[0].removeprefix("spark.events.reporter.file.") for line in problems.splitlines()
    )
    assert keys == ["filter.includes", "pahth", "queue.max-items", "rotate.max-bytes"]
    assert "unknown option; did you mean 'path'?" in problems


def test_a_misspelled_option_stops_nothing() -> None:
    """The reporter starts without it, and it is told; what was to protect something is an error."""
    (setup,), errors = read_setups({**FILE, "spark.events.reporter.file.pth": "/tmp"}, EVENTS)

    assert errors == []
    assert setup.ignored[0].startswith(
        "spark.events.reporter.file.pth: unknown option; did you mean 'path'? allowed: "
    )
    assert read({**FILE, "spark.events.reporter.file.filter.exclude": "*"})[0] == []
    prometheus = {"spark.metrics.reporter.p.factory.class": "prometheus"}
    for option in ("auth.tokn", "tls.client.authorites", "bind.adress"):
        names, problems = read({**prometheus, f"spark.metrics.reporter.p.{option}": "x"}, METRICS)
        assert names == []
        assert f"{option}: unknown option" in problems


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("rotate.maxBytes", "rotate.max-bytes"),
        ("ROTATE_MAX_BYTES", "rotate.max-bytes"),
        ("flush.policy", "drop.policy"),
        ("somewhere.else.entirely.max-bytes", ""),  # there are several
    ],
)
def test_what_was_meant_by_an_unknown_option(option: str, meant: str) -> None:
    (setup,), _ = read_setups({**FILE, f"spark.events.reporter.file.{option}": "1"}, EVENTS)

    assert f"{option}: unknown option; " in setup.ignored[0]
    assert f"did you mean {meant!r}?" in setup.ignored[0] if meant else "did you mean" not in setup.ignored[0]


@pytest.mark.parametrize(
    ("name", "meant"), [("filelog", "file_log"), ("FileLog", "file_log"), ("nothing", "")]
)
def test_what_was_meant_by_an_unknown_factory(name: str, meant: str) -> None:
    _, problems = read({"spark.events.reporter.f.factory.class": name})
    hint = f"did you mean {meant!r}? " if meant else ""

    assert f"unknown event reporter {name!r}; {hint}installed: console, " in problems


def test_settings_around_a_reporter() -> None:
    """Variables are added and left out, in Flink's spelling with angle brackets, too."""
    (setup,), errors = read_setups(
        {
            **FILE,
            "spark.events.reporter.file.scope.variables.additional": "team:payments,<env>:prod",
            "spark.events.reporter.file.scope.variables.excludes": "<app_id>;host",
        },
        EVENTS,
    )

    assert errors == []
    assert setup.variables.seen({"app_id": "1", "app_name": "a"}) == {
        "app_name": "a",
        "team": "payments",
        "env": "prod",
    }
    assert setup.config.values == {"path": "/tmp/x"}


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("tests.support.plugins:Nothing", "cannot be imported (AttributeError"),
        ("tests.nowhere:Factory", "cannot be imported (ModuleNotFoundError"),
        (
            "tests.support.plugins:Collecting",
            "is not a subclass of spark_events.api.reporter.EventReporterFactory",
        ),
        ("tests.support.plugins:RaisesInConstructor", "raised RuntimeError: no constructor today"),
    ],
)
def test_module_and_class(target: str, problem: str) -> None:
    """``module:Class`` that cannot be used says why."""
    names, problems = read({"spark.events.reporter.own.factory.class": target})

    assert names == []
    assert problem in problems


def test_module_and_class_that_works() -> None:
    """``module:Class`` needs no entry point, and takes any option when it declares none."""
    conf = {"factory.class": "tests.support.plugins:CollectingFactory", "whatever": "1"}

    assert read({f"spark.events.reporter.own.{k}": v for k, v in conf.items()}) == (["own"], "")
