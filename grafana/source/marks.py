"""What each dashboard marks in time, starts and failures, and what it leads to, events and traces."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from grafana.source.panels import APP, BLUE, PROMETHEUS, QUERY, RED

_STEP = "60s"
_BEFORE = f"5m] offset {_STEP}"
"""A gap between scrapes is shorter than that, and no start."""


class _Mark(models.AnnotationQuery):
    """A line at each moment at which its query has a value, with its series' labels as a text."""

    def __init__(self, name: str, color: str, expr: str, title: str) -> None:
        super().__init__(name, PROMETHEUS, icon_color=color, expr=expr, built_in=None)
        self._title = title

    def build(self) -> models.AnnotationQuery:
        """Return itself, as the builders do."""
        return self

    def to_json(self) -> dict[str, object]:
        # The builder knows neither of these, which Grafana's schema does.
        return {**super().to_json(), "titleFormat": self._title, "step": _STEP}


def marks(board: builders.Dashboard) -> None:
    """Let a dashboard mark when applications and queries started, and when something failed."""
    failures = f"spark_failures_total{{{APP}}}"
    names = "{{app_name}} {{query_name}}"
    board.annotations(
        [
            _Mark(
                "Starts of applications",
                BLUE,
                _appeared("app_name, app_id", f"spark_application_info{{{APP}}}"),
                "{{app_name}} started",
            ),
            _Mark(
                "Starts of queries",
                BLUE,
                _appeared("app_name, query_name, run_id", f"spark_query_info{{{QUERY}}}"),
                f"{names} started",
            ),
            _Mark(
                "Failures",
                RED,
                # Any other value is a failure, however rarely it is scraped: the next driver begins at 1.
                f"count by (app_name, query_name, error) ({failures} != {failures} offset {_STEP}) "
                f"or {_appeared('app_name, query_name, error', failures)}",
                f"{names} failed: {{{{error}}}}",
            ),
        ]
    )


def _appeared(by: str, series: str) -> str:
    """Return PromQL for the series that there were not a moment ago."""
    return f"count by ({by}) ({series}) unless count by ({by}) (last_over_time({series}[{_BEFORE}))"


def links(board: builders.Dashboard) -> None:
    """Let a dashboard lead to the events and the traces of the applications that it shows.

    As the OTLP reporter and conf/otel-collector.yaml send them: the service is the application's name.
    """
    for kind, title, language, query in (
        ("loki", "Events", "expr", '{service_name=~"${app_name:pipe}"}'),
        ("tempo", "Traces", "query", '{resource.service.name=~"${app_name:pipe}"}'),
    ):
        variable = builders.DatasourceVariable(kind).label(f"{title} from").type(kind)
        board.with_variable(variable.hide(models.VariableHide.HIDE_VARIABLE))
        board.link(
            builders.DashboardLink(title)
            .type(models.DashboardLinkType.LINK)
            .icon("external link")
            .tooltip(f"{title} of the applications shown, in {kind.title()}")
            .url(_explore(kind, dict(_asked(kind, language, query))))
            .target_blank(True)
        )


def _asked(kind: str, language: str, query: str) -> Iterator[tuple[str, object]]:
    yield "refId", "A"
    yield "datasource", {"type": kind, "uid": f"${{{kind}}}"}
    yield language, query
    if kind == "tempo":
        yield "queryType", "traceql"


def _explore(kind: str, query: dict[str, object]) -> str:
    pane = {
        "datasource": f"${{{kind}}}",
        "queries": [query],
        "range": {"from": "${__from}", "to": "${__to}"},
    }
    text = json.dumps({"a": pane}, separators=(",", ":"))
    # Grafana fills in what begins with a dollar sign.
    return "/explore?schemaVersion=1&panes=" + urllib.parse.quote(text, safe="${}:,")
