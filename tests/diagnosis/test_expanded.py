"""The rule about aggregations for which Spark makes several rows of each."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.costly_nodes.expanded import expanded
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.node import LONGEST_TEXT
from spark_events.diagnosis.thresholds import Thresholds
from tests.support.plans import Plan, S, executed

DISTINCT = (
    "Expand [[g#6L, null, null, d2#9L, 1], [g#6L, d0#7L, null, null, 2], [g#6L, null, d1#8L, null, 3]], "
    "[g#6L, d0#36L, d1#34L, d2#39L, gid#33]"
)
BY_DISTINCT = "HashAggregate(keys=[g#6L, d0#36L, d1#34L, d2#39L, gid#33], functions=[])"
CUBE = (
    "Expand [[v#1, a#2, b#3, 0], [v#1, a#2, null, 1], [v#1, null, b#3, 2], [v#1, null, null, 3]], [v#1, a#4]"
)
BY_SETS = "HashAggregate(keys=[a#4, b#5, spark_grouping_id#6L], functions=[partial_sum(v#1)])"
WINDOWS = (
    "Expand [[named_struct(start, knownnullable(precisetimestampconversion(((precisetimestampconversion("
    "seen_at#1, TimestampType, LongType) - CASE WHEN"
)
BY_WINDOWS = "HashAggregate(keys=[window#6], functions=[partial_count(1)])"


def told(expand: str, above: str, made: int, of: int = 1_000_000, left: int = 0) -> list[Issue]:
    """Return what is told of an aggregation whose first stage takes 40 s of four cores, 8 s of it to read."""
    plan = Plan()(0, "HashAggregate(keys=[g#6L], functions=[])", 3, rows=40)(1, above, 2, rows=left or made)(
        2, "AQEShuffleRead coalesced"
    )(3, "Exchange hashpartitioning(g#6L, 200)", 1, shuffle_records_written=left or made)(
        4, above, 1, rows=left or made
    )(5, expand, 1, rows=made)(6, "Filter isnotnull(d0#7L)", 1, rows=of)(
        7, "Scan parquet db.visits [g#6L]", 1, rows=of, scan_time=32 * S
    )
    return list(expanded(executed(plan, s1=(0, 40), s2=(40, 60), s3=(60, 61)), Thresholds()))


def test_several_distinct_counts() -> None:
    """What their rows take is known, not how long another way would."""
    (issue,) = told(DISTINCT, BY_DISTINCT, 3_000_000)
    assert issue.lost_ms is None
    all_ms, run_ms = 60 * S, 4 * 60 * S
    assert issue.share_ms == pytest.approx(all_ms * (1 - 32 * S / run_ms) * 2 / 3, abs=2)
    assert issue.stages == {1, 2}
    assert "distinct values of d0, d1, d2 at once, Spark makes 3,000,000 rows of 1,000,000" in issue.sentence
    assert "approx_count_distinct" in issue.advice


def test_many_distinct_counts_whose_texts_are_cut() -> None:
    """Only what merges the parts of a group names the column that tells the copies of a row apart."""
    copies = "[[g#6L, null, null, 0, paid#3], [g#6L, d0#7L, null, 1, null], [g#6L, null, d1#8L, 2, nu"
    cut = f"Expand {copies}".ljust(LONGEST_TEXT, "x")
    plan = Plan()(0, "HashAggregate(keys=[g#6L], functions=[first(count(1)) FILTER (WHERE (gid#33 = 0))])", 2)
    plan(1, "Exchange hashpartitioning(g#6L, 200)", 1)(2, "HashAggregate(keys=[g#6L, d0#36L", 1)
    plan(3, cut, 1, rows=3_000_000)(4, "Scan parquet db.visits [g#6L]", 1, rows=1_000_000)
    (issue,) = expanded(executed(plan, s1=(0, 40), s2=(40, 60)), Thresholds())
    assert "distinct values of d0, … at once" in issue.sentence


@pytest.mark.parametrize(("function", "is_told"), [("count", True), ("sum", False)])
def test_one_column_under_several_conditions(function: str, is_told: bool) -> None:
    """Conditions name columns of which no values are counted; grouping by the counted one takes no copies."""
    copies = (f"CASE WHEN (channel#{number} = {number}) THEN customer#3L END" for number in range(4))
    rows = [
        ["g#6L", *["null"] * number, case, *["null"] * (3 - number), str(number + 1)]
        for number, case in enumerate(copies)
    ]
    joined = ", ".join(f"[{', '.join(row)}]" for row in rows)
    expand = f"Expand [{joined}], [g#6L, gid#33]"
    above = f"HashAggregate(keys=[g#6L, gid#33], functions=[partial_{function}(CASE WHEN (channel = 1) THEN x END#8)])"
    (issue,) = told(expand, above, 4_000_000)
    assert "distinct values of customer at once" in issue.sentence
    by_customer = "It counts customer under several conditions: group by customer, too"
    assert issue.advice.startswith(by_customer) is is_told


def test_grouping_sets() -> None:
    (issue,) = told(CUBE, BY_SETS, 4_000_000, left=1_000)
    assert "grouping sets (CUBE, ROLLUP) of a, b, Spark makes 4,000,000 rows" in issue.sentence
    assert issue.stages == {1}  # then, few rows are left


def test_grouping_sets_with_distinct_values() -> None:
    """They are aggregated by those values too, which are in all copies of a row and in no set."""
    by_both = BY_SETS.replace("spark_grouping_id", "v#1, spark_grouping_id")
    (issue,) = told(CUBE.replace("a#2", "a#4").replace("b#3", "b#5"), by_both, 4_000_000, left=1_000)
    assert "grouping sets (CUBE, ROLLUP) of a, b, Spark makes 4,000,000 rows" in issue.sentence
    assert "Counts of distinct values, of v, cannot be added up so" in issue.advice


def test_distinct_values_in_grouping_sets() -> None:
    """One node makes rows of those of another; a text that is cut does not say which columns the sets have."""
    copies = "[[u#7, v#1, a#2, b#3, 0], [u#7, v#1, a#2, null, 1], [u#7, v#1, nu"
    keys = "[a#4, b#5, spark_grouping_id#6L, d.u#8, gid#9]"
    distinct = (
        "[[a#4, b#5, spark_grouping_id#6L, null, 0, v#1], [a#4, b#5, spark_grouping_id#6L, u#7, 1, null]]"
    )
    above = f"HashAggregate(keys={keys}, functions=[partial_count(1)])"
    plan = Plan()(0, f"HashAggregate(keys={keys}, functions=[])", 2, rows=40)(
        1, "Exchange hashpartitioning(a#4)", 1
    )
    plan(2, above, 1, rows=8_000_000)(3, f"Expand {distinct}, {keys}", 1, rows=8_000_000)
    plan(4, f"Expand {copies}".ljust(LONGEST_TEXT, "x"), 1, rows=4_000_000)
    plan(5, "Scan parquet db.visits [u#7]", 1, rows=1_000_000)
    (issue,) = expanded(executed(plan, s1=(0, 40), s2=(40, 60)), Thresholds())
    assert issue.sentence == (
        "for 4 grouping sets (CUBE, ROLLUP) of a, b, and in each the distinct values of u, Spark makes 8,000,000 "
        "rows of 1,000,000 before it aggregates them"
    )
    assert issue.share_ms == pytest.approx(40 * S * 7 / 8, abs=2)


def test_grouping_sets_of_sliding_windows() -> None:
    """Of two such nodes, the one below may make windows: then nobody counts distinct values."""
    plan = Plan()(0, BY_SETS, 1, rows=8_000_000)(1, CUBE, 1, rows=32_000_000)
    plan(2, WINDOWS, 1, rows=8_000_000)(3, "Scan parquet db.visits [a#2]", 1, rows=1_000_000)
    issues = list(expanded(executed(plan, s1=(0, 40)), Thresholds()))
    assert not [issue.sentence for issue in issues if "distinct" in issue.sentence]
    assert (
        "grouping sets (CUBE, ROLLUP) of a, b, Spark makes 32,000,000 rows of 8,000,000" in issues[0].sentence
    )


def test_sets_of_which_a_part_is_cut() -> None:
    """The columns are those before the mark; what comes after it has distinct values."""
    by_one = "HashAggregate(keys=[a#4, b#5, spark_grouping_id#6L, v#1], functions=[partial_sum(v#1)])"
    cut = "Expand [[v#1, a#2, b#3, 0], [v#1, a#2, null, 1], [v#1, a#2, b#".ljust(LONGEST_TEXT, "x")
    (issue,) = told(cut, by_one, 4_000_000, left=1_000)
    assert "grouping sets (CUBE, ROLLUP) of a, b, Spark makes 4,000,000 rows" in issue.sentence
    assert "Counts of distinct values, of v, cannot be added up so" in issue.advice


def test_sliding_windows() -> None:
    (issue,) = told(WINDOWS, BY_WINDOWS, 6_000_000, left=500)
    assert "sliding windows of seen_at, Spark makes 6,000,000 rows of 1,000,000" in issue.sentence


@pytest.mark.parametrize(
    ("expand", "above", "made", "of"),
    [
        (DISTINCT, BY_DISTINCT, 2_999_999, 1_000_000),
        (DISTINCT, BY_DISTINCT, 90_000, 30_000),
        ("Expand [[a#1], [b#2], [c#3]], [d#4]", "Project [d#4]", 3_000_000, 1_000_000),
        (DISTINCT, BY_DISTINCT, 0, 1_000_000),
    ],
    ids=["two of each", "few", "for something else", "not measured"],
)
def test_rows_that_are_not_told(expand: str, above: str, made: int, of: int) -> None:
    assert told(expand, above, made, of) == []


def test_a_text_that_is_cut() -> None:
    """Then what is left says whose rows they are, as far as it can."""
    (issue,) = told(DISTINCT[:70], BY_DISTINCT, 3_000_000)
    assert "distinct values of d0, d2 at once" in issue.sentence
    (issue,) = told(CUBE[:45], BY_SETS, 4_000_000)
    assert "(CUBE, ROLLUP) of a, b, Spark" in issue.sentence


def exploded(generate: str, made: int, merges: str, aggregates: str, between: str = "Project") -> Plan:
    """Return a plan that makes rows of a million, and aggregates them in two steps."""
    plan = Plan()(0, merges, 2, rows=90_000)(1, "Exchange hashpartitioning(g#6L, 200)", 1)
    plan(2, aggregates, 1, rows=made if aggregates.endswith("functions=[])") else 90_000)(3, between, 1)
    return plan(4, generate, 1, rows=made)(5, "Scan parquet db.visits [g#6L]", 1, rows=1_000_000)


SEQUENCE = (
    "Generate explode(sequence(day#9, (day#9 + 27), None, Some(UTC))), [g#6L, buyer#2L], false, [day#11]"
)


@pytest.mark.parametrize(
    ("text", "keys", "made", "is_told"),
    [
        (SEQUENCE, "g#6L, day#11", 28_000_000, True),
        (SEQUENCE, "g#6L", 28_000_000, False),
        (SEQUENCE, "g#6L, day#110", 28_000_000, False),
        (SEQUENCE, "g#6L, day#11", 4_000_000, False),
        ("Generate explode(words#9), [g#6L], false, [day#11]", "g#6L, day#11", 28_000_000, False),
    ],
    ids=["days", "by something else", "a longer number", "few of each", "of data"],
)
def test_a_sequence_that_is_exploded(text: str, keys: str, made: int, is_told: bool) -> None:
    """A row for each day of a period, which are then aggregated by day: what a frame of a window does."""
    aggregate = f"HashAggregate(keys=[{keys}], functions={{}})"
    plan = exploded(text, made, aggregate.format("[count(distinct buyer#2L)]"), aggregate.format("[]"))
    issues = list(expanded(executed(plan, s1=(0, 40), s2=(40, 60)), Thresholds()))
    assert [issue.sentence.startswith("explode(sequence()) makes 28,000,000 rows") for issue in issues] == [
        True
    ] * is_told
    assert [issue.evidence["expand.columns"] for issue in issues] == ["day"] * is_told


CONSTANTS = "Generate explode([0,1,2,3,4,5,6,7]), [g#6L, paid#2L], false, [month#11]"


@pytest.mark.parametrize(
    ("keys", "made", "between", "is_told"),
    [
        ("g#6L, month#11", 8_000_000, "Project [g#6L, paid#2L, month#11]", True),
        ("g#6L, month#11", 8_000_000, "BroadcastHashJoin [g#6L], [h#7L], Inner", True),
        ("g#6L", 8_000_000, "Project [g#6L, paid#2L]", False),
        ("g#6L, month#11", 4_000_000, "Project [g#6L, paid#2L, month#11]", False),
        ("g#6L, month#11", 8_000_000, "Filter (month#11 >= begun#8)", False),
        ("g#6L, month#11", 8_000_000, "SortMergeJoin [g#6L, month#11], [h#7L, salt#9], Inner", False),
    ],
    ids=[
        "by the constants",
        "after a join",
        "by something else",
        "few of each",
        "some of them",
        "salted keys",
    ],
)
def test_constants_that_are_exploded(keys: str, made: int, between: str, is_told: bool) -> None:
    """A row for each of them, although what is aggregated of the rows is the same for all."""
    sums = f"HashAggregate(keys=[{keys}], functions=[{{}}sum((paid#2L * month#11))])"
    plan = exploded(CONSTANTS, made, sums.format(""), sums.format("partial_"), between)
    issues = list(expanded(executed(plan, s1=(0, 40), s2=(40, 41)), Thresholds()))
    assert [issue.sentence.startswith("explode() of constants makes 8,000,000 rows") for issue in issues] == [
        True
    ] * is_told
    assert [issue.evidence["expand.columns"] for issue in issues] == ["month"] * is_told


ITEMS = "Generate explode(items#2), [order#1L], false, [item#3]"
BY_ORDER = "HashAggregate(keys=[order#1L], functions=[{}sum(price#4)])"


def nested(
    generate: str = ITEMS,
    by: str = BY_ORDER,
    left: int = 400_000,
    made: int = 2_000_000,
    between: str = "Project [order#1L, item#3.price AS price#4]",
    below: str = "Project [order#1L, items#2]",
) -> list[Issue]:
    """Return what is told of 400,000 orders whose items are made rows, and then summed up."""
    plan = Plan()(0, by.format(""), 2, rows=left)(1, "Exchange hashpartitioning(order#1L, 200)", 1)
    plan(2, by.format("partial_"), 1, rows=left)(3, between, 1)(4, generate, 1, rows=made)
    plan(5, below, 1)(6, "Scan parquet db.orders [order#1L, items#2]", 1, rows=400_000)
    return list(expanded(executed(plan, s1=(0, 40), s2=(40, 60)), Thresholds()))


@pytest.mark.parametrize(
    "generate",
    [ITEMS, "Generate posexplode(items#2), [order#1L], true, [pos#9, item#3]"],
    ids=["", "with places"],
)
def test_arrays_that_are_put_together_again(generate: str) -> None:
    (issue,) = nested(generate)
    assert issue.sentence == (
        "explode() makes 2,000,000 rows of the elements of items in 400,000 rows, which are then put together "
        "again by order, about one for each row"
    )
    assert "transform(), filter(), aggregate()" in issue.advice
    assert issue.share_ms == pytest.approx(40 * S, abs=2)


def test_a_field_of_all_elements_has_the_name_that_the_program_gives_it() -> None:
    """Spark reads no more than that of the array, under a name of its own."""
    (issue,) = nested(
        "Generate explode(_extract_price#7), [order#1L], false, [item#3]",
        below="Project [order#1L, items#2.price AS _extract_price#7]",
    )
    assert "rows of the elements of items.price in 400,000 rows" in issue.sentence
    assert issue.evidence["expand.columns"] == "items.price"


OF_WINDOW = "Window [min(item#3) windowspecdefinition({by}, specifiedwindowframe(RowFrame)) AS m#9], [{by}]"


@pytest.mark.parametrize(
    "between",
    ["BroadcastHashJoin [order#1L], [order#8L], Inner, BuildRight", OF_WINDOW.format(by="order#1L")],
    ids=["a join", "a window"],
)
def test_rows_of_elements_that_are_joined_by_what_their_row_has(between: str) -> None:
    """The row with its array could be joined as well, or looked at."""
    (issue,) = nested(between=between)
    assert "put together again by order" in issue.sentence


@pytest.mark.parametrize(
    "healthy",
    [
        nested(left=3_000),
        nested(left=310_000),
        nested(by="HashAggregate(keys=[item#3], functions=[{}count(1)])"),
        nested(
            by="HashAggregate(keys=[sku#4], functions=[{}count(1)])",
            between="Project [order#1L, item#3.sku AS sku#4]",
        ),
        nested(made=800_000),
        nested(between="BroadcastHashJoin [item#3], [item#8], Inner"),
        nested(between=OF_WINDOW.format(by="item#3")),
        nested(between="ArrowEvalPython [price(item#3)#9], [pythonUDF0#4]"),
        nested("Generate json_tuple(items#2, a), [order#1L], false, [c0#3]"),
    ],
    ids=[
        "by another column",
        "by a column that two have",
        "by element",
        "by a field",
        "few elements",
        "joined",
        "a window by element",
        "Python",
        "no array",
    ],
)
def test_arrays_whose_elements_are_needed_as_rows(healthy: list[Issue]) -> None:
    assert healthy == []
