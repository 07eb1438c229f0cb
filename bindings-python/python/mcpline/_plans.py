"""Plans of handlers: what the native module needs in order to call a function.

A plan contains how to decode arguments, how to pass them, and how to encode the result. It is created when the handler
is registered, so that calls do not inspect signatures.
"""

from __future__ import annotations

import re
import typing
from typing import Any

import msgspec

from . import _annotations, _callables, _json, _native, _results, _schemas, _signatures
from ._arguments import Arguments
from .content import ExtendedResult, InputRequired, ToolResult
from .context import Context, SyncContext
from .errors import McplineError, NotSupported, ResourceNotFound, RpcError, ToolError, UrlElicitationRequired

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from ._signatures import Function, Parameter
    from .server import Server

__all__ = [
    "completion",
    "credential",
    "event",
    "http_client",
    "middleware",
    "prompt",
    "request",
    "resource",
    "resource_list",
    "route",
    "template_variables",
    "tool",
]

# Results that a tool with structured content may return as well.
_SPECIAL = (ToolResult, InputRequired, ExtendedResult)
_LAMBDA = "<lambda>"
_INTERNAL_ERROR = -32603
_INSUFFICIENT_SCOPE = -31001
_VARIABLES = r"\{[+#./;?&]?([^{}]*)\}"


def tool(
    server: Server,
    call: Callable[..., Any],
    *,
    name: str | None,
    description: str | None,
    input_schema: dict[str, Any] | None,
    output_schema: dict[str, Any] | bool | None,
    structured: bool | None,
    inline: bool,
    coerce: bool,
    refuse_unknown: bool,
) -> tuple[_native.Plan, dict[str, Any]]:
    """Plan a tool. Return the plan and the definition."""
    function = _signatures.read(call)
    _results.check_returns(function.returns, function.name)
    try:
        results = _results.ToolResults(function.returns, structured, output_schema)
    except TypeError as error:
        raise TypeError(f"{function.name}: {error}") from None
    name = name or _name(function, "tool")
    definition: dict[str, Any] = {"name": name}
    if text := function.description if description is None else description:
        definition["description"] = text
    if input_schema is not None and _takes_all(function, input_schema):
        fill = _fill_all(function, input_schema)
        definition["inputSchema"] = input_schema
    else:
        # A schema of the author is checked as it is.
        derives = input_schema is None
        arguments = Arguments(
            function,
            coerce=derives and coerce,
            must_match=derives and not coerce,
            refuse_unknown=derives and refuse_unknown,
        )
        fill = _ArgumentBinding(arguments.positional, arguments.keywords, arguments.decode, arguments.recover)
        definition["inputSchema"] = arguments.schema if input_schema is None else input_schema
    if results.schema is not None:
        definition["outputSchema"] = results.schema
    plan = _plan(
        server,
        "tool",
        function,
        fill,
        convert=results.convert,
        encode=results.encode,
        inline=inline,
        fail=_ErrorConverter(name, server).tool,
    )
    return plan, definition


def resource(
    server: Server,
    call: Callable[..., Any],
    uri: str,
    *,
    name: str | None,
    description: str | None,
    mime_type: str | None,
    inline: bool,
) -> tuple[_native.Plan, dict[str, Any]]:
    """Plan a resource or resource template. Return the plan and the definition.

    Raises:
        TypeError: The parameters differ from the variables of the template.
    """
    function = _signatures.read(call)
    _results.check_returns(function.returns, function.name)
    variables = template_variables(uri)
    arguments = Arguments(function, texts=True)
    names = {parameter.key for parameter in arguments.parameters}
    unknown = sorted(names - set(variables))
    if unknown:
        raise TypeError(f"{function.name}: {', '.join(unknown)} is not a variable of {uri}")
    _check_lists(function.name, uri, arguments)
    fill = _ArgumentBinding(arguments.positional, arguments.keywords, arguments.decode, arguments.recover_texts)
    mime_type = mime_type or _mime_type(function.returns)
    definition: dict[str, Any] = {
        "uriTemplate" if variables else "uri": uri,
        "name": name or _resource_name(function, uri),
    }
    if text := function.description if description is None else description:
        definition["description"] = text
    if mime_type is not None:
        definition["mimeType"] = mime_type

    encode_data = _results.data_encoder(function.returns)

    def convert(value: Any, read_uri: str) -> bytes | _native.InputRequiredReply | _native.ExtendedReply:
        return _results.contents(value, read_uri, mime_type, encode_data)

    plan = _plan(
        server,
        "resource",
        function,
        fill,
        convert=convert,
        encode=None,
        inline=inline,
        fail=_ErrorConverter(uri, server).other,
    )
    return plan, definition


