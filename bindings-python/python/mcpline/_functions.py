"""What a handler is, told from its signature: parameters with types, defaults and texts, and what it returns."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from typing import Any

from . import _docstrings

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MISSING", "Function", "Parameter", "read"]

MISSING: Any = inspect.Parameter.empty
_ASYNC_FLAGS = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE


class Parameter:
    """One parameter that is filled from the request."""

    __slots__ = ("annotation", "default", "description", "keyword_only", "name")

    def __init__(self, name: str, annotation: Any, default: Any, description: str, keyword_only: bool) -> None:
        self.name = name
        self.annotation = annotation
        self.default = default
        self.description = description
        self.keyword_only = keyword_only

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING


class Function:
    """A handler and what is known of it."""

    __slots__ = ("call", "context", "description", "is_async", "name", "parameters", "returns")

    def __init__(
        self,
        call: Callable[..., Any],
        name: str,
        description: str,
        parameters: list[Parameter],
        context: tuple[int, str | None] | None,
        returns: Any,
        is_async: bool,
    ) -> None:
        self.call = call
        self.name = name
        self.description = description
        self.parameters = parameters
        self.context = context
        """Where the context goes: a position, or a keyword."""
        self.returns = returns
        self.is_async = is_async


def read(call: Callable[..., Any]) -> Function:
    """Read a handler's signature, annotations and docstring.

    Raises:
        TypeError: a parameter can't be filled from a request, or an annotation can't be resolved.
    """
    name = getattr(call, "__name__", None) or type(call).__name__
    target = _annotated(call)
    signature = inspect.signature(call)
    hints = _hints(target, signature, name)
    description, texts = _docstrings.read(_docstring(call))
    parameters: list[Parameter] = []
    context: tuple[int, str | None] | None = None
    position = 0
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{name}: the parameter {parameter} has no fixed name and type; "
                "take a dict, or give the schema of the arguments with input_schema="
            )
        keyword_only = parameter.kind is parameter.KEYWORD_ONLY
        annotation = hints.get(parameter.name, MISSING)
        if _is_context(annotation, parameter.name):
            if context is not None:
                raise TypeError(f"{name}: more than one parameter takes the context")
            context = (position, parameter.name if keyword_only else None)
        else:
            parameters.append(
                Parameter(
                    parameter.name,
                    Any if annotation is MISSING else annotation,
                    parameter.default,
                    texts.get(parameter.name, ""),
                    keyword_only,
                )
            )
        if not keyword_only:
            position += 1
    return Function(call, name, description, parameters, context, hints.get("return", MISSING), _is_async(call))


def _annotated(call: Any) -> Any:
    """The function that has the annotations."""
    while isinstance(call, functools.partial):
        call = call.func
    if not inspect.isroutine(call) and not inspect.isclass(call):
        call = type(call).__call__
    return inspect.unwrap(getattr(call, "__func__", call))


def _docstring(call: Any) -> str | None:
    while isinstance(call, functools.partial):
        call = call.func
    if inspect.isroutine(call):
        return call.__doc__
    own = type(call).__call__.__doc__
    return own or type(call).__doc__


def _is_async(call: Any) -> bool:
    while isinstance(call, functools.partial):
        call = call.func
    if inspect.isroutine(call):
        return inspect.iscoroutinefunction(call) or _coroutine_code(call)
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def _coroutine_code(call: Any) -> bool:
    """Whether it is a generator turned coroutine, or marked as `asyncio.iscoroutinefunction` would tell."""
    code = getattr(call, "__code__", None)
    return bool(code is not None and code.co_flags & _ASYNC_FLAGS) or getattr(call, "_is_coroutine", None) is not None


def _hints(target: Any, signature: inspect.Signature, name: str) -> dict[str, Any]:
    annotations: dict[str, Any] = getattr(target, "__annotations__", {})
    try:
        return _resolved(annotations, target, None)
    except NameError:
        pass
    # Annotations that are text may name what only the surrounding functions know: then look there.
    names = _surroundings(target)
    hints: dict[str, Any] = {}
    for key, annotation in annotations.items():
        try:
            hints.update(_resolved({key: annotation}, target, names))
        except NameError as error:
            # A context imported for type checkers alone still is one.
            if isinstance(annotation, str) and _names_context(annotation):
                hints[key] = _context_types()[0]
            elif key == "return" or key in signature.parameters:
                raise TypeError(f"{name}: the annotation {annotation!r} of {key} can't be resolved: {error}") from None
    return hints


def _resolved(annotations: dict[str, Any], target: Any, names: dict[str, Any] | None) -> dict[str, Any]:
    """Resolve annotations as those of a class: of a function, Python 3.10 adds None to those with that default."""
    holder = type("_Holder", (), {"__annotations__": annotations})
    scope = getattr(target, "__globals__", {})
    return typing.get_type_hints(holder, globalns=scope, localns=names, include_extras=True)


def _surroundings(target: Any) -> dict[str, Any]:
    """What the functions around a handler know, as far as they are running: those of its module."""
    names: dict[str, Any] = {}
    scope = getattr(target, "__globals__", None)
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is scope:
            names = {**frame.f_locals, **names}
        frame = frame.f_back  # type: ignore[assignment]
    code = getattr(target, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(target, "__closure__", None) or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def _context_types() -> tuple[type, ...]:
    from .context import Context, SyncContext

    return (Context, SyncContext)


def _names_context(annotation: str) -> bool:
    return annotation.replace(" ", "").split("|")[0].rpartition(".")[2] in ("Context", "SyncContext")


def _is_context(annotation: Any, name: str) -> bool:
    if annotation is MISSING:
        return name == "ctx"
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    # Until somebody imported the context's module, no annotation can be one of its classes.
    module = sys.modules.get(f"{__package__}.context")
    if module is None:
        return False
    classes = (module.Context, module.SyncContext)
    options = typing.get_args(annotation) or (annotation,)
    return any(isinstance(option, type) and issubclass(option, classes) for option in options)
