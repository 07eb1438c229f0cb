"""Stopping a server that is only starting."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator

import pytest
from mcpline import Server
from support import TEST_TIMEOUT
from trio_support import run_on


def stopped_in_its_lifespan() -> Server:
    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        server.stop()
        yield

    return Server("early", "1.0.0", lifespan=lifespan)


def test_a_server_that_is_stopped_within_its_lifespan_ends():
    server = stopped_in_its_lifespan()
    serving = threading.Thread(target=lambda: server.run("http", port=0), daemon=True)
    serving.start()
    serving.join(TEST_TIMEOUT)
    assert not serving.is_alive()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("transport", ["http", "unix"])
def test_a_task_whose_server_is_stopped_within_its_lifespan_ends(backend, transport, tmp_path):
    server = stopped_in_its_lifespan()

    async def test() -> None:
        # It can be served again.
        for _ in range(2):
            if transport == "http":
                await server.serve("http", port=0)
            else:
                await server.serve_unix(tmp_path / "socket")

    run_on(backend, test)
