"""A server without sessions, for one of two processes: `one.py --http PORT`. The tool says which process it is."""

from __future__ import annotations

import argparse
import os

from mcpline import Server

parser = argparse.ArgumentParser()
parser.add_argument("--http", type=int, required=True)
options = parser.parse_args()
server = Server("stateless", "1")


@server.tool
def process() -> str:
    return str(os.getpid())


server.run("http", port=options.http, stateless=True)
