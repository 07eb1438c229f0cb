"""Functions that compute the values of dependencies: their signatures, read when a handler is registered."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any

from . import _callables, _signatures

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from .dependencies import Dependency

__all__ = ["DependencyReader", "Dependent", "Provider", "name_of"]


class Provider:
    """A function that computes the value of a dependency."""

    __slots__ = ("call", "context", "dependencies", "is_async", "is_manager", "name", "needs_loop")

    def __init__(
        self,
        call: Callable[..., Any],
        name: str,
        context: str | None,
        dependencies: dict[str, Dependent],
        is_async: bool,
        is_manager: bool,
    ) -> None:
        self.call = call
        """Returns the value, or the context manager that provides it."""
        self.name = name
        self.context = context
        """Name of the parameter for the context."""
        self.dependencies = dependencies
        """Its own dependencies, by parameter."""
        self.is_async = is_async
        """Whether `call` returns an awaitable, or an async context manager."""
        self.is_manager = is_manager
        self.needs_loop: bool = is_async or any(dependent.provider.needs_loop for dependent in dependencies.values())
        """Whether it, or one of its dependencies, is async."""


class Dependent(typing.NamedTuple):
    """A parameter that receives the value of a provider."""

    key: Callable[..., Any]
    """The function that the author wrote, which identifies the value within a call."""
    provider: Provider
    inline: bool


class DependencyReader:
    """Reads functions and their dependencies, each once."""

    def __init__(self) -> None:
        self.known: dict[Callable[..., Any], Provider] = {}
        """What has been read, by function."""
        self._path: list[Callable[..., Any]] = []

    def dependent(self, dependency: Dependency) -> Dependent:
        return Dependent(dependency.call, self.provider(dependency.call), dependency.inline)

    def provider(self, call: Callable[..., Any]) -> Provider:
        known = self.known.get(call)
        if known is not None:
            return known
        if call in self._path:
            circle = [*self._path[self._path.index(call) :], call]
            raise TypeError(f"dependencies depend on each other: {' → '.join(map(name_of, circle))}")
        self._path.append(call)
        provider = self.known[call] = self._read(call)
        self._path.pop()
        return provider

    def _read(self, call: Callable[..., Any]) -> Provider:
        name = name_of(call)
        try:
            declared = _callables.signature_parameters(_signed(call))
        except ValueError as error:
            raise TypeError(f"the dependency {name}: {error}") from None
        is_async, is_manager = _kind(call)
        context: str | None = None
        dependencies: dict[str, Dependent] = {}
        hints = _signatures.parameter_hints(_annotated(call), declared, name)
        for parameter in declared:
            if parameter.stars:
                # Nothing is passed to it.
                continue
            annotation = hints.get(parameter.name, _signatures.MISSING)
            dependency = _signatures.dependency_of(annotation, parameter, name)
            is_context = dependency is None and _signatures.is_context(annotation, parameter.name)
            if dependency is not None:
                dependencies[parameter.name] = self.dependent(dependency)
            elif is_context and context is None:
                _signatures.check_context(annotation, parameter.name, f"the dependency {name}", is_async=is_async)
                context = parameter.name
            elif parameter.default is not _signatures.MISSING:
                continue
            else:
                raise TypeError(
                    f"the dependency {name}: the parameter {parameter.name} has no value: a dependency takes one "
                    "context, other dependencies (`Depends`), and parameters with defaults"
                )
            if parameter.positional_only:
                raise TypeError(f"the dependency {name}: the parameter {parameter.name} must not be positional-only")
        return Provider(call, name, context, dependencies, is_async, is_manager)


def name_of(call: Callable[..., Any]) -> str:
    return getattr(call, "__name__", None) or type(call).__name__


def _annotated(call: Any) -> Any:
    """Return the function that has the annotations of the parameters."""
    return call.__init__ if inspect.isclass(call) else _callables.annotated_function(call)


def _signed(call: Any) -> Any:
    """Return what has the signature of a callable: the method of an object, as a mock looks like a function too."""
    is_object = not inspect.isclass(call) and isinstance(type(call).__call__, types.FunctionType)
    return call.__call__ if is_object else call


def _kind(call: Any) -> tuple[bool, bool]:
    """Return whether a function is async, and whether it provides a context manager or a generator."""
    if inspect.isclass(call):
        if hasattr(call, "__aenter__") and hasattr(call, "__aexit__"):
            return True, True
        return False, hasattr(call, "__enter__") and hasattr(call, "__exit__")
    # A function of contextlib's decorators refers to the generator.
    function = _callables.annotated_function(call)
    if inspect.isasyncgenfunction(function):
        return True, True
    if inspect.isgeneratorfunction(function):
        return False, True
    # A mock of a coroutine function has its code only.
    code = getattr(call, "__code__", None)
    return _callables.is_async(call) or bool(code and code.co_flags & inspect.CO_COROUTINE), False
