"""Tries ``spark-events why`` on applications with injected defects and their healthy twins.

python -m bench.slow                                        # all cases, a seed each
python -m bench.slow --kinds skew retries --seeds 1 2 3
python -m bench.slow --master 'local-cluster[2,2,1024]' --aqe off
python -m bench.slow --write                                # and put the matrix into docs/why-accuracy.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.table import write
from tests.support.slow.command import main


def _write_matrix(lines: Sequence[str]) -> None:
    write("slow", list(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], _write_matrix))
