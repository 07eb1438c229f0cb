#!/usr/bin/env python3
"""Tests that invalid messages are found in recordings of taps, on pipes and over HTTP, with every framing."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import recordings, schemas, tap  # noqa: E402

INFO = {"name": "s", "version": "1"}
OPENING = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
OPENED = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": INFO}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
RIGHT = {"tools": []}
WRONG = {"tools": {}}

ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = json.loads(sys.argv[1]) if message["method"] == "initialize" else json.loads(sys.argv[2])
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
sys.exit(7)
"""


@unittest.skipUnless(schemas.FOLDER.is_dir(), "the schemas are absent")
class Taps(unittest.TestCase):
    checker: schemas.Schemas

    @classmethod
    def setUpClass(cls) -> None:
        cls.checker = schemas.Schemas()

    def piped(self, result: dict) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            server = [sys.executable, "-c", ECHO, json.dumps(OPENED), json.dumps(result)]
            sent = "".join(json.dumps(message) + "\n" for message in (OPENING, LIST))
            done = subprocess.run(tap.piped(Path(folder), server), input=sent, capture_output=True, text=True)
            self.assertEqual(done.returncode, 7)
            self.assertEqual(json.loads(done.stdout.splitlines()[1])["result"], result)
            return recordings.pipe_problems(Path(folder), self.checker)

    def test_a_wrong_message_on_a_pipe_is_found(self) -> None:
        self.assertEqual(self.piped(RIGHT), [])
        (problem,) = self.piped(WRONG)
        self.assertIn("2025-06-18 ListToolsResult", problem)

    def served(self, framing: str, result: dict) -> list[str]:
        with _serving(framing, result) as port:
            wire = tap.HttpTap(port)
            connection = http.client.HTTPConnection("localhost", wire.port, timeout=30)
            for message in (OPENING, LIST):
                headers = {"Mcp-Session-Id": "s"} if message is LIST else {}
                connection.request("POST", "/mcp", json.dumps(message), headers)
                connection.getresponse().read()
            connection.close()
            wire.close()
            return recordings.http_problems(wire.connections, self.checker)

    def test_a_wrong_message_over_http_is_found_however_it_is_framed(self) -> None:
        for framing in ("length", "chunks", "events"):
            with self.subTest(framing):
                seen = self.checker.checked["2025-06-18"]
                self.assertEqual(self.served(framing, RIGHT), [])
                self.assertEqual(self.checker.checked["2025-06-18"], seen + 2)
                (problem,) = self.served(framing, WRONG)
                self.assertIn("2025-06-18 ListToolsResult", problem)


class _serving:
    """A server that responds with the given framing: JSON with a length, JSON in chunks, or an event stream."""

    def __init__(self, framing: str, result: dict):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                opens = message["method"] == "initialize"
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": OPENED if opens else result}
                body = json.dumps(answer).encode()
                self.send_response(200)
                if opens:
                    self.send_header("Mcp-Session-Id", "s")
                kind = "text/event-stream" if framing == "events" else "application/json"
                self.send_header("Content-Type", kind)
                if framing == "length":
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                if framing == "events":
                    body = b": hello\n\nid: 1\nevent: message\ndata: " + body + b"\n\n"
                for piece in (body[:10], body[10:]):
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> int:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self._server.server_port

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()


if __name__ == "__main__":
    unittest.main()
