"""Tries ``spark-events why`` on applications with injected defects and their healthy twins.

python -m bench.slow                                        # all cases, a seed each
python -m bench.slow --kinds skew retries --seeds 1 2 3
python -m bench.slow --master 'local-cluster[2,2,1024]' --aqe off
python -m bench.slow --write                                # and put the matrix into docs/why.md
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench import table
from bench.slow.case import Case
from bench.slow.cases import CASES
from bench.slow.expected import ON_EXECUTORS
from bench.slow.matrix import Pair, case_lines, matrix_lines
from bench.slow.run import Told, ask, run
from tests.support import quick_java


def main(arguments: Sequence[str]) -> int:
    """Run, print and, if wanted, write; return 1 if an application failed."""
    wanted = _parsed(arguments)
    quick_java.use()
    with tempfile.TemporaryDirectory() as folder:
        return _try(wanted, wanted.keep or Path(folder))


def _try(wanted: argparse.Namespace, folder: Path) -> int:
    conf = {"spark.sql.adaptive.enabled": str(wanted.aqe == "on").lower()}
    if not wanted.master.startswith("local["):
        conf |= ON_EXECUTORS
    pairs: list[Pair] = []
    failed = 0
    for name in wanted.kinds:
        if not version("pyspark").startswith(CASES[name].version):
            print(f"{name} is left out: it needs PySpark {CASES[name].version}", file=sys.stderr)
            continue
        for seed in wanted.seeds:
            try:
                pairs.append(_pair(CASES[name], seed, wanted, conf, folder / f"{name}-{seed}"))
            except (RuntimeError, AssertionError) as error:
                failed += 1
                print(f"{name}, {seed}: {error}", file=sys.stderr, flush=True)
                continue
            print("\n".join(list(case_lines(pairs[-1:]))[2 * (len(pairs) > 1) :]), flush=True)
    lines = matrix_lines(pairs)
    print("", *lines, sep="\n")
    if wanted.write:
        table.write("slow", lines)
    return int(failed > 0)


def _pair(case: Case, seed: int, wanted: argparse.Namespace, conf: Mapping[str, str], folder: Path) -> Pair:
    told: dict[bool, Told] = {}
    for bad in (False,) if case.healthy else (True, False):
        own = folder / ("bad" if bad else "twin")
        if not wanted.again:
            run(case, seed, bad, wanted.master, conf, own)
        told[bad] = ask(case, seed, bad, conf, own, wanted.source == "events")
    return Pair(told.get(True), told[False])


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench.slow", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--kinds", nargs="+", choices=sorted(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--master", default="local[{cores}]", help="for cases that need no other")
    parser.add_argument("--aqe", choices=("on", "off"), default="on")
    parser.add_argument("--source", choices=("log", "events"), default="log", help="what the matrix is about")
    parser.add_argument("--keep", type=Path, help="a folder for logs and events, which else are deleted")
    parser.add_argument("--again", action="store_true", help="ask again about the runs that --keep has")
    parser.add_argument("--write", action="store_true", help="put the matrix into docs/why.md")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
