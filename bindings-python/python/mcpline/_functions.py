"""Signatures of handlers: parameters with types, defaults and descriptions, and the return annotation."""

from __future__ import annotations

import sys
import typing
from typing import Any

from . import _callables, _docstrings
from ._callables import MISSING

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MISSING", "Function", "Parameter", "read", "surroundings"]


class Parameter:
    """A parameter that is filled from the request."""

    __slots__ = ("annotation", "default", "description", "key", "keyword_only", "name")

    def __init__(self, name: str, annotation: Any, default: Any, description: str, keyword_only: bool) -> None:
        self.name = name
        self.key = name
        """The name of the argument in JSON."""
        self.annotation = annotation
        self.default = default
        self.description = description
        self.keyword_only = keyword_only

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING


class Function:
    """A handler and its signature."""

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
        """Parameter for the context: a position, or a keyword."""
        self.returns = returns
        self.is_async = is_async


def read(call: Callable[..., Any]) -> Function:
    """Read a handler's signature, annotations and docstring.

    Raises:
        TypeError: A parameter cannot be filled from a request, or an annotation cannot be resolved.
    """
    name = getattr(call, "__name__", None) or type(call).__name__
    declared = _callables.signature_parameters(call)
    hints = _hints(_callables.annotated_function(call), {parameter.name for parameter in declared}, name)
    description, texts = _docstrings.read(_callables.docstring(call))
    parameters: list[Parameter] = []
    context: tuple[int, str | None] | None = None
    position = 0
    for parameter in declared:
        if parameter.stars:
            raise TypeError(
                f"{name}: the parameter {parameter.stars}{parameter.name} has no fixed name and type; "
                "take a dict, or give the schema of the arguments with input_schema="
            )
        annotation = hints.get(parameter.name, MISSING)
        if parameter.name in ("self", "cls") and parameter is declared[0] and annotation is MISSING:
            raise TypeError(
                f"{getattr(call, '__qualname__', name)} is not bound to an object, so {parameter.name} has no value: "
                "register the method of an object"
            )
        if _is_context(annotation, parameter.name):
            if context is not None:
                raise TypeError(f"{name}: more than one parameter takes the context")
            context = (position, parameter.name if parameter.keyword_only else None)
        else:
            parameters.append(
                Parameter(
                    parameter.name,
                    Any if annotation is MISSING else annotation,
                    parameter.default,
                    texts.get(parameter.name, ""),
                    parameter.keyword_only,
                )
            )
        if not parameter.keyword_only:
            position += 1
    returns = hints.get("return", MISSING)
    return Function(call, name, description, parameters, context, returns, _callables.is_async(call))


def _hints(target: Any, parameters: set[str], name: str) -> dict[str, Any]:
    annotations: dict[str, Any] = getattr(target, "__annotations__", {})
    try:
        return _resolved(annotations, target, None)
    except NameError:
        pass
    # String annotations may name local variables of the enclosing functions.
    names = _local_names(target)
    hints: dict[str, Any] = {}
    for key, annotation in annotations.items():
        try:
            hints.update(_resolved({key: annotation}, target, names))
        except NameError as error:
            # A context that is imported only for type checkers counts as well.
            if isinstance(annotation, str) and _names_context(annotation):
                hints[key] = _context_types()[0]
            elif key == "return" or key in parameters:
                raise TypeError(f"{name}: the annotation {annotation!r} of {key} can't be resolved: {error}") from None
    return hints


def _resolved(annotations: dict[str, Any], target: Any, names: dict[str, Any] | None) -> dict[str, Any]:
    """Resolve annotations like those of a class: for functions, Python 3.10 adds None to those with that default."""
    holder = type("_Holder", (), {"__annotations__": annotations})
    scope = getattr(target, "__globals__", {})
    return typing.get_type_hints(holder, globalns=scope, localns=names, include_extras=True)


def _local_names(target: Any) -> dict[str, Any]:
    """Return the local variables of the functions that enclose a handler."""
    names = surroundings(getattr(target, "__globals__", None))
    code = getattr(target, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(target, "__closure__", None) or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def surroundings(scope: dict[str, Any] | None) -> dict[str, Any]:
    """Return the local variables of the running functions of a module. `scope`: the module's globals."""
    names: dict[str, Any] = {}
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is scope:
            names = {**frame.f_locals, **names}
        frame = frame.f_back  # type: ignore[assignment]
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
    # Until the module of the contexts is imported, no annotation can be one of its classes.
    module = sys.modules.get(f"{__package__}.context")
    if module is None:
        return False
    classes = (module.Context, module.SyncContext)
    options = typing.get_args(annotation) or (annotation,)
    return any(isinstance(option, type) and issubclass(option, classes) for option in options)
