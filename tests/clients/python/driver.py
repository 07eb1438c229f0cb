"""The Python driver: a client that reads one job per line and prints one report per line.

`../README.md` has the format of both.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from channel import ProgramTransport
from mcpline import Client, ClientExtension, ReceivedResult, RpcError, Server

LISTS = ("list_tools", "list_resources", "list_resource_templates", "list_prompts")
SETTINGS = {
    "era": "era",
    "probe": "probe_timeout",
    "answer": "open_timeout",
    "attempts": "reconnect_attempts",
    "trust_tool_annotations": "trust_tool_annotations",
    "ping_interval": "ping_interval",
    "ping_timeout": "ping_timeout",
}


def error_report(error: BaseException) -> dict[str, Any]:
    return {
        "kind": getattr(error, "kind", type(error).__name__),
        "text": str(error),
        "status": getattr(error, "status", None),
        "code": getattr(error, "code", None),
        "retry_safe": getattr(error, "retry_safe", False),
        "outcome_unknown": getattr(error, "outcome_unknown", False),
    }


class Received:
    """Notifications that a client has received."""

    def __init__(self) -> None:
        self._notifications: list[tuple[str, Any]] = []
        self._arrived = asyncio.Event()

    def add(self, notification: Any) -> None:
        self._notifications.append((notification.method, notification.params))
        self._arrived.set()

    async def first(self, method: str, count: int) -> list[Any]:
        """Waits for the first `count` notifications of a method and returns their params."""
        while len(found := [params for name, params in self._notifications if name == method]) < count:
            self._arrived.clear()
            await self._arrived.wait()
        return found[:count]


def serving(members: dict[str, str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Returns a handler of a custom request: for each member of the result, the member of the params to copy."""

    def serve(params: dict[str, Any]) -> dict[str, Any]:
        for source in members.values():
            if source not in params:
                raise RpcError(-32602, f"params have no {source!r}")
        return {name: params[source] for name, source in members.items()}

    return serve


def extensions_of(given: dict[str, Any], connected: list[Client]) -> list[ClientExtension]:
    """Returns the extensions that a client declares, with the requests that resolve results of their types."""

    def resolving(method: str) -> Callable[[ReceivedResult], Any]:
        async def resolve(received: ReceivedResult) -> Any:
            return await connected[0].request(method, {"token": received.result.get("token")})

        return resolve

    return [
        ClientExtension(
            identifier,
            settings=declared.get("settings"),
            on_result_type={name: resolving(method) for name, method in declared.get("resolves", {}).items()},
        )
        for identifier, declared in given.items()
    ]


def client_of(job: dict[str, Any], received: Received, connected: list[Client]) -> Client:
    given = job.get("settings", {})
    options: dict[str, Any] = {SETTINGS[name]: given[name] for name in SETTINGS if name in given}
    options |= {"name": "driver", "reconnect_delay": 0.02}
    if "revisions" in given:
        options["revisions"] = given["revisions"]
    if "listener_pause" in given:
        pauses = [given["listener_pause"]]

        async def listen_slowly(_: Any) -> None:
            await asyncio.sleep(pauses.pop() if pauses else 0)

        options["on_notification"] = listen_slowly
    if given.get("answers"):
        options |= {"roots": ["file:///"], "on_elicit": lambda _: None, "on_sample": lambda _: "sampled"}
    if given.get("listens"):
        options["on_notification"] = received.add
    if "serves" in given:
        options["on_request"] = {method: serving(members) for method, members in given["serves"].items()}
    if "extensions" in given:
        options["extensions"] = extensions_of(given["extensions"], connected)
    ((kind, where),) = job["address"].items()
    match kind:
        case "url":
            if "max_body_bytes" in given:
                options["max_body_bytes"] = given["max_body_bytes"]
            return Client.connect(where, resume_delay=0.02, **options)
        case "socket":
            return Client.socket(where, **options)
        case "channel":
            return Client.over(ProgramTransport(where), **options)
        case "memory":
            return Client.memory(own_server(), **options)
        case _:
            return Client.spawn(*where, **options)


