"""A real Prometheus and a real Pushgateway."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.support.paths import REPO
from tests.support.waiting import free_port, http_get, is_listening, wait_until


class PrometheusQueries:
    """What asks a Prometheus.

    Args:
        url: where it is.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, at: float | None = None) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the value of each series of an instant query, by its labels without the scrape's own.

        Args:
            expression: PromQL.
            at: when, in s since the epoch; now where it is None.
        """
        parameters = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        text = http_get(f"{self.url}/api/v1/query?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(text)
        assert answer["status"] == "success", answer
        return {
            tuple(
                sorted((k, v) for k, v in row["metric"].items() if k not in ("__name__", "instance", "job"))
            ): float(row["value"][1])
            for row in answer["data"]["result"]
        }

    def value(self, expression: str) -> float | None:
        """Return the value of a query that yields one series; None where it yields none."""
        values = list(self.query(expression).values())
        assert len(values) <= 1, values
        return values[0] if values else None


class PrometheusServer(PrometheusQueries):
    """A real Prometheus that scrapes each half second, and evaluates the shipped rules as often.

    Args:
        folder: for its files; what is in its ``data`` already is served.
        targets: the port, or the ports, that it scrapes.
        how: more of the scrape's configuration, in YAML's flow style.
        rules: the folder of the rules.
        interval: how often it scrapes and evaluates.
        lookback: how long a sample counts, if no newer one follows.
        host: what it scrapes.
    """

    def __init__(
        self,
        folder: Path,
        targets: int | Sequence[int],
        how: str = "",
        rules: Path = REPO / "conf" / "prometheus" / "rules",
        interval: str = "500ms",
        lookback: str = "5m",
        host: str = "127.0.0.1",
    ) -> None:
        super().__init__(f"http://127.0.0.1:{free_port()}")
        folder.mkdir(exist_ok=True)
        self._folder = folder
        ports = [targets] if isinstance(targets, int) else targets
        self._targets = ", ".join(f"'{host}:{port}'" for port in ports)
        self._how = how
        self._rules, self._interval, self._lookback = rules, interval, lookback
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        config = self._folder / "prometheus.yml"
        config.write_text(
            f"global: {{scrape_interval: {self._interval}, scrape_timeout: {self._interval}, "
            f"evaluation_interval: {self._interval}}}\n"
            f"rule_files: ['{self._rules}/*.yml']\n"
            f"scrape_configs: [{{job_name: demo, static_configs: [{{targets: [{self._targets}]}}]{self._how}}}]\n"
        )
        log = (self._folder / "prometheus.log").open("ab")
        address = self.url.removeprefix("http://")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                "--storage.tsdb.retention.time=10y",
                f"--query.lookback-delta={self._lookback}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        wait_until(lambda: http_get(f"{self.url}/-/ready"), "Prometheus is ready")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None


class Pushgateway:
    """A Pushgateway on a port of its own.

    Args:
        folder: for its log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{free_port()}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        address = self.url.removeprefix("http://")
        log = (self._folder / "pushgateway.log").open("ab")
        command = ["prometheus-pushgateway", f"--web.listen-address={address}", "--persistence.file="]
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        host, port = address.split(":")
        wait_until(lambda: is_listening(host, int(port)), "the Pushgateway listens")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def metrics(self) -> str:
        """Return what it serves."""
        return http_get(f"{self.url}/metrics")
