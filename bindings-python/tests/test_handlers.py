"""What can be a handler. Everything else is refused when it is registered, rather than in each call."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Union

import pytest
from mcpline import Client, ClientExtension, Context, Depends, Server, SyncClient, SyncContext
from support import run, text


@dataclass
class Service:
    name: str = ""

    def search(self) -> str:
        return self.name

    async def stream(self) -> AsyncIterator[str]:
        yield self.name


async def stream() -> AsyncIterator[str]:
    yield "a"


class Streaming:
    async def __call__(self) -> AsyncIterator[str]:
        yield "a"


REGISTRATIONS: dict[str, Callable[[Server, Any], object]] = {
    "tool": lambda server, call: server.tool(call),
    "resource": lambda server, call: server.add_resource("a://b", call),
    "prompt": lambda server, call: server.prompt(call),
    "completion": lambda server, call: server.completion(call),
    "request": lambda server, call: server.add_request_handler("acme/a", call),
    "notification": lambda server, call: server.add_notification_handler("acme/a", call),
    "event": lambda server, call: server.on_initialized(call),
    "route": lambda server, call: server.route("/a")(call),
    "middleware": lambda server, call: server.middleware(call),
}


@pytest.mark.parametrize("kind", REGISTRATIONS)
def test_async_generators_are_refused(kind):
    async def passing(request, next) -> AsyncIterator[str]:
        yield "a"

    calls: list[Any] = [stream, functools.partial(stream), Service().stream, Streaming()]
    for call in [passing] if kind == "middleware" else calls:
        with pytest.raises(TypeError, match=r"can't be an async generator: return a list, and .*ctx\.progress"):
            REGISTRATIONS[kind](Server("test"), call)


@pytest.mark.parametrize("kind", [kind for kind in REGISTRATIONS if kind != "completion"])
def test_classes_and_values_are_refused(kind):
    with pytest.raises(TypeError, match=r"Service: .*not a class"):
        REGISTRATIONS[kind](Server("test"), Service)
    with pytest.raises(TypeError, match=r"is a function.*, not int"):
        REGISTRATIONS[kind](Server("test"), 5)


def test_a_wrapper_of_an_async_generator_is_a_handler():
    server = Server("test")

    def joined(generator: Any) -> Any:
        @functools.wraps(generator)
        async def call() -> str:
            return "".join([item async for item in generator()])

        return call

    server.add_tool(joined(stream), name="joined")

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("joined")) == "a"

    run(main())


async def first(ctx: SyncContext) -> None: ...
async def generic(ctx: SyncContext[int]) -> None: ...
async def annotated(ctx: Annotated[SyncContext, "context"]) -> None: ...
async def optional(ctx: SyncContext | None = None) -> None: ...
async def dependency(ctx: SyncContext) -> int:
    return 1


async def depending(value: Annotated[int, Depends(dependency)]) -> None: ...


@pytest.mark.parametrize("function", [first, generic, annotated, optional, depending])
def test_async_functions_take_no_sync_context(function):
    with pytest.raises(TypeError, match=r"an async function gets a `Context`, not a `SyncContext`: write ctx: Context"):
        Server("test").add_tool(function)


def test_the_context_may_be_imported_for_type_checkers_only():
    async def call(ctx): ...

    call.__annotations__["ctx"] = "typed.SyncContext"
    with pytest.raises(TypeError, match=r"an async function gets a `Context`"):
        Server("test").add_tool(call)
    call.__annotations__["ctx"] = "typed.Context"
    Server("test").add_tool(call)


def test_a_context_of_either_kind_is_accepted():
    async def either(ctx: Union[Context, SyncContext]) -> None: ...
    def sync(ctx: Context) -> None: ...

    Server("test").add_tool(either)
    Server("test").add_tool(sync)


@pytest.mark.parametrize(
    ("uri", "annotation", "message"),
    [
        ("w://{path*}", str, r"{path\*} is a list in RFC 6570, .*: write {\+path} for a path .*, or path: list\[str\]"),
        ("w://{path*}", Union[int, None], r"write {\+path}"),
        ("w://a{?path*}", str, r"{\?path\*} is a list in RFC 6570, .*: write path: list\[str\]"),
        ("w://{+path*}", str, r"write path: list\[str\]"),
    ],
)
def test_a_variable_that_is_a_list_needs_a_parameter_that_takes_one(uri, annotation, message):
    def read(path): ...

    read.__annotations__["path"] = annotation
    with pytest.raises(TypeError, match=message):
        Server("test").add_resource(uri, read)


@pytest.mark.parametrize("annotation", [list[str], Any, Union[str, list[str]], tuple[str, ...]])
def test_a_variable_that_is_a_list_fits_a_parameter_for_lists(annotation):
    def read(path): ...

    read.__annotations__["path"] = annotation
    Server("test").add_resource("w://{path*}", read)


@pytest.mark.parametrize("kind", [Client, SyncClient])
@pytest.mark.parametrize(
    "name", ["on_elicit", "on_sample", "on_log", "on_notification", "on_connection", "on_tool_call", "on_tool_outcome"]
)
def test_handlers_of_clients_are_functions(kind, name):
    with pytest.raises(TypeError, match=rf"`{name}` must be a function, not int"):
        kind.memory(Server("test"), **{name: 5})


def test_other_handlers_of_clients_are_functions():
    server = Server("test")
    with pytest.raises(TypeError, match=r"`on_request\['acme/a'\]` must be a function, not str"):
        Client.memory(server, on_request={"acme/a": "x"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"`on_stderr` must be a function, not str"):
        Client.spawn("true", on_stderr="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"com\.example/a.*: acme/a` must be a function, not int"):
        extension = ClientExtension("com.example/a", on_request={"acme/a": 5})  # type: ignore[dict-item]
        Client.memory(server, extensions=[extension])

    async def main() -> None:
        async with Client.memory(server) as client:
            with pytest.raises(TypeError, match=r"`on_progress` must be a function, not int"):
                await client.call_tool("a", on_progress=5)  # type: ignore[arg-type]

    run(main())
