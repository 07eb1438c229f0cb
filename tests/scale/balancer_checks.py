"""Checks of what the documented load balancers pass on, with a server that answers with what it gets."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable

from balancer import EXAMPLES, command
from fleet import Process
from harness.process import free_port

#: The largest message that a server accepts by default.
BODY_LIMIT = 16 * 1024 * 1024
CLIENT = "127.0.0.2"

BALANCERS = ("haproxy", "nginx", "proxy")
CHECKS: list[Callable[["Echoed"], None]] = []


def check(function: Callable[["Echoed"], None]) -> Callable[["Echoed"], None]:
    CHECKS.append(function)
    return function


class _Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        length = int(self.headers["content-length"] or 0)
        received = len(self.rfile.read(length))
        body = json.dumps({"headers": self.headers.items(), "bytes": received}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is logged."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        # Health checks do not wait for the body.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Echoed:
    """A load balancer in front of such a server. Use as a context manager."""

    def __init__(self, balancer: str, folder: Path):
        self.server = _Server(("127.0.0.1", 0), _Echo)
        port = free_port()
        upstream = self.server.server_address[1]
        self.balancer = Process(command(balancer, port, [upstream], folder), port, folder / f"{balancer}.log")

    def __enter__(self) -> "Echoed":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        try:
            self.balancer.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.balancer.kill()
        self.server.shutdown()
        self.server.server_close()

    def ask(self, body: bytes = b"", headers: dict[str, str] | None = None) -> dict:
        """Returns what the server gets from a client at `CLIENT`."""
        address = ("127.0.0.1", self.balancer.port)
        connection = http.client.HTTPConnection(*address, timeout=60, source_address=(CLIENT, 0))
        connection.request("POST", "/mcp", body, {"Host": "mcp.example.com", **(headers or {})})
        response = connection.getresponse()
        answered = response.read()
        connection.close()
        assert response.status == 200, (response.status, answered[:200])
        return json.loads(answered)

    def tails(self) -> str:
        return self.balancer.tail()


def values(received: dict, name: str) -> list[str]:
    return [value for header, value in received["headers"] if header.lower() == name]


@check
def the_last_forwarded_address_is_that_of_the_client(echoed: Echoed) -> None:
    for headers in ({}, {"X-Forwarded-For": "192.0.2.1, 192.0.2.2"}):
        forwarded = values(echoed.ask(headers=headers), "x-forwarded-for")
        # Servers use the last address of the last header of this name.
        assert forwarded and forwarded[-1].rpartition(",")[2].strip() == CLIENT, forwarded


@check
def the_host_is_that_of_the_client(echoed: Echoed) -> None:
    assert values(echoed.ask(), "host") == ["mcp.example.com"]


@check
def bodies_up_to_the_limit_of_servers_pass(echoed: Echoed) -> None:
    assert echoed.ask(b"x" * BODY_LIMIT)["bytes"] == BODY_LIMIT


#: Prints the options with which the example runs its server, without running it.
OPTIONS = """
import json, runpy, sys
import mcpline

mcpline.Server.run = lambda server, transport, **options: print(json.dumps(options))
example, sys.argv[1:] = sys.argv[1], []
runpy.run_path(example, run_name="__main__")
"""


def the_example_counts_clients_by_the_forwarded_address(python: Path) -> None:
    """`python` is an interpreter that has mcpline."""
    run = [str(python), "-c", OPTIONS, str(EXAMPLES / "weather.py")]
    valkey = {"VALKEY_URL": f"valkey://127.0.0.1:{free_port()}"}
    for header in ({}, {"CLIENT_ADDRESS_HEADER": "X-Forwarded-For"}):
        given = subprocess.run(run, env=os.environ | valkey | header, stdout=subprocess.PIPE, check=True).stdout
        options = json.loads(given)
        # Clients could otherwise choose their address.
        assert options["host"] == "127.0.0.1", options
        assert options.get("client_address_header") == header.get("CLIENT_ADDRESS_HEADER"), options
