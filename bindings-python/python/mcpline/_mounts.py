"""Mounted servers: which servers belong together, and what the mounted ones need when a server serves."""

from __future__ import annotations

from _thread import allocate_lock
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .server import Server

__all__ = ["attach_if_serving", "mount", "unmount", "waiting_lifespans", "with_lifespans"]


# One change of mounts at a time: the core, the native list and the lists here have to agree.
_changing = allocate_lock()


def mount(server: Server, mounted: Server, prefix: str | None, snapshot: bool, tools: bytes | None) -> None:
    """Mount a server in another.

    Raises:
        UsageError: See `Server.mount`.
    """
    _check(mounted)
    with _changing:
        waiting = with_lifespans(mounted)
        if waiting and any(other._serving or other._lifespan_users for other in _with_parents(server)):
            from .errors import UsageError

            raise UsageError(
                f"the server {waiting[0].name!r} has a lifespan, which is entered when serving begins: mount it before"
            )
        server._native.mount(mounted._native, prefix, snapshot, tools)
        if mounted not in server._mounted:
            server._mounted.append(mounted)
            mounted._parents.append(ref(server))
    any_async, _ = mounted._native.handlers
    if any_async:
        attach_if_serving(server)


def unmount(server: Server, mounted: Server) -> bool:
    """Revert `mount`. Return whether the server was mounted."""
    _check(mounted)
    with _changing:
        was_mounted = server._native.unmount(mounted._native)
        if mounted in server._mounted:
            server._mounted.remove(mounted)
            mounted._parents = [parent for parent in mounted._parents if parent() is not server]
    return was_mounted


def _check(mounted: Server) -> None:
    from .server import Server

    if not isinstance(mounted, Server):
        raise TypeError(f"`mount` takes a mcpline.Server, not {mounted!r}")


def with_lifespans(server: Server) -> list[Server]:
    """Return the servers whose lifespan a server runs, in the order in which they are entered: its own first."""
    return [other for other in _with_mounted(server) if other._lifespan is not None]


def waiting_lifespans(server: Server) -> list[Server]:
    """Return the servers whose lifespan a server needs, and which have not entered it."""
    return [
        other
        for other in with_lifespans(server)
        if other._running_lifespan is None or not other._running_lifespan.users
    ]


def attach_if_serving(server: Server) -> None:
    """Give async handlers of a server a loop wherever the server is served without one, itself or as a mounted one."""
    for other in _with_parents(server):
        if other._serving and not other._native.has_loop:
            from . import _loops

            _loops.attach_thread(other)


def _with_mounted(server: Server) -> list[Server]:
    found = [server]
    for other in found:
        found += [mounted for mounted in other._mounted if mounted not in found]
    return found


def _with_parents(server: Server) -> Iterator[Server]:
    yield server
    for parent in server._parents:
        other = parent()
        if other is not None:
            yield from _with_parents(other)
