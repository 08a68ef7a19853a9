"""The page of a graph, in a real browser, from a file."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.lineage import drawing as drawings
from spark_events.lineage import questions
from spark_events.lineage.data_flow import DataFlow, DataKey, Flow
from spark_events.lineage.drawing import Drawing
from spark_events.lineage_page.page import PageTable, lineage_page
from tests.support.browser import browser

OPEN_PAGE = Callable[..., Any]
HOSTILE = '</script><img src="x" onerror="document.title=1">\u202e&amp;<b>'


@pytest.fixture(scope="module")
def open_page() -> Iterator[OPEN_PAGE]:
    with browser() as opened:
        yield opened


def key(name: str) -> DataKey:
    return DataKey("file", f"/d/{name}")


def flow_of(*edges: tuple[str, str, Flow]) -> DataFlow:
    flow = DataFlow()
    for source, sink, job in edges:
        for name in (source, sink):
            flow.titles[key(name)] = f"shop.{name}"
        flow.flows.setdefault((key(source), key(sink)), {})[job.job] = job
    return flow


def shop() -> DataFlow:
    """raw → orders → totals, raw → clicks, and days decide which totals there are."""
    return flow_of(
        ("raw", "orders", Flow("a", columns={"amount": ["price"], "day": ["day"]})),
        ("orders", "totals", Flow("b", columns={"sum": ["amount"]}, influences=["day"])),
        ("raw", "clicks", Flow("c", columns={"n": ["clicks"]})),
        ("clicks", "other", Flow("d", incomplete="RDDs have no columns")),
    )


def write(folder: Path, drawing: Drawing, title: str = "Lineage") -> Path:
    file = folder / "page.html"
    table = PageTable(["source"], [["x"]], "none")
    file.write_text(lineage_page(title, drawing, table, [], {}), encoding="utf-8")
    return file


def lit(page: Any, what: str = ".node") -> list[str]:
    return sorted(page.locator(f"{what}.lit title").all_text_contents())


def test_a_click_lights_a_tables_neighbors_and_one_on_a_column_its_path(
    open_page: OPEN_PAGE, tmp_path: Path
) -> None:
    page = open_page(write(tmp_path, drawings.all_of(shop())))
    node = page.locator('.node:has(title:text-is("shop.orders"))')
    node.click()
    assert lit(page) == ["shop.orders", "shop.raw", "shop.totals"]
    assert page.inner_text("#panel h2") == "shop.orders"

    page.get_by_role("button", name="amount", exact=True).click()
    assert lit(page) == ["shop.orders", "shop.raw", "shop.totals"]
    assert node.locator(".note").text_content() == "amount"
    page.get_by_role("button", name="shop.raw.price", exact=True).click()
    assert page.inner_text("#panel h2") == "shop.raw.price"
    assert page.locator("#panel li button").all_text_contents()[:2] == [
        "shop.orders.amount",
        "shop.totals.sum",
    ]
    assert (
        page.locator('.node:has(title:text-is("shop.clicks"))').evaluate(
            "node => getComputedStyle(node).opacity"
        )
        < "0.5"
    )

    page.locator("#clear").click()
    assert lit(page) == []
    assert page.complaints == []


@pytest.mark.parametrize("seed", range(3))
def test_a_columns_path_is_what_impact_answers(open_page: OPEN_PAGE, tmp_path: Path, seed: int) -> None:
    """The script and the command follow columns alike: by values, by rows, and where columns are unknown."""
    chance = random.Random(seed)
    edges = []
    for number in range(25):
        source, sink = chance.sample("abcdefghij", 2)
        names = ("x", "y", "z")
        columns = {
            name: chance.sample(names, chance.randint(0, 2)) for name in names if chance.random() < 0.6
        }
        unknown = chance.random() < 0.2
        edges.append(
            (source, sink, Flow(f"job {number}", incomplete="unknown"))
            if unknown
            else (source, sink, Flow(f"job {number}", columns=columns, influences=chance.choice([[], ["x"]])))
        )
    flow = flow_of(*edges)
    page = open_page(write(tmp_path, drawings.all_of(flow)))
    for name in sorted({source for source, _, _ in edges}):
        for column in flow.columns_by_data()[key(name)]:
            impact = questions.impact(flow, f"shop.{name}.{column}")
            drawn = page.evaluate(
                "([title, column]) => trace(data.findIndex((each) => each.title === title), column, after)"
                ".found.map(({ end, name, how }) => [data[end].title, name, how])",
                [f"shop.{name}", column],
            )
            expected = {
                # Of a column that is reached in two ways, the page tells the first that is not a mere filter.
                (affected.data, affected.column, affected.how == "rows")
                for affected in impact.affected
            }
            assert {(title, reached, how == "rows") for title, reached, how in drawn} == expected


def test_names_that_attack_are_texts(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    flow = flow_of((HOSTILE, "orders", Flow(HOSTILE, columns={HOSTILE: [HOSTILE]})))
    page = open_page(write(tmp_path, drawings.all_of(flow), HOSTILE))
    page.locator(".node").first.click()
    page.locator("#panel .column").first.click()
    shown = HOSTILE.replace("\u202e", "\\u202e")
    assert page.inner_text("h1") == shown
    assert page.inner_text("#panel h2") == f"shop.{shown}.{shown}"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.title() == shown
    assert page.complaints == []


def test_all_of_it_can_be_reached_by_keys(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    page = open_page(write(tmp_path, drawings.all_of(shop())))
    page.keyboard.press("/")
    page.keyboard.type("sum")
    assert page.inner_text("#count") == "1 match"
    page.keyboard.press("Enter")
    assert page.inner_text("#panel h2") == "shop.totals.sum"
    assert lit(page) == ["shop.orders", "shop.raw", "shop.totals"]
    page.keyboard.press("Escape")
    assert page.locator("#results li").count() == 0

    page.locator(".node[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.inner_text("#panel h2") == "shop.raw"
    page.keyboard.press("Tab")
    assert (
        page.evaluate("document.activeElement.closest('.node')") is None
    )  # one stop, not one for each table
    page.keyboard.press("Escape")
    assert lit(page) == []


def test_the_address_keeps_what_is_chosen(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    file = write(tmp_path, drawings.all_of(shop()))
    page = open_page(file)
    page.locator(".node").first.click()
    page.locator("#panel .column").first.click()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert page.inner_text("#panel h2") == "shop.raw.price"
    page.evaluate("location.hash = ''")
    page.wait_for_function("!document.querySelector('.lit')")


def test_an_impact_is_lit_from_the_start(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    flow = shop()
    page = open_page(write(tmp_path, drawings.of_impact(flow, questions.impact(flow, "raw.price"))))
    assert page.inner_text("#panel h2") == "shop.raw.price"
    assert lit(page) == ["shop.orders", "shop.raw", "shop.totals"]


def test_a_planned_table_is_known_by_its_name(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    """Its folder was made for the analysis: an address with it would be another one each time."""
    file = tmp_path / "page.html"
    table = PageTable(["source"], [["x"]], "none")
    places = {"a": "jobs.sql:1", "b": "jobs.sql:2", "c": "jobs.sql:3", "d": "jobs.sql:4"}
    file.write_text(
        lineage_page("Lineage", drawings.all_of(shop()), table, ["jobs.sql:9: <b>no</b>"], places)
    )
    page = open_page(file)
    page.locator('.node:has(title:text-is("shop.orders"))').click()
    assert page.url.endswith("#shop.orders")
    assert "/d/" not in page.inner_text("#panel")
    assert page.locator("#panel [title='b jobs.sql:2']").count() == 1
    assert page.inner_text("#problems li") == "jobs.sql:9: <b>no</b>"


def test_what_came_and_went_is_marked(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    before, after = shop(), shop()
    del after.flows[key("orders"), key("totals")]
    after.flows[key("raw"), key("totals")] = {"b": Flow("b", columns={"sum": ["price"]})}
    drawing = drawings.of_changes(before, after, questions.changes(before, after))
    page = open_page(write(tmp_path, drawing))
    assert page.locator(".link.added").count() == page.locator(".link.removed").count() == 1
    assert page.inner_text(".legend") == "camewent"
    page.locator('.node:has(title:text-is("shop.raw"))').click()
    page.get_by_role("button", name="price", exact=True).click()
    assert page.locator("#panel li button").all_text_contents()[:2] == [
        "shop.orders.amount",
        "shop.totals.sum",
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 1400), ("dark", 420)])
def test_it_fits_screens_light_and_dark(
    open_page: OPEN_PAGE, tmp_path: Path, scheme: str, width: int
) -> None:
    names = [f"a_rather_long_name_of_a_table_{number}" for number in range(30)]
    flow = flow_of(
        *((one, other, Flow("job", columns={"a": ["a"]})) for one, other in itertools.pairwise(names))
    )
    page = open_page(write(tmp_path, drawings.all_of(flow)), scheme, width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(247, 247, 245)"
    assert light == (scheme == "light")
    node = page.locator(".node").last
    page.locator("#search").fill(names[-1])
    page.keyboard.press("Enter")
    box, view = node.bounding_box(), page.locator("#view").bounding_box()
    assert view["x"] <= box["x"]
    assert box["x"] + box["width"] <= view["x"] + view["width"]
    assert page.locator(".node text").first.bounding_box()["height"] >= 9
    page.locator("#fit").click()
    first = page.locator(".node").first.bounding_box()
    assert first["x"] >= view["x"]
    assert page.complaints == []


def test_a_table_that_feeds_itself_and_a_circle_are_drawn(open_page: OPEN_PAGE, tmp_path: Path) -> None:
    flow = flow_of(
        ("a", "a", Flow("update", columns={"x": ["x"]})),
        ("a", "b", Flow("there", columns={"x": ["x"]})),
        ("b", "a", Flow("back", columns={"x": ["x"]})),
    )
    page = open_page(write(tmp_path, drawings.all_of(flow)))
    assert page.locator(".link").count() == 3
    page.locator(".node").first.click()
    page.get_by_role("button", name="x", exact=True).click()
    assert lit(page) == ["shop.a", "shop.b"]
    assert page.complaints == []
