"""The ways in which each language's client connects to each language's server."""

from __future__ import annotations

from checks import REVISIONS
from harness.programs import INCOMPLETE_SERVERS, LANGUAGES, MOUNTS

# Of every client with every server.
STANDALONE = {"stdio": REVISIONS, "http": REVISIONS[1:], "sse": REVISIONS[:1]}
TRANSPORTS = STANDALONE | dict.fromkeys(("memory", "socket", "channel", *MOUNTS), REVISIONS)


def ways(client: str, server: str) -> list[tuple[str, str]]:
    """Returns each transport with each of its revisions.

    The transports that depend on one side only are used with two clients at most: of the server's language, and of the
    next one. Incomplete languages have no custom transports and no mounts.
    """
    found = list(STANDALONE)
    if client == server:
        found += ["memory", "socket"]
    if server in INCOMPLETE_SERVERS:
        return [(transport, revision) for transport in found for revision in TRANSPORTS[transport]]
    is_next = LANGUAGES[(LANGUAGES.index(server) + 1) % len(LANGUAGES)] == client
    if client == server or is_next:
        found += ["channel", *(name for name, mount in MOUNTS.items() if mount.language == server)]
    return [(transport, revision) for transport in found for revision in TRANSPORTS[transport]]


def path(transport: str, revision: str) -> str:
    """Returns the path of a transport of HTTP; a mounted server has both."""
    return "/sse" if transport == "sse" or (transport in MOUNTS and revision == REVISIONS[0]) else "/mcp"
