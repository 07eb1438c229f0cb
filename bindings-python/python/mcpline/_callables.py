"""Inspection of callables.

Most handlers are plain functions, which can be inspected through their code object. Other callables need `inspect`,
whose import takes longer than the start of a small server.
"""

from __future__ import annotations

import functools
import typing
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MISSING",
    "SignatureParameter",
    "annotated_function",
    "check_handler",
    "docstring",
    "is_async",
    "signature_parameters",
]

_FUNCTION = type(lambda: None)
_VARIABLE_POSITIONAL, _VARIABLE_KEYWORD, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 4, 8, 128, 256, 512


class _Missing:
    """Placeholder of a missing default or annotation."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class SignatureParameter:
    """One parameter of a callable."""

    __slots__ = ("default", "keyword_only", "name", "positional_only", "stars")

    def __init__(
        self,
        name: str,
        default: Any = MISSING,
        keyword_only: bool = False,
        stars: str = "",
        positional_only: bool = False,
    ) -> None:
        self.name = name
        self.default = default
        self.keyword_only = keyword_only
        self.positional_only = positional_only
        self.stars = stars
        """`*` or `**` if it takes all remaining arguments."""


def signature_parameters(call: Callable[..., Any]) -> list[SignatureParameter]:
    """Return the parameters, in order."""
    if not _is_plain(call):
        return _signature_parameters_of_any(call)
    code: Any = call.__code__
    names = iter(code.co_varnames)
    only = code.co_posonlyargcount
    positional = [SignatureParameter(next(names), positional_only=at < only) for at in range(code.co_argcount)]
    defaults = call.__defaults__ or ()
    for slot, default in zip(reversed(positional), reversed(defaults)):
        slot.default = default
    keywords = call.__kwdefaults__ or {}
    keyword_only = [next(names) for _ in range(code.co_kwonlyargcount)]
    found = positional + [
        SignatureParameter(name, keywords.get(name, MISSING), keyword_only=True) for name in keyword_only
    ]
    for flag, stars in ((_VARIABLE_POSITIONAL, "*"), (_VARIABLE_KEYWORD, "**")):
        if code.co_flags & flag:
            found.append(SignatureParameter(next(names), stars=stars))
    return found


def annotated_function(call: Any) -> Any:
    """Return the function that has the annotations."""
    if _is_plain(call):
        return call
    import inspect

    call = _without_partials(call)
    if not inspect.isroutine(call) and not inspect.isclass(call) and not hasattr(call, "__wrapped__"):
        call = type(call).__call__
    return inspect.unwrap(getattr(call, "__func__", call))


def docstring(call: Any) -> str | None:
    """Return the docstring of a function, a method or a callable object."""
    if _is_plain(call):
        return call.__doc__  # type: ignore[no-any-return]
    import inspect

    call = _without_partials(call)
    if inspect.isroutine(call) or hasattr(call, "__wrapped__"):
        return call.__doc__  # type: ignore[no-any-return]
    own = type(call).__call__.__doc__
    return own or type(call).__doc__


def is_async(call: Any) -> bool:
    """Return whether calling it returns a coroutine."""
    if _is_plain(call):
        return _is_coroutine_code(call)
    import inspect

    call = _without_partials(call)
    if inspect.isroutine(call):
        marked = getattr(call, "_is_coroutine", None) is not None
        return marked or inspect.iscoroutinefunction(call) or _is_coroutine_code(call)
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def check_handler(call: Any, name: str) -> None:
    """Check that something can be a handler. `name`: its name, for errors.

    Raises:
        TypeError: It is not callable, a class, or an async generator.
    """
    if not callable(call):
        raise TypeError(f"a handler is a function, not {type(call).__name__}")
    if isinstance(call, type):
        raise TypeError(
            f"{name}: a handler is a function, or an object with `__call__`, not a class: register the methods of "
            f"an object, such as server.add_tool({name}(…).method)"
        )
    if _is_async_generator(call):
        raise TypeError(
            f"{name}: a handler returns its result at once, so it can't be an async generator: return a list, and "
            "report what happens meanwhile with `await ctx.progress(…)`"
        )


def _is_async_generator(call: Any) -> bool:
    call = _without_partials(call)
    if not hasattr(call, "__code__"):
        call = getattr(call, "__func__", None) or type(call).__call__
    code = getattr(call, "__code__", None)
    return code is not None and bool(code.co_flags & _ASYNC_GENERATOR)


def _is_plain(call: Any) -> bool:
    # A function can only look like another one, or like a coroutine function, through its attributes.
    return type(call) is _FUNCTION and not call.__dict__


def _is_coroutine_code(call: Any) -> bool:
    code = getattr(call, "__code__", None)
    return code is not None and bool(code.co_flags & (_COROUTINE | _ITERABLE_COROUTINE))


def _without_partials(call: Any) -> Any:
    while isinstance(call, functools.partial):
        call = call.func
    return call


def _signature_parameters_of_any(call: Callable[..., Any]) -> list[SignatureParameter]:
    import inspect

    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        SignatureParameter(
            parameter.name,
            MISSING if parameter.default is parameter.empty else parameter.default,
            parameter.kind is parameter.KEYWORD_ONLY,
            stars.get(parameter.kind, ""),
            parameter.kind is parameter.POSITIONAL_ONLY,
        )
        for parameter in inspect.signature(call).parameters.values()
    ]
