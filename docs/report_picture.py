"""Takes the pictures of the gallery: ``python -m docs.report_picture``.

The report is of a fleet's week, which is made up; ``why`` is asked about a recorded event log.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import zstandard
from playwright.sync_api import sync_playwright

from tests.support.history_story import DAY, HOUR, MIN, Story, write

_DAYS = 6
_LOG = Path(__file__).parents[1] / "tests" / "golden" / "logs" / "slow.zstd"
_ERRORS = ("STREAM_FAILED", "OUT_OF_MEMORY", "KAFKA_TIMEOUT")


def query(story: Story, name: str, trigger_ms: int, share_failed: float, chance: random.Random) -> None:
    """Let a query commit at each trigger, fail now and then, and be restarted."""
    story.run(f"{name}-0").query(5_000, "CREATED", name=name)
    now = last = 5_000
    for batch in range(_DAYS * DAY // trigger_ms):
        now += trigger_ms + chance.randrange(5_000)
        took = int(chance.lognormvariate(9.0, 0.6))
        if batch and chance.random() < share_failed:
            story.failure(now, chance.choice(_ERRORS), f"batch {batch} could not be written", name=name)
            story.query(now, "FAILED", name=name)
            now += chance.randrange(5 * MIN, 3 * HOUR)
            story.run(f"{name}-{batch}").query(now, "RESTARTING", name=name)
            now += 30_000
        story.checkpoint(now, took, now - last, name=name)
        if batch == 0 or story.events[-2]["attributes"].get("newJobStatus") == "RESTARTING":
            story.query(now, "RUNNING", name=name)
        last = now


def fleet() -> list[Story]:
    """Return two streaming applications and a nightly job."""
    chance = random.Random(3)
    payments = Story("payments", "payments-1").application(0, "CREATED", "RUNNING")
    query(payments, "orders", 10 * MIN, 0.01, chance)
    query(payments, "refunds", 10 * MIN, 0.008, chance)
    clicks = Story("clicks", "clicks-1").application(0, "CREATED", "RUNNING")
    query(clicks, "sessions", 5 * MIN, 0.002, chance)
    for story in (payments, clicks):
        story.heartbeats(0, _DAYS * DAY, 10 * MIN)
    nightly = Story("nightly")
    for day in range(_DAYS):
        nightly.driver(f"nightly-{day}").application(day * DAY + 2 * HOUR, "CREATED", "RUNNING")
        nightly.application(day * DAY + 3 * HOUR, "FINISHED")
    return [payments, clicks, nightly]


def take(page: Path, picture: str, width: int, height: int) -> None:
    """Take the picture of the upper part of a page with Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": width, "height": height})
        shown.goto(page.as_uri())
        shown.screenshot(path=str(Path(__file__).with_name(picture)))
        browser.close()


def main() -> None:
    """Make the pages, and take their pictures."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "log", *fleet())
        page = Path(folder) / "report.html"
        command = [str(Path(sys.executable).with_name("spark-events")), "report", f"{folder}/log"]
        subprocess.run(
            [*command, "--sla", "15min", "--latest", "2027-01-01", "--html", str(page)], check=True
        )
        take(page, "report.png", 1320, 1330)
        log = Path(folder) / "log-of-a-slow-run"
        text = zstandard.ZstdDecompressor().stream_reader(_LOG.read_bytes()).read()
        log.write_bytes(text.replace(b'"App Name":"slow"', b'"App Name":"nightly"'))
        page = Path(folder) / "why.html"
        smallest = [
            "--conf",
            "spark.events.issue.min-duration=1s",
            "--conf",
            "spark.events.issue.min-ratio=0.01",
        ]
        subprocess.run([command[0], "why", str(log), *smallest, "--html", str(page)], check=True)
        take(page, "why.png", 1120, 1180)


if __name__ == "__main__":
    main()
