"""Ways to reach the server for tests of clients."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer
import pytest
from mcpline import Client, SyncClient
from support import REVISIONS, free_port, process, wait_for_port

PEER = Path(peer.__file__)
WAYS = ("memory", "program", "http", "sse")
# HTTP+SSE supports only the first revision.
CELLS = [(way, revision) for way in WAYS for revision in REVISIONS if way != "sse" or revision == REVISIONS[0]]
KINDS: dict[str, Any] = {"async": Client, "sync": SyncClient}


@pytest.fixture(scope="session")
def http_port() -> Iterator[int]:
    port = free_port()
    source = f"import sys; sys.path.insert(0, {str(PEER.parent)!r}); import peer; peer.main('http', '{port}')"
    with process(source) as server:
        wait_for_port(port, server)
        yield port


class Reach:
    """Creates clients."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, way: str, revision: str | None = None, kind: str = "async", **options: Any) -> Any:
        client = KINDS[kind]
        if revision is not None:
            options["revisions"] = [revision]
        if way == "memory":
            return client.memory(peer.make(), **options)
        if way == "program":
            return client.spawn(sys.executable, PEER, **options)
        path = "sse" if way == "sse" else "mcp"
        return client.connect(f"http://127.0.0.1:{self._port}/{path}", **options)


@pytest.fixture
def reach(http_port: int) -> Reach:
    return Reach(http_port)
