"""A daemon of Python workers that takes four seconds to start, as with a large environment on a slow disk."""

import time

from pyspark import daemon

if __name__ == "__main__":
    time.sleep(4)
    daemon.manager()
