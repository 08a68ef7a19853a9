"""How the text of an option becomes a value, and what a wrong one gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_events.api import ConfigError, Option, ReporterConfig, option_types


def config(**values: str) -> ReporterConfig:
    return ReporterConfig(
        "spark.events.reporter.x.", {k.replace("__", ".").replace("_", "-"): v for k, v in values.items()}
    )


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("60s", 60_000),
        ("500ms", 500),
        ("5min", 300_000),
        ("5 MIN", 300_000),
        ("1h", 3_600_000),
        ("2 days", 172_800_000),
        ("10 SECONDS", 10_000),
        ("0", 0),
    ],
)
def test_duration(text: str, ms: int) -> None:
    """A duration is ms, in Spark's and in Flink's spelling; 0 needs no unit."""
    assert config(interval=text).get_duration_ms("interval", 1) == ms


@pytest.mark.parametrize(
    ("text", "size"),
    [("512", 512), ("1k", 1024), ("64m", 64 << 20), ("64 MiB", 64 << 20), ("1g", 1 << 30), ("10b", 10)],
)
def test_size(text: str, size: int) -> None:
    """A size is bytes; units are powers of 1,024, as in Spark."""
    assert config(max=text).get_size("max", 1) == size


def test_list_map_bool_int() -> None:
    """Lists take both separators, maps both signs."""
    conf = config(a="x, y;z", b="team:payments, url:http://h:1,k=v", c="TRUE", d="-3")

    assert conf.get_list("a") == ("x", "y", "z")
    assert conf.get_map("b") == {"team": "payments", "url": "http://h:1", "k": "v"}
    assert conf.get_bool("c", False) is True
    assert conf.get_int("d", 0) == -3


def test_absent_key_is_the_default() -> None:
    """An absent key is the default, an absent required one an error."""
    assert config().get_int("n", 7) == 7
    with pytest.raises(ConfigError, match=r"^spark\.events\.reporter\.x\.path: missing; expected a string$"):
        config().get(Option.must("path", option_types.STRING))


@pytest.mark.parametrize(
    ("option_type", "text", "allowed"),
    [
        (option_types.DURATION, "10 parsecs", "a duration such as"),
        (option_types.DURATION, "-1s", "a duration such as"),
        (option_types.DURATION, "36526d", "more than 36525d"),
        (option_types.DURATION, f"{'9' * 5_000}d", "more than 36525d"),
        (option_types.DURATION, "9" * 5_000, "a number needs a unit"),
        (option_types.SIZE, "8388608t", "more than 8388607t"),
        (option_types.INT, str(2**63), "more than 2^63"),
        (option_types.DURATION, "", "a duration such as"),
        (option_types.DURATION, "60", "a number needs a unit; did you mean 60s?"),
        (option_types.DURATION, "5000", "a number needs a unit; did you mean 5000ms or 5000s?"),
        (option_types.at_least(1, option_types.DURATION), "10", "did you mean 10s?"),
        (option_types.LOCAL_PATH, "", "a local folder such as"),
        (option_types.LOCAL_PATH, "~/events", "~ is not expanded; write out which folder it means"),
        (option_types.LOCAL_PATH, "~", "~ is not expanded; write out which folder it means"),
        (option_types.LOCAL_PATH, "file:~/events", "~ is not expanded; write out which folder it means"),
        (option_types.LOCAL_PATH, "/tmp/\0", "a local folder such as"),
        (option_types.SIZE, "many", "a size such as"),
        (option_types.INT, "1.5", "a whole number"),
        (option_types.BOOL, "yes", "true or false"),
        (option_types.MAP, "team", "'team' has no value"),
        (option_types.MAP_OF_PAIRS, "job=x;team", "'team' has no value"),
        (option_types.PORTS, "9249-9240", "a port from 0 to 65535 or a range"),
        (option_types.PORTS, "70000", "a port from 0 to 65535 or a range"),
        (option_types.choice("grpc", "http"), "htpp", "grpc or http"),
        (option_types.at_least(1, option_types.INT), "0", "the minimum is 1)"),
        (option_types.at_least(1, option_types.DURATION), "0s", "the minimum is 1 ms)"),
        (option_types.at_least(2048, option_types.SIZE), "1k", "the minimum is 2048 bytes)"),
    ],
)
def test_wrong_value(option_type: option_types.OptionType[object], text: str, allowed: str) -> None:
    """The error names the key, the value and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        config(key=text).get(Option("key", option_type, None))

    assert str(caught.value).startswith(f"spark.events.reporter.x.key: {text!r} is not valid; expected ")
    assert allowed in str(caught.value)


def test_a_relative_path_is_of_the_folder_in_which_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook changes its folder later; one that is gone has no paths."""
    monkeypatch.chdir(tmp_path)
    path = Option.must("path", option_types.LOCAL_PATH)
    assert config(path="events").get(path) == tmp_path / "events"
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="is relative to the current folder, which is gone"):
        config(path="events").get(path)


def test_a_secret_whose_file_is_being_renewed_is_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    secret = config(a=f"file:{file}").get_secret("a")
    assert secret is not None
    for content, value in ((b"", "first"), (b"\xff", "first"), (b"second\n", "second")):
        file.write_bytes(content)
        assert secret.reveal() == value


def test_secret_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret may be in the environment, in a file, or in the clear; no text of it shows the value."""
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("TOKEN", "from-env")
    conf = config(a="env:TOKEN", b=f"file:{tmp_path}/token", c="in-the-clear")

    secrets = [conf.get_secret(name) for name in "abc"]

    assert [secret.reveal() for secret in secrets if secret] == ["from-env", "from-file", "in-the-clear"]
    assert [f"{secret} {secret!r}" for secret in secrets] == ["****** ******"] * 3


def test_a_secret_that_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was meant to be there: a password of no characters lets everybody in."""
    (tmp_path / "token").write_text("\n")
    monkeypatch.setenv("TOKEN", "")
    for text in ("env:TOKEN", f"file:{tmp_path}/token"):
        with pytest.raises(ConfigError, match="not empty"):
            config(a=text).get_secret("a")


def test_a_secret_that_never_ends() -> None:
    with pytest.raises(ConfigError, match="such a file, or the value itself"):
        config(a="file:/dev/zero").get_secret("a")


def test_wrong_secret_is_not_shown() -> None:
    """The error of a wrong secret hides it, too."""
    with pytest.raises(ConfigError) as caught:
        config(headers="authorization:abc,s3cr3t").get(Option("headers", option_types.SECRET_MAP, {}))

    assert "s3cr3t" not in str(caught.value)
    assert "******" in str(caught.value)
