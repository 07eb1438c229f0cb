"""The everything-server as an ASGI application under uvicorn, with the arguments of `everything_server.py`."""

import uvicorn
from everything_server import HTTP_OPTIONS, given, options, server

app = server.asgi(**given(HTTP_OPTIONS))

uvicorn.run(app, host="127.0.0.1", port=options.http, log_level="warning", access_log=False)
