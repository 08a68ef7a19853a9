"""Queries are checked on the machine of whoever deploys them, where Hadoop's configuration names a cluster's HDFS."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.applications import cli
from tests.support.sql_session import FILES, manifests
from tests.support.waiting import free_port

pytestmark = pytest.mark.spark


@pytest.mark.extended
@pytest.mark.parametrize(
    "command", [("sql", "validate", "queries", *FILES), ("lineage", "plan", "tables.sql")], ids=" ".join
)
def test_nothing_is_written_to_hdfs(tmp_path: Path, java: str, command: tuple[str, ...]) -> None:
    """Nothing has to be: HDFS may be away, or this user may not write there."""
    manifests(tmp_path)
    (hadoop := tmp_path / "hadoop").mkdir()
    away = {"fs.defaultFS": f"hdfs://127.0.0.1:{free_port()}", "ipc.client.connect.max.retries": "1"}
    keys = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in away.items())
    (hadoop / "core-site.xml").write_text(f"<configuration>{''.join(keys)}</configuration>")
    checked = subprocess.run(
        cli(*command),
        env={**os.environ, "HADOOP_CONF_DIR": str(hadoop)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
