"""Contents of a request's head: hosts, origins, and ids of events that the client claims to have seen."""

from __future__ import annotations

import messages
from attack import Attack, case
from messages import COMMON, modern_call, session_headers

FOREIGN_HOSTS = (
    "[::1].evil.example", "[::1]evil.example", "[::1", "127.0.0.1.evil.example", "localhost.evil.example",
    "localhost@evil.example", "evil.example#localhost", "localhost:80:80", "", "127.0.0.1:http",
)
FOREIGN_ORIGINS = (
    "chrome-extension://localhost", "http://[::1].evil.example", "null", "file://", "http://localhost.evil.example",
    "http://localhost@evil.example", "ftp://localhost", "http://localhost/path", "localhost",
)


@case("hosts that look like ours", decided_by="core")
async def foreign_hosts(attack: Attack) -> None:
    body, headers = modern_call("test_echo", text="a")
    for host in FOREIGN_HOSTS:
        answer = await attack.post(body, headers | {"host": host})
        status = answer.status if answer else 400
        attack.expect(status in (400, 403), f"Host {host!r} is answered {status}")


@case("origins that look like ours", decided_by="core")
async def foreign_origins(attack: Attack) -> None:
    body, headers = modern_call("test_echo", text="a")
    for origin in FOREIGN_ORIGINS:
        answer = await attack.post(body, headers | {"origin": origin})
        status = answer.status if answer else 400
        attack.expect(status in (400, 403), f"Origin {origin!r} is answered {status}")


@case("events that were never sent", decided_by="core")
async def unknown_events(attack: Attack) -> None:
    session = await attack.begin_session()
    for number in (2**64 - 1, 2**64, 2**63, 10**400, -1):
        for stream in ("0", "1", str(2**64 - 1), "x"):
            connection = await attack.connect()
            headers = session_headers(session) | {"last-event-id": f"{stream}-{number}"}
            await connection.request("GET", "/mcp", headers)
            head = await connection.read_head()
            attack.expect(head.status < 500, f"Last-Event-ID {stream}-{number} is answered {head.status}")
            connection.close()
    answer = await attack.post(messages.request(1, "ping"), session_headers(session))
    attack.expect(answer is not None and answer.status == 200, f"the session is answered {answer}")


@case("requests without an end", decided_by="mount")
async def unfinished_requests(attack: Attack) -> None:
    for _ in range(200 * attack.scale):
        connection = await attack.connect()
        await connection.send(connection.head("POST", "/mcp", COMMON | {"content-length": "100"}))
        connection.close()
