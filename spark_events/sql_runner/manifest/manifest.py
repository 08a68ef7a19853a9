"""A manifest: a team's description of one streaming query."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

from spark_events.api import ConfigError, needs_extra
from spark_events.api import option_types as types
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.manifest.as_written import PROPERTIES
from spark_events.sql_runner.manifest.names import NAME, NAME_RULE
from spark_events.sql_runner.manifest.yaml_text import Keys, YamlText

with needs_extra("sql", "pydantic", "reading manifests"):
    from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
    from pydantic_core import ErrorDetails, PydanticCustomError

OutputMode = Literal["append", "update", "complete"]
_STRICT = ConfigDict(extra="forbid", strict=True, populate_by_name=True, frozen=True)


class Trigger(BaseModel):
    """When micro-batches begin, given by one of its keys."""

    model_config = _STRICT

    processing_time: str | None = Field(
        None, alias="processing-time", description="A duration such as 10 seconds: the time between batches."
    )
    available_now: Literal[True] | None = Field(
        None, alias="available-now", description="Read what there is now, and end."
    )
    continuous: str | None = Field(
        None, description="A duration: how often continuous processing writes its checkpoint."
    )

    @field_validator("processing_time", "continuous")
    @classmethod
    def _is_duration(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                types.DURATION.parse(value)
            except ValueError as error:
                detail = f" ({error})" if str(error) else ""
                raise PydanticCustomError(
                    "duration", "expected {allowed}", {"allowed": types.DURATION.allowed + detail}
                ) from None
        return value

    @model_validator(mode="after")
    def _has_one_key(self) -> Trigger:
        if len(self.options) != 1:
            raise PydanticCustomError(
                "trigger", "expected one of processing-time, available-now: true or continuous"
            )
        return self

    @property
    def options(self) -> dict[str, Any]:
        """As ``DataStreamWriter.trigger`` takes it."""
        durations = {"processingTime": self.processing_time, "continuous": self.continuous}
        given: dict[str, Any] = {
            name: f"{types.DURATION.parse(value)} milliseconds"
            for name, value in durations.items()
            if value is not None
        }
        return {**given, **({"availableNow": True} if self.available_now else {})}


class Manifest(BaseModel):
    """One streaming query."""

    model_config = _STRICT

    name: str = Field(
        pattern=NAME,
        description=f"Tells the query from all others, in events and in the store: {NAME_RULE}.",
    )
    description: str = Field("", description="What it is for; rows carry it from the next start on.")
    target_table: str = Field(
        alias="target-table",
        min_length=1,
        description="The table that takes the rows: `catalog`.`db`.`table`.",
    )
    sql: str | None = Field(None, min_length=1, description="The query: a SELECT.")
    code: str | None = Field(
        None,
        min_length=1,
        description="Instead of sql: Python with spark in scope that sets execution_output to its DataFrame.",
    )
    spark_properties: dict[str, str] = Field(
        default_factory=dict,
        alias="sparkProperties",
        description="Spark's properties for this query, and those that begin with spark.events.sql.",
    )
    trigger: Trigger | None = Field(
        None, description="When a micro-batch begins; by default when the one before it has ended."
    )
    output_mode: OutputMode = Field("append", alias="output-mode", description="Spark's output mode.")
    static_tables: tuple[str, ...] = Field(
        (),
        alias="static-tables",
        description="The tables of the query that are read whole at each micro-batch, and not as streams.",
    )
    include_query_metadata: bool = Field(
        True, alias="include-query-metadata", description="Whether rows carry the columns that begin with __."
    )

    @model_validator(mode="after")
    def _has_one_query(self) -> Manifest:
        if (self.sql is None) == (self.code is None):
            raise PydanticCustomError("query", "expected either sql or code")
        return self

    @property
    def has_end(self) -> bool:
        """Whether it ends by itself, once it has read what is there."""
        return self.trigger is not None and bool(self.trigger.available_now)

    @property
    def settings(self) -> props.QuerySettings:
        """Its restarts when it fails, and how long a stop waits."""
        return props.query_settings(self.spark_properties)

    def values(self) -> dict[str, Any]:
        """Return the values as in YAML, without those that are the defaults."""
        values: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return values

    @property
    def query(self) -> dict[str, Any]:
        """The keys, besides SQL or code, whose changes make it a different query."""
        return {"target-table": self.target_table, "output-mode": self.output_mode}

    @property
    def configuration(self) -> dict[str, Any]:
        """The keys whose changes take effect with a restart from a savepoint."""
        kept = ("name", "description", "target-table", "output-mode", "sql", "code")
        return {key: value for key, value in self.values().items() if key not in kept}


def parse_manifest(text: YamlText) -> tuple[Manifest, list[str]]:
    """Read a manifest.

    Returns:
        The manifest and warnings, each with its file and line.

    Raises:
        ConfigError: lists everything wrong, with file, line and key, and what is allowed.
    """
    values, warnings, problems = _normalised(text)
    try:
        manifest = Manifest.model_validate(values)
    except ValidationError as error:
        problems = [_problem(text, details) for details in error.errors()] + problems
        raise ConfigError.of_all(problems) from None
    wrong = props.problems_of(manifest.spark_properties)
    problems += [f"{_place_of_property(text, key)}: {why}" for key, why in wrong.items()]
    if problems:
        raise ConfigError.of_all(problems)
    return manifest, warnings


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a manifest, for editors."""
    schema: dict[str, Any] = _plain(Manifest.model_json_schema(by_alias=True))
    scalar = {"type": ["string", "number", "boolean"]}
    schema["properties"]["sparkProperties"]["additionalProperties"] = scalar
    schema["properties"]["flinkProperties"] = {
        "type": "object",
        "additionalProperties": scalar,
        "description": "Flink's properties; those that have a meaning for Spark are translated.",
    }
    schema["oneOf"] = [{"required": ["sql"]}, {"required": ["code"]}]
    schema["title"] = "A streaming query of spark-events sql"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _plain(schema: Any) -> Any:
    """Return a schema without null for absent keys and without titles, which are of use in Python alone."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value is None)
    }
    choices = [choice for choice in kept.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del kept["anyOf"]
        kept = {**choices[0], **kept}
    return {key: _plain(value) for key, value in kept.items()}


def _normalised(text: YamlText) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the values, with properties as texts and Flink's translated, plus warnings and problems."""
    values = dict(text.values)
    problems: list[str] = []
    given = {key: _texts(text, key, values.pop(key, None), problems) for key in PROPERTIES}
    flink = props.from_flink(given["flinkProperties"])
    warnings = [
        f"{text.place(('flinkProperties', key))}: flinkProperties.{key}: {why}"
        for key, why in flink.without_meaning.items()
    ]
    values["sparkProperties"] = {**flink.spark, **given["sparkProperties"]}
    if flink.interval and "trigger" not in values:
        values["trigger"] = {"processing-time": flink.interval}
    if isinstance(values.get("static-tables"), list):
        values["static-tables"] = tuple(values["static-tables"])
    return values, warnings, problems


