"""What diagrams show of the answer to a question, and how a comment stays within what GitHub takes."""

from __future__ import annotations

import pytest

from spark_events.lineage import drawing as drawings
from spark_events.lineage import questions
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow
from spark_events.lineage.diagrams import graphviz, mermaid
from spark_events.lineage.drawing import Drawing
from spark_events.lineage.markdown import MOST_CHARACTERS, Section, lineage_markdown

HOUR_MS = 3_600_000


def key(name: str) -> DataKey:
    return DataKey("file", f"/d/{name}")


def finished(
    job: str, hour: int = 1, columns: dict[str, list[str]] | None = None, incomplete: str = ""
) -> Flow:
    time_ms = hour * HOUR_MS
    return Flow(job, "FINISHED", time_ms, time_ms, columns or {}, incomplete=incomplete, modify="INSERT")


def flow_of(*edges: tuple[str, str, Flow]) -> DataFlow:
    flow = DataFlow()
    for source, sink, job in edges:
        for name in (source, sink):
            if name:
                flow.titles[key(name)] = name
        ends = key(source) if source else None, key(sink)
        flow.flows.setdefault(ends, {})[job.job] = job
    return flow


@pytest.fixture
def shop() -> DataFlow:
    """raw → orders → totals, and pages → views, whose columns are unknown."""
    return flow_of(
        ("", "raw", finished("load", 40)),
        ("raw", "orders", finished("a", 2, {"amount": ["price"]})),
        ("orders", "totals", finished("b", 3, {"sum": ["amount"]})),
        ("pages", "views", finished("c", 4, incomplete="RDDs have no columns")),
    )


def lines_of(drawing: Drawing) -> list[str]:
    return [line.strip() for line in mermaid(drawing.near()).splitlines()[1:]]


def test_what_is_around_some_data(shop: DataFlow) -> None:
    assert lines_of(drawings.around(shop, key("orders"))) == [
        'd0["raw"]',
        'd1["orders"]:::asked',
        'd2["totals"]',
        'd0 -->|"a"| d1',
        'd1 -->|"b"| d2',
        "classDef asked stroke:#1668dc,stroke-width:3px",
    ]


def test_what_a_job_reads_and_writes(shop: DataFlow) -> None:
    assert lines_of(drawings.of_job(shop, "b")) == ['d0["orders"]', 'd1["totals"]', 'd0 -->|"b"| d1']


def test_what_a_column_contributes_to(shop: DataFlow) -> None:
    lines = lines_of(drawings.of_impact(shop, questions.impact(shop, "orders.amount")))
    assert lines[:3] == [
        'd0["orders<br/>amount"]:::asked',
        'd1["totals<br/>sum"]:::reached',
        'd0 -->|"b"| d1',
    ]
    assert "linkStyle 0 stroke:#d4380d,stroke-width:3px" in lines


def test_what_came_and_went_has_signs_and_not_colors_alone(shop: DataFlow) -> None:
    after = flow_of(
        ("raw", "orders", finished("a", 2, {"amount": ["n"]})),
        ("raw", "totals", finished("b", 3, {"sum": ["price"]})),
        ("pages", "views", finished("c", 4, incomplete="RDDs have no columns")),
    )
    drawing = drawings.of_changes(shop, after, questions.changes(shop, after))
    arrows = {line for line in lines_of(drawing) if ">|" in line}
    titles = {line[:2]: line for line in lines_of(drawing) if line.startswith("d") and '["' in line}
    assert {title.split('"')[1] for title in titles.values()} == {"raw", "orders", "totals"}
    assert {arrow.split('"')[1] for arrow in arrows} == {"± a (amount)", "+ b", "\u2212 b"}
    assert any("-.->" in arrow and "\u2212 b" in arrow for arrow in arrows)
    dot = graphviz(drawing.near())
    assert '[label="\u2212 b", color="#c9302c", penwidth=3, style=dashed];' in dot


def test_what_is_older_than_its_source(shop: DataFlow) -> None:
    lines = lines_of(drawings.of_stale(shop, questions.stale(shop, HOUR_MS)))
    assert 'd1["orders<br/>1 d 14 h behind"]:::behind' in lines
    assert len([line for line in lines if ">|" in line]) == 1
    assert lines_of(drawings.of_stale(shop, [])) == []


def test_what_nobody_reads_and_what_it_is_made_of(shop: DataFlow) -> None:
    unread = {data for data, _ in questions.orphans(shop)}
    lines = lines_of(drawings.of_orphans(shop, unread))
    assert [line.split('"')[1].split("<")[0] for line in lines if ":::orphan" in line] == ["totals", "views"]
    assert not any('"raw"' in line for line in lines)


def test_what_is_missing(shop: DataFlow) -> None:
    lines = lines_of(drawings.of_missing(shop))
    assert 'd0 -.->|"c (RDDs have no columns)"| d1' in lines
    assert len([line for line in lines if '["' in line]) == 2


@pytest.mark.parametrize("count", [3, 300, 5_000])
def test_a_comment_is_within_what_github_takes(count: int) -> None:
    """However much there is: rows that are left out are counted, and a graph that is too large is said to be."""
    name = "a_table_of_a_rather_long_name_"
    flow = flow_of(*((f"{name}{n}", f"{name}{n + 1}", finished(f"job {n}")) for n in range(count)))
    rows = [(f"{name}{n}", "amount", "value", "job" * 40) for n in range(count)]
    sections = [
        Section("Affected", ("data", "column", "how", "job"), rows),
        Section("Cannot be analyzed", ("problem",), [("x" * 2_000,)] * count),
        Section("Empty", ("a", "b"), [], "Nothing at all."),
        Section("Lineage", ("a", "b", "c", "d"), rows, is_folded=True),
    ]
    text = lineage_markdown(sections, drawings.all_of(flow))
    assert len(text) <= MOST_CHARACTERS
    assert ("```mermaid" in text) == (count < 5_000)
    assert ("too large for a diagram" in text) == (count == 5_000)
    assert ("more; `--format json` has all" in text) == (count > 3)
    assert text.rstrip().endswith("</details>")
    assert "### Empty\n\nNothing at all." in text


def test_a_name_has_no_meaning_for_mermaid() -> None:
    """Neither as settings, which it takes from anywhere, nor as markup."""
    named = flow_of(("raw", "%%{init: {'theme': 'dark'}}%%", finished("`&lt;b`")))
    text = mermaid(drawings.all_of(named).near())

    assert "%" not in text
    assert "`" not in text
    assert "&" not in text
    assert "#amp;lt;b" in text


def test_data_whose_source_is_unknown_came_too(shop: DataFlow) -> None:
    """It has no arrow, and is drawn all the same."""
    after = flow_of(*(("", sink, finished("load", 41)) for sink in ("raw", "news")))
    drawing = drawings.of_changes(shop, after, questions.changes(shop, after))
    assert "news" in {node.title for node in drawing.near().nodes.values()}
    assert "raw" in {node.title for node in drawing.near().nodes.values()}  # orders is no longer made of it
