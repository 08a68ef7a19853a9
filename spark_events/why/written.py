"""Explanations as JSON, and as a page of its own: no script, nothing fetched, readable in light and dark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from spark_events.api.errors import needs_extra
from spark_events.diagnosis.times.heap_ledger import HEAP_ACCOUNTS
from spark_events.diagnosis.times.ledger import ACCOUNTS
from spark_events.why.comparison import Comparison
from spark_events.why.explanation import Explanation, unknown_of_events
from spark_events.why.places import in_words
from spark_events.why.shown import COLORS, SEVERITIES, held, shown_evidence, whole_percent


def as_json(explanations: Sequence[Explanation], compared: Comparison | None = None) -> bytes:
    """Return all figures: ``applications``, and ``against`` another run.

    Times are in ms, sizes in bytes, and what was held of heap in byte-seconds.
    """
    against = None
    if compared is not None:
        against = {
            "app_id": compared.other_id,
            "figures": {row.name: [row.other, row.this] for row in compared.rows},
            "settings": compared.settings,
        }
    applications = [as_values(explanation) for explanation in explanations]
    values = {"applications": applications, "against": against}
    try:
        return orjson.dumps(values, option=orjson.OPT_INDENT_2)
    except TypeError:  # numbers of a damaged log, beyond 64 bits
        return json.dumps(values, indent=2, ensure_ascii=False, default=str).encode(errors="replace")


def as_values(explanation: Explanation) -> dict[str, Any]:
    """Return all figures of an application."""
    return {
        "app_name": explanation.app_name,
        "app_id": explanation.app_id,
        "begun_ms": explanation.begun_ms,
        "ended_ms": explanation.ended_ms,
        "ended": explanation.ended,
        "answer": explanation.answer,
        "failures": list(explanation.failures),
        "parts": explanation.parts,
        "core_ms": explanation.core_ms,
        "cpu_share": explanation.cpu_share,
        "heap_byte_s": explanation.heap_byte_s,
        "critical_path_ms": explanation.critical_path_ms,
        "estimates": [estimate._asdict() for estimate in explanation.estimates],
        "longest": [
            {
                "name": each.name,
                "does": each.does,
                "stages": each.stages,
                "tasks": each.tasks,
                "wall_ms": each.wall_ms,
            }
            for each in explanation.longest
        ],
        "issues": [
            {
                "issue": issue.kind,
                "severity": issue.severity,
                "about": issue.about,
                "sentence": issue.sentence,
                "advice": issue.advice,
                "lost_ms": issue.lost_ms,
                "lost_bytes": issue.lost_bytes,
                "evidence": issue.evidence,
            }
            for issue in explanation.issues
        ],
    }


def page(explanations: Sequence[Explanation], compared: Comparison | None = None) -> str:
    """Return the page, with all texts escaped.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    with needs_extra("report", "jinja2", "an HTML page"):
        from spark_events.history.page.page import environment
    templates = environment("spark_events.why")
    templates.filters.update(whole_percent=whole_percent, held=held, in_words=in_words)
    return templates.get_template("why.html.j2").render(
        explanations=explanations,
        unknown=unknown_of_events(explanations),
        accounts=ACCOUNTS,
        heap_accounts=HEAP_ACCOUNTS,
        colors=COLORS,
        compared=compared,
        severities=SEVERITIES,
        shown_evidence=shown_evidence,
    )
