"""Where in the user's code a stage of RDDs comes from, as far as Spark's event log says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from spark_events.diagnosis.measured import last_rdd

_FRAME = re.compile(r"(org\.apache\.spark\.[\w.$]+)\.([\w$]+)\((\w+\.scala(?::\d+)?)\)", re.ASCII)
_SPARKS_OWN = re.compile(r"SparkHadoopWriter\.scala|PythonRDD\.scala|SerDeUtil\.scala", re.ASCII)
"""Files of Spark's that it takes for the user's code: it names stages after lines in them."""
_CALLED_BY_PYTHON = "java.lang.reflect."
_WITHIN = re.compile(r"\$anonfun\$(\w+)\$\d+", re.ASCII)
_PY4J = "NativeMethodAccessorImpl"
_WRAPS = "withScope"
_SAVES = "saveAs"


def place_of_stage(info: Mapping[str, Any]) -> str:
    """Return the place that Spark names a stage after; of a line within Spark, which method the user calls.

    To write an RDD, or the sequence files of one, is a ``runJob at SparkHadoopWriter.scala:85`` or a
    ``take at SerDeUtil.scala:210`` for Spark.

    Args:
        info: its ``Stage Info``; empty if it has no name.
    """
    name = str(info.get("Stage Name") or "")
    where = name.rpartition(" at ")[2]
    if not _SPARKS_OWN.match(where):
        return name
    frames = takewhile(
        lambda frame: _CALLED_BY_PYTHON not in frame, str(info.get("Details") or "").splitlines()
    )
    calls = [match for frame in frames if (match := _FRAME.match(frame))]
    if where not in {call[3] for call in calls}:
        return name
    made = str((last_rdd(info) or {}).get("Callsite") or "")
    if made.startswith(_SAVES):
        return made.partition(" at ")[0] if _PY4J in made else made
    methods = [within[1] if (within := _WITHIN.fullmatch(call[2])) else call[2] for call in calls]
    return next(method for method in reversed(methods) if method != _WRAPS)
