"""A folder of manifests, with a template that has their defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_events.api import ConfigError
from spark_events.sql_runner.manifest.manifest import Manifest, parse_manifest
from spark_events.sql_runner.manifest.visible_files import visible_files
from spark_events.sql_runner.manifest.yaml_text import MOST_BYTES, YamlText, read_yaml

_SUFFIXES = (".yaml", ".yml")
_TRIGGER = "trigger"
_NOT_DEFAULT = ("name", "sql", "code", "meta")


@dataclass(frozen=True)
class Manifests:
    """The manifests of a folder.

    Attributes:
        by_name: the valid manifests, sorted by name.
        places: ``file:line`` of the first line of each query, for errors in it.
        problems: what is wrong with the others, each with its file and line.
        warnings: what is ignored, each with its file and line.
        targets: ``file:line`` of each query's target-table, for errors about that.
    """

    by_name: dict[str, Manifest]
    places: dict[str, str]
    problems: list[str]
    warnings: list[str]
    targets: dict[str, str] = field(default_factory=dict)

    def or_fail(self) -> Manifests:
        """Return the manifests if nothing is wrong.

        Raises:
            ConfigError: something is wrong; the error lists all problems.
        """
        if self.problems:
            raise ConfigError.of_all(self.problems)
        return self


def read_folder(folder: Path, template: Path | None) -> Manifests:
    """Read all manifests in a folder and its subfolders, except the template and what is hidden.

    Raises:
        ConfigError: there is no such folder, no manifest in it, or the template cannot be used.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: is not a folder; expected one with a YAML manifest for each query")
    files = visible_files(folder, _SUFFIXES, template)
    if not files:
        raise ConfigError(f"{folder}: has no manifest; expected a YAML file for each query (*.yaml, *.yml)")
    # A pipe that nobody writes to would be read for ever. One that is named, as <(…) in a shell, is meant.
    irregular = [path for path in files if path.exists() and not path.is_file()]
    manifests = read_files((path for path in files if path not in irregular), template)
    manifests.problems.extend(
        f"{path}: is not a regular file; expected a YAML file: move it out of the folder, or rename it"
        for path in irregular
    )
    return manifests


def read_files(files: Iterable[Path], template: Path | None) -> Manifests:
    """Read some manifests.

    Raises:
        ConfigError: the template cannot be used.
    """
    defaults = _read_template(template) if template else None
    manifests = Manifests({}, {}, [], [])
    for path in files:
        try:
            _add(manifests, _with_defaults(read_yaml(_text_of(path), str(path)), defaults))
        except ConfigError as error:
            manifests.problems.extend(error.problems)
    return replace(manifests, by_name=dict(sorted(manifests.by_name.items())))


def _add(manifests: Manifests, text: YamlText) -> None:
    manifest, warnings = parse_manifest(text)
    manifests.warnings.extend(warnings)
    if manifest.name in manifests.by_name:
        raise ConfigError(
            f"{text.place(('name',))}: name: {manifest.name!r} is also the name in "
            f"{manifests.places[manifest.name].rpartition(':')[0]}; expected a unique name"
        )
    manifests.by_name[manifest.name] = manifest
    manifests.targets[manifest.name] = text.place(("target-table",))
    manifests.places[manifest.name] = text.place_of_text(("sql",) if manifest.sql is not None else ("code",))


def _read_template(path: Path) -> YamlText:
    template = read_yaml(_text_of(path), str(path))
    for key in _NOT_DEFAULT:
        if key in template.values:
            raise ConfigError(f"{template.place((key,))}: {key}: belongs to a manifest, not to the template")
    return template


def _with_defaults(text: YamlText, defaults: YamlText | None) -> YamlText:
    if defaults is None:
        return text
    filled = _filled(defaults.values, str(text.values.get("name", "")))
    if _TRIGGER in text.values:  # which is of one kind, and has nothing of the template's
        filled.pop(_TRIGGER, None)
    return text.over(YamlText(defaults.file, filled, defaults.lines))


def _filled(value: Any, name: str) -> Any:
    """Return a value with the query's name in place of ``{name}`` and flink-sql-runner's ``{job_name}``."""
    if isinstance(value, dict):
        return {key: _filled(inner, name) for key, inner in value.items()}
    if isinstance(value, str):
        return value.replace("{job_name}", name).replace("{name}", name)
    return value


def _text_of(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_BYTES + 1)  # a device has no size, and may never end
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if len(text) > MOST_BYTES:
        raise ConfigError(f"{path}: is too long; a manifest may have at most {MOST_BYTES:,} characters")
    return text
