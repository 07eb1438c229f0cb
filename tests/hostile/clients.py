"""Hostile servers against the client of each language (rows 6, 7, 11 and 12, and other attacks by a server)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from attack import GARBAGE, GARBAGE_PER_ROUND, POOLS, SPARE_DESCRIPTORS, Outcome, settled, too_many_threads
from harness import programs
from harness.driver import Driver
from hostile_server import HostileServer, Manner, answer, event, polite
from meter import MIB, Meter, WorkMeter, growth, mib, too_costly
from targets import built
from wire import Wire

# Seconds after which an attack counts as hanging. Nothing is timed.
TIMEOUT_SECONDS = 150.0
WARM_UP_JOBS = 10
LEAST_SERVED = 5
# Pause between two jobs of the neighbour, so that it causes no load.
PAUSE_SECONDS = 0.02
# Threads of pools that remain while no client is open: in C the I/O thread and all workers end with the last one.
KEPT_POOLS = POOLS | {"c": 0}



@dataclass(frozen=True)
class ClientBounds:
    """Bounds of a hostile server's cost for its client's process, without the garbage of its runtime."""

    peak: int = 128 * MIB
    growth: int = 16 * MIB
    """Resident bytes that the second half of the rounds adds. Each round begins with a new client."""
    descriptors: int = 64
    """Number of additional open descriptors at any time."""
    neighbour_cpu: float = 4.0
    """Processor time of the client's process between the start and the end of a job with an honest server, in seconds, as
    `WorkMeter` counts it. The honest server runs in the event loop of the hostile one."""


Play = Callable[["ClientAttack"], Awaitable[None]]


@dataclass(frozen=True)
class ClientCase:
    name: str
    play: Play
    bounds: ClientBounds


CLIENT_CASES: list[ClientCase] = []


def case(name: str, bounds: ClientBounds | None = None) -> Callable[[Play], Play]:
    """Registers an attack on clients."""

    def register(play: Play) -> Play:
        CLIENT_CASES.append(ClientCase(name, play, bounds or ClientBounds()))
        return play

    return register


@dataclass
class ClientAttack:
    """The environment of an attack."""

    driver: Driver
    meter: Meter
    scale: int
    problems: list[str] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)

    async def connect(self, server: HostileServer, steps: list[dict], **settings: object) -> dict:
        """Makes the client run these steps with the hostile server."""
        return await self.driver.play({"url": server.url}, steps, era="legacy", **settings)

    def end_round(self) -> None:
        """Records the resident memory: a round that leaves something behind causes growth."""
        self.rounds.append(self.meter.memory())


async def play(case: ClientCase, language: str, scratch: Path, *, scale: int) -> Outcome:
    """Starts the client, attacks it with a hostile server, and compares the costs with the bounds."""
    command = built(programs.ALL_DRIVERS[language].command)
    served, costliest, costliest_in_all, problem = 0, 0.0, 0.0, ""
    async with Driver(command, scratch / "client.log") as driver, HostileServer(polite) as honest:
        meter = Meter(driver.pid)
        work = WorkMeter(meter)
        attack = ClientAttack(driver, meter, scale)

        async def job() -> str:
            steps = [{"do": "list_tools"}, {"do": "call_tool", "name": "tool", "arguments": {}}]
            report = await driver.play({"url": honest.url}, steps, era="legacy")
            failed = report["error"] or next((step["error"] for step in report["steps"] if "error" in step), None)
            return f"an honest server's client failed: {failed}" if failed else ""

        for _ in range(WARM_UP_JOBS):
            problem = problem or await job()
        if problem:
            return Outcome([f"before the attack: {problem}"], "")
        idle, descriptors, threads = meter.memory(), meter.descriptors(), meter.threads()
        meter.reset_peak()
        attack_is_over = False

        async def neighbour() -> None:
            nonlocal served, costliest, costliest_in_all, problem
            while not problem and not (attack_is_over and served >= LEAST_SERVED):
                begun, begun_in_all = work.seconds, work.all_seconds
                problem = await job()
                costliest = max(costliest, work.seconds - begun)
                costliest_in_all = max(costliest_in_all, work.all_seconds - begun_in_all)
                served += 1
                await asyncio.sleep(PAUSE_SECONDS)

        working = asyncio.ensure_future(work.run())
        calling = asyncio.ensure_future(neighbour())
        try:
            await asyncio.wait_for(case.play(attack), TIMEOUT_SECONDS)
        except asyncio.TimeoutError:
            attack.problems.append(f"the attack did not end within {TIMEOUT_SECONDS:.0f} s")
        attack_is_over = True
        await calling
        working.cancel()
        if not meter.is_alive():
            return Outcome([*attack.problems, "the client's process ended"], "")
        left = await settled(meter.descriptors, meter, descriptors + SPARE_DESCRIPTORS)
        left_threads = await settled(meter.threads, meter, threads + KEPT_POOLS[language])
        peak = meter.peak_memory() - idle
        opened = work.most_descriptors - descriptors
        grown = growth(attack.rounds)
    problems = attack.problems + ([problem] if problem else [])
    bounds = case.bounds
    most = bounds.peak + GARBAGE.get(language, 0)
    if peak > most:
        problems.append(f"memory rose by {mib(peak)} above the idle client, not at most {mib(most)}")
    if opened > bounds.descriptors:
        problems.append(f"{opened} more descriptors were open, not at most {bounds.descriptors}")
    if left > descriptors + SPARE_DESCRIPTORS:
        problems.append(f"{left} descriptors are open, {descriptors} were before")
    most_growth = bounds.growth + GARBAGE_PER_ROUND.get(language, 0)
    if grown is not None and grown > most_growth:
        problems.append(f"the second half of {len(attack.rounds)} rounds left {mib(grown)} behind, not at most {mib(most_growth)}")
    problems += too_costly(
        "the client", "an honest server's job ended", costliest, costliest_in_all, bounds.neighbour_cpu
    )
    problems += too_many_threads(threads, work.most_threads, threads, POOLS[language])
    problems += too_many_threads(threads, threads, left_threads, KEPT_POOLS[language])
    figures = [f"peak {mib(peak)}"]
    figures += [] if grown is None else [f"growth {mib(grown)}"]
    figures += [
        f"{opened:+d} descriptors, {left - descriptors:+d} in the end",
        f"threads {threads}, {work.most_threads} at most, {left_threads} in the end",
        f"neighbour {served} jobs, {costliest:.2f} s at most, {costliest_in_all:.2f} s with late turns",
    ]
    return Outcome(problems, ", ".join(figures))


# The client is closed after each round, so a leak shows in every round.
ROUNDS = 5

CALL = {"do": "call_tool", "name": "tool", "arguments": {}, "timeout": 20}


def on_call(manner: Callable[[HostileServer, Wire, dict], Awaitable[None]]) -> Manner:
    """Attacks when the tool is called."""

    async def attacks(server: HostileServer, wire: Wire, message: dict) -> bool:
        if message.get("method") != "tools/call":
            return False
        await manner(server, wire, message)
        return True

    return attacks


@case("7 a server that sends thousands of pings, and takes no answer")
async def pings(attack: ClientAttack) -> None:
    async def manner(server: HostileServer, wire: Wire, message: dict) -> bool:
        if message.get("method") == "tools/call":
            await wire.stream()
            for number in range(1_000 * attack.scale):
                await wire.chunk(event({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"}))
            await wire.chunk(event(answer(message, {"content": []})))
            await wire.end()
            return True
        if "method" not in message and "result" in message:
            # The answer to a ping, which is never read.
            await wire.until_gone()
            return True
        return False

    async with HostileServer(manner) as server:
        for _ in range(ROUNDS):
            await attack.connect(server, [CALL])
            attack.end_round()


@case("7 a server that asks thousands of questions")
async def questions(attack: ClientAttack) -> None:
    params = {"message": "?" * 1_000, "requestedSchema": {"type": "object", "properties": {}}}

    async def manner(_server: HostileServer, wire: Wire, message: dict) -> None:
        await wire.stream()
        for number in range(1_000 * attack.scale):
            request = {"jsonrpc": "2.0", "id": f"q{number}", "method": "elicitation/create", "params": params}
            await wire.chunk(event(request))
        await wire.chunk(event(answer(message, {"content": []})))
        await wire.end()

    async with HostileServer(on_call(manner)) as server:
        for _ in range(ROUNDS):
            await attack.connect(server, [CALL], answers=True)
            attack.end_round()


async def _flood(wire: Wire, message: dict, notification: dict, count: int) -> None:
    await wire.stream()
    flood = event(notification) * 16
    for _ in range(count // 16):
        await wire.chunk(flood)
    await wire.chunk(event(answer(message, {"content": []})))
    await wire.end()


# Messages that wait for a listener: in the core as bytes, and again as values of the language.
FLOOD = ClientBounds(peak=224 * MIB)

# Seconds that a slow listener takes for its first notification: later ones wait for it.
PAUSE = 8.0


async def _flood_often(attack: ClientAttack, manner: Callable[[HostileServer, Wire, dict], Awaitable[None]]) -> None:
    """Floods a client with a slow listener once, and then clients with quick listeners in each round."""
    async with HostileServer(on_call(manner)) as server:
        await attack.connect(server, [CALL | {"listener_pause": PAUSE}], listener_pause=PAUSE)
        for _ in range(ROUNDS):
            await attack.connect(server, [CALL])
            attack.end_round()


def _flood_size(attack: ClientAttack, server: HostileServer) -> int:
    """Returns the number of notifications in the flood of this call."""
    return 8_000 * attack.scale if server.requests["tools/call"] == 1 else 320


@case("11 a flood of log messages at a slow listener", FLOOD)
async def logs(attack: ClientAttack) -> None:
    params = {"level": "info", "data": "x" * (64 * 1024)}
    notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}

    async def manner(server: HostileServer, wire: Wire, message: dict) -> None:
        await _flood(wire, message, notification, _flood_size(attack, server))

    await _flood_often(attack, manner)


@case("11 a flood of progress at a slow listener", FLOOD)
async def progress(attack: ClientAttack) -> None:
    async def manner(server: HostileServer, wire: Wire, message: dict) -> None:
        token = message["params"].get("_meta", {}).get("progressToken")
        await wire.stream()
        for number in range(_flood_size(attack, server) // 16):
            flood = b"".join(
                event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                    "progressToken": token, "progress": number * 16 + step, "message": "x" * (64 * 1024)}})
                for step in range(16)
            )
            await wire.chunk(flood)
        await wire.chunk(event(answer(message, {"content": []})))
        await wire.end()

    await _flood_often(attack, manner)


@case("12 lists whose pages never end", ClientBounds(peak=192 * MIB))
async def pages(attack: ClientAttack) -> None:
    async def manner(server: HostileServer, wire: Wire, message: dict) -> bool:
        if message.get("method") != "tools/list":
            return False
        page = server.requests["tools/list"]
        # A client that does not give up a list would never end.
        if page > 40 * attack.scale:
            return False
        tool = {"name": f"t{page}", "description": "x" * (12 * MIB), "inputSchema": {"type": "object"}}
        body = json.dumps(answer(message, {"tools": [tool], "nextCursor": f"c{page}"})).encode()
        await wire.answer(200, body)
        return True

    async with HostileServer(manner) as server:
        for _ in range(ROUNDS):
            await attack.connect(server, [{"do": "list_tools"}])
            attack.end_round()


@case("6 an output schema that is costly to check")
async def costly_schema(attack: ClientAttack) -> None:
    # Each level tries the one below it twice, because the innermost level fails: 18 of them try it 262,144 times.
    levels: dict = {"0": {"maxLength": 1}}
    for level in range(1, 19):
        lower = {"$ref": f"#/$defs/{level - 1}"}
        levels[str(level)] = {"anyOf": [{"allOf": [lower]}, {"allOf": [lower]}]}
    costly = {"allOf": [{"$ref": "#/$defs/18"}, {"type": "integer"}]}
    tool = {
        "name": "tool",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "$defs": levels, "properties": {"v": costly}},
    }
    await _checked(attack, tool, {"v": "x" * (4 * MIB)})


@case("6 a result that a thousand alternatives of an output schema refuse")
async def failed_alternatives(attack: ClientAttack) -> None:
    # Each violation has a reason and a path, which begins with a name of a megabyte.
    name = "n" * MIB
    alternatives = [{"additionalProperties": {"const": number}} for number in range(1_000)]
    output = {"type": "object", "additionalProperties": {"oneOf": alternatives}}
    tool = {"name": "tool", "inputSchema": {"type": "object"}, "outputSchema": output}
    await _checked(attack, tool, {"outer": {name: -1}})


async def _checked(attack: ClientAttack, tool: dict, value: dict) -> None:
    """Makes a client validate this structured content of the tool."""
    listed = {"tools": [tool]}
    called = {"content": [], "structuredContent": value}

    async def manner(_server: HostileServer, wire: Wire, message: dict) -> bool:
        results = {"tools/list": listed, "tools/call": called}
        if message.get("method") not in results:
            return False
        await wire.answer(200, json.dumps(answer(message, results[message["method"]])).encode())
        return True

    async with HostileServer(manner) as server:
        for _ in range(ROUNDS):
            report = await attack.connect(server, [{"do": "list_tools"}, CALL])
            errors = [step["error"]["kind"] for step in report["steps"] if "error" in step]
            attack.expect(len(errors) == 1, f"the result is refused, and nothing else: {errors}")
            attack.end_round()


# A client that reconnects immediately does so thousands of times in that time.
LOOP_SECONDS = 3
MOST_RECONNECTIONS = 40


@case("streams that end at once and say `retry: 0`")
async def retry_loop(attack: ClientAttack) -> None:
    async def listen(server: HostileServer, wire: Wire) -> None:
        await wire.stream()
        await wire.chunk(b"retry: 0\nid: %d\ndata: \n\n" % server.requests["GET"])
        await wire.end()
        wire.close()

    async def manner(server: HostileServer, wire: Wire, message: dict) -> None:
        await asyncio.sleep(LOOP_SECONDS)
        # On a busy machine the client needs longer to reconnect at all; the call's timeout ends this.
        until = time.monotonic() + CALL["timeout"]
        while server.requests.get("GET", 0) < 2 and time.monotonic() < until:
            await asyncio.sleep(0.05)
        await wire.answer(200, json.dumps(answer(message, {"content": []})).encode())

    async with HostileServer(on_call(manner), listen=listen) as server:
        await attack.connect(server, [CALL])
        opened = server.requests.get("GET", 0)
    attack.expect(opened > 1, "the client did not come back to its stream")
    attack.expect(opened <= MOST_RECONNECTIONS, f"the client came back {opened} times in {LOOP_SECONDS} s")


ESCAPES = "\x1b]0;title\x07\x1b[31mred\nforged\x00\x9b2J\u202e"


@case("terminal escapes in what a server says")
async def escapes(attack: ClientAttack) -> None:
    async def manner(server: HostileServer, wire: Wire, message: dict) -> None:
        match server.requests["tools/call"]:
            case 1:
                await wire.answer(500, ESCAPES.encode(), kind="text/plain")
            case 2:
                error = {"code": -32000, "message": ESCAPES}
                await wire.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
            case _:
                error = {"code": -32000, "message": ESCAPES}
                await wire.answer(
                    400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    async with HostileServer(on_call(manner)) as server:
        report = await attack.connect(server, [CALL, CALL, CALL])
    for step in report["steps"]:
        text = step.get("error", {}).get("text", "")
        attack.expect("red" in text, f"the error is {text!r}")
        shown = [char for char in text if ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "\u202e"]
        attack.expect(not shown, f"the error shows what acts on a terminal: {text!r}")


@case("events, headers and chunks without an end")
async def endless(attack: ClientAttack) -> None:
    async def manner(server: HostileServer, wire: Wire, message: dict) -> None:
        piece = b"x" * MIB
        try:
            if server.requests["tools/call"] % 2:
                await wire.stream()
                await wire.chunk(b"data: ")
                for _ in range(200 * attack.scale):
                    await wire.chunk(piece)
            else:
                await wire.raw(b"HTTP/1.1 200 OK\r\nx-a: ")
                for _ in range(100 * attack.scale):
                    await wire.raw(piece)
        except OSError:
            pass
        wire.close()

    async with HostileServer(on_call(manner)) as server:
        for _ in range(ROUNDS):
            await attack.connect(server, [CALL, CALL], attempts=1)
            attack.end_round()
