"""Stops the server behind the tap that records into a folder, as its host would: `stop.py FOLDER`.

A client may have started another process before: the server is the one that wrote last.
"""

import os
import signal
import sys
from pathlib import Path

record = max(Path(sys.argv[1]).glob("pipe-*"), key=lambda path: path.stat().st_mtime_ns)
os.kill(int(record.name.removeprefix("pipe-")), signal.SIGTERM)
