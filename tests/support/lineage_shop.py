"""An application of many statements, and what its job status listeners wrote down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.applications import AppRun


@dataclass
class Shop:
    """An application, and what its job status listeners wrote down."""

    run: AppRun
    folder: Path
    jobs: list[dict[str, Any]]
    openlineage: list[dict[str, Any]]

    @classmethod
    def read(cls, run: AppRun, folder: Path) -> Shop:
        """Read what the listeners of an application wrote below its folder."""
        files = (folder / "jobs").iterdir()
        jobs = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        lines = (folder / "openlineage.jsonl").read_text().splitlines()
        return cls(run, folder, jobs, [json.loads(line) for line in lines])

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return the events of the jobs of a name."""
        return [event for event in self.jobs if event["jobName"] == name]

    def lineage(self, name: str) -> tuple[list[str], list[str]]:
        """Return what such a job reads and writes, as it was last told: paths below the folder, or names."""
        told = [event["lineage"] for event in self.of(name) if "lineage" in event][-1]

        def short(vertices: list[dict[str, Any]]) -> list[str]:
            names = [dataset["name"] for vertex in vertices for dataset in vertex["datasets"]]
            return [one.removeprefix(f"{self.folder}/") for one in names]

        return short(told["sources"]), short(told["sinks"])

    def statuses(self, name: str) -> list[str]:
        """Return the statuses of such jobs, one after the other."""
        return [
            "CREATED" if event["event"] == "JobCreatedEvent" else event["newStatus"]
            for event in self.of(name)
            if event["event"] != "JobLineageEvent"
        ]


def listeners(folder: Path) -> dict[str, str]:
    """Return the configuration of a file log and of OpenLineage, which write below a folder."""
    listener = "spark.job-status-changed.listener"
    return {
        f"{listener}.log.factory.class": "file_log",
        f"{listener}.log.path": str(folder / "jobs"),
        f"{listener}.openlineage.factory.class": "openlineage",
        f"{listener}.openlineage.transport.type": "file",
        f"{listener}.openlineage.transport.path": str(folder / "openlineage.jsonl"),
        # Relative, as Spark's default is: below the folder in which the application begins.
        "spark.sql.warehouse.dir": "warehouse",
    }
