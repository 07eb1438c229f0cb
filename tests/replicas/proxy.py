"""A round-robin HTTP proxy on loopback: each request goes to the next backend that responds."""

from __future__ import annotations

import http.client
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSED_ON = {"content-type", "x-accel-buffering", "cache-control", "mcp-session-id"}


class RoundRobin:
    """Serves on a free port until its context ends. `log` lists (backend's port, status) of each request."""

    def __init__(self, ports: list[int]):
        self.log: list[tuple[int, int]] = []
        order = itertools.cycle(ports)
        log, lock = self.log, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() not in {"host", "connection", "content-length"}
                }
                for _ in ports:
                    with lock:
                        port = next(order)
                    backend = http.client.HTTPConnection("localhost", port, timeout=60)
                    try:
                        backend.request(self.command, self.path, body, headers)
                        answer = backend.getresponse()
                    except OSError:
                        backend.close()
                        continue
                    with lock:
                        log.append((port, answer.status))
                    self.relay(answer, port)
                    backend.close()
                    return
                self.send_error(502, "no backend answers")

            def relay(self, answer: http.client.HTTPResponse, port: int) -> None:
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() in PASSED_ON:
                        self.send_header(name, value)
                self.send_header("X-Backend", str(port))
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    while chunk := answer.read1(65536):
                        self.wfile.write(chunk)
                        self.wfile.flush()
                except OSError:
                    pass
                self.close_connection = True

            do_POST = do_GET = do_DELETE = forward

            def log_message(self, *_arguments) -> None:
                """Logs nothing to stderr: the log of requests is in `RoundRobin.log`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://localhost:{self._server.server_port}/mcp"

    def __enter__(self) -> "RoundRobin":
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exception) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
