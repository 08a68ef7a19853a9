"""Panels and variables as all dashboards have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import bargauge, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import common, units
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

PROMETHEUS = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
QUERY = 'app_name=~"$app_name", query_name=~"$query_name"'
"""Selects the queries that are looked at."""
APP = 'app_name=~"$app_name"'
LEGEND = "{{app_name}} / {{query_name}}"
GREEN, AMBER, RED, GRAY, BLUE, PURPLE = "green", "orange", "red", "#8e8e8e", "blue", "purple"
Steps = Sequence[tuple[float | None, str]]


# From a row of a table to what there is on its application.
_TO_DETAILS = [
    {
        "title": title,
        "url": f"/d/{uid}?var-app_name=${{__value.raw}}&${{__url_time_range}}&var-datasource=${{datasource}}",
    }
    for title, uid in (
        ("Uptime", "spark-events-uptime"),
        ("Checkpoint SLA", "spark-events-checkpoint-sla"),
        ("Batch", "spark-events-batch"),
    )
]


NEUTRAL: Steps = [(None, "text")]
NONE_IS_GOOD: Steps = [(None, GREEN), (1, RED)]


class PromQuery(NamedTuple):
    """A query of a panel.

    Attributes:
        expr: PromQL.
        legend: the names of its series.
    """

    expr: str
    legend: str = LEGEND


def count(expr: str) -> PromQuery:
    """Return how many series an expression gives; 0 where it gives none."""
    return PromQuery(f"count({expr}) or vector(0)", "")


def dashboard(uid: str, title: str, description: str) -> builders.Dashboard:
    """Return an empty dashboard with the variables of all: data source, application, query."""
    return (
        builders.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["spark", "spark-events"])
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-6h", "now")
        .timezone("browser")
        .link(
            builders.DashboardLink("Spark events")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["spark-events"])
            .keep_time(True)
            .include_vars(True)
            .as_dropdown(True)
        )
        .with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_names("app_name", "Application", "spark_application_info"))
        .with_variable(_names("query_name", "Query", f"spark_query_info{{{APP}}}"))
    )


def _names(label: str, title: str, series: str) -> builders.QueryVariable:
    everything = models.VariableOption(text="All", value="$__all", selected=True)
    return (
        builders.QueryVariable(label)
        .label(title)
        .datasource(PROMETHEUS)
        .query(f"label_values({series}, {label})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(everything)
    )


def objective(title: str, description: str, percent: str) -> builders.TextBoxVariable:
    """Return a variable, ``$target``, that a person may set to another percentage."""
    return builders.TextBoxVariable("target").label(title).description(description).default_value(percent)


def place(board: builders.Dashboard, panels: Iterable[builders.Panel], height: int, width: int) -> None:
    """Add panels to a dashboard, each as high and as wide, of a width of 24 in all."""
    for panel in panels:
        board.with_panel(panel.height(height).span(width))


def thresholds(steps: Steps) -> builders.ThresholdsConfig:
    """Return absolute thresholds: from which value on which color; the first has None."""
    return (
        builders.ThresholdsConfig()
        .mode(models.ThresholdsMode.ABSOLUTE)
        .steps([models.Threshold(value=value, color=color) for value, color in steps])
    )


def number(
    title: str,
    description: str,
    target: PromQuery,
    steps: Steps,
    unit: str = units.Short,
    decimals: int | None = None,
) -> stat.Panel:
    """Return a panel with a number for each series, as of the end of the time."""
    panel = (
        stat.Panel()
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
        .text_mode(common.BigValueTextMode.VALUE if not target.legend else common.BigValueTextMode.AUTO)
        .reduce_options(_last_value())
        .thresholds(thresholds(steps))
    )
    panel = _described(panel, title, description, unit, decimals)
    return panel.with_target(_query(target, 0, instant=True))


def lines(
    title: str,
    description: str,
    targets: Sequence[PromQuery],
    unit: str = units.Short,
    *,
    dashed: str | None = None,
    logarithmic: bool = False,
    highest: float | None = None,
) -> timeseries.Panel:
    """Return a panel with a line for each series; those whose name matches ``dashed`` are red and dashed."""
    panel = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(8)
        .show_points(common.VisibilityMode.AUTO)
        .span_nulls(False)
        .legend(_legend(common.LegendDisplayMode.TABLE).calcs(["lastNotNull", "max"]))
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
        .min(0)
    )
    if logarithmic:
        scale = common_builders.ScaleDistributionConfig().type(common.ScaleDistribution.LOG).log(10)
        panel.scale_distribution(scale)
    if highest is not None:
        panel.max(highest)
    if dashed:
        style = [
            models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": RED}),
            models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
        ]
        panel.with_override(_named(dashed), style)
    panel = _described(panel, title, description, unit, None)
    for index, target in enumerate(targets):
        panel.with_target(_query(target, index, instant=False))
    return panel


def bars(title: str, description: str, target: PromQuery, unit: str = units.Short) -> bargauge.Panel:
    """Return a panel with a bar for each series, as of the end of the time."""
    panel = (
        bargauge.Panel()
        .orientation(common.VizOrientation.HORIZONTAL)
        .display_mode(common.BarGaugeDisplayMode.BASIC)
        .reduce_options(_last_value())
        .thresholds(thresholds([(None, BLUE)]))
        .min(0)
    )
    panel = _described(panel, title, description, unit, 0)
    return panel.with_target(_query(target, 0, instant=True))


def states(
    title: str, description: str, target: PromQuery, names: Mapping[int, tuple[str, str]]
) -> statetimeline.Panel:
    """Return a panel with a band for each series, colored by its value.

    Args:
        title, description: of the panel.
        target: yields whole numbers.
        names: the name and the color of each number.
    """
    named = {
        str(value): models.ValueMappingResult(text=name, color=color, index=index)
        for index, (value, (name, color)) in enumerate(names.items())
    }
    panel = (
        statetimeline.Panel()
        .mappings([models.ValueMap(options=named)])
        .merge_values(True)
        .show_value(common.VisibilityMode.AUTO)
        .row_height(0.8)
        .fill_opacity(85)
        .line_width(0)
        .legend(_legend(common.LegendDisplayMode.LIST))
        .thresholds(thresholds([(None, GRAY)]))
    )
    panel = _described(panel, title, description, units.Short, None)
    return panel.with_target(_query(target, 0, instant=False))


def rows(
    title: str,
    description: str,
    columns: Sequence[tuple[str, str, str]],
    by: Mapping[str, str],
    colors: Mapping[str, str],
) -> table.Panel:
    """Return a table with a column for each query of some, joined by the labels that they share.

    Args:
        title, description: of the panel.
        columns: name, PromQL and unit of each; one without a name is there for its labels.
        by: the labels that come first, with the names of their columns.
        colors: of some texts in it.
    """
    colored = {text: models.ValueMappingResult(color=color) for text, color in colors.items()}
    panel = (
        table.Panel()
        .filterable(True)
        .cell_height(common.TableCellHeight.SM)
        .cell_options(
            common.TableColoredBackgroundCellOptions(
                mode=common.TableCellBackgroundDisplayMode.BASIC, apply_to_row=False
            )
        )
        .thresholds(thresholds([(None, "transparent")]))
        .mappings([models.ValueMap(options=colored)])
    )
    panel = _described(panel, title, description, units.Short, 1)
    hidden, renamed = {"Time": True}, dict(by)
    for index, (name, expr, unit) in enumerate(columns):
        panel.with_target(_query(PromQuery(expr, ""), index, instant=True).format(PromQueryFormat.TABLE))
        value = f"Value #{_ref(index)}"
        if name:
            renamed[value] = name
            panel.with_override(_named(name), [models.DynamicConfigValue("unit", unit)])
        else:
            hidden[value] = True
    first = next(iter(by.values()))
    panel.with_override(_named(first), [models.DynamicConfigValue("links", _TO_DETAILS)])
    order = {name: index for index, name in enumerate(renamed)}
    options = {"excludeByName": hidden, "renameByName": renamed, "indexByName": order}
    return panel.transformations(
        [
            models.DataTransformerConfig("merge", options={}),
            models.DataTransformerConfig("organize", options=options),
        ]
    )


def _named(pattern: str) -> models.MatcherConfig:
    """Match the fields whose names are of a pattern: the schema knows no other matcher by name."""
    return models.MatcherConfig("byRegexpOrNames", {"pattern": f"/^{pattern}$/"})


def _last_value() -> common_builders.ReduceDataOptions:
    return common_builders.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def _legend(mode: common.LegendDisplayMode) -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .display_mode(mode)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
    )


def _described(panel: Any, title: str, description: str, unit: str, decimals: int | None) -> Any:
    panel.title(title).description(description).datasource(PROMETHEUS).unit(unit)
    return panel if decimals is None else panel.decimals(decimals)


def _query(target: PromQuery, index: int, instant: bool) -> prometheus.Dataquery:
    query = prometheus.Dataquery().expr(target.expr).legend_format(target.legend).ref_id(_ref(index))
    query.datasource(PROMETHEUS)
    return query.instant() if instant else query.range()


def _ref(index: int) -> str:
    return chr(ord("A") + index)