def resource_list(server: Server, call: Callable[..., Any], uri: str) -> _native.Plan:
    """Plan the function that lists resources of a template.

    Raises:
        TypeError: The resource is not a template, or the function has parameters.
    """
    if not callable(call):
        raise TypeError(f"resource {uri!r}: `list` must be a function, not {type(call).__name__}")
    if not template_variables(uri):
        raise TypeError(f"resource {uri!r}: only a resource template has a `list`")
    function = _signatures.read(call)
    _results.check_returns(function.returns, function.name)
    if function.parameters:
        names = ", ".join(parameter.name for parameter in function.parameters)
        raise TypeError(f"{function.name}: a list of resources takes no parameter but the context, not {names}")
    return _plan(
        server,
        "resource_list",
        function,
        _ArgumentBinding((), (), None, None),
        convert=_results.resources,
        encode=None,
        inline=False,
        fail=_ErrorConverter(uri, server).other,
    )


def prompt(
    server: Server, call: Callable[..., Any], *, name: str | None, description: str | None, inline: bool
) -> tuple[_native.Plan, dict[str, Any], dict[str, list[str]]]:
    """Plan a prompt. Return the plan, the definition, and the candidates of its arguments."""
    function = _signatures.read(call)
    _results.check_returns(function.returns, function.name)
    arguments = Arguments(function, texts=True)
    fill = _ArgumentBinding(arguments.positional, arguments.keywords, arguments.decode, arguments.recover_texts)
    name = name or _name(function, "prompt")
    definition: dict[str, Any] = {"name": name}
    if text := function.description if description is None else description:
        definition["description"] = text
    listed: list[dict[str, Any]] = []
    candidates: dict[str, list[str]] = {}
    for parameter, schema in zip(arguments.parameters, arguments.properties):
        argument: dict[str, Any] = {"name": parameter.key}
        for key in ("title", "description"):
            if key in schema:
                argument[key] = schema[key]
        argument["required"] = parameter.required
        listed.append(argument)
        if choices := [choice for choice in schema.get("enum", ()) if isinstance(choice, str)]:
            candidates[parameter.key] = choices
    if listed:
        definition["arguments"] = listed
    plan = _plan(
        server,
        "prompt",
        function,
        fill,
        convert=_results.messages,
        encode=None,
        inline=inline,
        fail=_ErrorConverter(name, server).other,
    )
    return plan, definition, candidates


def completion(server: Server, call: Callable[..., Any], *, inline: bool) -> _native.Plan:
    """Plan a completion.

    Raises:
        TypeError: A parameter has an unknown name.
    """
    function = _signatures.read(call)
    known = ("value", "argument", "arguments", "ref")
    unknown = [parameter.name for parameter in function.parameters if parameter.name not in known]
    if unknown:
        raise TypeError(f"{function.name}: a completion takes {', '.join(known)}, not {', '.join(unknown)}")
    positional = tuple(p.name for p in function.parameters if not p.keyword_only)
    keywords = tuple(p.name for p in function.parameters if p.keyword_only)
    decode = msgspec.json.Decoder(_CompleteParams).decode
    fill = _ArgumentBinding(positional, keywords, decode if function.parameters else None, None)
    return _plan(
        server,
        "completion",
        function,
        fill,
        convert=_results.complete,
        encode=None,
        inline=inline,
        fail=_ErrorConverter(function.name, server).other,
    )


def request(
    server: Server, call: Callable[..., Any], method: str, *, params_schema: dict[str, Any] | None, inline: bool
) -> tuple[_native.Plan, dict[str, Any]]:
    """Plan the handler of a custom request. Return the plan and the schema of the parameters."""
    return _method(server, call, method, "request", _results.result_object, params_schema=params_schema, inline=inline)


