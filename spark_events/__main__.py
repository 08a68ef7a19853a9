"""``python -m spark_events``: the command line where its script is not on the ``PATH``."""

from __future__ import annotations

from spark_events.cli.main import main

if __name__ == "__main__":
    main()
