"""Writes down what reports of sample events say: python -m tests.golden.reports [FOLDER]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.told_by_report import told_by_report, told_reports


def main(out: Path) -> None:
    """Write a folder of texts for each sample."""
    with tempfile.TemporaryDirectory() as folder:
        for name, events in told_reports(Path(folder)).items():
            (out / name).mkdir(parents=True, exist_ok=True)
            for form, text in told_by_report(events, Path(folder, f"out {name}")).items():
                (out / name / f"{form}.txt").write_text(f"{text}\n")
                sys.stdout.write(f"{name} {form}: {len(text)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "reports")