def _texts(text: YamlText, name: str, given: Any, problems: list[str]) -> dict[str, str]:
    """Return properties as texts, with ``true`` and ``false`` as Spark writes them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        problems.append(f"{text.place((name,))}: {name}: {given!r} is not valid; expected a mapping")
        return {}
    texts = {}
    for key, value in given.items():
        if isinstance(value, bool):
            texts[key] = str(value).lower()
        elif isinstance(value, str):
            texts[key] = value
        else:
            problems.append(
                f"{text.place((name, key))}: {name}.{key}: {value!r} is not valid; expected a string"
            )
    return texts


def _place_of_property(text: YamlText, key: str) -> str:
    name = next((name for name in PROPERTIES if (name, key) in text.lines), PROPERTIES[0])
    return f"{text.place((name, key))}: {name}.{key}"


_EXPECTED = {
    "string_type": "a string",
    "tuple_type": "a list of strings",
    "model_type": "a mapping such as {processing-time: 10 seconds}",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
"""What is expected, in words of YAML, by the kind of an error of Pydantic; only the trigger is a model."""


def _problem(text: YamlText, details: ErrorDetails) -> str:
    keys: Keys = tuple(key for key in details["loc"] if not isinstance(key, str) or key != "[key]")
    name = ".".join(map(str, keys))
    place = text.place(keys)
    kind = details["type"]
    if kind == "missing":
        return f"{place}: {name}: missing; {_described(keys)}"
    if kind == "extra_forbidden":
        if name == "meta":
            return f"{place}: meta: is written by the deployment; leave it out"
        allowed = _aliases(Trigger if keys[0] == "trigger" else Manifest)
        return f"{place}: {name}: unknown key; expected {', '.join(allowed)}"
    shown = details["input"]
    if kind == "string_pattern_mismatch":
        return f"{place}: {name}: {shown!r} is not valid; expected {NAME_RULE}"
    if kind == "string_type" and isinstance(shown, int | float | date):
        return f"{place}: {name}: {shown} is not valid, as YAML does not read it as a text; put it in quotes"
    why = _EXPECTED.get(kind) or details["msg"].removeprefix("Input should be ").removeprefix("expected ")
    if isinstance(shown, dict):
        return f"{place}: {name + ': ' if name else ''}expected {why}"
    if shown is None:
        return f"{place}: {name}: it is empty; expected {why}"
    return f"{place}: {name}: {shown!r} is not valid; expected {why}"


def _described(keys: Keys) -> str:
    by_alias = {field.alias or name: field.description for name, field in Manifest.model_fields.items()}
    return str(by_alias.get(str(keys[-1]), "give it a value")).rstrip(".")


def _aliases(model: type[BaseModel]) -> list[str]:
    names = [field.alias or name for name, field in model.model_fields.items()]
    return names + (["flinkProperties"] if model is Manifest else [])
