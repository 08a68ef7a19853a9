"""What following many event logs takes: threads, open files and memory of one daemon.

python -m bench.follow 2000        # with a file log and Prometheus
python -m bench.follow 2000 all    # with a file log of spans and OTLP as well
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.reading.log_positions import LogPositions
from tests.support.event_log_sample import SampleLog

_MOST_THREADS, _MOST_MB = 64, 500
_COLLECTOR = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *arguments): pass
ThreadingHTTPServer.request_queue_size = 256
server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
"""
_PAGE_KB = resource.getpagesize() // 1024


def main(count: int, with_all: bool) -> int:
    """Print a line for each state; return 1 if one of them takes more than it may."""
    with tempfile.TemporaryDirectory() as made, _collector() as collector:
        folder = Path(made)
        logs = folder / "logs"
        logs.mkdir()
        most = Most()
        threading.Thread(target=most.watch, daemon=True).start()
        # Here, because a database belongs to the thread that opens it.
        follower = Follower(
            str(logs), _conf(folder, collector if with_all else ""), LogPositions(folder / "state.sqlite")
        )
        play = threading.Thread(target=_play, args=(logs, count, follower, most))
        play.start()
        follower.run()
        play.join()
        print(f"most at any time: {most.threads} threads, {most.files} files, {most.mb} MB")
        return int(most.threads >= _MOST_THREADS or most.mb >= _MOST_MB)


def _play(logs: Path, count: int, follower: Follower, most: Most) -> None:
    """Write the logs of applications that begin and end, and stop the follower."""
    names = [f"app-{number:05d}" for number in range(count)]
    print(f"{'':24}{'threads':>9}{'files':>9}{'MB':>9}{'s':>9}")
    most.show("none")
    for name in names:
        (logs / f"{name}.inprogress").write_bytes(b"".join(SampleLog(name).begin()))
    most.until(lambda: _followed(follower) == count, f"{count} running")
    for name in names:
        with (logs / f"{name}.inprogress").open("ab") as file:
            file.writelines(SampleLog(name).end())
    most.until(lambda: not follower._followed, f"{count} ended")
    follower.stop()


@contextmanager
def _collector() -> Iterator[str]:
    """Run a process that acknowledges every request, and yield its address."""
    command = [sys.executable, "-c", _COLLECTOR]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def _followed(follower: Follower) -> int:
    return sum(1 for each in list(follower._followed.values()) if each.registry and not each.undelivered)


def _conf(folder: Path, collector: str) -> dict[str, str]:
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(folder / "events"),
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": "9249-9299",
        "spark.events.event-log.poll-interval": "1s",
    }
    more = {
        "spark.traces.reporter.file.factory.class": "file_log",
        "spark.traces.reporter.file.path": str(folder / "spans"),
        "spark.events.reporter.collector.factory.class": "otlp",
        "spark.events.reporter.collector.exporter.protocol": "http",
        "spark.events.reporter.collector.exporter.endpoint": collector,
    }
    return {**conf, **more} if collector else conf


class Most:
    """The most that this process has used of each."""

    def __init__(self) -> None:
        self.threads = self.files = self.mb = 0

    def watch(self) -> None:
        """Look all the time."""
        while True:
            self.look()
            time.sleep(0.1)

    def look(self) -> tuple[int, int, int]:
        """Return threads, files and MB now, except for those of this script."""
        threads = threading.active_count() - 2
        files = len(list(Path("/proc/self/fd").iterdir()))
        mb = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KB // 1024
        self.threads = max(self.threads, threads)
        self.files, self.mb = max(self.files, files), max(self.mb, mb)
        return threads, files, mb

    def show(self, title: str, seconds: float = 0.0) -> None:
        """Print what is used now."""
        print(f"{title:24}" + "".join(f"{value:9}" for value in self.look()) + f"{seconds:9.1f}", flush=True)

    def until(self, reached: Callable[[], bool], title: str) -> None:
        """Wait for a state, give files a moment to be closed, and print what is used then."""
        begun = time.monotonic()
        while not reached():
            time.sleep(0.2)
        seconds = time.monotonic() - begun
        time.sleep(5)
        self.show(title, seconds)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, "all" in sys.argv))
