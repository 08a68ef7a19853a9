"""A report of sample events says what was written down: on terminals, as JSON, as Parquet, as pages.

What is to change on purpose is written down anew, by ``python -m tests.golden.reports``, and looked at as a
diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.told_by_report import told_by_report, told_reports

WRITTEN = Path(__file__).parent / "reports"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return told_reports(tmp_path_factory.mktemp("events"))


@pytest.mark.parametrize("name", sorted(path.name for path in WRITTEN.iterdir()))
def test_report(events: dict[str, Path], tmp_path: Path, name: str) -> None:
    pytest.importorskip("jinja2")
    told = told_by_report(events[name], tmp_path / "out")
    assert {f"{form}.txt" for form in told} == {path.name for path in (WRITTEN / name).iterdir()}
    for form, text in told.items():
        written = (WRITTEN / name / f"{form}.txt").read_text().splitlines()
        assert text.splitlines() == written, f"{form}: if it was meant, python -m tests.golden.reports"


def test_each_sample_is_written_down(events: dict[str, Path]) -> None:
    """None is left out."""
    assert {path.name for path in WRITTEN.iterdir()} == {*events}
