"""Issues as their events tell them, with what the run says about them."""

from __future__ import annotations

import pytest

from spark_events.why.found_issue import FoundIssue, with_present_values


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        (
            {"spark.a.b": "4000", "spark.c": "false"},
            " The run was started with spark.a.b=4000 and spark.c=false.",
        ),
        ({"spark.a.b": "4000"}, " The run was started with spark.a.b=4000."),
        ({"spark.c": "true"}, " The run was started with spark.c=true."),
        ({"spark.a": "1", "spark.other": "2"}, ""),
        ({"spark.a.b": "x" * 5_000}, f" The run was started with spark.a.b={'x' * 100}."),
    ],
    ids=["both", "one", "as the advice has it", "others", "a long one"],
)
def test_values_of_settings_that_an_advice_names(conf: dict[str, str], said: str) -> None:
    """The program may have set others since: only those are known that it was started with."""
    advice = "Set spark.a.b to less, or spark.c=true."
    issue = FoundIssue("gc", "WARN", "stage 1", "…", advice, 1, None, {})
    assert with_present_values(issue, conf).advice == f"{advice}{said}"


@pytest.mark.parametrize(
    ("lost_ms", "share_ms", "within"),
    [(5, None, (5, None)), (None, 12, (None, 10)), (11, 12, (10, 10)), (None, None, (None, None))],
)
def test_stages_side_by_side_take_no_longer_than_the_run(
    lost_ms: int | None, share_ms: int | None, within: tuple[int | None, int | None]
) -> None:
    evidence = {} if share_ms is None else {"shareMs": share_ms}
    issue = FoundIssue("python", "WARN", "2 stages", "…", "…", lost_ms, None, evidence).within(10)
    assert (issue.lost_ms, issue.number("shareMs")) == within
