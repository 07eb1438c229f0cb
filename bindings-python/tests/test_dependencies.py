"""Dependencies: values that a call computes, releases after it, and clients do not see."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Optional
from unittest.mock import AsyncMock, Mock

import pytest
from mcpline import (
    Client,
    Context,
    Depends,
    LimitExceeded,
    RpcError,
    Server,
    SyncContext,
    ToolError,
    UsageError,
    _dependency_providers,
    _injection,
    _thread_pool,
)
from mcpline.dependencies import Dependency
from support import REVISIONS, run, settles, text


class Database:
    """Cannot be decoded from JSON."""

    def __init__(self, name: str = "real") -> None:
        self.name = name
        self.closed = False


def make() -> Server:
    return Server("dependencies", "1")


def call(server: Server, name: str = "tool", arguments: dict[str, Any] | None = None, **options: Any) -> str:
    async def main() -> str:
        async with server.test_client(**options) as client:
            return text(await client.call_tool(name, arguments))

    return run(main())


def sync_database() -> Database:
    return Database()


async def async_database() -> Database:
    await asyncio.sleep(0)
    return Database()


def sync_generator() -> Iterator[Database]:
    database = Database()
    yield database
    database.closed = True


async def async_generator() -> AsyncIterator[Database]:
    database = Database()
    yield database
    database.closed = True


class SyncSession(Database):
    def __enter__(self) -> SyncSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True


class AsyncSession(Database):
    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed = True


class Holder:
    def method(self) -> Database:
        return Database()

    def __call__(self) -> Database:
        return Database()


PLAIN = [sync_database, async_database, Database, Holder().method, Holder(), lambda: Database()]
MANAGED = [
    sync_generator,
    async_generator,
    contextlib.contextmanager(sync_generator),
    contextlib.asynccontextmanager(async_generator),
    SyncSession,
    AsyncSession,
]


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("form", ["annotated", "default"])
@pytest.mark.parametrize("dependency", [*PLAIN, *MANAGED])
def test_provides_values_of_every_kind_of_function(dependency, form, is_async):
    server = make()
    used: list[Database] = []

    def body(city: str, database: Database) -> str:
        assert not database.closed
        used.append(database)
        return f"{city} {database.name}"

    if form == "annotated":

        def sync_tool(city: str, db: Annotated[Database, Depends(dependency)], days: int = 1) -> str:
            return body(city, db)

        async def async_tool(db: Annotated[Database, Depends(dependency)], city: str) -> str:
            return body(city, db)
    else:

        def sync_tool(city: str, days: int = 1, db: Database = Depends(dependency)) -> str:
            return body(city, db)

        async def async_tool(city: str, *, db: Database = Depends(dependency)) -> str:
            return body(city, db)

    server.add_tool(async_tool if is_async else sync_tool, name="tool")
    assert call(server, arguments={"city": "Oslo"}) == "Oslo real"
    assert [database.closed for database in used] == [dependency in MANAGED]


@pytest.mark.parametrize("is_async", [True, False])
def test_arguments_may_have_any_name(is_async):
    server = make()

    async def async_tool(context: str, arguments: str, call: str, db: Database = Depends(sync_database)) -> str:
        return f"{context}{arguments}{call}"

    def sync_tool(context: str, arguments: str, call: str, db: Database = Depends(sync_database)) -> str:
        return f"{context}{arguments}{call}"

    server.add_tool(async_tool if is_async else sync_tool, name="tool")
    assert call(server, arguments={"context": "a", "arguments": "b", "call": "c"}) == "abc"


def test_cached_functions_are_called_with_their_dependencies():
    server = make()

    @functools.cache
    def database(name: Annotated[str, Depends(lambda: "ada")]) -> Database:
        return Database(name)

    @server.tool
    def tool(db: Annotated[Database, Depends(database)]) -> str:
        return f"{db.name} {database.cache_info().currsize}"

    assert call(server) == "ada 1"


def test_is_invisible_to_clients():
    server = make()

    @server.tool
    async def tool(
        city: str, user: Annotated[str, Depends(lambda: "ada")], role: str = Depends(lambda: "admin")
    ) -> str:
        """Look.

        Args:
            city: Name of a city.
            user: Not an argument.
        """
        return f"{city} {user} {role}"

    @server.prompt
    def prompt(city: str, user: Annotated[str, Depends(lambda: "ada")]) -> str:
        return f"{city} {user}"

    async def main() -> None:
        async with server.test_client() as client:
            (listed,) = await client.list_tools()
            assert list(listed["inputSchema"]["properties"]) == ["city"]
            assert listed["inputSchema"]["required"] == ["city"]
            refused = await client.call_tool("tool", {"city": "Oslo", "user": "eve"})
            assert refused["isError"] and "user" in text(refused)
            assert text(await client.call_tool("tool", {"city": "Oslo"})) == "Oslo ada admin"
            (listed,) = await client.list_prompts()
            assert [argument["name"] for argument in listed["arguments"]] == ["city"]

    run(main())


def test_clients_cannot_set_a_dependency_if_unknown_arguments_are_ignored():
    server = Server("dependencies", "1", unknown_arguments="ignore")

    @server.tool
    async def tool(user: Annotated[str, Depends(lambda: "ada")]) -> str:
        return user

    assert call(server, arguments={"user": "eve"}) == "ada"


@pytest.mark.parametrize("is_async", [True, False])
def test_serves_every_kind_of_handler(is_async):
    server = make()
    seen: list[str] = []
    Named = Annotated[str, Depends(lambda: "ada")]

    if is_async:

        @server.resource("user://me")
        async def me(user: Named) -> str:
            return user

        @server.resource("user://{name}/friend")
        async def friend(name: str, user: Named) -> str:
            return f"{user} of {name}"

        @server.prompt
        async def greet(user: Named, style: str = "kind") -> str:
            return f"{style} {user}"

        @server.completion(prompt="greet", argument="style")
        async def complete(value: str, user: Named) -> list[str]:
            return [f"{value}{user}"]

        @server.on_request("acme/who")
        async def who(question: str, user: Named, ctx: Context) -> dict[str, str]:
            return {"answer": f"{question} {user} {ctx.revision}"}

        @server.on_notification("acme/note")
        async def note(text: str, user: Named) -> None:
            seen.append(f"{text} {user}")

        @server.on_initialized
        async def opened(user: Named) -> None:
            seen.append(user)
    else:

        @server.resource("user://me")
        def me(user: Named) -> str:
            return user

        @server.resource("user://{name}/friend")
        def friend(name: str, user: Named) -> str:
            return f"{user} of {name}"

        @server.prompt
        def greet(user: Named, style: str = "kind") -> str:
            return f"{style} {user}"

        @server.completion(prompt="greet", argument="style")
        def complete(value: str, user: Named) -> list[str]:
            return [f"{value}{user}"]

        @server.on_request("acme/who")
        def who(question: str, user: Named, ctx: SyncContext) -> dict[str, str]:
            return {"answer": f"{question} {user} {ctx.revision}"}

        @server.on_notification("acme/note")
        def note(text: str, user: Named) -> None:
            seen.append(f"{text} {user}")

        @server.on_initialized
        def opened(user: Named) -> None:
            seen.append(user)

    async def main() -> None:
        async with server.test_client(revision="2025-11-25") as client:
            assert (await client.read_resource("user://me"))[0]["text"] == "ada"
            assert (await client.read_resource("user://eve/friend"))[0]["text"] == "ada of eve"
            assert (await client.get_prompt("greet"))[0]["content"]["text"] == "kind ada"
            assert await client.complete("style", "to ", prompt="greet") == ["to ada"]
            assert await client.request("acme/who", {"question": "who?"}) == {"answer": "who? ada 2025-11-25"}
            await client.notify("acme/note", {"text": "hi"})
            while len(seen) < 2:
                await asyncio.sleep(0.01)

    run(main())
    assert sorted(seen) == ["ada", "hi ada"]


def test_takes_all_arguments_beside_dependencies():
    server = make()
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    @server.tool(input_schema=schema)
    async def tool(db: Annotated[Database, Depends(sync_database)], arguments: dict[str, str]) -> str:
        return f"{db.name} {arguments}"

    assert call(server, arguments={"city": "Oslo"}) == "real {'city': 'Oslo'}"


@pytest.mark.parametrize("is_async", [True, False])
def test_computes_each_dependency_once_per_call(is_async):
    server = make()
    count = 0

    def first() -> Database:
        nonlocal count
        count += 1
        return Database(str(count))

    def second(db: Annotated[Database, Depends(first)]) -> list[Database]:
        return [db]

    def body(db: Database, dbs: list[Database]) -> str:
        assert dbs == [db]
        return db.name

    if is_async:

        @server.tool
        async def tool(dbs: Annotated[list[Database], Depends(second)], db: Annotated[Database, Depends(first)]) -> str:
            return body(db, dbs)
    else:

        @server.tool
        def tool(dbs: Annotated[list[Database], Depends(second)], db: Annotated[Database, Depends(first)]) -> str:
            return body(db, dbs)

    async def main() -> None:
        async with server.test_client() as client:
            assert [text(await client.call_tool("tool")) for _ in range(2)] == ["1", "2"]

    run(main())


KINDS = ["sync", "async", "inline"]


def tracked(name: str, kind: str, log: list[str], *dependencies: Any) -> Any:
    """Return a dependency that logs when it is entered and exited, and with which exception."""

    @contextlib.contextmanager
    def track() -> Iterator[None]:
        log.append(f"+{name}")
        try:
            yield
        except BaseException as error:
            log.append(f"{name}!{type(error).__name__}")
            raise
        finally:
            log.append(f"-{name}")

    before = dependencies[0] if dependencies else Depends(lambda: None)

    if kind == "async":

        async def generator(inner: Any = before) -> AsyncIterator[str]:
            with track():
                yield name
    else:

        def generator(inner: Any = before) -> Iterator[str]:
            with track():
                yield name

    return Depends(generator, inline=kind == "inline")


@pytest.mark.parametrize("outer", KINDS)
@pytest.mark.parametrize("inner", KINDS)
@pytest.mark.parametrize("is_async", [True, False])
def test_exits_in_reverse_order(inner, outer, is_async):
    server = make()
    log: list[str] = []
    a = tracked("a", inner, log)
    b = tracked("b", outer, log, a)

    async def async_tool(second: str = b, first: str = a) -> str:
        log.append("call")
        return "done"

    def sync_tool(second: str = b, first: str = a) -> str:
        log.append("call")
        return "done"

    server.add_tool(async_tool if is_async else sync_tool, name="tool")
    assert call(server) == "done"
    assert log == ["+a", "+b", "call", "-b", "-a"]


@pytest.mark.parametrize("outer", KINDS)
@pytest.mark.parametrize("inner", KINDS)
@pytest.mark.parametrize("is_async", [True, False])
def test_raises_the_exception_of_the_handler_in_dependencies(inner, outer, is_async):
    server = make()
    log: list[str] = []
    a = tracked("a", inner, log)
    b = tracked("b", outer, log, a)

    async def async_tool(second: str = b) -> str:
        raise ToolError("no")

    def sync_tool(second: str = b) -> str:
        raise ToolError("no")

    server.add_tool(async_tool if is_async else sync_tool, name="tool")
    assert call(server) == "no"
    assert log == ["+a", "+b", "b!ToolError", "-b", "a!ToolError", "-a"]


@pytest.mark.parametrize("is_async", [True, False])
def test_exits_what_was_entered_before_a_dependency_failed(is_async):
    server = make()
    log: list[str] = []
    a = tracked("a", "async" if is_async else "sync", log)

    def fail(first: str = a) -> str:
        raise ToolError("no database")

    @server.tool
    def tool(second: Annotated[str, Depends(fail)]) -> str:
        raise AssertionError

    assert call(server) == "no database"
    assert log == ["+a", "a!ToolError", "-a"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_dependency_cannot_suppress_the_exception(kind):
    server = make()

    if kind == "async":

        async def swallow() -> AsyncIterator[None]:
            with contextlib.suppress(ToolError):
                yield
    else:

        def swallow() -> Iterator[None]:
            with contextlib.suppress(ToolError):
                yield

    @server.tool
    async def tool(x: None = Depends(swallow, inline=kind == "inline")) -> str:
        raise ToolError("no")

    @server.tool
    def sync_tool(x: None = Depends(swallow, inline=kind == "inline")) -> str:
        raise ToolError("no")

    assert call(server) == "no"
    assert call(server, "sync_tool") == "no"


def test_an_error_while_exiting_fails_the_call(caplog):
    server = make()

    def database() -> Iterator[Database]:
        yield Database()
        raise RuntimeError("secret")

    @server.tool
    async def tool(db: Annotated[Database, Depends(database)]) -> str:
        return db.name

    assert call(server) == "Error executing tool tool"
    assert "secret" in caplog.text


def test_errors_of_dependencies_are_masked_like_those_of_handlers(caplog):
    server = make()

    def database() -> Database:
        raise RuntimeError("secret")

    @server.resource("db://")
    def read(db: Annotated[Database, Depends(database)]) -> str:
        return db.name

    async def main() -> None:
        async with server.test_client() as client:
            with pytest.raises(RpcError) as raised:
                await client.read_resource("db://")
            assert "secret" not in str(raised.value)

    run(main())
    assert "secret" in caplog.text


@pytest.mark.usefixtures("with_and_without_internals")
@pytest.mark.parametrize("kind", KINDS)
def test_exits_after_a_cancellation(kind):
    server = make()
    log: list[str] = []
    a = tracked("a", kind, log)
    b = tracked("b", "async", log, a)

    started: list[asyncio.Event] = []

    @server.tool
    async def tool(second: str = b) -> str:
        started[0].set()
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        started.append(asyncio.Event())
        async with Client.memory(server) as client:
            calling = asyncio.create_task(client.call_tool("tool"))
            await started[0].wait()
            calling.cancel()
            while "-a" not in log:
                await asyncio.sleep(0.01)

    run(main())
    assert log == ["+a", "+b", "b!CancelledError", "-b", "a!CancelledError", "-a"]


@pytest.mark.usefixtures("with_and_without_internals")
def test_a_cancelled_call_waits_for_a_dependency_that_is_being_entered_and_exits_it():
    server = make()
    log: list[str] = []
    entering, go_on = threading.Event(), threading.Event()
    a = tracked("a", "async", log)

    def slow(first: str = a) -> Iterator[str]:
        entering.set()
        go_on.wait()
        log.append("+slow")
        yield "slow"
        log.append("not reached")

    @contextlib.contextmanager
    def logged(first: str = a) -> Iterator[str]:
        with contextlib.contextmanager(slow)(first) as value:
            try:
                yield value
            finally:
                log.append("-slow")

    @server.tool
    async def tool(second: Annotated[str, Depends(logged)]) -> str:
        raise AssertionError

    async def main() -> None:
        async with Client.memory(server) as client:
            calling = asyncio.create_task(client.call_tool("tool"))
            await asyncio.to_thread(entering.wait)
            calling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await calling
            await client.ping()
            assert log == ["+a"]
            go_on.set()
            while "-a" not in log:
                await asyncio.sleep(0.01)

    run(main())
    assert log == ["+a", "+slow", "-slow", "a!CancelledError", "-a"]


def test_a_dependency_that_is_abandoned_is_exited_in_its_thread():
    entering, go_on, exited = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        """Is exited by nothing but `__exit__`; a generator would also be closed by the garbage collector."""

        def __enter__(self) -> None:
            entering.set()
            go_on.wait()

        def __exit__(self, *_: object) -> None:
            exited.set()

    handed = Context(Mock(), make())

    async def main() -> None:
        async def use() -> None:
            async with contextlib.AsyncExitStack() as stack:
                resolver = _injection._AsyncDependencyResolver(handed, stack)
                dependent = _dependency_providers.DependencyReader().dependent(Dependency(Slow, inline=False))
                await resolver._value(dependent)

        using = asyncio.create_task(use())
        await asyncio.to_thread(entering.wait)
        for _ in range(2):
            using.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await using
        assert not exited.is_set()
        go_on.set()
        assert await asyncio.to_thread(exited.wait, 60)

    run(main())


def test_sync_functions_run_in_threads_and_async_ones_on_the_loop():
    server = make()
    threads: dict[str, Any] = {}

    def note(name: str) -> str:
        threads[name] = threading.current_thread()
        return name

    def sync() -> str:
        return note("sync")

    def inline() -> str:
        return note("inline")

    async def on_loop() -> str:
        return note("on_loop")

    def generator() -> Iterator[str]:
        yield note("generator")
        note("exit")

    @server.tool
    async def tool(
        a: Annotated[str, Depends(sync)],
        b: Annotated[str, Depends(inline, inline=True)],
        c: Annotated[str, Depends(on_loop)],
        d: Annotated[str, Depends(generator)],
    ) -> str:
        return note("handler")

    @server.tool
    def sync_tool(a: Annotated[str, Depends(sync)], c: Annotated[str, Depends(on_loop)]) -> str:
        return note("handler")

    @server.tool
    def sync_only(a: Annotated[str, Depends(sync)]) -> str:
        return note("handler")

    main_thread = threading.current_thread()
    call(server)
    on_main = {name for name, thread in threads.items() if thread is main_thread}
    assert on_main == {"inline", "on_loop", "handler"}
    threads.clear()
    call(server, "sync_tool")
    assert {name for name, thread in threads.items() if thread is main_thread} == {"on_loop"}
    threads.clear()
    call(server, "sync_only")
    assert threads["sync"] is threads["handler"] is not main_thread


def test_a_blocking_dependency_does_not_block_other_calls():
    server = make()
    blocked, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        blocked.set()
        assert go_on.wait(60)

    @server.tool
    async def tool(x: Annotated[None, Depends(slow)]) -> str:
        return "slow"

    @server.tool
    async def quick() -> str:
        return "quick"

    async def main() -> None:
        async with Client.memory(server) as client:
            calling = asyncio.create_task(client.call_tool("tool"))
            await asyncio.to_thread(blocked.wait)
            assert (await client.call_tool("quick")).text == "quick"
            go_on.set()
            assert (await calling).text == "slow"

    run(main())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("is_async", [True, False])
def test_dependencies_take_a_context(revision, is_async):
    """It can ask the user: on the loop, in the thread of a sync handler, and in a thread of an async call."""
    server = make()

    async def on_loop(ctx: Context) -> str:
        return str((await ctx.elicit("Name?", str)).data)

    def in_thread(ctx: SyncContext) -> str:
        return str(ctx.elicit("Name?", str).data)

    def by_name(ctx) -> str:
        return str(ctx.elicit("Name?", str).data)

    if is_async:

        @server.tool
        async def tool(
            ctx: Context,
            a: Annotated[str, Depends(on_loop)],
            b: Annotated[str, Depends(in_thread)],
            c: Annotated[str, Depends(by_name)],
        ) -> str:
            return f"{a}{b}{c} {ctx.revision}"

        @server.tool
        def mixed(ctx: SyncContext, a: Annotated[str, Depends(on_loop)]) -> str:
            return f"{a}{ctx.elicit('Name?', str).data}"
    else:

        @server.tool
        def tool(
            a: Annotated[str, Depends(in_thread)], b: Annotated[str, Depends(by_name)], *, ctx: SyncContext
        ) -> str:
            return f"{a}{b} {ctx.revision}"

    if revision >= "2025-06-18":
        answers = iter("abc" * 3)
        answered = call(server, revision=revision, elicit=lambda _: {"value": next(answers)})
        assert answered == ("abc " if is_async else "ab ") + revision
        if is_async:
            answers = iter("abc" * 3)
            assert call(server, "mixed", revision=revision, elicit=lambda _: {"value": next(answers)}) == "ab"


def test_an_inline_dependency_cannot_wait_for_the_client(caplog):
    server = make()

    def inline(ctx: SyncContext) -> str:
        return str(ctx.elicit("Name?", str).data)

    @server.tool
    async def tool(a: Annotated[str, Depends(inline, inline=True)]) -> str:
        return a

    assert call(server, elicit=lambda _: {"value": "a"}) == "Error executing tool tool"
    assert "an inline dependency cannot wait for the client" in caplog.text


def test_inline_handlers_take_sync_dependencies_only():
    server = make()

    @server.tool(inline=True)
    def tool(db: Annotated[Database, Depends(sync_database)]) -> str:
        return db.name

    assert call(server) == "real"
    with pytest.raises(TypeError, match=r"refused: inline .*; db is async"):

        @server.tool(inline=True)
        def refused(db: Annotated[Database, Depends(async_database)]) -> str:
            return db.name


def test_cycles_are_refused():
    server = make()

    def first(x: Annotated[int, Depends(lambda: 1)]) -> int:
        return x

    def second(x: int = Depends(first)) -> int:
        return x

    first.__annotations__["x"] = Annotated[int, Depends(second)]
    with pytest.raises(TypeError, match="depend on each other: first → second → first"):

        @server.tool
        def tool(x: Annotated[int, Depends(first)]) -> int:
            return x


def needs_argument(city: str) -> str:
    return city


def positional_only(ctx: SyncContext, /) -> str:
    return ""


def two_contexts(ctx: SyncContext, other: SyncContext) -> str:
    return ""


def unresolvable(x: Missing) -> str:  # noqa: F821
    return ""


@pytest.mark.parametrize(
    ("dependency", "reason"),
    [
        (needs_argument, "the dependency needs_argument: the parameter city has no value"),
        (positional_only, "the dependency positional_only: the parameter ctx must not be positional-only"),
        (two_contexts, "the dependency two_contexts: the parameter other has no value"),
        (unresolvable, "unresolvable: the annotation 'Missing' of x"),
    ],
)
def test_dependencies_that_cannot_be_filled_are_refused(dependency, reason):
    server = make()
    with pytest.raises(TypeError, match=reason):

        @server.tool
        def tool(x: Annotated[str, Depends(dependency)]) -> str:
            return x


def test_unclear_parameters_are_refused():
    server = make()
    value = Depends(lambda: "x")

    def nested(x: Optional[Annotated[str, value]]) -> str:
        return str(x)

    def within(x: list[Annotated[str, value]]) -> str:
        return str(x)

    def with_default(x: Annotated[str, value] = "") -> str:
        return x

    def twice(x: Annotated[str, value] = Depends(lambda: "y")) -> str:
        return x

    def only(x: str = value, /) -> str:
        return x

    for handler, reason in [
        (nested, "dependency within its type"),
        (within, "dependency within its type"),
        (with_default, "another one, or a default"),
        (twice, "another one, or a default"),
        (only, "positional-only"),
    ]:
        with pytest.raises(TypeError, match=reason):
            server.add_tool(handler)


def test_fields_of_arguments_have_no_dependencies():
    """Clients could set them."""
    server = make()

    def tool(settings: Arguments) -> str:
        return settings.user

    with pytest.raises(
        TypeError, match=r"the parameter settings .* field user of Arguments: a dependency is the value"
    ):
        server.add_tool(tool)


def foreign(module: str, name: str) -> Any:
    """Return a value of a class that is named like that of another library, or derived from it."""
    return type("Derived", (type(name, (), {"__module__": module}),), {})()


@pytest.mark.parametrize(
    ("module", "name"),
    [("fastapi.params", "Depends"), ("uncalled_for.base", "Dependency"), ("mcp.server.mcpserver.resolve", "Resolve")],
)
def test_dependencies_of_other_libraries_are_refused(module, name):
    """As a default or unknown metadata they would be ignored, and the parameter an argument that clients set."""
    server = make()
    other = foreign(module, name)

    def default(user: str = other) -> str:
        return user

    def annotated(user: Annotated[str, other]) -> str:
        return user

    for handler in (default, annotated):
        with pytest.raises(TypeError, match=rf"{handler.__name__}: the parameter user .*: use `mcpline.Depends`"):
            server.add_tool(handler)


def test_depends_takes_functions_only():
    with pytest.raises(TypeError, match="takes a function, not 5"):
        Depends(5)  # type: ignore[call-overload]


def test_further_parameters_have_their_defaults():
    server = make()

    def database(name: str = "named", *rest: int, size: int = 1, **others: int) -> Database:
        return Database(f"{name}{rest}{size}{others}")

    @server.tool
    def tool(db: Annotated[Database, Depends(database)]) -> str:
        return db.name

    assert call(server) == "named()1{}"


def test_the_type_of_a_default_need_not_be_importable():
    server = make()

    @server.tool
    def tool(db: Unimportable = Depends(sync_database)) -> str:  # noqa: F821
        return str(db.name)

    assert call(server) == "real"


def test_a_sync_function_that_returns_a_coroutine_is_an_error(caplog):
    server = make()

    @server.tool
    async def tool(db: Annotated[Database, Depends(lambda: async_database())]) -> str:
        return db.name

    assert call(server) == "Error executing tool tool"
    assert "define it with `async def`" in caplog.text


@dataclass
class Arguments:
    user: Annotated[str, Depends(lambda: "ada")]


@dataclass
class Settings:
    db: Annotated[Database, Depends(sync_database)]
    name: str = "settings"


def test_classes_are_created_with_their_dependencies():
    server = make()

    @server.tool
    def tool(settings: Annotated[Settings, Depends(Settings)]) -> str:
        return f"{settings.name} {settings.db.name}"

    assert call(server) == "settings real"


def test_context_variables_of_dependencies_reach_their_exit():
    from contextvars import ContextVar

    server = make()
    current = ContextVar("current", default="none")

    def sync() -> Iterator[None]:
        token = current.set("sync")
        yield
        current.reset(token)

    async def on_loop() -> AsyncIterator[None]:
        token = current.set("async")
        yield
        current.reset(token)

    @server.tool
    async def tool(a: Annotated[None, Depends(sync)], b: Annotated[None, Depends(on_loop)]) -> str:
        return current.get()

    assert call(server) == "async"


class TestOverrides:
    def server(self, dependency: Any = async_database) -> Server:
        server = make()

        @server.tool
        async def tool(db: Annotated[Database, Depends(dependency)]) -> str:
            return db.name

        return server

    @pytest.mark.parametrize(
        "fake",
        [
            lambda: Database("fake"),
            Mock(return_value=Database("fake")),
            AsyncMock(return_value=Database("fake")),
            lambda name=Depends(lambda: "fake"): Database(name),
        ],
    )
    def test_replaces_a_dependency_within_the_block(self, fake):
        server = self.server()
        with server.override_dependencies({async_database: fake}):
            assert call(server) == "fake"
        assert call(server) == "real"

    def test_replaces_dependencies_of_dependencies(self):
        def outer(db: Annotated[Database, Depends(sync_database)]) -> Database:
            return Database(f"outer {db.name}")

        server = self.server(outer)
        with server.override_dependencies({sync_database: lambda: Database("fake")}):
            assert call(server) == "outer fake"

    def test_the_inner_block_applies(self):
        server = self.server()
        with server.override_dependencies({async_database: lambda: Database("outer")}):
            with server.override_dependencies({async_database: lambda: Database("inner")}):
                assert call(server) == "inner"
            assert call(server) == "outer"

    def test_blocks_may_end_in_any_order(self):
        server = self.server()
        first = server.override_dependencies({async_database: lambda: Database("first")})
        second = server.override_dependencies({async_database: lambda: Database("second")})
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert call(server) == "second"
        second.__exit__(None, None, None)
        assert call(server) == "real"

    def test_a_replacement_runs_where_the_original_runs(self):
        threads: list[Any] = []

        def fake() -> Database:
            threads.append(threading.current_thread())
            return Database("fake")

        for original, on_loop in [(async_database, True), (sync_database, False)]:
            server = self.server(original)
            with server.override_dependencies({original: fake}):
                assert call(server) == "fake"
            assert (threads.pop() is threading.current_thread()) is on_loop

    def test_a_sync_dependency_is_replaced_by_a_sync_function(self):
        server = self.server(sync_database)

        def fake(db: Annotated[Database, Depends(async_database)]) -> Database:
            return db

        for replacement in (async_database, fake):
            with pytest.raises(UsageError, match="sync_database runs on the threads of sync handlers"):
                server.override_dependencies({sync_database: replacement})

    def test_circles_are_refused(self):
        def fake(db: Annotated[Database, Depends(async_database)]) -> Database:
            return db

        server = self.server()
        with (
            pytest.raises(UsageError, match="depend on each other: async_database → async_database"),
            server.override_dependencies({async_database: fake}),
        ):
            raise AssertionError
        assert call(server) == "real"

    def test_functions_that_no_handler_depends_on_are_refused(self):
        server = self.server()
        with pytest.raises(UsageError, match="no handler of this server depends on needs_argument"):
            server.override_dependencies({needs_argument: lambda: ""})

    def test_dependencies_of_replacements_can_be_replaced(self):
        server = self.server()

        def fake(db: Annotated[Database, Depends(sync_database)]) -> Database:
            return db

        with (
            server.override_dependencies({async_database: fake}),
            server.override_dependencies({sync_database: lambda: Database("inner")}),
        ):
            assert call(server) == "inner"
        with pytest.raises(UsageError, match="no handler of this server depends on sync_database"):
            server.override_dependencies({sync_database: lambda: Database("inner")})

    def test_unusable_replacements_are_refused(self):
        with pytest.raises(TypeError, match="city has no value"):
            self.server().override_dependencies({async_database: needs_argument})


def test_threads_end_after_they_were_idle(monkeypatch):
    monkeypatch.setattr(_thread_pool, "IDLE_TIMEOUT", 0.01)
    pool = _thread_pool._ThreadPool()
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(60)
    assert settles(lambda: pool._threads == 0)
    done.clear()
    pool.submit(done.set)
    assert done.wait(60)


def test_calls_that_hold_nothing_wait_for_a_thread(monkeypatch):
    monkeypatch.setattr(_thread_pool, "MAX_RUNNING", 2)
    pool = _thread_pool._ThreadPool()
    go_on, lock = threading.Event(), threading.Lock()
    done: list[int] = []

    def job() -> None:
        assert go_on.wait(60)
        with lock:
            done.append(threading.get_ident())

    for _ in range(8):
        pool.submit(job)
    assert pool._threads == 2
    # Calls that hold values, for which these jobs may wait, get a thread at once.
    pool.submit(go_on.set, holds_values=True)
    assert settles(lambda: len(done) == 8)
    assert len(set(done)) <= 3


def test_a_thread_that_waits_for_a_client_is_replaced(monkeypatch):
    monkeypatch.setattr(_thread_pool, "MAX_RUNNING", 1)
    monkeypatch.setattr(_thread_pool, "MAX_WAITING", 1)
    pool = _thread_pool._ThreadPool()
    monkeypatch.setattr(_thread_pool, "_POOL", pool)
    answered = threading.Event()
    refused: list[Exception] = []

    def ask() -> None:
        with _thread_pool.waiting():
            assert answered.wait(60)

    def ask_too() -> None:
        try:
            ask()
        except LimitExceeded as error:
            refused.append(error)
        answered.set()

    pool.submit(ask)
    pool.submit(ask_too)
    assert answered.wait(60)
    assert "1 sync functions" in str(refused[0])
    assert settles(lambda: pool._waiting == 0)


def test_more_calls_than_threads_wait_for_a_resource(monkeypatch):
    """The calls that hold it are finished, though all threads are taken by those that wait for it."""
    monkeypatch.setattr(_thread_pool, "MAX_RUNNING", 2)
    monkeypatch.setattr(_thread_pool, "_POOL", _thread_pool._ThreadPool())
    connection = threading.Semaphore(1)
    server = make()

    def acquire() -> Iterator[None]:
        with connection:
            yield

    def use(held: Annotated[None, Depends(acquire)]) -> str:
        return "used"

    @server.tool
    async def tool(used: Annotated[str, Depends(use)]) -> str:
        return used

    @server.tool
    def sync_tool(used: Annotated[str, Depends(use)], other: Annotated[Database, Depends(async_database)]) -> str:
        return used

    async def main() -> None:
        async with Client.memory(server) as client:
            calls = [client.call_tool(name) for name in ("tool", "sync_tool") * 8]
            assert {result.text for result in await asyncio.gather(*calls)} == {"used"}

    run(main())


def test_no_module_of_dependencies_is_loaded_without_them():
    source = """
import sys
from mcpline import Server
server = Server("plain")
@server.tool
def tool(x: int = 1) -> int:
    return x
late = {"mcpline.dependencies", "mcpline._injection", "mcpline._dependency_providers", "mcpline._thread_pool"}
loaded = late & set(sys.modules)
assert not loaded, loaded
assert "asyncio" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", source], check=True)
