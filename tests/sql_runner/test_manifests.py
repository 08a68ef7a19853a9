"""Manifests: what is read, what is wrong with one, and where."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from spark_events.api import ConfigError
from spark_events.cli.lineage.plan import _files as planned_files
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.manifest.folder import read_files, read_folder
from spark_events.sql_runner.manifest.manifest import json_schema, parse_manifest
from spark_events.sql_runner.manifest.yaml_text import read_yaml, write_yaml
from tests.support.paths import REPO

GOOD = "name: q\ntarget-table: t\nsql: SELECT 1\n"


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        parse_manifest(read_yaml(text, "m.yaml"))
    return list(raised.value.problems)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (
            "name: 'a b'\ntarget-table: t\nsql: s\n",
            "m.yaml:1: name:",
            "'a b' is not valid; expected letters",
        ),
        ("name: q\nsql: s\n", "m.yaml:1: target-table: missing;", "takes the rows"),
        ("name: q\n\ntarget-table: 5\nsql: s\n", "m.yaml:3: target-table:", "5 is not valid"),
        (
            GOOD + "description: 2026-01-02\n",
            "m.yaml:4: description:",
            "2026-01-02 is not valid, as YAML does not read it as a text; put it in quotes",
        ),
        (GOOD + "outputmode: x\n", "m.yaml:4: outputmode:", "unknown key; expected name, description"),
        (
            GOOD + "output-mode: appendd\n",
            "m.yaml:4: output-mode:",
            "expected 'append', 'update' or 'complete'",
        ),
        (GOOD + "code: x = 1\n", "m.yaml:1:", "expected either sql or code"),
        ("name: q\ntarget-table: t\n", "m.yaml:1:", "expected either sql or code"),
        (
            GOOD + "trigger:\n  processing-time: soon\n",
            "m.yaml:5: trigger.processing-time:",
            "a duration such as",
        ),
        (
            GOOD + "trigger: 10s\n",
            "m.yaml:4: trigger:",
            "'10s' is not valid; expected a mapping such as {processing-",
        ),
        (GOOD + "static-tables: abc\n", "m.yaml:4: static-tables:", "expected a list of strings"),
        (
            GOOD + "include-query-metadata: 7\n",
            "m.yaml:4: include-query-metadata:",
            "7 is not valid; expected true",
        ),
        ("name: q\ntarget-table:\nsql: s\n", "m.yaml:2: target-table:", "it is empty; expected a string"),
        (GOOD + "trigger: {}\n", "m.yaml:4: trigger:", "one of processing-time"),
        (
            GOOD + "trigger:\n  once: true\n",
            "m.yaml:5: trigger.once:",
            "expected processing-time, available-now",
        ),
        (GOOD + "meta:\n  query-id: x\n", "m.yaml:4: meta:", "is written by the deployment"),
        (GOOD + "sparkProperties:\n  a: b\n", "m.yaml:5: sparkProperties.a:", "begin with 'spark.'"),
        (
            GOOD + "sparkProperties:\n  spark.x: [1]\n",
            "m.yaml:5: sparkProperties.spark.x:",
            "expected a string",
        ),
        (GOOD + "sparkProperties: yes\n", "m.yaml:4: sparkProperties:", "expected a mapping"),
        (
            GOOD + "sparkProperties:\n  spark.events.sql.x: 1\n",
            "m.yaml:5: sparkProperties.spark.events.sql.x:",
            "stop.timeout",
        ),
        (
            GOOD + "sparkProperties:\n  spark.events.sql.restart-strategy.type: often\n",
            "m.yaml:5: sparkProperties.spark.events.sql.restart-strategy.type:",
            "'often' is not valid; expected fixed-delay or none",
        ),
        (
            GOOD + "flinkProperties:\n  restart-strategy.fixed-delay.delay: soon\n",
            "sparkProperties.spark.events.sql.restart-strategy.fixed-delay.delay:",
            "'soon' is not valid",
        ),
    ],
)
def test_an_error_names_file_line_key_and_what_is_allowed(text: str, place: str, words: str) -> None:
    found = problems(text)

    assert len(found) == 1, found
    assert place in found[0]
    assert words in found[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", "m.yaml:2: not YAML"),
        ("- a\n", "m.yaml:1: a sequence; expected a mapping"),
        ("", "m.yaml:1: nothing; expected a mapping"),
        ("a: 1\nb: 2\na: 3\n", "m.yaml:3: a: is given twice"),
        ("a: 1\n---\nb: 2\n", "m.yaml:"),
        ("a: \x07\n", "m.yaml:1: not YAML"),
    ],
)
def test_what_is_no_yaml(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_yaml(text, "m.yaml")

    assert message in str(raised.value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("1" + ":00" * 400 + ".0", id="a float of base 60"),
        pytest.param("1" + ":59" * 340_000, id="an int of base 60"),
        pytest.param("9" * 101, id="an int that is long"),
        pytest.param("1" + ":59" * 30, id="an int that is large"),
        "!!int ''",
        "!!int '-'",
        "!!float ''",
        "!!float x",
    ],
)
def test_a_number_that_is_none(value: str) -> None:
    with pytest.raises(ConfigError, match=r"m\.yaml:4: .* expected a YAML (int|float)"):
        read_yaml(f"{GOOD}description: {value}\n", "m.yaml")


def test_the_length_of_a_number_is_told_before_it_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(*_: object) -> int:
        raise AssertionError("it is computed")

    monkeypatch.setitem(yaml.SafeLoader.yaml_constructors, "tag:yaml.org,2002:int", computed)
    with pytest.raises(ConfigError, match="has 3,001 characters; expected a YAML int of at most 100"):
        read_yaml(f"{GOOD}description: 1{':59' * 1_000}\n", "m.yaml")


def test_all_errors_come_at_once() -> None:
    found = problems("name: 5\nfoo: 1\nsparkProperties:\n  spark.a: [1]\n")

    assert [problem.split(" ")[0] for problem in found] == [
        "m.yaml:1:",
        "m.yaml:1:",
        "m.yaml:2:",
        "m.yaml:4:",
    ]


def test_properties_are_texts() -> None:
    text = GOOD + "sparkProperties:\n  spark.a: 2\n  spark.b: true\n  spark.c: x\n"
    manifest, warnings = parse_manifest(read_yaml(text, "m.yaml"))

    assert manifest.spark_properties == {"spark.a": "2", "spark.b": "true", "spark.c": "x"}
    assert warnings == []


def test_flinks_properties_are_translated_where_they_have_a_meaning() -> None:
    text = (
        GOOD
        + """flinkProperties:
  execution.checkpointing.interval: 60s
  pipeline.object-reuse: "true"
  restart-strategy: fixed-delay
  restart-strategy.fixed-delay.attempts: 3
  restart-strategy.fixed-delay.delay: 5 s
  state.backend: rocksdb
  state.backend.incremental: true
  spark.sql.shuffle.partitions: 4