def notification(
    server: Server, call: Callable[..., Any], method: str, *, params_schema: dict[str, Any] | None, inline: bool
) -> tuple[_native.Plan, dict[str, Any]]:
    """Plan the handler of a custom notification. Return the plan and the schema of the parameters."""
    return _method(server, call, method, "notification", _nothing, params_schema=params_schema, inline=inline)


def _method(
    server: Server,
    call: Callable[..., Any],
    method: str,
    kind: _native.Kind,
    convert: Callable[[Any], Any],
    *,
    params_schema: dict[str, Any] | None,
    inline: bool,
) -> tuple[_native.Plan, dict[str, Any]]:
    function = _signatures.read(call)
    if kind == "request":
        _results.check_returns(function.returns, function.name)
    if params_schema is not None and _takes_all(function, params_schema):
        fill = _fill_all(function, params_schema)
    else:
        arguments = Arguments(function)
        fill = _ArgumentBinding(arguments.positional, arguments.keywords, arguments.decode, arguments.recover)
        params_schema = arguments.schema if params_schema is None else params_schema
    plan = _plan(
        server,
        kind,
        function,
        fill,
        convert=convert,
        encode=None,
        inline=inline,
        fail=_ErrorConverter(method, server).other,
    )
    return plan, params_schema


def event(server: Server, call: Callable[..., Any], *, inline: bool) -> _native.Plan:
    """Plan the handler of an event of a session.

    Raises:
        TypeError: It has parameters other than a context.
    """
    function = _signatures.read(call)
    if function.parameters:
        raise TypeError(f"{function.name}: the handler of an event takes a context or nothing")
    return _plan(
        server,
        "event",
        function,
        _ArgumentBinding((), (), None, None),
        convert=_nothing,
        encode=None,
        inline=inline,
        fail=_ErrorConverter(function.name, server).other,
    )


def route(server: Server, call: Callable[..., Any], path: str, *, inline: bool) -> _native.Plan:
    """Plan the handler of a route.

    Raises:
        TypeError: It has parameters other than the request.
    """
    from . import routes

    name = getattr(call, "__name__", None) or type(call).__name__
    _callables.check_handler(call, name)
    declared = _callables.signature_parameters(call)
    if len(declared) > 1 or any(parameter.stars or parameter.keyword_only for parameter in declared):
        raise TypeError(f"{name}: the handler of a route takes the request, or nothing")
    if declared and _signatures.is_dependency(declared[0].default):
        raise TypeError(f"{name}: routes have no dependencies; the value of the lifespan is `request.lifespan`")
    is_async = _callables.is_async(call)
    if inline and is_async:
        raise TypeError(f"{name}: inline is for sync functions; async ones run on the event loop")
    return _native.Plan(
        kind="route",
        call=call,
        is_async=is_async,
        inline=inline,
        decode=None,
        recover=None,
        positional=(),
        keywords=(),
        context=(0, None) if declared else None,
        context_type=routes.HttpRequest,
        server=server,
        convert=routes.as_parts,
        encode=None,
        special=(),
        fail=_ErrorConverter(path, server).route,
    )


def http_client(server: Server, name: str, call: Callable[[Any], Any], *, is_async: bool) -> _native.Plan:
    """Plan the function of an `ApiRequest` that sends the requests of an imported API."""
    from . import openapi

    return _native.Plan(
        kind="http_client",
        call=call,
        is_async=is_async,
        inline=False,
        decode=None,
        recover=None,
        positional=(),
        keywords=(),
        context=(0, None),
        context_type=openapi.ApiRequest,
        server=server,
        convert=openapi._response_parts,
        encode=None,
        special=(),
        fail=_ErrorConverter(name, server).http_client,
    )


def credential(server: Server, scheme: str, call: Callable[..., Any]) -> _native.Plan:
    """Plan the function that returns the credential for a security scheme of an imported API.

    Raises:
        TypeError: It has parameters other than a context.
    """
    from . import openapi

    function = _signatures.read(call)
    if function.parameters:
        raise TypeError(f"credentials[{scheme!r}]: the function {function.name} takes a context or nothing")
    return _plan(
        server,
        "credential",
        function,
        _ArgumentBinding((), (), None, None),
        convert=openapi._credential_json,
        encode=None,
        inline=False,
        fail=_ErrorConverter(scheme, server).credential,
    )


