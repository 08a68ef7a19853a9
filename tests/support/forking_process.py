"""The process of ``forked_commands``: it imports what commands import, and forks for each of them.

It runs as a script, for a process that has imported pytest would not be what a user starts.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import random
import socket
import sys
import threading
from pathlib import Path
from typing import Any

_NOT_IMPORTED = ("__main__", "duckdb_tables", "on_duckdb")
"""How modules end that are left to the commands: DuckDB starts threads."""


def _fork_for_each_request(link: socket.socket) -> dict[str, Any] | None:
    """Answer each request with the process's id and status; return the request in the process that is forked."""
    while True:
        length, streams, _, _ = socket.recv_fds(link, 4, 2)
        if not length:
            return None
        request = link.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
        pid = os.fork()
        if not pid:
            link.close()
            for number, stream in enumerate(streams, start=1):
                os.dup2(stream, number)
                os.close(stream)
            return dict(json.loads(request))
        for stream in streams:
            os.close(stream)
        link.sendall(f"{pid}\n".encode())
        link.sendall(f"{os.waitpid(pid, 0)[1]}\n".encode())


def _import_what_commands_import() -> None:
    """Import what looks at no environment, and starts no thread: it would end where it is forked."""
    import asyncio  # noqa: F401
    import pkgutil

    import fsspec  # noqa: F401
    import pydantic  # noqa: F401
    import rich.markdown  # noqa: F401
    import typer  # noqa: F401

    import spark_events

    for module in pkgutil.walk_packages(spark_events.__path__, "spark_events."):
        if not module.name.startswith("spark_events.cli") and not module.name.endswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, (
        "something that was imported has started a thread"
    )


def _run_to_its_end(request: dict[str, Any]) -> int:
    """Run a command, and what Python does at the end, but for taking its modules apart: return the exit code."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    random.seed()
    sys.argv = ["spark-events", *request["arguments"]]
    code: Any = None
    from spark_events.cli.main import main

    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code or 0


if __name__ == "__main__":
    # As a console script has it.
    sys.path[0] = str(Path(sys.executable).parent)
    _import_what_commands_import()
    # What is there stays: neither collected, nor copied for it, in each process that is forked.
    gc.freeze()
    asked = _fork_for_each_request(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        os._exit(_run_to_its_end(asked))
