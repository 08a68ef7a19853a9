"""Each stored event log gives what was written down: every event with its id, in order, every span and metric.

What is to change on purpose is written down anew, by ``python -m tests.golden``, and looked at as a diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sample_logs import NAMES
from tests.support.stored_logs import recorded_logs
from tests.support.told_by_log import told_by

TOLD = Path(__file__).parent / "told"
IF_MEANT = (
    "write it down anew, if it was meant: python -m tests.golden; to see values, run "
    "python -m tests.golden --plain FOLDER before and after the change"
)


@pytest.mark.parametrize("name", sorted(path.stem for path in TOLD.iterdir() if path.stem not in NAMES))
def test_recorded_log(tmp_path: Path, name: str) -> None:
    """The logs of this project's own applications."""
    written = (TOLD / f"{name}.txt").read_text().splitlines()
    assert told_by(recorded_logs(tmp_path)[name]) == written, IF_MEANT


def test_sample_logs(event_logs: Path, tmp_path: Path) -> None:
    """Spark's own samples."""
    for name in NAMES:
        assert told_by(event_logs / name) == (TOLD / f"{name}.txt").read_text().splitlines(), (
            f"{name}: {IF_MEANT}"
        )


def test_each_log_is_written_down(tmp_path: Path) -> None:
    """No log is left out."""
    assert {path.stem for path in TOLD.iterdir()} == {*recorded_logs(tmp_path), *NAMES}
