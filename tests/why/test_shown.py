"""How the page of ``why`` writes shares and evidence."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from spark_events.cli.why.tables import print_explanation
from spark_events.diagnosis.times.cores_model import Estimate
from spark_events.diagnosis.times.ledger import ACCOUNTS
from spark_events.why.explanation import Explanation
from spark_events.why.reading.run_figures import RunFigures
from spark_events.why.shown import COLORS, shown_evidence, whole_percent


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "< 1 %"),
        (0.99, "< 1 %"),
        (1, "1 %"),
        (32.27, "32 %"),
        (99.7, "99 %"),
        (100, "100 %"),
        (179.2, "179 %"),
    ],
)
def test_whole_percent(share: float, said: str) -> None:
    assert whole_percent(share) == said


def test_each_account_has_a_color() -> None:
    assert COLORS.keys() == set(ACCOUNTS)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("median.durationMs", 22_000, ("median duration", "22.0 s")),
        ("shareMs", 1_500, ("share", "1.5 s")),
        ("usual.inputBytes", 2 * 1024**3, ("usual input", "2 GiB")),
        ("stageId", 1_234, ("stage id", "1,234")),
        ("stage_id", "7", ("stage id", "7")),
        ("changed", ["its plan is new"], ("changed", "['its plan is new']")),
        ("live", True, ("live", "True")),
        ("durationMs", "unknown", ("duration ms", "unknown")),
        ("Ms", 5, ("ms", "5 ms")),
    ],
)
def test_shown_evidence(name: str, value: Any, said: tuple[str, str]) -> None:
    assert shown_evidence(name, value) == said


def shown(*times_s: int, figures: RunFigures | None) -> str:
    """Return what a terminal shows of a run that takes so long with 2, 4, 8, and with endless cores."""
    estimates = [Estimate(cores, 1_000 * time) for cores, time in zip((2, 4, 8, None), times_s, strict=True)]
    out = Console(file=StringIO(), width=160)
    print_explanation(Explanation("a", "", 0, 100_000, True, [], estimates=estimates, figures=figures), out)
    assert isinstance(out.file, StringIO)
    return " ".join(out.file.getvalue().split())


def test_cores_that_would_not_help_are_one_sentence() -> None:
    of_four = RunFigures(counts={"cores": 4})
    sentence = "A model: more than its 4 cores would not make this run faster, with the tasks that it has; with 2, it would take 1 min 50 s."
    assert sentence in shown(110, 100, 99, 96, figures=of_four)
    # The run took 100 s: so long, fewer cores take at least.
    assert "with 2, it would take 1 min 45 s" in shown(95, 90, 90, 90, figures=of_four)
    for said in (shown(110, 100, 99, 90, figures=of_four), shown(110, 100, 99, 96, figures=None)):
        assert "unlimited" in said
        assert "without the pauses between tasks" in said
