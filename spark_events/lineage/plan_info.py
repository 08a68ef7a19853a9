"""Reads what an event log says about data, in ``sparkPlanInfo`` and in the descriptions of progress.

These are texts for people: they name files and tables, but do not say which column is computed from which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

NO_COLUMNS = "read from an event log, which has no lineage of columns"
_INSERT = re.compile(
    r"InsertIntoHadoopFsRelationCommand (?P<path>.+?), (?:Map\([^)]*\), )?(?:true|false), "
    r"(?:\[[^\]]*\], )?(?P<format>\w+), .*?"
    r"\b(?P<mode>Append|Overwrite|ErrorIfExists|Ignore)\b(?P<rest>.*)",
    re.DOTALL,
)
_HIVE_INSERT = re.compile(r"InsertIntoHiveTable (?P<rest>.*?, (?P<overwrite>true|false), .*)", re.DOTALL)
_TABLE = re.compile(r"`(?P<catalog>[^`]+)`\.`(?P<database>[^`]+)`\.`(?P<table>[^`]+)`")
_COLUMNS = re.compile(r"\[(?P<names>[^\[\]]*)\]\s*$")
_LOCATION = re.compile(r"\w+(?:\(\d+ paths\))?\[(?P<paths>.*?)(?:, \.\.\.)?\]$", re.DOTALL)
_SCAN = re.compile(r"Scan (?P<format>\w+) (?P<table>\S+)?")
_STREAM_SOURCE = re.compile(
    r"(?P<kind>FileStreamSource|DeltaSource|KafkaV2|KafkaSourceV\w+|\w+)\[(?P<place>.*)\]", re.DOTALL
)
_TOPICS = re.compile(r"(?:Subscribe|SubscribePattern|Assign)\[(?P<topics>.*)\]")
_WRITES = ("Execute ", "AppendData", "Overwrite", "ReplaceData", "WriteDelta", "WriteToDataSourceV2")
_WRITES_NO_DATA = re.compile(r"Execute (?:Create|Drop|Alter|Set|Show|Describe|Explain|Use|Cache|SaveAs)")


def read_plan_info(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plan reads and writes, in the form of ``Statement.java``, without source columns."""
    lineage = _nothing()
    not_read: list[str] = []
    for node in _nodes(plan):
        source, sink = _source(node), _sink(node)
        if source is not None:
            lineage["sources"].append({"identity": source, "streaming": False})
        elif sink is not None:
            lineage["sinks"].append(sink)
        elif _is_unknown(node):
            not_read.append(str(node.get("nodeName")))
    missing = f"; not understood: {', '.join(dict.fromkeys(not_read))}" if not_read else ""
    lineage["incomplete"] = NO_COLUMNS + missing
    return lineage


def read_progress(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a streaming query reads and writes, by the descriptions in its progress."""
    lineage = _nothing()
    for source in progress.get("sources") or ():
        if (identity := _described(str(source.get("description") or ""))) is not None:
            lineage["sources"].append({"identity": identity, "streaming": True})
    sink = _described(str((progress.get("sink") or {}).get("description") or ""))
    if sink is not None:
        lineage["sinks"].append({"identity": sink, "modify": "INSERT", "columns": []})
    lineage["incomplete"] = NO_COLUMNS
    return lineage


def _nothing() -> dict[str, Any]:
    return {"sources": [], "columns": [], "sinks": [], "groups": [{}], "indirect": {}}


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.get("children") or [])


def _source(node: Mapping[str, Any]) -> dict[str, Any] | None:
    metadata = node.get("metadata") or {}
    location = _LOCATION.match(str(metadata.get("Location") or ""))
    scan = _SCAN.match(str(node.get("nodeName") or ""))
    if scan is None or (location is None and not str(scan["table"] or "").count(".")):
        return None
    identity: dict[str, Any] = {"format": str(metadata.get("Format") or scan["format"]).lower()}
    if location is not None:
        identity["paths"] = [path for path in location["paths"].split(", ") if path]
    if scan["table"] and scan["table"].count("."):
        identity["table"] = _qualified(scan["table"])
    return identity


def _sink(node: Mapping[str, Any]) -> dict[str, Any] | None:
    text = str(node.get("simpleString") or "")
    insert, hive = _INSERT.search(text), _HIVE_INSERT.search(text)
    identity: dict[str, Any]
    if insert is not None:
        rest, overwrite = insert["rest"], insert["mode"] == "Overwrite"
        identity = {"paths": [insert["path"]], "format": insert["format"].lower()}
    elif hive is not None:
        rest, overwrite, identity = hive["rest"], hive["overwrite"] == "true", {"format": "hive"}
    else:
        return None
    if (table := _TABLE.search(rest)) is not None:
        identity["table"] = table.groupdict()
    names = _COLUMNS.search(rest)
    columns = [[name, "", 0] for name in names["names"].split(", ") if name] if names else []
    return {"identity": identity, "modify": "OVERWRITE" if overwrite else "INSERT", "columns": columns}


def _is_unknown(node: Mapping[str, Any]) -> bool:
    name = str(node.get("nodeName") or "")
    return name.startswith(_WRITES) and not _WRITES_NO_DATA.match(name)


def _described(text: str) -> dict[str, Any] | None:
    """Read ``FileStreamSource[file:/data]``, ``KafkaV2[Subscribe[topic]]``, ``FileSink[file:/data]``."""
    match = _STREAM_SOURCE.match(text)
    if match is None:
        return None
    kind, place = match["kind"], match["place"]
    if (topics := _TOPICS.search(place)) is not None:
        return {"format": "kafka", "options": {}, "topics": topics["topics"].split(", ")}
    if "/" in place:
        return {"format": "", "paths": [place]}
    return {"format": kind, "options": {}}


def _qualified(name: str) -> dict[str, str]:
    parts = name.replace("`", "").split(".")
    catalog = parts[0] if len(parts) > 2 else "spark_catalog"
    return {"catalog": catalog, "database": ".".join(parts[-2:-1]), "table": parts[-1]}
