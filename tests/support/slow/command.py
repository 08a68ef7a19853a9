"""Tries all cases, or some, and says how many of the defects ``why`` has found."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.support import quick_java
from tests.support.slow.case import Case
from tests.support.slow.cases import CASES
from tests.support.slow.expected import ON_EXECUTORS
from tests.support.slow.matrix import Pair, case_lines, matrix_lines
from tests.support.slow.run import Told, ask, run


def main(arguments: Sequence[str], write: Callable[[Sequence[str]], None]) -> int:
    """Run and print; return 1 if an application failed.

    Args:
        arguments: of the command.
        write: called with the lines of the matrix, if that is wanted.
    """
    wanted = _parsed(arguments)
    quick_java.use()
    with tempfile.TemporaryDirectory() as folder:
        return _try(wanted, wanted.keep or Path(folder), write)


def _try(wanted: argparse.Namespace, folder: Path, write: Callable[[Sequence[str]], None]) -> int:
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
            except (RuntimeError, AssertionError, FileNotFoundError) as error:
                failed += 1
                print(f"{name}, {seed}: {error}", file=sys.stderr, flush=True)
                continue
            print("\n".join(list(case_lines(pairs[-1:]))[2 * (len(pairs) > 1) :]), flush=True)
    lines = matrix_lines(pairs)
    print("", *lines, sep="\n")
    if wanted.write:
        write(lines)
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
    parser = argparse.ArgumentParser("python -m bench.slow", description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=sorted(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--master", default="local[{cores}]", help="for cases that need no other")
    parser.add_argument("--aqe", choices=("on", "off"), default="on")
    parser.add_argument("--source", choices=("log", "events"), default="log", help="what the matrix is about")
    parser.add_argument("--keep", type=Path, help="a folder for logs and events, which else are deleted")
    parser.add_argument("--again", action="store_true", help="ask again about the runs that --keep has")
    parser.add_argument("--write", action="store_true", help="put the matrix into docs/why-accuracy.md")
    return parser.parse_args(arguments)
