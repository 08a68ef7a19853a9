"""One run of a case, as spark-submit runs it: ``application.py CASE SEED bad|twin CORES FOLDER``.

Writes what it injected to outcome.json.
"""

import json
import sys
from pathlib import Path

from tests.support.slow.case import Work
from tests.support.slow.cases import CASES


def main(name: str, seed: str, variant: str, cores: str, folder: str) -> None:
    """Run it, and write its truth when it has ended."""
    work = Work(CASES[name], int(seed), variant == "bad", int(cores), Path(folder))
    work.case.run(work)
    (work.folder / "outcome.json").write_text(json.dumps(work.outcome()))
    work.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
