"""The everything-server for `uvicorn --workers N worker_app:app`. Each response names the process in `x-backend`.

The arguments are those of `everything_server.py`, separated by spaces in the variable `MCPLINE_TEST_ARGUMENTS`: each worker starts
with the command line of uvicorn.
"""

import os
import sys
from typing import Any

sys.argv[1:] = os.environ["MCPLINE_TEST_ARGUMENTS"].split()

from everything_server import HTTP_OPTIONS, given, server  # noqa: E402

mounted = server.asgi(**given(HTTP_OPTIONS))
BACKEND = (b"x-backend", str(os.getpid()).encode())


async def app(scope: Any, receive: Any, send: Any) -> None:
    async def send_named(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), BACKEND]}
        await send(message)

    await mounted(scope, receive, send_named)
