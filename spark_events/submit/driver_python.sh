#!/bin/sh
# The driver's Python of `spark-events run` in YARN's cluster mode: the interpreter that the driver would have had,
# with spark-events in it if it is there. Without it the application runs all the same.
python=${SPARK_EVENTS_DRIVER_PYTHON:-${PYSPARK_DRIVER_PYTHON:-${PYSPARK_PYTHON:-python3}}}
unset SPARK_EVENTS_DRIVER_PYTHON
if "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("spark_events") is None)'; then
  exec "$python" -m spark_events.submit.driver_python "$@"
fi
echo "spark-events: ERROR: the driver's Python $python has no spark-events, so this application is not reported on:" \
  "ship an environment that has it (--archives environment.tar.gz#env" \
  "--conf spark.yarn.appMasterEnv.PYSPARK_PYTHON=./env/bin/python)" >&2
exec "$python" "$@"
