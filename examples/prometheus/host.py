"""Calls the tool of weather.py once per second, and serves the metrics of the client for Prometheus.

`python host.py http://127.0.0.1:8000/mcp --port 8001` serves them at http://127.0.0.1:8001/metrics. With `--calls N` it calls the tool
N times at once, and no more. Every third call fails, to have something to look at.
"""

import argparse
import asyncio
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mcpline import Client


def serve(client: Client, port: int) -> None:
    """Serves the metrics from another thread."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = Client.metrics_of({"weather": client}).encode() if self.path == "/metrics" else b""
            self.send_response(200 if text else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Logs no requests."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()


async def call(client: Client, number: int) -> None:
    days = 9 if number % 3 == 0 else number % 3
    result = await client.call_tool("forecast", {"city": "Oslo", "days": days})
    if result.is_error:
        print(f"call {number}: {result.text}")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--calls", type=int, help="how many calls to send at once; default: one per second")
    given = parser.parse_args()
    async with Client.connect(given.url, metrics=True) as client:
        serve(client, given.port)
        if given.calls is not None:
            for number in range(1, given.calls + 1):
                await call(client, number)
            print("all calls are done", flush=True)
            await asyncio.Event().wait()
        for number in itertools.count(1):
            await call(client, number)
            await asyncio.sleep(1)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
