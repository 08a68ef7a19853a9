"""The dashboards' JSON: up to date, valid by Grafana's schemas, and by the rules of grafana/dashboard-linter.

Of its rules, those that want a ``job`` and an ``instance`` in each query are left out: what is shown is a query by the
names that outlive its driver.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.dashboards import FOLDER, RULES, Panel, boards, expanded, panels
from tests.support.paths import REPO

PANELS = [pytest.param(panel, id=f"{panel.board}: {panel.title}") for panel in panels()]
BOARDS = [pytest.param(name, board, id=name) for name, board in boards().items()]


def test_up_to_date() -> None:
    """``make dashboards`` would change nothing."""
    pytest.importorskip("grafana_foundation_sdk")
    from grafana.source.__main__ import dashboards

    written = {path: path.read_text() for path in sorted(FOLDER.glob("*.json"))}
    assert written == dict(dashboards())


def test_four() -> None:
    """There are a fleet's overview, batch applications, uptime, and the checkpoint SLA."""
    assert {board["uid"]: board["title"] for board in boards().values()} == {
        "spark-events-fleet": "Spark fleet",
        "spark-events-batch": "Spark batch applications",
        "spark-events-uptime": "Spark query uptime",
        "spark-events-checkpoint-sla": "Spark checkpoint SLA",
    }


# -- Grafana's schemas --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schemas() -> Path:
    folder = REPO.parent / "shared" / "data" / "grafana-jsonschema"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: Grafana's schemas are not beside this clone")
    return folder


def complaints(schema: dict[str, Any], what: Any) -> list[str]:
    from jsonschema import Draft7Validator

    return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in Draft7Validator(schema).iter_errors(what)]


