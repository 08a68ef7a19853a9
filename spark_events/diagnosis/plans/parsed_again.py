"""The rule about documents in a column that are parsed anew for each of their fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import CUT, LONGEST_TEXT, Node
from spark_events.diagnosis.plans.work_in_stage import SCAN_TIME
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

_NODES = ("Project", "Filter")
_CALL = re.compile(r"(get_json_object|xpath\w*)\(([A-Za-z_][\w.]*)#\d+, ", re.ASCII)
_LEAST_TIMES = 3
_ALL_AT_ONCE = {
    "get_json_object": "from_json(column, schema) parses it once, and has all fields",
    "xpath": "from_xml(column, schema) parses it once, and has all fields",
}


def parsed_again(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each column whose documents are parsed once for each of several fields.

    How long that takes is not measured: it is at most what the stage does besides reading, for each time but
    one.
    """
    for node in execution.nodes():
        if node.name not in _NODES:
            continue
        for (function, column), times in Counter(_CALL.findall(node.text)).items():
            if times >= _LEAST_TIMES:
                yield _issue(node, function, column, times, execution)


def _issue(node: Node, function: str, column: str, times: int, execution: EndedExecution) -> Issue:
    stages = [execution.stages[stage] for stage in node.stages if stage in execution.stages]
    run_ms = sum(stage.run_ms for stage in stages)
    read_ms = min(run_ms, sum(below.metrics.get(SCAN_TIME, 0) for below in node.within_stage()))
    rest = 1 - read_ms / run_ms if run_ms else 1.0
    is_cut = CUT in node.text or len(node.text) >= LONGEST_TEXT
    kind = "get_json_object" if function == "get_json_object" else "xpath"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {function} {column}",
        None,
        None,
        f"{function} parses {column} anew for each field, {'at least ' if is_cut else ''}{times} times a row",
        f"{_ALL_AT_ONCE[kind]}.",
        evidence={"recomputation.times": times, "recomputation.what": f"what {column} holds"},
        share_ms=int(execution.freed_ms(node.stages) * rest * (times - 1) / times),
        stages=node.stages,
    )