def middleware(server: Server, call: Callable[..., Any]) -> _native.Plan:
    """Plan the handler of a middleware.

    Raises:
        TypeError: It is not a function of a request and `next`.
    """
    from . import middleware as _middleware

    name = _checked_middleware(call)
    is_async = _callables.is_async(call)
    return _native.Plan(
        kind="middleware",
        call=(_middleware.async_call if is_async else _middleware.sync_call)(name, call),
        is_async=is_async,
        inline=False,
        decode=msgspec.json.Decoder(_middleware.DescribedRequest).decode,
        recover=None,
        positional=("kind", "method", "name", "params"),
        keywords=(),
        context=(0, None),
        context_type=Context if is_async else SyncContext,
        server=server,
        convert=_unchanged,
        encode=None,
        special=(),
        fail=_ErrorConverter(name, server).middleware,
    )


def _checked_middleware(call: Any) -> str:
    """Return the name of a middleware.

    Raises:
        TypeError: See `middleware`.
    """
    if not callable(call):
        raise TypeError(f"a middleware is a function of a request and `next`, not {type(call).__name__}")
    name = getattr(call, "__name__", None) or type(call).__name__
    if isinstance(call, type):
        raise TypeError(f"{name}: a middleware is a function, or an object with `__call__`, not a class")
    _callables.check_handler(call, name)
    declared = _callables.signature_parameters(call)
    if any(_signatures.is_dependency(parameter.default) for parameter in declared):
        raise TypeError(f"{name}: middleware has no dependencies; the context is `request.context`")
    positional = [parameter for parameter in declared if not parameter.keyword_only and not parameter.stars]
    takes_all = any(parameter.stars == "*" for parameter in declared)
    required = sum(parameter.default is _callables.MISSING for parameter in positional)
    keywords = any(parameter.keyword_only and parameter.default is _callables.MISSING for parameter in declared)
    if keywords or required > 2 or (len(positional) < 2 and not takes_all):
        raise TypeError(
            f"{name}: a middleware takes two positional arguments, the request and `next`: "
            f"`async def {name if name.isidentifier() else 'middleware'}(request, next)`"
        )
    return name


def _unchanged(value: Any) -> Any:
    """Return a result that is encoded already."""
    return value


def _nothing(_: Any) -> None:
    """Ignore a result."""


def template_variables(uri: str) -> list[str]:
    """Return the names of the variables of a URI template (RFC 6570); none for a plain URI."""
    names: list[str] = []
    for expression in re.findall(_VARIABLES, uri):
        for variable in expression.split(","):
            names.append(re.sub(r"(\*|:\d+)$", "", variable.strip()))
    return names


def _check_lists(name: str, uri: str, arguments: Arguments) -> None:
    """Check that the parameters of exploded variables take lists.

    Raises:
        TypeError: One takes a single value, which such a variable never has.
    """
    types = dict(zip((parameter.key for parameter in arguments.parameters), arguments.properties))
    for operator, expression in re.findall(r"\{([+#./;?&]?)([^{}]*)\}", uri):
        for variable in re.findall(r"([^,*]+)\*", expression):
            options = types.get(variable, {}).get("anyOf", [types.get(variable, {})])
            if all(option.get("type") in ("string", "integer", "number", "boolean", "null") for option in options):
                path = "" if operator else f"{{+{variable}}} for a path of several segments, or "
                raise TypeError(
                    f"{name}: {{{operator}{variable}*}} is a list in RFC 6570, and the parameter {variable} takes one "
                    f"value: write {path}{variable}: list[str]"
                )