def read(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.jsonschema.json").read_text())
    return found


@pytest.mark.parametrize(("name", "board"), BOARDS)
def test_dashboard_schema(schemas: Path, name: str, board: dict[str, Any]) -> None:
    """Each dashboard is one by Grafana's own schema.

    What an override sets may be anything (a unit is a text): Grafana's source has ``_`` there, of which the JSON
    schema has made an object.
    """
    schema = read(schemas, "dashboard")
    set_by_override = schema["definitions"]["DynamicConfigValue"]["properties"]["value"]
    assert set_by_override.pop("type") == "object"
    assert complaints(schema, board) == []


@pytest.mark.parametrize("panel", PANELS)
def test_panel_schemas(schemas: Path, panel: Panel) -> None:
    """So are the options, the field settings and the queries of each panel."""
    schema = read(schemas, panel.spec["type"].replace("-", ""))
    for part, value in (
        ("Options", panel.spec.get("options", {})),
        ("FieldConfig", panel.spec["fieldConfig"]["defaults"].get("custom")),
    ):
        if part in schema["definitions"] and value is not None:
            assert complaints({**schema, "$ref": f"#/definitions/{part}"}, value) == []
    for target in panel.targets:
        assert complaints(read(schemas, "prometheus"), target) == []


def test_the_schemas_find_something(schemas: Path) -> None:
    """A number where a text ought to be is found, in each of the three."""
    board = boards()["fleet.json"]
    assert complaints(read(schemas, "dashboard"), {**board, "refresh": 30})
    stat = next(panel for panel in panels() if panel.spec["type"] == "stat")
    schema = {**read(schemas, "stat"), "$ref": "#/definitions/Options"}
    assert complaints(schema, {**stat.spec["options"], "graphMode": 1})
    assert complaints(read(schemas, "prometheus"), {**stat.targets[0], "expr": 1})


# -- the linter's rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "board"), BOARDS)
def test_dashboard_rules(name: str, board: dict[str, Any]) -> None:
    """Rules for dashboards: template-datasource, template-on-time-change-reload, uneditable, and the like."""
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert board["editable"] is False
    assert re.fullmatch(r"[a-z-]{1,40}", board["uid"])
    assert board.get("id") is None
    assert board["description"]
    assert (variables["datasource"]["type"], variables["datasource"]["label"]) == (
        "datasource",
        "Data source",
    )
    assert variables["datasource"]["query"] == "prometheus"
    assert {"app_name", "query_name"} <= variables.keys()
    for variable in variables.values():
        if variable["type"] == "query":
            assert variable["refresh"] == 2
            assert variable["multi"]
            assert variable["allValue"] == ".*"
            assert variable["datasource"]["uid"] == "${datasource}"
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"])))
    assert {name for name in used if not name.startswith("__")} <= variables.keys()


@pytest.mark.parametrize(("name", "board"), BOARDS)
def test_layout(name: str, board: dict[str, Any]) -> None:
    """Each panel has an id of its own, and a place of its own."""
    flat = [one for panel in board["panels"] for one in (panel, *panel.get("panels", ()))]
    ids = [panel["id"] for panel in flat]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in flat:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("panel", PANELS)
def test_panel_rules(panel: Panel) -> None:
    """Rules for panels: datasource, title and description, units, targets, unique refIds."""
    assert panel.spec["datasource"]["uid"] == "${datasource}"
    assert panel.title
    assert panel.spec["description"].endswith(".")
    assert panel.spec["fieldConfig"]["defaults"]["unit"]
    assert panel.targets
    refs = [target["refId"] for target in panel.targets]
    assert "" not in refs
    assert len(set(refs)) == len(refs)
    for target in panel.targets:
        assert target["datasource"]["uid"] == "${datasource}"


def test_rows_lead_to_dashboards() -> None:
    """The links of a table's rows are to dashboards that there are, and to variables of theirs."""
    uids = {board["uid"] for board in boards().values()}
    links = [
        link["url"]
        for panel in panels()
        for override in panel.spec["fieldConfig"]["overrides"]
        for of_field in override["properties"]
        if of_field["id"] == "links"
        for link in of_field["value"]
    ]
    assert links
    for link in links:
        uid, variables = re.fullmatch(r"/d/([a-z-]+)\?(.*)", link).groups()  # type: ignore[union-attr]
        assert uid in uids
        assert set(re.findall(r"var-(\w+)=", variables)) == {"app_name", "datasource"}


@pytest.mark.parametrize(("name", "board"), BOARDS)
def test_links_lead_to_events_and_traces(name: str, board: dict[str, Any]) -> None:
    """Their addresses are what Grafana's Explore reads, with variables that the dashboard has."""
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    links = {link["title"]: link["url"] for link in board["links"] if link["type"] == "link"}
    assert links.keys() == {"Events", "Traces"}
    for kind, url in zip(("loki", "tempo"), links.values(), strict=True):
        filled = url.replace("${app_name:pipe}", "one|two").replace("${__from}", "1").replace("${__to}", "2")
        (text,) = urllib.parse.parse_qs(urllib.parse.urlsplit(filled).query)["panes"]
        (pane,) = json.loads(text).values()
        (query,) = pane["queries"]
        assert query["datasource"] == {"type": kind, "uid": f"${{{kind}}}"}
        assert 'name=~"one|two"}' in (query.get("expr") or query.get("query"))
        assert pane["range"] == {"from": "1", "to": "2"}
        assert (variables[kind]["query"], variables[kind]["hide"]) == (kind, 2)


@pytest.mark.parametrize("panel", PANELS)
def test_promql_rules(panel: Panel) -> None:
    """Rules for PromQL: it parses, rates use ``$__rate_interval``, counters are rated and aggregated."""
    import promql_parser

    for target in panel.targets:
        expr = target["expr"]
        promql_parser.parse(expanded(expr))
        for window in re.findall(r"\brate\([^\[]*\[([^\]]*)\]", expr):
            assert window == "$__rate_interval"
        for counter in re.findall(r"\w+_total\b", expr):
            assert re.search(rf"(rate|increase)\({counter}\b", expr), counter
            assert re.search(
                rf"sum( by \([\w, ]+\))?\s?\(\(?(rate|increase|max_over_time)\({counter}", expr
            ), counter
        for selector in re.findall(r"\{([^}]*)\}", expr):
            assert 'app_name=~"$app_name"' in selector


def test_metrics_exist() -> None:
    """Each metric in a panel or a rule is one that the docs list, or a recorded one."""
    pages = [(REPO / "docs" / name).read_text() for name in ("metrics.md", "metrics-list.md")]
    listed = set(re.findall(r"\bspark_\w+", "".join(pages)))
    listed |= {f"{name}_bucket" for name in listed}
    rules = [yaml.safe_load(path.read_text()) for path in sorted(RULES.glob("*.yml"))]
    every = [rule for file in rules for group in file["groups"] for rule in group["rules"]]
    recorded = {rule["record"] for rule in every if "record" in rule}
    exprs = [rule["expr"] for rule in every] + [t["expr"] for panel in panels() for t in panel.targets]
    exprs += [mark["expr"] for board in boards().values() for mark in board["annotations"]["list"]]
    for expr in exprs:
        for name in re.findall(r"\b(?:app\w*:)?spark_\w+(?::\w+)*", expr):
            assert name in (recorded if ":" in name else listed), (name, expr)


def test_provisioning() -> None:
    """A Grafana with this folder mounted finds the dashboards, and data sources under fixed uids."""
    folder = REPO / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((folder / "dashboards" / "spark-events.yaml").read_text())["providers"]
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "/etc/spark-events/grafana/dashboards"
    sources = yaml.safe_load((folder / "datasources" / "spark-events.yaml").read_text())["datasources"]
    assert {source["type"] for source in sources} == {"prometheus", "loki", "tempo"}
    assert len({source["uid"] for source in sources}) == 3
    assert not any(source.get("editable") for source in sources)


def test_compose() -> None:
    """What it mounts is there, its images are pinned, and it listens on this machine alone."""
    conf = REPO / "conf"
    services = yaml.safe_load((conf / "compose.yaml").read_text())["services"]
    assert services.keys() == {"collector", "prometheus", "loki", "tempo", "grafana"}
    for service in services.values():
        assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith(".") or (conf / source).exists(), source
    sources = yaml.safe_load(
        (REPO / "grafana" / "provisioning" / "datasources" / "spark-events.yaml").read_text()
    )
    urls = {source["url"].strip("${}") for source in sources["datasources"]}
    assert urls <= services["grafana"]["environment"].keys()
    version = re.search(r"version: (\S+)", (REPO / ".ci" / "collector" / "manifest.yaml").read_text())
    assert version
    assert services["collector"]["image"].endswith(version.group(1))
