"""The rule about files that are compressed at a level that takes many times as long as the usual one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from spark_events.api.toolkit.formatting import size
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import WRITES_TABLE, Node
from spark_events.diagnosis.plans.work_in_stage import freed_besides_ms
from spark_events.diagnosis.thresholds import COMPRESSION

_LEVELS = {"Parquet": "parquet.compression.codec.zstd.level", "ORC": "orc.compression.zstd.level"}
_CODECS = {"Parquet": "spark.sql.parquet.compression.codec", "ORC": "spark.sql.orc.compression.codec"}
_DEFAULT_CODECS = {"Parquet": "snappy", "ORC": "zstd"}
_HADOOP = "spark.hadoop."
_ZSTD, _HIGH, _USUAL = "zstd", 10, 3
"""From here on, zstd takes ten times as long as at its usual level, and saves a few percent more."""
_FORMAT, _CODEC = re.compile(r", (Parquet|ORC), \["), re.compile(r"\bcompression=(\w+)", re.ASCII)
_WRITTEN = "written output"


def heavy_compression(
    execution: EndedExecution, conf: Mapping[str, str], levels_of_orc: bool = True
) -> Iterator[Issue]:
    """Yield each write of files whose configured level of zstd takes long.

    How long is not measured: at most as long as the stage takes besides what Spark measures.

    Args:
        execution: that has ended.
        conf: Spark's configuration; options of the write itself count first.
        levels_of_orc: whether ORC compresses at the level that is configured, as since Spark 4.
    """
    for node in execution.nodes():
        written_as = _FORMAT.search(node.text) if node.name.startswith(WRITES_TABLE) else None
        if written_as is None or (written_as[1] == "ORC" and not levels_of_orc):
            continue
        key, of_format = _LEVELS[written_as[1]], written_as[1]
        level = _level(node.text, key, conf)
        stages = node.stages & execution.stages.keys()
        if level >= _HIGH and _codec(node.text, of_format, conf) == _ZSTD and stages:
            yield _issue(node, key, level, stages, execution)


def _level(text: str, key: str, conf: Mapping[str, str]) -> int:
    option = re.search(rf"\b{re.escape(key)}=(\d+)", text, re.ASCII)
    said = option[1] if option else conf.get(f"{_HADOOP}{key}") or conf.get(key) or ""
    return int(said) if said.isdecimal() and said.isascii() else 0


def _codec(text: str, of_format: str, conf: Mapping[str, str]) -> str:
    option = _CODEC.search(text)
    return (option[1] if option else conf.get(_CODECS[of_format]) or _DEFAULT_CODECS[of_format]).lower()


def _issue(node: Node, key: str, level: int, stages: frozenset[int], execution: EndedExecution) -> Issue:
    written = node.metrics.get(_WRITTEN, 0)
    into = f" for {node.table()}" if node.table() else ""
    return Issue(
        COMPRESSION,
        f"{COMPRESSION} {key}",
        None,
        None,
        f"tasks compress{f' {size(written)}' if written else ''}{into} with zstd at level {level} ({key})",
        f"Leave {key} at {_USUAL}, as it is by default: higher levels take many times as long, and save a "
        "few percent. If files have to be as small as can be, write them so once, when they change no more.",
        evidence={"compression.level": level, "compression.setting": key},
        share_ms=int(freed_besides_ms(execution, stages, node.within_stage())),
        stages=stages,
    )
