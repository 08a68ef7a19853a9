"""A daemon that somebody else has configured: says that it runs, and does what PySpark's does."""

import os
import runpy
from pathlib import Path

Path(os.environ["OTHER_DAEMON"]).touch()
runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
