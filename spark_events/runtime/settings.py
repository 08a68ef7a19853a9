"""Settings that are declared once: a dataclass whose fields say key, type, default and meaning.

The reader, ``spark-events check``, docs/configuration.md and conf/spark-defaults.conf are made from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from spark_events.api import ConfigError, Option, OptionType, ReporterConfig

_DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting as it is declared.

    Attributes:
        option: its key, type, default and meaning.
        placeholder: what stands for the end of the key where there is one for each of something, such as
            ``<query name>``; empty otherwise.
        default_text: what stands for the default in the documentation, where that is no value.
        example: what stands in the shipped spark-defaults.conf where the default is no value.
    """

    option: Option[Any]
    placeholder: str = ""
    default_text: str = ""
    example: str = ""


def setting(
    key: str,
    option_type: OptionType[Any],
    default: Any,
    doc: str,
    *,
    default_text: str = "",
    example: str = "",
) -> Any:
    """Declare a field of a settings class.

    Args:
        key: the whole key, or that below the prefix of a reporter.
        option_type: how its text is read; a duration becomes ms, a size bytes.
        default: what an absent key means.
        doc: one sentence.
        default_text: see ``Declared``.
        example: see ``Declared``.
    """
    declared = Declared(Option(key, option_type, default, doc), "", default_text, example)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={_DECLARED: declared})
    return field(default=default, metadata={_DECLARED: declared})


def setting_of_each(
    prefix: str, placeholder: str, option_type: OptionType[Any], doc: str, example: str
) -> Any:
    """Declare a field that maps names to values: its keys are the prefix and a name each."""
    declared = Declared(Option.optional(prefix, option_type, doc), placeholder, "", example)
    return field(default_factory=dict, metadata={_DECLARED: declared})


def declared_in(settings_class: type) -> Mapping[str, Declared]:
    """Return what a settings class declares, by the names of its fields."""
    declared = [known for known in fields(settings_class) if _DECLARED in known.metadata]
    return {known.name: known.metadata[_DECLARED] for known in declared}


def key_of(settings_class: type, name: str) -> str:
    """Return the key of a setting, by the name of its field."""
    return declared_in(settings_class)[name].option.name


def read_declared(settings_class: type, config: ReporterConfig) -> tuple[dict[str, Any], list[ConfigError]]:
    """Read the settings that a class declares; a wrong value counts as absent.

    Args:
        settings_class: a dataclass with fields of ``setting``.
        config: where the keys are.

    Returns:
        The values by the names of the fields, and one error for each wrong value.
    """
    values: dict[str, Any] = {}
    errors: list[ConfigError] = []
    for name, declared in declared_in(settings_class).items():
        read = _read_each if declared.placeholder else _read
        values[name] = read(declared.option, config, errors)
    return values, errors


def _read(option: Option[Any], config: ReporterConfig, errors: list[ConfigError]) -> Any:
    try:
        return config.get(option)
    except ConfigError as error:
        errors.append(error)
        return option.default


def _read_each(option: Option[Any], config: ReporterConfig, errors: list[ConfigError]) -> dict[str, Any]:
    keys = [key for key in config.values if key.startswith(option.name)]
    read = {key: _read(Option.optional(key, option.type), config, errors) for key in keys}
    return {key.removeprefix(option.name): value for key, value in read.items() if value is not None}
