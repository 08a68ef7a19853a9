"""The shipped alerts on a real Prometheus, with all times made shorter by one factor.

The rules are meant for an interval of 15 s; here it is 1 s. So ``FACTOR`` is 15, and what is promised to happen
within three minutes happens within 12 s.
"""

from __future__ import annotations

import json
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.dashboards import RULES
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import http_get

FACTOR = 15
INTERVAL_S = 15 / FACTOR
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LOOKBACK_S = 300
_MISSED = 4
"""So many evaluations may be late or missing, on a busy machine, without an alert counting as over."""


def scaled(rules: str, factor: float) -> str:
    """Return a file of rules with all times divided by a factor.

    These are ``for``, the ranges and offsets of expressions, and what they write as minutes, ``3 * 60``. Names, such as
    ``ratio_rate5m``, and texts stay as they are.

    Args:
        rules: the file's text, in YAML.
        factor: by which times are divided.
    """
    file = yaml.safe_load(rules)
    for rule in [rule for group in file["groups"] for rule in group["rules"]]:
        if "for" in rule:
            rule["for"] = _shorter(rule["for"], factor)
        expr = re.sub(
            r"(?<=\[)\w+(?=\])|(?<=offset )\w+", lambda found: _shorter(found[0], factor), str(rule["expr"])
        )
        rule["expr"] = re.sub(r"\* 60\b", f"* {60 / factor:g}", expr)
    return str(yaml.safe_dump(file, sort_keys=False, width=10_000))


def _shorter(duration: str, factor: float) -> str:
    number, unit = int(duration[:-1]), duration[-1]
    return f"{round(number * _UNITS_S[unit] * 1_000 / factor)}ms"


@dataclass(frozen=True)
class Firing:
    """An alert, from when it fired to when it was resolved.

    Attributes:
        alert: its name.
        labels: its labels, besides the name.
        from_s: the first evaluation in which it fired, in s since the epoch.
        to_s: the last one; None while it fires.
    """

    alert: str
    labels: Mapping[str, str]
    from_s: float
    to_s: float | None

    @property
    def pages(self) -> bool:
        """Whether it wakes somebody."""
        return self.labels.get("severity") == "page"


class Watch:
    """What a Prometheus has found so far.

    Attributes:
        server: the Prometheus.
    """

    def __init__(self, server: PrometheusServer) -> None:
        self.server = server
        self._begin_s = time.time()

    def firings(self, alert: str = "", pages: bool = False) -> list[Firing]:
        """Return all times at which alerts have fired, by their begin.

        Args:
            alert: only this one; all, if empty.
            pages: only those that wake somebody.
        """
        now = time.time()
        found = []
        for row in self._samples(now):
            labels = dict(row["metric"])
            name = labels.pop("alertname")
            for times in _runs([float(at) for at, _ in row["values"]]):
                over = now - times[-1] > _MISSED * INTERVAL_S
                found.append(Firing(name, labels, times[0], times[-1] if over else None))
        found = [one for one in found if alert in ("", one.alert) and (one.pages or not pages)]
        return sorted(found, key=lambda one: one.from_s)

    def evaluations(self, condition: str) -> int:
        """Return in how many evaluations' time a condition has held, since the beginning.

        Args:
            condition: PromQL; it holds where it yields a series, and of several, the longest counts.
        """
        since_s = int(time.time() - self._begin_s) + 1
        found = self.server.query(f"max(count_over_time(({condition})[{since_s}s:1s]))")
        return int(sum(found.values()) / INTERVAL_S)

    def _samples(self, now: float) -> list[dict[str, Any]]:
        since_s = int(now - self._begin_s) + 1
        query = {"query": f'ALERTS{{alertstate="firing"}}[{since_s}s]', "time": f"{now:.3f}"}
        answer = json.loads(http_get(f"{self.server.url}/api/v1/query?{urllib.parse.urlencode(query)}"))
        assert answer["status"] == "success", answer
        rows: list[dict[str, Any]] = answer["data"]["result"]
        for row in rows:
            del row["metric"]["__name__"], row["metric"]["alertstate"]
        return rows


def _runs(times: Sequence[float]) -> Iterator[list[float]]:
    """Yield the parts of a list of times between which no alert was."""
    run = [times[0]]
    for at in times[1:]:
        if at - run[-1] > _MISSED * INTERVAL_S:
            yield run
            run = []
        run.append(at)
    yield run


@contextmanager
def watching(folder: Path, target_ports: Sequence[int], factor: float = FACTOR) -> Iterator[Watch]:
    """Give a Prometheus that scrapes these ports of this machine, and evaluates the shipped rules, each second.

    Args:
        folder: for its files.
        target_ports: what it scrapes; nobody needs to listen yet.
        factor: by which the rules' times are divided.
    """
    rules = folder / "rules"
    rules.mkdir(parents=True, exist_ok=True)
    for path in RULES.glob("*.yml"):
        (rules / path.name).write_text(scaled(path.read_text(), factor))
    server = PrometheusServer(
        folder, target_ports, rules=rules, interval="1s", lookback=_shorter(f"{_LOOKBACK_S}s", factor)
    )
    server.start()
    try:
        yield Watch(server)
    finally:
        server.stop()
