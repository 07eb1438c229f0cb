"""Requests whose cost depends on the server's content: URIs against templates (row 4)."""

from __future__ import annotations

import messages
from attack import Attack, Bounds, case
from http1 import Gone

EXTRAS = ("--extras", "1")


async def _listen(attack: Attack, uris: list[str]) -> None:
    body, headers = messages.modern("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    connection = await attack.connect()
    try:
        await connection.request("POST", "/mcp", headers, body)
        await connection.read_head()
    except Gone:
        pass


MATCHING = Bounds(neighbour_cpu=1.0)


@case("4 many URIs against a template of three variables", flags=EXTRAS, bounds=MATCHING, decided_by="core")
async def ambiguous_template(attack: Attack) -> None:
    await _listen(attack, [f"log://{'-' * 2_000}{number}/" for number in range(2_000)])


@case("4 one long URI against a template of three variables", flags=EXTRAS, bounds=MATCHING, decided_by="core")
async def long_uri(attack: Attack) -> None:
    session = await attack.begin_session()
    # The maximum length of a URI that is matched at all (`MAX_URI`).
    uri = "log://" + "-" * (8 * 1024 - 7) + "/"
    for number in range(20):
        body = messages.request(number, "resources/read", {"uri": uri})
        await attack.post(body, messages.session_headers(session))


@case("4 a million URIs in one listen request", decided_by="core")
async def million_uris(attack: Attack) -> None:
    for round_ in range(5):
        await _listen(attack, [f"t:{round_}{number}" for number in range(1_000_000)])
        attack.end_round()