"""
    )
    manifest, warnings = parse_manifest(read_yaml(text, "m.yaml"))

    assert manifest.trigger is not None
    assert manifest.trigger.options == {"processingTime": "60000 milliseconds"}
    assert (manifest.settings.most_restarts, manifest.settings.restart_delay_ms) == (3, 5_000)
    assert manifest.spark_properties["spark.sql.shuffle.partitions"] == "4"
    assert manifest.spark_properties["spark.sql.streaming.stateStore.providerClass"].endswith(
        "RocksDBStateStoreProvider"
    )
    assert [warning.split(": ")[:2] for warning in warnings] == [
        ["m.yaml:6", "flinkProperties.pipeline.object-reuse"],
        ["m.yaml:11", "flinkProperties.state.backend.incremental"],
    ]


def test_a_template_has_the_defaults(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(
        "description: by {job_name}\ntrigger:\n  processing-time: 10s\nsparkProperties:\n  spark.a: 1\n  spark.b: '{name}'\n"
    )
    (tmp_path / "q.yaml").write_text(
        GOOD + "trigger:\n  processing-time: 1s\nsparkProperties:\n  spark.a: 2\n"
    )

    manifest = read_folder(tmp_path, template).or_fail().by_name["q"]

    assert manifest.description == "by q"
    assert manifest.spark_properties == {"spark.a": "2", "spark.b": "q"}
    assert manifest.trigger is not None
    assert manifest.trigger.options == {"processingTime": "1000 milliseconds"}


def test_the_trigger_of_a_manifest_has_nothing_of_its_template(tmp_path: Path) -> None:
    """Of three kinds, a trigger has one."""
    template = tmp_path / "template.yaml"
    template.write_text("trigger:\n  processing-time: 10 seconds\n")
    (tmp_path / "q.yaml").write_text(
        "name: q\ntarget-table: t\nsql: SELECT 1\ntrigger: {available-now: true}\n"
    )
    (tmp_path / "r.yaml").write_text("name: r\ntarget-table: u\nsql: SELECT 1\ntrigger: {wrong: true}\n")

    manifests = read_folder(tmp_path, template)
    trigger = manifests.by_name["q"].trigger
    assert trigger is not None
    assert trigger.options == {"availableNow": True}
    (problem,) = manifests.problems
    assert problem.startswith(f"{tmp_path / 'r.yaml'}:4: trigger.wrong: ")


def test_an_error_in_a_template_names_the_template(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text("description: x\nsparkProperties:\n  wrong: 1\n")
    (tmp_path / "q.yaml").write_text(GOOD)
    found = read_folder(tmp_path, template).problems

    assert found == [
        f"{template}:3: sparkProperties.wrong: is not a Spark property; expected keys that begin with 'spark.'"
    ]
    template.write_text("sql: SELECT 1\n")
    with pytest.raises(ConfigError, match="belongs to a manifest, not to the template"):
        read_folder(tmp_path, template)


def test_two_manifests_with_one_name(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.yml").write_text("\n" + GOOD)

    with pytest.raises(ConfigError, match=r"b\.yml:2: name: 'q' is also the name in .*a\.yaml; expected"):
        read_folder(tmp_path, None).or_fail()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    # With --prune, a folder that is empty by mistake would stop all queries.
    with pytest.raises(ConfigError, match="has no manifest"):
        read_folder(tmp_path, None)
    with pytest.raises(ConfigError, match="is not a folder"):
        read_folder(tmp_path / "none", None)
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        read_files([tmp_path / "none.yaml"], None).or_fail()


def test_a_manifest_that_is_written_reads_the_same() -> None:
    text = (
        GOOD.replace("SELECT 1", "|\n  SELECT 1\n  FROM x -- y: z")
        + "static-tables: [a, b.c]\noutput-mode: update\n"
    )
    manifest, _ = parse_manifest(read_yaml(text, "m.yaml"))

    again, _ = parse_manifest(read_yaml(write_yaml(manifest.values()), "m.yaml"))

    assert again == manifest
    assert "sql: |" in write_yaml(manifest.values())


def test_the_schema_for_editors_is_the_one_in_conf() -> None:
    shipped = json.loads((REPO / "conf" / "sql-runner" / "manifest.schema.json").read_text())

    assert shipped == json_schema(), "spark-events sql schema > conf/sql-runner/manifest.schema.json"


def test_the_schema_takes_the_examples_and_refuses_what_is_wrong() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    examples = sorted((REPO / "conf" / "sql-runner" / "queries").glob("*.yaml"))

    assert examples
    for path in examples:
        validator.validate(read_yaml(path.read_text(), str(path)).values)
    for wrong in ({"name": "a b"}, {"foo": 1}, {"sql": None}, {"code": "x"}, {"trigger": {"once": True}}):
        values = {"name": "q", "target-table": "t", "sql": "SELECT 1", **wrong}
        assert not validator.is_valid(values), wrong


def test_the_examples_are_manifests() -> None:
    folder = REPO / "conf" / "sql-runner"

    assert read_folder(folder / "queries", folder / "template.yaml").or_fail().by_name


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "m.yaml:5: more than 50,000 values, with each alias"),
        (
            f"a: &a {'x' * 100_000}\nb:\n" + "  - *a\n" * 50,
            "m.yaml:43: more than 4,194,304 characters, with each alias",
        ),
        ("a: &a\n  b: *a\n", "m.yaml:2: alias *a is inside the node that it refers to"),
        ("a:\n  " + "[" * 5_000 + "]" * 5_000, "m.yaml:2: more than 50 nested levels"),
        ("a: " + "x" * 2_000_000, "m.yaml:1: 2,000,003 characters; a manifest may have at most 1,048,576"),
        (
            "a: 1\nb: 2026-13-45",
            "m.yaml:2: '2026-13-45' is not valid; expected a YAML timestamp, or a quoted string",
        ),
        ("a: " + "9" * 5_000, "m.yaml:1: '9999"),
        ("a: 59" + ":59" * 3_000, "m.yaml:1: '59:59:"),
        ("a: 0x" + "f" * 6_000, "m.yaml:1: '0xffff"),
        ("a: !!bool x", "m.yaml:1: 'x' is not valid; expected a YAML bool"),
        ('a: 1\nb: "\\ud83d\\ude00"', "m.yaml:2: half a character (\\uD800 to \\uDFFF); write the character"),
        ("a: \0", "m.yaml:1: not YAML: unacceptable character #x0000"),
    ],
    ids=[
        "bomb",
        "long-bomb",
        "itself",
        "nested",
        "long",
        "date",
        "number",
        "sixties",
        "hex",
        "bool",
        "half",
        "nul",
    ],
)
def test_a_manifest_that_means_no_good(text: str, said: str) -> None:
    """A bound, with its line, before anything is made of it; for templates as well."""
    with pytest.raises(ConfigError) as raised:
        read_yaml(text, "m.yaml")
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("name", ["a\n", "../a", "a/b", "", "a" * 128, "\x1b[2J"])
def test_names_of_sessions(name: str) -> None:
    """They are parts of paths, as those of queries are."""
    with pytest.raises(ConfigError, match=r"--session: .* is not valid"):
        Placement(session=name)


def test_aliases_and_merges_within_bounds() -> None:
    """What an alias is for goes on working."""
    text = read_yaml("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\n", "m.yaml")
    assert text.values == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2}}


def test_a_file_without_an_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("# " + "x" * (5 << 20))
    files = [tmp_path / "big.yaml", Path("/dev/zero")]
    assert read_files(files, None).problems == [
        f"{file}: is too long; a manifest may have at most 1,048,576 characters" for file in files
    ]


def test_a_template_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"nofile\.yaml: cannot be read: .*No such file"):
        read_folder(tmp_path, tmp_path / "nofile.yaml")


def test_hidden_files_and_links_to_nothing(tmp_path: Path) -> None:
    """Editors make hidden ones; a link that leads nowhere is told, also where there is a template."""
    template = tmp_path / "template.yaml"
    template.write_text("include-query-metadata: false\n")
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / ".#a.yaml").symlink_to("somebody@machine.1234")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "b.yaml").write_text("no manifest")
    assert read_folder(tmp_path, template).problems == []
    (tmp_path / "b.yaml").symlink_to("nowhere")

    manifests = read_folder(tmp_path, template)
    assert list(manifests.by_name) == ["q"]
    (problem,) = manifests.problems
    assert problem.startswith(f"{tmp_path / 'b.yaml'}: cannot be read: ")


@pytest.mark.timeout(30)
def test_what_is_not_a_regular_file_is_named_and_not_read(tmp_path: Path) -> None:
    """A pipe would be read until somebody writes to it."""
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").mkdir()
    (tmp_path / "c.yaml").write_text(GOOD)

    manifests = read_folder(tmp_path, None)

    assert list(manifests.by_name) == ["q"]
    assert manifests.problems == [
        f"{tmp_path / name}: is not a regular file; expected a YAML file: move it out of the folder, or rename it"
        for name in ("a.yaml", "b.yaml")
    ]


def test_manifests_whose_names_end_in_capitals(tmp_path: Path) -> None:
    """With --prune, the query of a file that is passed over would be stopped."""
    (tmp_path / "a.YAML").write_text(GOOD)
    (tmp_path / "b.Yml").write_text(GOOD.replace("q", "r", 1))
    (tmp_path / "c.SQL").write_text("SELECT 1")

    assert list(read_folder(tmp_path, None).or_fail().by_name) == ["q", "r"]
    assert planned_files(tmp_path, None) == [tmp_path / name for name in ("a.YAML", "b.Yml", "c.SQL")]


def test_planned_files_with_a_template_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    assert planned_files(tmp_path, tmp_path / "nofile.yaml") == [tmp_path / "a.yaml"]


@pytest.mark.parametrize(
    "value",
    [
        "+10:30",
        "3.10",
        "0777",
        "1_000",
        "12:30:45",
        "0x10",
        "0b1",
        "1.0e+20",
        ".5",
        ".inf",
        "2026-01-02",
        "=",
    ],
)
@pytest.mark.parametrize("properties", ["sparkProperties", "flinkProperties"])
def test_a_property_is_what_was_written(properties: str, value: str) -> None:
    """YAML 1.1 reads all of these as something else."""
    text = read_yaml(f"{GOOD}{properties}:\n  spark.a: {value}\n", "m.yaml")

    assert parse_manifest(text)[0].spark_properties == {"spark.a": value}


def test_properties_that_are_merged_are_what_was_written(tmp_path: Path) -> None:
    """By an alias, and from the template."""
    (tmp_path / "q.yaml").write_text(
        GOOD + "flinkProperties: &all\n  spark.a: 3.10\n  spark.b: &b 0777\n"
        "sparkProperties:\n  <<: [*all]\n  spark.c: *b\n  spark.b: '1_0'\n"
    )
    template = tmp_path / "template.yaml"
    template.write_text("sparkProperties:\n  spark.d: 12:30:45\n  spark.b: 1\n")

    properties = read_folder(tmp_path, template).or_fail().by_name["q"].spark_properties

    assert properties == {"spark.a": "3.10", "spark.b": "1_0", "spark.c": "0777", "spark.d": "12:30:45"}


def test_words_that_yaml_takes_for_truth_values_are_to_be_quoted() -> None:
    text = GOOD + "sparkProperties:\n  spark.a: NO\n  spark.b: True\n  spark.c: 'no'\n  spark.d: on\n"

    assert problems(text) == [
        "m.yaml:5: sparkProperties.spark.a: NO is a truth value in YAML, not a text; "
        "expected true, false or a quoted text, such as 'NO'",
        "m.yaml:8: sparkProperties.spark.d: on is a truth value in YAML, not a text; "
        "expected true, false or a quoted text, such as 'on'",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1: x\n", "m.yaml:4: 1: unknown key; expected name, description"),
        ("on: x\n", "m.yaml:4: on: unknown key; expected name, description"),
        ("2026-01-02: x\n", "m.yaml:4: 2026-01-02: unknown key; expected name, description"),
        ("trigger:\n  3.10: x\n", "m.yaml:5: trigger.3.10: unknown key; expected processing-time"),
        ("sparkProperties:\n  1_0: x\n", "m.yaml:5: sparkProperties.1_0: is not a Spark property"),
    ],
)
def test_a_key_is_what_was_written(text: str, said: str) -> None:
    """Also one that YAML would take for a number."""
    (problem,) = problems(GOOD + text)
    assert problem.startswith(said)
