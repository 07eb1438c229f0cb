"""TLS of the built-in HTTP server."""

from __future__ import annotations

import asyncio
import http.client
import logging
import os
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcpline import Client, Server, Tls, UsageError
from support import TEST_TIMEOUT, run

# A certificate for localhost and 127.0.0.1, and the authority that signed it.
FILES = Path(__file__).resolve().parents[2] / "bindings-node" / "test" / "tls"
CERTIFICATE, KEY, AUTHORITY = FILES / "server.pem", FILES / "server.key", FILES / "ca.pem"


@asynccontextmanager
async def serving(tls: Tls, log: pytest.LogCaptureFixture) -> AsyncIterator[str]:
    """Serve over HTTPS, and yield the URL that the start-up line names."""
    log.set_level(logging.INFO, "mcpline")
    server = Server("secure", "1.0.0")

    @server.tool
    async def hello() -> str:
        return "hello"

    task = asyncio.ensure_future(server.serve("http", port=0, tls=tls))
    # The log may also have requests to an earlier server, which are recorded by a thread.
    while not (lines := [record.getMessage() for record in log.records if record.name == "mcpline"]):
        assert not task.done(), task
        await asyncio.sleep(0.001)
    url = lines[0].partition(" at ")[2].partition(" ")[0]
    try:
        yield url
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize(
    "tls",
    [Tls(CERTIFICATE, KEY), Tls(str(CERTIFICATE), str(KEY)), Tls(CERTIFICATE.read_bytes(), KEY.read_bytes())],
    ids=["paths", "strings", "bytes"],
)
def test_clients_call_tools_over_https(tls, caplog):
    async def main() -> None:
        async with serving(tls, caplog) as url:
            assert url.startswith("https://127.0.0.1:")
            async with Client.connect(url, tls_roots=AUTHORITY.read_text("utf-8"), only_tls_roots=True) as client:
                assert (await client.call_tool("hello")).text == "hello"

    run(main())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_other_clients_speak_tls_1_2_and_1_3_and_get_http_1_1(version, caplog):
    def health(port: int) -> tuple[int, bytes, str | None]:
        context = ssl.create_default_context(cafile=str(AUTHORITY))
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(["h2", "http/1.1"])
        connection = http.client.HTTPSConnection("localhost", port, context=context)
        connection.request("GET", "/health")
        protocol = connection.sock.selected_alpn_protocol()  # type: ignore[attr-defined]
        response = connection.getresponse()
        answer = (response.status, response.read(), protocol)
        connection.close()
        return answer

    async def main() -> None:
        async with serving(Tls(CERTIFICATE, KEY), caplog) as url:
            port = int(url.rpartition(":")[2].partition("/")[0])
            assert await asyncio.to_thread(health, port) == (200, b"ok", "http/1.1")

    run(main())


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (Tls(FILES / "missing.pem", KEY), "`certificate`: cannot read .*missing.pem: No such file"),
        (Tls(CERTIFICATE, CERTIFICATE), "`key`: .*server.pem contains no PEM private key"),
        (Tls(AUTHORITY, KEY), "`key`: .*server.key is not the private key of the certificate"),
        (Tls(CERTIFICATE, b"secret"), "`key`: the bytes contain no PEM"),
        (Tls(CERTIFICATE, 1), "`key` must be a path, or PEM as bytes, not int"),
        ((CERTIFICATE, KEY), "`tls` must be a mcpline.Tls, not tuple"),
    ],
)
def test_a_certificate_or_key_that_cannot_be_used_is_refused(tls, message):
    with pytest.raises(UsageError, match=message):
        Server("secure", "1.0.0").run("http", port=0, tls=tls)


def test_a_server_that_is_stopped_while_it_reads_its_certificate_does_not_serve(tmp_path):
    certificate = tmp_path / "certificate.pem"
    os.mkfifo(certificate)
    server = Server("secure", "1.0.0")
    serving = threading.Thread(
        target=lambda: server.run("http", port=0, tls=Tls(certificate, KEY)),
        daemon=True,
    )
    serving.start()
    # Waits for the server to open the file, which then waits for its contents.
    with certificate.open("wb") as file:
        server.stop()
        file.write(CERTIFICATE.read_bytes())
    serving.join(TEST_TIMEOUT)
    assert not serving.is_alive()


def test_the_key_is_not_shown():
    assert "PRIVATE" not in repr(Tls(CERTIFICATE, KEY.read_bytes()))
