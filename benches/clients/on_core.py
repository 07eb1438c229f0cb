"""`on_core.py CORE COMMAND…`: replaces itself with the command, on that core."""

import os
import sys

os.sched_setaffinity(0, {int(sys.argv[1])})
os.execvp(sys.argv[2], sys.argv[2:])