class _ArgumentBinding(typing.NamedTuple):
    """Which parameters receive decoded values, and how."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    decode: Callable[[bytes], Any] | None
    recover: Callable[[bytes, Exception], Any] | None


class _Argument(msgspec.Struct):
    name: str
    value: str


class _Reference(msgspec.Struct):
    type: str
    name: str = ""
    uri: str = ""


class _CompleteContext(msgspec.Struct):
    arguments: dict[str, str] = {}


class _CompleteParams(msgspec.Struct, rename={"asked": "argument", "reference": "ref"}):
    """Parameters of `completion/complete`, under the names that a function may use."""

    asked: _Argument
    reference: _Reference
    context: _CompleteContext = msgspec.field(default_factory=_CompleteContext)

    @property
    def value(self) -> str:
        return self.asked.value

    @property
    def argument(self) -> str:
        return self.asked.name

    @property
    def arguments(self) -> dict[str, str]:
        return self.context.arguments

    @property
    def ref(self) -> str:
        return self.reference.name or self.reference.uri


class _ErrorConverter:
    """Converts exceptions of a handler to errors for the client, and logs them."""

    __slots__ = ("_exposed", "name")

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self._exposed = server._exposed_errors

    def tool(self, error: BaseException) -> _native.Failure:
        if self._is_readable(error):
            return _native.Failure.tool(_encodable(str(error)))
        return self._other(error, f"Error executing tool {self.name}")

    def other(self, error: BaseException) -> _native.Failure:
        if self._is_readable(error):
            return _native.Failure.rpc(_INTERNAL_ERROR, _encodable(str(error)), None)
        return self._other(error, f"Error executing {self.name}")

    def route(self, error: BaseException) -> _native.Failure:
        if isinstance(error, RpcError) and error.code == _INSUFFICIENT_SCOPE:
            return self.other(error)
        # The client gets no text of an exception.
        text = f"Error serving {self.name}"
        if not _is_cancelled(error):
            from logging import getLogger

            getLogger("mcpline").error("%s", text, exc_info=error)
        return _native.Failure.rpc(_INTERNAL_ERROR, text, None)

    def http_client(self, error: BaseException) -> _native.Failure:
        return self._for_tool(error, f"Error in the HTTP client {self.name}")

    def credential(self, error: BaseException) -> _native.Failure:
        return self._for_tool(error, f"Error in the function for the credential {self.name!r}")

    def _for_tool(self, error: BaseException, text: str) -> _native.Failure:
        """Convert an exception of a function that a tool uses."""
        if self._is_readable(error):
            return _native.Failure.tool(_encodable(str(error)))
        return self._other(error, text)

    def middleware(self, error: BaseException) -> _native.Failure:
        if self._is_readable(error):
            # The core makes it a JSON-RPC error if the request calls no tool.
            return _native.Failure.tool(_encodable(str(error)))
        return self._other(error, f"Error executing middleware {self.name}", "the request failed")

    def _other(self, error: BaseException, text: str, sent: str | None = None) -> _native.Failure:
        """Convert an exception whose text is not meant for the model. What is masked is logged as `text`."""
        if isinstance(error, RpcError):
            data = None if error.data is None else _encoded(error.data)
            return _native.Failure.rpc(error.code, _encodable(error.message), data)
        if isinstance(error, NotSupported) and error.required is not None:
            return _native.Failure.unsupported(_json.encode(error.required), _encodable(str(error)))
        if isinstance(error, ResourceNotFound):
            return _native.Failure.resource_not_found(None if error.uri is None else _encodable(str(error.uri)))
        if isinstance(error, UrlElicitationRequired):
            return _native.Failure.url_elicitations([_results.elicitation_params(each) for each in error.elicitations])
        if not _is_cancelled(error):
            from logging import getLogger

            getLogger("mcpline").error("%s", text, exc_info=error)
        return _native.Failure.exception(text if sent is None else sent, _described(error))

    def _is_readable(self, error: BaseException) -> bool:
        """Return whether the text of an exception is meant for the model."""
        if isinstance(error, McplineError):
            return isinstance(error, ToolError) or error._is_for_model
        return isinstance(error, self._exposed)


def _described(error: BaseException) -> str:
    """Return the type of an exception, and its text if it has one."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the author's own method; the client must get an answer
        return name
    return _encodable(f"{name}: {text}" if text else name)


