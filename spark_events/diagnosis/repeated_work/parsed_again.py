"""The rule about documents in a column that are parsed anew for each of their fields."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.plans.node import Node
from spark_events.diagnosis.plans.work_in_stage import SCAN_TIME, freed_besides_ms
from spark_events.diagnosis.thresholds import RECOMPUTATION, Thresholds

_NODES = ("Project", "Filter")
_CALL = re.compile(r"(get_json_object|xpath\w*)\(([A-Za-z_][\w.]*)#\d+, ([^()]*)\)", re.ASCII)
_EVALUATED = re.compile(r"invoke\(XPath\w*Evaluator\((.*?)\)\.evaluate\(([A-Za-z_][\w.]*)#\d+", re.ASCII)
"""How Spark 4 names the functions ``xpath…``."""
_LEAST_FIELDS = 3
_OF_JSON, _OF_XML = "get_json_object", "xpath"
_ALL_AT_ONCE = "parses it once, and has all fields"


def parsed_again(execution: EndedExecution, thresholds: Thresholds) -> Iterator[Issue]:
    """Yield each column whose documents are parsed once for each of several fields.

    Calls that are the same are one for Spark. How long the others take is not measured: it is at most what
    the stage does besides reading, for each field but one.
    """
    for node in execution.nodes():
        if node.name not in _NODES:
            continue
        fields: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for function, column, field in _CALL.findall(node.text):
            fields[function, column].add(field)
        for field, column in _EVALUATED.findall(node.text):
            fields[_OF_XML, column].add(field)
        for (function, column), asked in fields.items():
            if len(asked) >= _LEAST_FIELDS:
                yield _issue(node, function, column, len(asked), execution)


def _issue(node: Node, function: str, column: str, fields: int, execution: EndedExecution) -> Issue:
    parsed_ms = freed_besides_ms(execution, node.stages, node.within_stage(), (SCAN_TIME,))
    instead = "from_json" if function == _OF_JSON else "from_xml (since Spark 4)"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} {function} {column}",
        None,
        None,
        f"{function} parses {column} anew for each of {'at least ' if node.is_cut else ''}{fields} fields",
        f"{instead}, with a schema, {_ALL_AT_ONCE}.",
        evidence={"recomputation.times": fields, "recomputation.what": f"what {column} holds"},
        # Of how many fields in all, nobody knows where the list is cut.
        share_ms=int(parsed_ms if node.is_cut else parsed_ms * (fields - 1) / fields),
        stages=node.stages,
    )