def own_server() -> Server:
    """Returns the everything-server in this process, with its extensions: its module is a program with arguments."""
    sys.path.append(str(Path(__file__).resolve().parents[2] / "servers" / "python"))
    sys.argv[1:] = ["--extensions", "1"]
    from everything_server import server

    return server


async def run(job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job as often as it says, until something fails, and returns the report of the last run."""
    report: dict[str, Any] = {}
    for _ in range(job.get("times", 1)):
        report = await play(job)
        if report["error"] or any("error" in step for step in report["steps"]):
            break
    return {"job": job["job"], **report}


async def play(job: dict[str, Any]) -> dict[str, Any]:
    report: dict[str, Any] = {"revision": None, "server": None, "error": None, "steps": []}
    received, connected = Received(), []
    try:
        client = await client_of(job, received, connected)
    except Exception as error:
        return report | {"error": error_report(error)}
    connected.append(client)
    report["revision"] = client.protocol_version
    report["server"] = client.server_info.name if client.server_info else None
    for step in job.get("steps", []):
        try:
            outcome = await take(client, dict(step), received)
        except Exception as error:
            outcome = {"error": error_report(error)}
        report["steps"].append(outcome)
    await client.close()
    return report


async def take(client: Client, step: dict[str, Any], received: Received) -> dict[str, Any]:
    match step.pop("do"):
        case "call_tool":
            progress_values: list[float] = []
            pause = step.pop("listener_pause", None)

            async def listen_slowly(progress: float, *_: Any) -> None:
                progress_values.append(progress)
                if len(progress_values) == 1:
                    await asyncio.sleep(pause)

            listener = (lambda progress, *_: progress_values.append(progress)) if pause is None else listen_slowly
            result = await call(client, step, listener)
            return {"result": plain(result), "progress": len(progress_values)}
        case "request":
            reports: list[float] = []
            result = await client.request(**step, on_progress=lambda progress, *_: reports.append(progress))
            return {"result": result, "progress": len(reports)}
        case "await_notifications":
            return {"result": await received.first(**step)}
        case "cancel_tool":
            return {"result": plain(await cancel(client, step))}
        case "complete":
            reference, argument = step["params"]["ref"], step["params"]["argument"]
            known = step["params"].get("context", {}).get("arguments")
            what = {"prompt": reference.get("name"), "resource": reference.get("uri"), "arguments": known}
            what["timeout"] = step.get("timeout")
            return {"result": plain(await client.complete(argument["name"], argument["value"], **what))}
        case verb:
            return {"result": plain(await getattr(client, verb)(**step))}


def call(client: Client, step: dict[str, Any], listener: Any) -> Any:
    return client.call_tool(
        step["name"], step.get("arguments") or {}, timeout=step.get("timeout"), reissue=step.get("reissue"),
        on_progress=listener,
    )


async def cancel(client: Client, step: dict[str, Any]) -> Any:
    """Cancels a call while it runs."""
    begun = asyncio.Event()
    calling = asyncio.ensure_future(call(client, step, lambda *_: begun.set()))
    late = asyncio.ensure_future(asyncio.sleep(step["after"]) if step.get("after") else begun.wait())
    await asyncio.wait((calling, late), return_when=asyncio.FIRST_COMPLETED)
    late.cancel()
    if calling.done():
        return calling.result()
    calling.cancel()
    await asyncio.wait((calling,))
    return "cancelled"


def plain(value: Any) -> Any:
    """Converts a value to JSON with the protocol's names."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    raw = getattr(value, "raw", b"")
    return msgspec.json.decode(raw) if raw else msgspec.to_builtins(value)


def write(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


async def main() -> None:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    async def one(line: str) -> None:
        write(await run(json.loads(line)))

    # Reading blocks a thread, which ends with the process.
    threading.Thread(target=read, daemon=True).start()
    running = set()
    while (line := await lines.get()) is not None:
        task = asyncio.ensure_future(one(line))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


asyncio.run(main())