def _encodable(text: str) -> str:
    r"""Return a text that UTF-8 can encode: `\udcff` in place of a lone surrogate, such as one of a file's name."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encoded(data: Any) -> bytes:
    """Encode the data of an error as JSON. Texts in it are made `_encodable`."""
    try:
        return _json.encode(data)
    except UnicodeEncodeError:
        import msgspec

        return _json.encode(_with_encodable_texts(msgspec.to_builtins(data, enc_hook=_json.encode_hook)))


def _with_encodable_texts(data: Any) -> Any:
    if isinstance(data, str):
        return _encodable(data)
    if isinstance(data, dict):
        return {_with_encodable_texts(key): _with_encodable_texts(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_with_encodable_texts(value) for value in data]
    return data


def _is_cancelled(error: BaseException) -> bool:
    import sys

    # It has no attributes yet while another thread imports it.
    cancelled = getattr(sys.modules.get("asyncio"), "CancelledError", None)
    return cancelled is not None and isinstance(error, cancelled)


def _plan(
    server: Server,
    kind: _native.Kind,
    function: Function,
    fill: _ArgumentBinding,
    *,
    convert: Callable[..., Any],
    encode: Callable[[Any], bytes] | None,
    inline: bool,
    fail: Callable[[BaseException], _native.Failure],
) -> _native.Plan:
    if inline and function.is_async:
        raise TypeError(f"{function.name}: inline is for sync functions; async ones run on the event loop")
    call, is_async, context = function.call, function.is_async, function.context
    positional, keywords = fill.positional, fill.keywords
    if function.dependencies:
        from . import _injection

        call, is_async = _injection.injected(function, server, inline=inline)
        context, positional, keywords = (0, None), (), (*positional, *keywords)
    return _native.Plan(
        kind=kind,
        call=call,
        is_async=is_async,
        inline=inline,
        decode=fill.decode,
        recover=fill.recover,
        positional=positional,
        keywords=keywords,
        context=context,
        context_type=Context if is_async else SyncContext,
        server=server,
        convert=convert,
        encode=encode,
        special=_SPECIAL,
        fail=fail,
    )


def _name(function: Function, kind: str) -> str:
    if function.name == _LAMBDA:
        raise TypeError(f"a lambda has no name: give the {kind} one, such as name='{kind}'")
    return function.name


def _resource_name(function: Function, uri: str) -> str:
    return uri if function.name == _LAMBDA else function.name


def _takes_all(function: Function, input_schema: dict[str, Any]) -> bool:
    """Return whether the handler takes all arguments as one mapping, because their names are not parameters."""
    return _parameter_of_all(function, input_schema) is not None


def _parameter_of_all(function: Function, input_schema: dict[str, Any]) -> Parameter | None:
    """Return the parameter that takes all arguments: the only one without a default, and no property of the schema."""
    if any(parameter.name in input_schema.get("properties", {}) for parameter in function.parameters):
        return None
    candidates = [parameter for parameter in function.parameters if parameter.required]
    if len(function.parameters) == 1:
        candidates = function.parameters
    if len(candidates) != 1:
        return None
    annotation = _annotations.strip(candidates[0].annotation)
    is_mapping = annotation is Any or annotation is dict or typing.get_origin(annotation) is dict
    return candidates[0] if is_mapping else None


def _fill_all(function: Function, input_schema: dict[str, Any]) -> _ArgumentBinding:
    parameter = _parameter_of_all(function, input_schema)
    assert parameter is not None
    names, decode = (parameter.name,), _all_decoder(parameter.annotation)
    # Parameters before it have defaults.
    return (
        _ArgumentBinding((), names, decode, None)
        if parameter.keyword_only or parameter is not function.parameters[0]
        else _ArgumentBinding(names, (), decode, None)
    )


def _all_decoder(annotation: Any) -> Callable[[bytes], Any]:
    decoder = msgspec.json.Decoder(annotation)

    def decode(arguments: bytes) -> Any:
        return _WholeArguments(decoder.decode(arguments))

    return decode


class _WholeArguments:
    """All arguments, under the name of the handler's parameter."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        return self.value


def _mime_type(returns: Any) -> str | None:
    """Return the media type of a resource, if its return annotation implies one."""
    if returns is str:
        return "text/plain"
    if returns is _signatures.MISSING or returns is Any or returns is None:
        return None
    return "application/json" if _schemas.is_structured(returns) and not _schemas.includes_text(returns) else None
