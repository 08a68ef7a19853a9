"""Executors of batch applications: how full they are against what they are given, and how they are lost."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import units

from grafana.source.panels import AMBER, APP, GREEN, RED, PromQuery, lines, number
from grafana.source.queries import BATCH, counted

_BY = "by (app_name)"


def executors() -> list[builders.Panel]:
    """Return the panels, each a third of a row."""
    used = "spark_application_executor_heap_used"
    limit = _of("spark_application_executor_heap_limit_bytes")
    removed = counted(f"spark_application_executors_removed_total{{{APP}}}", "1h")
    lost = f"sum by (reason) (sum by (app_name, reason) {removed} {BATCH})"
    return [
        lines(
            "Executor heap",
            "Heap used by the fullest and the median executor, and the heap each is given.",
            [
                PromQuery(_of(f"{used}_max_bytes"), "{{app_name}} fullest"),
                PromQuery(_of(f"{used}_median_bytes"), "{{app_name}} median"),
                PromQuery(limit, "{{app_name}} limit"),
            ],
            units.BytesIEC,
            dashed=".* limit",
        ),
        number(
            "Peak heap",
            "The highest heap use of any executor so far, as a share of the heap it is given.",
            PromQuery(f"100 * {_of(f'{used}_peak_bytes')} / {limit}", "{{app_name}}"),
            [(None, GREEN), (80, AMBER), (95, RED)],
            units.Percent,
            0,
        ),
        lines(
            "Executors lost (1 h)",
            "Executors lost in the last hour, by reason: out_of_memory is a full heap or a container's "
            "limit, killed "
            "a SIGKILL for which no reason was reported. ExecutorLostEvents have the details.",
            [PromQuery(lost, "{{reason}}")],
        ),
    ]


def _of(metric: str) -> str:
    return f"(max {_BY} ({metric}{{{APP}}}) {BATCH})"
