"""Where the figures of README and of pages in docs/ come from: docs/benchmarks.json, with commit and date.

``python -m docs.figures`` writes all of them; ``--check`` says whether they are as they should be. It
measures nothing. A figure whose code has changed since is marked, on each page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STORE, PAGE, README = (ROOT / name for name in ("docs/benchmarks.json", "docs/benchmarks.md", "README.md"))
TOLERATED = 0.1
"""How much of the measured code may change before its figures are old: changed lines, as a share of all."""
MEASURED = {
    "overhead": (
        "spark_events/sources/driver",
        "spark_events/listeners",
        "spark_events/diagnosis",
        "spark_events/runtime",
    ),
    "attach": ("spark_events/sources/driver", "spark_events/submit"),
    "latency": ("spark_events/sources/driver", "spark_events/runtime", "reporters/otlp"),
    "delivery": ("spark_events/runtime", "reporters/otlp"),
    "scrape": ("spark_events/runtime", "reporters/prometheus"),
    "replay": ("spark_events/sources/event_log", "spark_events/listeners", "spark_events/diagnosis"),
    "history": ("spark_events/history",),
    "store": ("spark_events/history",),
    "lineage": ("spark_events/lineage", "spark_events/sources/driver"),
    "executors": ("spark_events/sources/driver", "spark_events/listeners"),
    "task_metrics": ("spark_events/task", "spark_events/sources/driver"),
    "ctas": ("spark_events/ctas",),
    "slow": ("spark_events/diagnosis", "spark_events/listeners/issues", "spark_events/why"),
    "deploy": ("spark_events/sql_runner",),
}
"""The code that each bench measures."""
ELSEWHERE = {"slow": "docs/why-accuracy.md"}
"""The pages of figures that are not in docs/benchmarks.md."""
_COSTS = (
    (
        "CPU of a driver that runs 20,000 tasks, with three reporters",
        "overhead",
        r"\| all three .*\| (\+[\d.]+ %)",
    ),
    (
        "Median delay from an event in Spark to its arrival at a collector",
        "latency",
        r"\| (\d+ ms) \|",
    ),
    (
        "CPU for an event that is stored on disk, sent and acknowledged",
        "delivery",
        r"\| spark-events, .*?\| (\d+ µs)",
    ),
    ("A scrape of 100,000 series", "scrape", r"\| spark-events \| ([\d.]+ s) \|"),
    ("Replaying an event log", "replay", r"\| \*\*spark-events replay.*?\| ([\d,]+) \|"),
)
"""What each row of the README's table says, the bench it comes from, and where in its table."""
_UNITS = {"scrape": " of CPU", "replay": " MB/s"}


def keep(name: str, lines: Sequence[str]) -> None:
    """Keep a table as measured now, on the code that is checked out.

    Raises:
        KeyError: nobody says which code the bench measures.
    """
    commit = (_git("rev-parse", "--short=7", "HEAD") or "unknown").strip()
    if _git("status", "--porcelain", "--", *MEASURED[name]):
        commit += "+"  # with changes that are not in that commit
    kept = json.loads(STORE.read_text())
    kept[name] = {
        "command": f"python -m bench.{name}",
        "commit": commit,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "measures": list(MEASURED[name]),
        "table": list(lines),
    }
    STORE.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


def write_pages() -> None:
    """Write all figures into their pages.

    Raises:
        ValueError: a page has no place for one.
    """
    for path, text in _pages(json.loads(STORE.read_text())):
        path.write_text(text)


def problems() -> Iterator[str]:
    """Yield a sentence for each page that does not show what was measured, or that its code has changed."""
    for path, text in _pages(json.loads(STORE.read_text())):
        if path.read_text() != text:
            yield f"{path.relative_to(ROOT)} does not show docs/benchmarks.json: run python -m docs.figures"


def is_old(kept: dict[str, Any]) -> bool | None:
    """Return whether the code has changed too much since; None without the history that would say it."""
    commit = kept["commit"].rstrip("+")
    changes = _git("diff", "--numstat", commit, "--", *kept["measures"])
    if changes is None:
        return None
    counts = (line.split("\t")[:2] for line in changes.splitlines())
    changed = sum(int(count) for both in counts for count in both if count.isdigit())
    return changed > TOLERATED * sum(_lines_below(path) for path in kept["measures"])


# ----------------------------------------------------------------------------------------------------


def _pages(kept: dict[str, dict[str, Any]]) -> Iterator[tuple[Path, str]]:
    """Yield each page and what it should say."""
    paths = {name: ROOT / ELSEWHERE[name] if name in ELSEWHERE else PAGE for name in kept}
    pages = {path: path.read_text() for path in (PAGE, *paths.values())}
    readme = README.read_text()
    olds = {name: _shown_as_old(name, of, pages[paths[name]]) for name, of in kept.items()}
    for name, of in kept.items():
        old = "; **the code has changed since**" if olds[name] else ""
        source = f"Measured on {of['date']} at commit {of['commit']} with `{of['command']}`{old}."
        pages[paths[name]] = _put(pages[paths[name]], name, [*of["table"], "", source])
    rows = ["| | | measured |", "| --- | --- | --- |"]
    for title, name, where in _COSTS:
        of = kept[name]
        found = re.search(where, "\n".join(of["table"]))
        if found is None:
            raise ValueError(f"the table of {name} has no figure for the README")
        mark = ", older code" if olds[name] else ""
        rows.append(f"| {title} | {found[1]}{_UNITS.get(name, '')} | {of['date']}{mark} |")
    yield from pages.items()
    yield README, _put(readme, "costs", rows)


def _shown_as_old(name: str, kept: dict[str, Any], page: str) -> bool:
    """Return whether a figure is old; without the history, what the page says now is left as it is."""
    old = is_old(kept)
    if old is not None:
        return old
    block = re.search(f"<!-- {name} -->.*?<!-- /{name} -->", page, re.DOTALL)
    return block is not None and "the code has changed since" in block[0]


def _put(page: str, name: str, lines: Sequence[str]) -> str:
    pattern = re.compile(f"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"no <!-- {name} --> … <!-- /{name} --> on the page")
    block = "\n".join([f"<!-- {name} -->", *lines, f"<!-- /{name} -->"])
    return pattern.sub(lambda _: block, page)


def _git(*arguments: str) -> str | None:
    """Return what git says; None where there is no git, or not that commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _lines_below(path: str) -> int:
    listed = _git("ls-files", "--", path) or ""
    files = (ROOT / name for name in listed.splitlines())
    return sum(file.read_bytes().count(b"\n") for file in files if file.is_file())


def main() -> None:
    """Write the pages, or check them."""
    if "--check" not in sys.argv[1:]:
        write_pages()
    elif found := list(problems()):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
