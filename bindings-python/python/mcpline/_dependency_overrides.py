"""Replacement of dependencies in tests; see `Server.override_dependencies`."""

from __future__ import annotations

import typing
from typing import Any

from ._dependency_providers import DependencyReader, Provider, name_of
from .errors import UsageError

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .server import Server

    Replacements = Mapping[Callable[..., Any], Provider]

__all__ = ["Override"]


class Override:
    """Replaces dependencies of a server while it is entered; see `Server.override_dependencies`."""

    def __init__(self, server: Server, replacements: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        """Read the replacements.

        Raises:
            TypeError: A replacement has a signature that cannot be filled.
            UsageError: No handler depends on an original; or a replacement is async, but the original is not.
        """
        self._server = server
        reader = DependencyReader()
        self._providers = {original: reader.provider(call) for original, call in replacements.items()}
        self._known = {*reader.known}
        known = server._dependencies.union(*(override._known for override in server._overrides))
        for original, provider in self._providers.items():
            if original not in known:
                raise UsageError(
                    f"override_dependencies: no handler of this server depends on {name_of(original)}; give the "
                    "function that is in `Depends(…)`"
                )
            if provider.needs_loop and not DependencyReader().provider(original).needs_loop:
                raise UsageError(
                    f"override_dependencies: {provider.name} is async or has async dependencies, but "
                    f"{name_of(original)} runs on the threads of sync handlers: replace it by a sync function"
                )

    def __enter__(self) -> None:
        _check_circles({**self._server._replacements, **self._providers})
        self._server._overrides.append(self)
        self._merge()

    def __exit__(self, *_: object) -> None:
        # Blocks may end in any order.
        self._server._overrides.remove(self)
        self._merge()

    def _merge(self) -> None:
        merged: dict[Callable[..., Any], Provider] = {}
        for override in self._server._overrides:
            merged.update(override._providers)
        # Replaced at once: calls on other threads read it.
        self._server._replacements = merged


def _check_circles(replacements: Replacements) -> None:
    """Check that no replacement depends on itself.

    Raises:
        UsageError: One does.
    """
    done: set[Callable[..., Any]] = set()

    def visit(key: Callable[..., Any], provider: Provider, path: tuple[Callable[..., Any], ...]) -> None:
        if key in path:
            circle = " → ".join(map(name_of, (*path[path.index(key) :], key)))
            raise UsageError(f"override_dependencies: the replaced dependencies depend on each other: {circle}")
        if key in done:
            return
        for dependent in provider.dependencies.values():
            visit(dependent.key, replacements.get(dependent.key, dependent.provider), (*path, key))
        done.add(key)

    for key, provider in replacements.items():
        visit(key, provider, ())
