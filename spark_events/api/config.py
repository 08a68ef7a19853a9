"""Typed access to a reporter's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from spark_events.api import option_types as types
from spark_events.api.errors import ConfigError
from spark_events.api.option_types import OptionType, Secret

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One option of a reporter (Flink's ``ConfigOption``).

    Attributes:
        name: the key without the reporter's prefix, such as ``exporter.endpoint``.
        type: how its text is read.
        default: what an absent key means.
        doc: one sentence for ``spark-events plugins``.
        required: an absent key is an error.
    """

    name: str
    type: OptionType[T]
    default: T
    doc: str = ""
    required: bool = False

    @staticmethod
    def optional(name: str, option_type: OptionType[T], doc: str = "") -> Option[T | None]:
        """Declare an option whose absence is None."""
        return Option(name, option_type, None, doc)  # type: ignore[arg-type]

    @staticmethod
    def must(name: str, option_type: OptionType[T], doc: str = "") -> Option[T]:
        """Declare a required option."""
        return Option(name, option_type, None, doc, required=True)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ApplicationInfo:
    """The Spark application that a reporter works for.

    Attributes:
        name: ``spark.app.name``.
        id: ``spark.app.id``.
        attempt_id: YARN's attempt; empty elsewhere.
        attachment: 2 for the second ``attach`` to it, after the first was closed, and so on.
    """

    name: str = ""
    id: str = ""
    attempt_id: str = ""
    attachment: int = 1

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells its events and spans from those of other applications, and of its other attachments."""
        again = (f"attachment {self.attachment}",) if self.attachment > 1 else ()
        return self.id, self.attempt_id, *again


@dataclass(frozen=True)
class ReporterConfig:
    """A reporter's options without their prefix.

    Attributes:
        prefix: what stands before each key in Spark's configuration, with the dot at its end.
        values: the options as they were written.
        application: whose events these will be; empty while a configuration is only checked.
        spark: Spark's whole configuration, for keys that other tools set; it may have secrets.
        tells_end: whether the application's own process has ended without telling so, and another one does:
            it has the last statuses alone, and what the first has reported is to stay.
    """

    prefix: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    application: ApplicationInfo = ApplicationInfo()
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    tells_end: bool = False

    @classmethod
    def below(cls, prefix: str, conf: Mapping[str, str]) -> ReporterConfig:
        """Return the keys of a configuration that begin with a prefix, which ends with a dot."""
        return cls(
            prefix, {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}
        )

    def key(self, name: str) -> str:
        """Return the whole key of an option, for error messages."""
        return self.prefix + name

    def get(self, option: Option[T]) -> T:
        """Return an option's value, or its default.

        Raises:
            ConfigError: the value cannot be read as the option's type, or a required one is absent.
        """
        text = self.values.get(option.name)
        if text is None:
            if option.required:
                raise ConfigError(f"{self.key(option.name)}: missing; expected {option.type.allowed}")
            return option.default
        return option.type.read(self.key(option.name), text)

    def problems(self, options: Iterable[Option[Any]]) -> dict[str, str]:
        """Return a sentence for each invalid option, by its whole key."""
        problems: dict[str, str] = {}
        for option in options:
            try:
                self.get(option)
            except ConfigError as error:
                problems[self.key(option.name)] = str(error)
        return problems

    def both_or_none(self, first: Option[Any], second: Option[Any]) -> None:
        """Check that two options that need each other are both given, or neither.

        Raises:
            ConfigError: one is given without the other.
        """
        given = [option.name for option in (first, second) if option.name in self.values]
        if len(given) == 1:
            (missing,) = {first.name, second.name} - set(given)
            raise ConfigError(f"{self.key(missing)}: missing; {self.key(given[0])} has no effect without it")

    def get_string(self, name: str, default: str) -> str:
        """Return the text of an option."""
        return self.get(Option(name, types.STRING, default))

    def get_int(self, name: str, default: int) -> int:
        """Return a whole number."""
        return self.get(Option(name, types.INT, default))

    def get_bool(self, name: str, default: bool) -> bool:
        """Return ``true`` or ``false``."""
        return self.get(Option(name, types.BOOL, default))

    def get_duration_ms(self, name: str, default_ms: int) -> int:
        """Return a duration such as ``60s`` or ``5 min``, in ms."""
        return self.get(Option(name, types.DURATION, default_ms))

    def get_size(self, name: str, default_bytes: int) -> int:
        """Return a size such as ``64m`` or ``1 GiB``, in bytes."""
        return self.get(Option(name, types.SIZE, default_bytes))

    def get_list(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return ``a,b`` or ``a;b`` as a tuple."""
        return self.get(Option(name, types.LIST, default))

    def get_map(self, name: str) -> Mapping[str, str]:
        """Return ``key:value,key:value`` as a mapping."""
        return self.get(Option(name, types.MAP, {}))

    def get_secret(self, name: str) -> Secret | None:
        """Return a secret; ``env:NAME`` and ``file:/path`` refer to its location."""
        return self.get(Option.optional(name, types.SECRET))
