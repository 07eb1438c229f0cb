"""Signatures of handlers: parameters with types, defaults and descriptions, and the return annotation."""

from __future__ import annotations

import sys
import typing
from typing import Any

from . import _annotations, _callables, _docstrings
from ._callables import MISSING

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from ._callables import SignatureParameter
    from .dependencies import Dependency

__all__ = [
    "MISSING",
    "Function",
    "Parameter",
    "caller_locals",
    "check_context",
    "dependency_of",
    "is_context",
    "parameter_hints",
    "read",
]


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

    __slots__ = (
        "call",
        "context",
        "context_name",
        "dependencies",
        "description",
        "has_positional_only",
        "is_async",
        "name",
        "parameters",
        "returns",
    )

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
        self.context_name: str | None = None
        self.dependencies: dict[str, Dependency] = {}
        """Parameters for the values of dependencies, by name."""
        self.has_positional_only = False
        self.returns = returns
        self.is_async = is_async


def read(call: Callable[..., Any]) -> Function:
    """Read a handler's signature, annotations and docstring.

    Raises:
        TypeError: A parameter cannot be filled from a request, or an annotation cannot be resolved.
    """
    name = getattr(call, "__name__", None) or type(call).__name__
    _callables.check_handler(call, name)
    is_async = _callables.is_async(call)
    declared = _callables.signature_parameters(call)
    hints = parameter_hints(_callables.annotated_function(call), declared, name, "return")
    description, texts = _docstrings.read(_callables.docstring(call))
    parameters: list[Parameter] = []
    context: tuple[int, str | None] | None = None
    context_name: str | None = None
    dependencies: dict[str, Dependency] = {}
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
        if _annotations.is_foreign_dependency(parameter.default):
            raise TypeError(
                f"{name}: the parameter {parameter.name} has the default {parameter.default!r}: "
                f"{_annotations.FOREIGN_DEPENDENCY}"
            )
        dependency = dependency_of(annotation, parameter, name)
        if dependency is not None:
            dependencies[parameter.name] = dependency
        elif is_context(annotation, parameter.name):
            if context is not None:
                raise TypeError(f"{name}: more than one parameter takes the context")
            check_context(annotation, parameter.name, name, is_async=is_async)
            context = (position, parameter.name if parameter.keyword_only else None)
            context_name = parameter.name
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
    function = Function(call, name, description, parameters, context, returns, is_async)
    if dependencies:
        function.context_name = context_name
        function.dependencies = dependencies
        function.has_positional_only = any(parameter.positional_only for parameter in declared)
    return function


def parameter_hints(target: Any, declared: list[SignatureParameter], name: str, *others: str) -> dict[str, Any]:
    """Return the annotations of the parameters of a function, resolved, and `others`.

    An annotation that cannot be resolved is left out if nothing depends on it: that of a parameter whose default is a
    dependency.

    Raises:
        TypeError: Another annotation cannot be resolved.
    """
    needed = {parameter.name for parameter in declared if not is_dependency(parameter.default)}
    return _hints(target, needed.union(others), name)


def _hints(target: Any, needed: set[str], name: str) -> dict[str, Any]:
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
            if isinstance(annotation, str) and (context := _named_context(annotation)) is not None:
                hints[key] = context
            elif key in needed:
                raise TypeError(f"{name}: the annotation {annotation!r} of {key} can't be resolved: {error}") from None
    return hints


def _resolved(annotations: dict[str, Any], target: Any, names: dict[str, Any] | None) -> dict[str, Any]:
    """Resolve annotations like those of a class: for functions, Python 3.10 adds None to those with that default."""
    holder = type("_Holder", (), {"__annotations__": annotations})
    scope = getattr(target, "__globals__", {})
    return typing.get_type_hints(holder, globalns=scope, localns=names, include_extras=True)


def _local_names(target: Any) -> dict[str, Any]:
    """Return the local variables of the functions that enclose a handler."""
    names = caller_locals(getattr(target, "__globals__", None))
    code = getattr(target, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(target, "__closure__", None) or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def caller_locals(scope: dict[str, Any] | None) -> dict[str, Any]:
    """Return the local variables of the running functions of a module. `scope`: the module's globals."""
    names: dict[str, Any] = {}
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is scope:
            names = {**frame.f_locals, **names}
        frame = frame.f_back  # type: ignore[assignment]
    return names


def _named_context(annotation: str) -> type | None:
    """Return the class of contexts that an annotation names, if it names one."""
    from .context import Context, SyncContext

    name = annotation.replace(" ", "").partition("|")[0].partition("[")[0]
    classes: dict[str, type] = {"Context": Context, "SyncContext": SyncContext}
    return classes.get(name.rpartition(".")[2])


def dependency_of(annotation: Any, parameter: SignatureParameter, name: str) -> Dependency | None:
    """Return the dependency that fills a parameter: its default, or metadata of its annotation; `None` without one.

    Raises:
        TypeError: The parameter has a dependency and a default, or a dependency within its type.
    """
    # Until the module of dependencies is imported, there are none.
    if f"{__package__}.dependencies" not in sys.modules:
        return None
    metadata: list[Any] = []
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *items = typing.get_args(annotation)
        metadata = [item for item in items if is_dependency(item)]
    if _has_dependency(annotation):
        raise TypeError(
            f"{name}: the parameter {parameter.name} has a dependency within its type: write "
            f"{parameter.name}: Annotated[…, Depends(…)], with the whole type inside of `Annotated`"
        )
    if not metadata:
        return parameter.default if is_dependency(parameter.default) else None
    if len(metadata) > 1 or parameter.default is not MISSING:
        raise TypeError(f"{name}: the parameter {parameter.name} has a dependency and another one, or a default")
    found: Dependency = metadata[0]
    return found


def _has_dependency(annotation: Any) -> bool:
    """Return whether a dependency is somewhere within a type."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return False
    return any(is_dependency(each) or _has_dependency(each) for each in arguments)


def is_dependency(value: Any) -> bool:
    """Return whether a default value, or a part of an annotation, is a dependency."""
    module = sys.modules.get(f"{__package__}.dependencies")
    return module is not None and isinstance(value, module.Dependency)


def is_context(annotation: Any, name: str) -> bool:
    """Return whether a parameter receives the context: by its type, or without a type by its name."""
    if annotation is MISSING:
        return name == "ctx"
    return bool(_context_classes(annotation))


def check_context(annotation: Any, parameter: str, name: str, *, is_async: bool) -> None:
    """Check the type of a parameter that takes the context.

    Raises:
        TypeError: It is a `SyncContext` in an async function, whose context has async methods.
    """
    if not is_async or annotation is MISSING:
        return
    from .context import Context

    classes = _context_classes(annotation)
    if not any(issubclass(each, Context) for each in classes):
        raise TypeError(
            f"{name}: an async function gets a `Context`, not a `SyncContext`: write {parameter}: Context, and await "
            "its methods"
        )


def _context_classes(annotation: Any) -> list[type]:
    """Return the classes of contexts in an annotation."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    # Until the module of the contexts is imported, no annotation can be one of its classes.
    module = sys.modules.get(f"{__package__}.context")
    if module is None:
        return []
    classes = (module.Context, module.SyncContext)
    options = typing.get_args(annotation) if _annotations.is_union(annotation) else (annotation,)
    # `Context[State]` is an alias, whose origin is the class.
    found = [typing.get_origin(option) or option for option in options]
    return [option for option in found if isinstance(option, type) and issubclass(option, classes)]
