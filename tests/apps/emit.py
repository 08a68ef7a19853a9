"""Reports events without end, and says which are stored: python emit.py ENDPOINT JOURNAL FIRST_NUMBER."""

import sys
from pathlib import Path

from tests.support.fault_reporting import Reporting

reporting = Reporting(sys.argv[1], Path(sys.argv[2]))
reporting.next = int(sys.argv[3])
print("started", flush=True)
while True:
    reporting.emit(7)
    reporting.stored()
    print(reporting.next, flush=True)
