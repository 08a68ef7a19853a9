"""Settings declared once, as dataclasses whose fields give key, type, default and meaning.

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
    """The declaration of a setting.

    Attributes:
        option: its key, type, default and meaning.
        placeholder: what stands for the variable end of a key that exists many times, such as
            ``<query name>``; empty for other keys.
        default_text: describes the default in the documentation if it is not a plain value.
        example: the value in the shipped spark-defaults.conf if the default is not a plain value.
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
        key: the whole key, or, for a reporter's setting, the part after the reporter's prefix.
        option_type: how its text is read; a duration becomes ms, a size bytes.
        default: the value if the key is absent.
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
    """Declare a field that maps names to values; each key is the prefix followed by a name."""
    declared = Declared(Option.optional(prefix, option_type, doc), placeholder, "", example)
    return field(default_factory=dict, metadata={_DECLARED: declared})


def declared_in(settings_class: type) -> Mapping[str, Declared]:
    """Return the settings that a class declares, by field name."""
    declared = [known for known in fields(settings_class) if _DECLARED in known.metadata]
    return {known.name: known.metadata[_DECLARED] for known in declared}


def key_of(settings_class: type, name: str) -> str:
    """Return the key of the setting in the field of this name."""
    return declared_in(settings_class)[name].option.name


def read_declared(settings_class: type, config: ReporterConfig) -> tuple[dict[str, Any], list[ConfigError]]:
    """Read the settings that a class declares; a wrong value counts as absent.

    Args:
        settings_class: a dataclass with fields of ``setting``.
        config: holds the keys.

    Returns:
        The values by field name, and one error for each invalid value.
    """
    values: dict[str, Any] = {}
    errors: list[ConfigError] = []
    for name, declared in declared_in(settings_class).items():
        if declared.placeholder:
            values[name] = _read_each(declared, config, errors)
        else:
            values[name] = _read(declared.option, config, errors)
    return values, errors


def _read(option: Option[Any], config: ReporterConfig, errors: list[ConfigError]) -> Any:
    try:
        return config.get(option)
    except ConfigError as error:
        errors.append(error)
        return option.default


def _read_each(declared: Declared, config: ReporterConfig, errors: list[ConfigError]) -> dict[str, Any]:
    option = declared.option
    if option.name in config.values:
        expected = f"{option.name}{declared.placeholder}"
        errors.append(ConfigError(f"{option.name}: names nothing after its last dot; expected {expected}"))
    keys = [key for key in config.values if key.startswith(option.name) and key != option.name]
    read = {key: _read(Option.optional(key, option.type), config, errors) for key in keys}
    return {key.removeprefix(option.name): value for key, value in read.items() if value is not None}
