"""A registry of npm on loopback, which has the packages of a folder and no others.

    with serving(FOLDER) as address: …
"""

from __future__ import annotations

import base64
import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def manifest(archive: Path) -> dict:
    with tarfile.open(archive) as packed:
        file = packed.extractfile("package/package.json")
        assert file is not None, archive
        return json.load(file)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serves the packages `*.tgz` of a folder; yields the address."""
    packages = {manifest(archive)["name"]: archive for archive in folder.glob("*.tgz")}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.strip("/").split("?")[0]
            archive = packages.get(path.removeprefix("files/").removesuffix(".tgz"))
            if archive is None:
                self.answer(404, b'{"error": "not found"}', "application/json")
            elif path.startswith("files/"):
                self.answer(200, archive.read_bytes(), "application/octet-stream")
            else:
                self.answer(200, json.dumps(self.document(archive)).encode(), "application/json")

        def document(self, archive: Path) -> dict:
            found = manifest(archive)
            digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            dist = {"tarball": f"{address}/files/{found['name']}.tgz", "integrity": f"sha512-{digest}"}
            version = found["version"]
            # As a registry reports it, with the times that some clients ask for.
            return {
                "name": found["name"],
                "dist-tags": {"latest": version},
                "versions": {version: found | {"dist": dist}},
                "time": {version: "2026-01-01T00:00:00.000Z"},
            }

        def answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
