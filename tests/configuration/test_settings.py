"""A setting is declared once: the reader, check, the documentation and the shipped file have it from there."""

from __future__ import annotations

import re

import pytest

from docs.settings_tables import FILES, ROOT, rewritten
from spark_events.configuration.check import check
from spark_events.ctas.settings import OF_CTAS, CtasSettings
from spark_events.ctas.settings import read_settings as read_ctas
from spark_events.listeners.scopes import ScopeFormats
from spark_events.listeners.settings import ListenerSettings, read_settings
from spark_events.runtime.plugins import METRICS
from spark_events.runtime.settings import Declared, declared_in
from spark_events.runtime.setup import ReporterSettings, read_setups
from spark_events.sources.attaching.unknown_keys import OF_REPORTERS, OF_THE_FRAMEWORK
from spark_events.sources.instead import default_text

FILE = {"spark.events.reporter.f.factory.class": "file_log", "spark.events.reporter.f.path": "/tmp/x"}
OWN = {"spark.metrics.reporter.m.factory.class": "tests.support.plugins:CollectingMetricsFactory"}
OTHER = {
    "spark.events.enabled": "false",
    "spark.events.task.enabled": "false",
    "spark.events.task.failures.enabled": "false",
    "spark.traces.tasks.enabled": "true",
    "spark.events.checkpoint.sla": "7s",
    "spark.events.checkpoint.query-sla.": "7s",
    "spark.metrics.job.status.enable": "STATE",
    "spark.metrics.scope.delimiter": "_",
    "spark.traces.checkpoint.span-detail-level": "CHILDREN_SPANS_PER_TASK",
    "spark.events.stop.signals": "SIGTERM",
    "spark.traces.parent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "spark.traces.sampling.ratio": "0.5",
}
OF_TYPE = {
    "string": "other",
    "duration": "61s",
    "size": "77m",
    "int": "77",
    "bool": "true",
    "list": "a,b",
    "map": "a:b",
    "choice": "newest",
    "scope format": "<app_name>.x",
    "ports": "9270-9279",
    "local path": "/other",
}


def other(declared: Declared) -> str:
    """Return a value that is not the default."""
    return OTHER.get(declared.option.name) or OF_TYPE[declared.option.type.name]


def declared_by(*classes: type) -> list[tuple[type, str, Declared]]:
    return [(of, name, declared) for of in classes for name, declared in declared_in(of).items()]


@pytest.mark.parametrize(
    ("of", "name", "declared"),
    declared_by(ListenerSettings, ScopeFormats, CtasSettings, ReporterSettings),
    ids=lambda value: value.option.name if isinstance(value, Declared) else "",
)
def test_its_reader_takes_it(of: type, name: str, declared: Declared) -> None:
    """Under its key, a value that is not the default arrives in its field."""
    key = declared.option.name + ("nightly" if declared.placeholder else "")
    value = other(declared)
    if of is ReporterSettings:
        factory = {} if name == "factory_class" else OWN
        value = OWN["spark.metrics.reporter.m.factory.class"] if name == "factory_class" else value
        setups, errors = read_setups({**factory, f"spark.metrics.reporter.m.{key}": value}, METRICS)
        (settings,) = (setup.settings for setup in setups)
    elif of is CtasSettings:
        settings, errors = read_ctas({key: value, "spark.sql.warehouse.dir": "/w"}), []
    else:
        read, errors = read_settings({key: value})
        settings = read.scopes if of is ScopeFormats else read

    assert errors == []
    assert getattr(settings, name) != declared.option.default
    assert str(declared.option.type.parse(value)) in str(getattr(settings, name)) or name.endswith(
        "variables"
    )


@pytest.mark.parametrize("declared", [*OF_THE_FRAMEWORK, *OF_CTAS], ids=lambda each: each.option.name)
def test_check_knows_it(declared: Declared) -> None:
    """It is not an unknown key, a letter more is, and a value that cannot be is a problem of that key."""
    key = declared.option.name + ("nightly" if declared.placeholder else "")
    misspelled = declared.option.name.removesuffix(".") + "x"
    wrong = {"duration": "soon", "size": "big", "ratio": "2", "scope format": "..", "choice": "perhaps"}

    assert (
        check({**FILE, key: declared.example or default_text(declared) or other(declared)}, False).problems
        == []
    )
    assert any(
        text.startswith(f"{misspelled}: unknown key")
        for text in check({**FILE, misspelled: "1"}, False).problems
    )
    if (bad := wrong.get(declared.option.type.name)) is not None:
        assert any(text.startswith(f"{key}: {bad!r}") for text in check({**FILE, key: bad}, False).problems)


@pytest.mark.parametrize("name", FILES)
def test_the_documentation_has_it(name: str) -> None:
    """What stands in the files is what the declarations make; `make settings` writes it."""
    text = (ROOT / name).read_text()

    assert "settings: " in text
    assert rewritten(text) == text


def test_each_has_a_sentence_and_a_default() -> None:
    """In the documentation nobody has to guess."""
    page = "\n".join((ROOT / name).read_text() for name in FILES)
    for declared in (*OF_REPORTERS, *OF_THE_FRAMEWORK, *OF_CTAS):
        assert re.search(rf"^\| {re.escape(declared.option.name)}.*\| \S.* \|$", page, re.M), declared
