"""Registration of a server's tools, resources, prompts and completions, as decorators and as methods `add_…`.

`Server` inherits these methods. `_plans.py` reads the functions, `_feature_checks.py` checks the other arguments.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal, TypeVar, overload

    from ._native import Server as NativeServer
    from .content import Annotations, Icon, ToolAnnotations

    F = TypeVar("F", bound=Callable[..., Any])
    UnknownArguments = Literal["refuse", "ignore"]
else:

    def overload(function):
        """Mark an overload like `typing.overload`, without importing typing."""
        return function


__all__ = ["FeatureRegistration"]


class FeatureRegistration:
    """The methods of `Server` that register and remove tools, resources, prompts and completions."""

    _native: NativeServer
    _coerce: bool
    _unknown_arguments: UnknownArguments

    # Tools

    @overload
    def tool(self, call: F, /) -> F: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | bool | None = None,
        structured: bool | None = None,
        coerce: bool | None = None,
        unknown_arguments: UnknownArguments | None = None,
        inline: bool = False,
        run_once: bool = False,
        timeout: float | None = None,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | bool | None = None,
        structured: bool | None = None,
        coerce: bool | None = None,
        unknown_arguments: UnknownArguments | None = None,
        inline: bool = False,
        run_once: bool = False,
        timeout: float | None = None,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def tool(self, call: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool: `@server.tool`, or `@server.tool("name", …)` with options (`server/tools`).

        The parameters of the function are the tool's arguments. A parameter of type `Context` (in an async function) or
        `SyncContext` (in a sync function) receives the context of the request.

        Args:
            call: The function; or the name of the tool, if it differs from the function's.
            title: Display name.
            description: Description for the model. Default: the docstring.
            annotations: Hints about the tool's behaviour.
            icons: Icons to display.
            meta: `_meta` of the definition.
            input_schema: JSON Schema of the arguments. Default: derived from the parameters. A function whose only
                parameter is not a property of the schema receives all arguments as a dict.
            output_schema: JSON Schema of the structured content. Default: derived from the return annotation. `False`
                for none; `True` to raise an error if none can be derived.
            structured: Whether results are structured content. Default: derived from the return annotation.
            coerce: Convert arguments that have another JSON type than their parameter, such as `"5"` for a number.
                Without effect if `input_schema` is given. Default: the server's `coerce`.
            unknown_arguments: `"refuse"` or `"ignore"` arguments that are not parameters. Without effect if
                `input_schema` is given. Default: the server's `unknown_arguments`.
            inline: Run a sync function on the I/O thread instead of a worker thread. This is much faster, but the
                function blocks every client while it runs: use it only for functions that return at once.
            run_once: Never run the handler twice for one request. A retry that reaches another process is refused
                instead of replayed (2026-07-28).
            timeout: How many seconds a call may take. When they are over, the client gets a tool error that says so,
                and the function is cancelled as if the client had cancelled the request: an async function by
                `asyncio.CancelledError`; a sync function goes on unless it checks `ctx.cancelled`, and its result is
                dropped. The time in which the function waits for a worker thread counts; the time in which one of its
                input requests is open (`ctx.elicit`, …) does not. Default: no limit.
            rate: Rate limit for all clients together: calls per second, and burst size. Default: the server's
                `tool_rate`.
            scopes: Scopes that a caller over HTTP needs, all of them. The tool is hidden from other callers, and their
                calls are refused with the missing scopes. See `mcpline.auth`.
            tags: Words by which `enable` and `disable` select the tool. They are not sent to clients.
        """
        if isinstance(call, str):
            options["name"], call = call, None
        _check_options("tool", options, self.add_tool, FeatureRegistration.add_tool)
        if call is not None:
            self.add_tool(call, **options)
            return call

        def decorate(function: F) -> F:
            self.add_tool(function, **options)
            return function

        return decorate

    def add_tool(
        self,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | bool | None = None,
        structured: bool | None = None,
        coerce: bool | None = None,
        unknown_arguments: UnknownArguments | None = None,
        inline: bool = False,
        run_once: bool = False,
        timeout: float | None = None,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> None:
        """Register a function as a tool; see `tool`.

        Connected clients are notified (`notifications/tools/list_changed`).

        Raises:
            TypeError: The signature is not supported.
            UsageError: The name is taken, or a schema is invalid.
        """
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        plan, definition = _plans.tool(
            server,
            call,
            name=name,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            structured=structured,
            inline=inline,
            coerce=self._coerce if coerce is None else coerce,
            refuse_unknown=(
                self._unknown_arguments
                if unknown_arguments is None
                else _feature_checks.checked_unknown_arguments(unknown_arguments)
            )
            == "refuse",
        )
        _feature_checks.check_annotations(f"tool {definition['name']!r}", annotations, "ToolAnnotations")
        _registrations.extend(definition, title=title, annotations=annotations, icons=icons, meta=meta)
        _feature_checks.check_definition(f"tool {definition['name']!r}", definition)
        options = {
            "decodes_itself": input_schema is None,
            "run_once": run_once,
            "timeout": _feature_checks.checked_timeout(definition["name"], timeout),
            "rate": rate,
            "scopes": _feature_checks.texts("scopes", scopes),
            "tags": _feature_checks.texts("tags", tags),
        }
        _registrations.add(server, plan, definition, options)

    def remove_tool(self, name: str) -> bool:
        """Remove a tool and notify clients (`notifications/tools/list_changed`). Return whether the tool was
        registered.
        """
        return self._native.remove_feature("tool", name)

    # Resources

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
        unchecked_variables: Iterable[str] = (),
        cache: tuple[int, bool] | None = None,
        list: Callable[..., Any] | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a resource, or as a resource template (`server/resources`).

        The function returns the contents: text, bytes, `ResourceContents`, or a list of `ResourceContents`. Any other
        value is written as JSON.

        Args:
            uri: URI of the resource; or a URI template (RFC 6570) whose variables are the parameters of the function.
            name: Name for programs. Default: the name of the function.
            title: Display name.
            description: Description. Default: the docstring.
            mime_type: Media type of the contents. Default for strings: `text/plain`.
            size: Size of the contents in bytes.
            annotations: Audience, priority and time of the last change.
            icons: Icons to display.
            meta: `_meta` of the definition.
            inline: See `tool`.
            scopes: See `tool`.
            tags: See `tool`.
            unchecked_variables: Variables of a template that may have any value. A URI in which another variable
                contains a `..` segment, an absolute path or the character NUL is answered with an error, and the
                function is not called: joined to a directory, such a value names a file outside of it.
            cache: Cache hints of the contents (2026-07-28): lifetime in milliseconds, and whether shared caches may
                store them. With `scopes`, they may not. Default: `resource_cache` of the server.
            list: A function that lists resources of a template, with the context or without parameters. It returns
                URIs, `Resource` objects or mappings, which follow the registered resources in `resources/list`, on its
                last page. Those that do not match the template, or that are registered, are left out. It is called for
                each request of a client that may use the template; its error is that of the request. Call
                `notify_resource_list_changed` when its result changes.
        """

        def decorate(function: F) -> F:
            self.add_resource(
                uri,
                function,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                size=size,
                annotations=annotations,
                icons=icons,
                meta=meta,
                inline=inline,
                scopes=scopes,
                tags=tags,
                unchecked_variables=unchecked_variables,
                cache=cache,
                list=list,
            )
            return function

        return decorate

    def add_resource(
        self,
        uri: str,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
        unchecked_variables: Iterable[str] = (),
        cache: tuple[int, bool] | None = None,
        list: Callable[..., Any] | None = None,
    ) -> None:
        """Register a function as a resource or resource template; see `resource`.

        Connected clients are notified (`notifications/resources/list_changed`).

        Raises:
            TypeError: The parameters differ from the variables of the template, or `list` has parameters or is for a
                resource that is not a template.
            UsageError: The URI is taken, or the template is invalid or lacks one of `unchecked_variables`.
        """
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        plan, definition = _plans.resource(
            server, call, uri, name=name, description=description, mime_type=mime_type, inline=inline
        )
        list_plan = None if list is None else _plans.resource_list(server, list, uri)
        _feature_checks.check_annotations(f"resource {uri!r}", annotations, "Annotations")
        _registrations.extend(definition, title=title, size=size, annotations=annotations, icons=icons, meta=meta)
        _feature_checks.check_definition(f"resource {uri!r}", definition)
        options: dict[str, Any] = {
            "scopes": _feature_checks.texts("scopes", scopes),
            "tags": _feature_checks.texts("tags", tags),
            "unchecked_variables": _feature_checks.texts("unchecked_variables", unchecked_variables),
            "cache": cache,
        }
        _registrations.add(server, plan, definition, options)
        if list_plan is not None:
            _registrations.add(server, list_plan, {"uri_template": uri})

    def remove_resource(self, uri: str) -> bool:
        """Remove a resource or template and notify clients. Return whether it was registered."""
        return self._native.remove_feature("resource", uri)

    # Prompts

    @overload
    def prompt(self, call: F, /) -> F: ...

    @overload
    def prompt(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def prompt(self, call: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt: `@server.prompt`, or `@server.prompt("name", …)` with options
        (`server/prompts`).

        The function returns a string, a content block, a `Message`, or a list of these.

        Args:
            call: The function; or the name of the prompt, if it differs from the function's.
            title: Display name.
            description: Description. Default: the docstring.
            icons: Icons to display.
            meta: `_meta` of the definition.
            inline: See `tool`.
            scopes: See `tool`.
            tags: See `tool`.
        """
        if isinstance(call, str):
            options["name"], call = call, None
        _check_options("prompt", options, self.add_prompt, FeatureRegistration.add_prompt)
        if call is not None:
            self.add_prompt(call, **options)
            return call

        def decorate(function: F) -> F:
            self.add_prompt(function, **options)
            return function

        return decorate

    def add_prompt(
        self,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> None:
        """Register a function as a prompt; see `prompt`.

        Connected clients are notified (`notifications/prompts/list_changed`).

        Raises:
            TypeError: The signature is not supported.
            UsageError: The name is taken.
        """
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        plan, definition, candidates = _plans.prompt(server, call, name=name, description=description, inline=inline)
        _registrations.extend(definition, title=title, icons=icons, meta=meta)
        _feature_checks.check_definition(f"prompt {definition['name']!r}", definition)
        _registrations.add(
            server,
            plan,
            definition,
            {"scopes": _feature_checks.texts("scopes", scopes), "tags": _feature_checks.texts("tags", tags)},
        )
        for argument, values in candidates.items():
            self._native.add_candidates(definition["name"], argument, values)

    def remove_prompt(self, name: str) -> bool:
        """Remove a prompt and notify clients (`notifications/prompts/list_changed`). Return whether the prompt was
        registered.
        """
        return self._native.remove_feature("prompt", name)

    # Completion

    @overload
    def completion(self, call: F, /) -> F: ...

    @overload
    def completion(
        self,
        call: None = None,
        /,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        argument: str | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]: ...

    def completion(self, call: Any = None, /, **options: Any) -> Any:
        """Register a function that completes arguments: `@server.completion(prompt="…", argument="…")`.

        The function may have these parameters: `value` (the text typed so far), `argument` (the name of the argument),
        `arguments` (the other arguments given so far) and `ref` (the name of the prompt, or the URI template). It
        returns the candidates, best first (`server/utilities/completion`).

        Args:
            call: A function that completes all arguments without a completion of their own.
            prompt: Name of the prompt that has the argument.
            resource: URI template that has the variable.
            argument: Name of the argument or variable.
            inline: See `tool`.
        """
        if call is not None:
            self.add_completion(call)
            return call

        def decorate(function: F) -> F:
            self.add_completion(function, **options)
            return function

        return decorate

    def add_completion(
        self,
        call: Callable[..., Any] | Sequence[str],
        *,
        prompt: str | None = None,
        resource: str | None = None,
        argument: str | None = None,
        inline: bool = False,
    ) -> None:
        """Register a completion: a function, or a list of candidates that is ranked by the text typed so far; see
        `completion`.

        Raises:
            TypeError: `prompt`, `resource` and `argument` do not name one argument.
        """
        reference = prompt if prompt is not None else resource
        if (reference is None) != (argument is None) or (prompt is not None and resource is not None):
            raise TypeError("a completion needs `argument` and one of `prompt` and `resource`, or none of these")
        if not callable(call):
            if reference is None or argument is None:
                raise TypeError("a list of candidates needs `argument`, and `prompt` or `resource`")
            self._native.add_candidates(reference, argument, list(call))
            return
        from . import _plans, _registrations

        server = _registrations.server_of(self)
        plan = _plans.completion(server, call, inline=inline)
        _registrations.add(server, plan, None if reference is None else {"reference": reference, "argument": argument})


def _check_options(decorator: str, options: dict[str, Any], register: Any, own: Any) -> None:
    """Check the options of a decorator before there is a function.

    Args:
        decorator: Its name, for the error.
        options: The options.
        register: The method that registers the function. One of a subclass may take other options, and checks them.
        own: The method of this package.

    Raises:
        TypeError: The method has no such option.
    """
    known: dict[str, Any] = own.__kwdefaults__
    if getattr(register, "__func__", None) is not own:
        return
    for name in options:
        if name not in known:
            from ._option_checks import suggestion

            raise TypeError(f"Server.{decorator}() has no option {name!r}: {suggestion(name, known)}")
