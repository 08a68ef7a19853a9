#!/bin/sh
# The driver's Python of `spark-events run` in YARN's cluster mode: the interpreter that the driver would have had.
# Where spark-events cannot be imported there, the application runs all the same.
python=${SPARK_EVENTS_DRIVER_PYTHON:-${PYSPARK_DRIVER_PYTHON:-${PYSPARK_PYTHON:-python3}}}
unset SPARK_EVENTS_DRIVER_PYTHON
exec "$python" -c '
import os, sys
try:
    from spark_events.submit.driver_python import main
except Exception as error:
    sys.stderr.write(
        "spark-events: ERROR: the driver'"'"'s Python %s cannot import spark-events (%s: %s), so this application "
        "is not reported on: ship an environment that has it (--archives environment.tar.gz#env --conf "
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON=./env/bin/python)\n"
        % (sys.executable, type(error).__name__, error)
    )
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable] + sys.argv[1:])
main()
' "$@"
