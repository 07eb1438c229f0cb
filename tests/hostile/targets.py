"""The servers under attack: each language's standalone server, and its mounts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from harness import programs


@dataclass(frozen=True)
class Target:
    """A way in which a language serves HTTP."""

    language: str
    mount: str
    _command: Callable[[], list[str]]
    knows_addresses: bool = True
    """Whether it distinguishes clients by their addresses. Otherwise the limits of one client are those of all."""

    @property
    def is_standalone(self) -> bool:
        """Whether it uses the core's own listener, and so also its sockets and HTTP+SSE."""
        return self.mount == "standalone"

    def command(self) -> list[str]:
        """Returns the command that starts it; builds it on first use."""
        return built(self._command)

    def __str__(self) -> str:
        return f"{self.language} {self.mount}"


@functools.cache
def built(command: Callable[[], list[str]]) -> list[str]:
    return command()


# One client's share in other targets, so that the same bounds apply.
SHARE_OF_FETCH = ("--max-total-client-bytes", str(128 * 1024 * 1024))


def targets(language: str | None) -> list[Target]:
    """Returns the targets that this machine can build, of one language or of all that are complete."""
    servers = programs.chosen(programs.SERVERS, programs.INCOMPLETE_SERVERS, language)
    standalone = [
        Target(name, "standalone", subject.command) for name, subject in servers.items() if subject.exists()
    ]
    mounts = [
        Target(mount.language, name, mount.command) for name, mount in programs.MOUNTS.items() if name != "fetch"
    ]
    # A `Request` does not have the client's address.
    fetch = programs.MOUNTS["fetch"]
    mounts.append(
        Target(fetch.language, "fetch", lambda: [*fetch.command(), *SHARE_OF_FETCH], knows_addresses=False)
    )
    return standalone + mounts
