"""The command ``pack``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError
from spark_events.cli.terminal.console import err, plain, say


def pack(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, a .tar.gz.")] = Path(
        "environment.tar.gz"
    ),
    python: Annotated[
        str | None,
        typer.Option(
            "--node-python",
            metavar="PATH",
            help="Where the nodes have this version of Python; by default, where it is here.",
        ),
    ] = None,
    with_pyspark: Annotated[
        bool, typer.Option("--with-pyspark", help="Pack PySpark as well, which the cluster has already.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file, if it is there already.")] = False,
) -> None:
    """Make an archive of this virtual environment, for drivers in a cluster: spark-events and your packages.

    YARN unpacks it where the driver runs. The interpreter itself is not in it: the nodes need the same
    version of Python.
    """
    from spark_events.submit.environment_archive import pack as pack_environment

    if archive.exists() and not force:
        raise UsageError(f"{archive}: exists already; --force replaces it")
    if python is not None and not python.startswith("/"):
        raise UsageError(f"--node-python {python}: expected an absolute path, such as /usr/bin/python3.11")
    try:
        with err.status("packing"):
            packed = pack_environment(archive, python, with_pyspark)
    except OSError as error:
        of_archive = error.filename is None or str(error.filename).startswith(str(archive))
        what = f"{archive}: cannot be written" if of_archive else f"{error.filename}: cannot be read"
        raise ConfigError(f"{what}: {error.strerror}") from error
    size = f"{packed.bytes / 1e6:.0f} MB, {packed.packages} package{'s' * (packed.packages != 1)}"
    say(f"{plain(str(archive))}: {size}, for nodes that have {plain(packed.python)}", err)
    say(
        plain(f"spark-events run --master yarn --deploy-mode cluster --archives {archive}#env ")
        + "--conf spark.yarn.appMasterEnv.PYSPARK_PYTHON=./env/bin/python app.py"
    )
