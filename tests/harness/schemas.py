"""Validates messages against the published schema of their revision.

`Schemas` has the schemas and selects the definition that a message must match: results by the method of their request,
errors by their code, notifications and requests by their own method. `Conversation` follows one connection, in the order
in which the client saw it, and so knows the request and the revision of each message.

The schemas are not part of the repository. Without them, a runner prints a note and continues.
"""

from __future__ import annotations

import json
import site
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from . import environment
from .environment import ROOT

FOLDER = ROOT.parent / "shared" / "spec"
MODERN = "2026-07-28"
# Errors that answer no request of a known revision, which any client may receive before a handshake. From this revision
# on the schema allows them to have no id, as the prose of all revisions does for HTTP.
UNNEGOTIATED = "2025-11-25"
# The first revision's schema does not mention batches, but JSON-RPC allows them.
LAST_WITH_BATCHES = "2025-03-26"
VERSION = "io.modelcontextprotocol/protocolVersion"
# Prefixes of methods that a schema may lack: custom ones, and the requests of tasks, which belong to an extension in
# revisions that do not define them.
CUSTOM = ("acme/", "tasks/")


class Schemas:
    """The schemas of all revisions; counts the validated messages."""

    def __init__(self, folder: Path = FOLDER):
        self._compile = _validator().validator_for
        self._revisions = {
            path.parent.name: _Definitions(json.loads(path.read_text())) for path in folder.glob("*/schema.json")
        }
        self._validators: dict[tuple[str, str], Any] = {}
        self.checked: Counter[str] = Counter()

    def knows(self, revision: str) -> bool:
        return revision in self._revisions

    def violations(
        self, revision: str, message: Any, method: str | None = None, *, side: str = "Server"
    ) -> list[str]:
        """Returns the violations of a message of the server (or the client); `method` is that of a response's request."""
        if isinstance(message, list):
            if revision > LAST_WITH_BATCHES:
                return [f"{revision} has no batches"]
            return [found for one in message for found in self.violations(revision, one, method, side=side)]
        self.checked[revision] += 1
        if not isinstance(message, dict):
            return ["a message must be an object"]
        definitions = self._revisions[revision]
        try:
            names, part = definitions.of(message, method, side)
        except LookupError as unknown:
            return [str(unknown)]
        found = []
        for name in names:
            found += self._fits(revision, name, message)
        if part:
            found += self._fits(revision, part, message["result"])
        return found

    def output_violations(self, schema: Any, result: dict) -> list[str]:
        """Returns the violations of a tool's output schema by the structured content of a result."""
        if "structuredContent" not in result:
            return ["a tool with an outputSchema returns structuredContent"]
        errors = self._compile(schema).iter_errors(result["structuredContent"])
        return [f"outputSchema: {error.message[:300]}" for error in errors]

    def _fits(self, revision: str, name: str, value: Any) -> list[str]:
        validator = self._validators.get((revision, name))
        if validator is None:
            validator = self._compile(self._revisions[revision].schema(name))
            self._validators[revision, name] = validator
        return [
            f"{revision} {name}: {error.message[:300]} at /{'/'.join(map(str, error.instance_path))}"
            for error in validator.iter_errors(value)
        ]


def _validator() -> Any:
    """The validating library: that of the interpreter, else that of an environment created for it."""
    try:
        import jsonschema_rs
    except ImportError:
        # One for each version of Python, because suites of several versions run at the same time and would otherwise
        # rebuild an environment that another one is loading.
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        python = environment.venv(f"schemas-{version}", Path(__file__).with_name("requirements-schemas.txt"))
        for packages in python.parents[1].glob("lib/python*/site-packages"):
            site.addsitedir(str(packages))
        import jsonschema_rs
    return jsonschema_rs


class _Definitions:
    """The schema of one revision, indexed by its names."""

    def __init__(self, document: dict):
        self._key = "$defs" if "$defs" in document else "definitions"
        self._dialect = document["$schema"]
        self._all: dict[str, Any] = document[self._key]
        self._requests = self._by_method("Request")
        self._notifications = {side: self._members(f"{side}Notification") for side in ("Server", "Client")}
        self._requests_of_side = {side: self._members(f"{side}Request") for side in ("Server", "Client")}
        self._errors = {
            code: name for name, definition in self._all.items() if (code := _error_code(definition)) is not None
        }

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def schema(self, name: str) -> dict:
        return {"$schema": self._dialect, "$ref": f"#/{self._key}/{name}", self._key: self._all}

    def of(self, message: dict, method: str | None, side: str) -> tuple[list[str], str | None]:
        """Returns the definitions that the whole message of this side must match, and the definition of its result alone.

        Raises LookupError if the revision has no such message.
        """
        if "method" in message:
            kind, known = ("request", self._requests_of_side) if "id" in message else ("notification", self._notifications)
            name = known[side].get(message["method"])
            if name is None and message["method"].startswith(CUSTOM):
                return [f"JSONRPC{kind.title()}"], None
            if name is None:
                raise LookupError(f"this revision has no {kind} {message['method']} of a {side.lower()}")
            return [f"JSONRPC{kind.title()}", name], None
        if "error" in message:
            error = message["error"] if isinstance(message["error"], dict) else {}
            envelope = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in self._all else "JSONRPCError"
            special = self._errors.get(error.get("code"))
            return [envelope, *([special] if special else [])], None
        envelope = "JSONRPCResultResponse" if "JSONRPCResultResponse" in self._all else "JSONRPCResponse"
        if method is None:
            return [envelope], None
        request = self._requests.get(method)
        if request is None and method.startswith(CUSTOM):
            return [envelope], "Result"
        if request is None:
            raise LookupError(f"a result for {method}, which this revision doesn't have")
        result = request.removesuffix("Request") + "Result"
        if result + "Response" in self._all:
            return [result + "Response"], None
        # Methods without a result type of their own (ping, logging/setLevel, …) have an empty one.
        return [envelope], result if result in self._all else "EmptyResult"

    def _by_method(self, suffix: str) -> dict[str, str]:
        named = {}
        for name, definition in self._all.items():
            method = definition.get("properties", {}).get("method", {}).get("const")
            if method is not None and name.endswith(suffix):
                named[method] = name
        return named

    def _members(self, union: str) -> dict[str, str]:
        """Returns the methods of a union such as ServerNotification; empty if the revision does not have it."""
        definition = self._all.get(union, {})
        # A union with one member is that member.
        names = [option["$ref"].rpartition("/")[2] for option in definition.get("anyOf", ())]
        names += [union] if "properties" in definition else []
        return {self._all[name]["properties"]["method"]["const"]: name for name in names}


def _error_code(definition: dict) -> int | None:
    """Returns the code of a definition of one error."""
    error = definition.get("properties", {}).get("error", {})
    for part in error.get("allOf", ()):
        code = part.get("properties", {}).get("code", {}).get("const")
        if code is not None:
            return code
    return None


_said = False


def load() -> Schemas | None:
    """Returns the schemas; None if they are not on this machine, which is printed once."""
    global _said
    if FOLDER.is_dir():
        return Schemas()
    if not _said:
        environment.say(f"no schemas in {FOLDER}: messages are not validated")
        _said = True
    return None


class Conversation:
    """The messages of one connection in order: pass it the messages of both sides and read `problems`."""

    def __init__(self, schemas: Schemas | None, *, modern: bool = False, http: bool = False):
        """Creates a conversation.

        `modern`: the transport itself (a header) marks requests as 2026-07-28. `http`: a refusal may have a body without
        an id in every revision, whatever its schema requires.
        """
        self.schemas = schemas
        self.problems: list[str] = []
        self.revision: str | None = None
        self._modern = modern
        self._http = http
        self._requests: dict[str, tuple[str, bool]] = {}
        self._called: dict[str, Any] = {}
        self._outputs: dict[Any, Any] = {}

    def client(self, message: Any) -> None:
        """Records a message of the client: parsed JSON, or bytes, which may be invalid."""
        if self.schemas is None:
            return
        if isinstance(message, bytes):
            try:
                message = json.loads(message)
            except (ValueError, RecursionError):
                return
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and isinstance(one.get("method"), str) and "id" in one:
                key = json.dumps(one["id"])
                self._requests[key] = (one["method"], self._modern or is_modern(one))
                self._called[key] = _tool_of(one)

    def server(self, message: Any) -> list[str]:
        """Validates a message of the server; returns its violations, and adds them to `problems`."""
        if self.schemas is None:
            return []
        if isinstance(message, bytes):
            try:
                message = json.loads(message)
            except ValueError as error:
                self.problems.append(f"no JSON: {error}: {message[:200]!r}")
                return self.problems[-1:]
        if isinstance(message, list) and (self.revision or UNNEGOTIATED) <= LAST_WITH_BATCHES:
            return [found for one in message for found in self.server(one)]
        found = [f"{problem} in {json.dumps(message)[:600]}" for problem in self._check(message)]
        self.problems += found
        return found

    def _check(self, message: Any) -> list[str]:
        assert self.schemas is not None
        if not isinstance(message, dict):
            return self.schemas.violations(self.revision or UNNEGOTIATED, message)
        if "method" in message:
            # A subscription's notifications contain its id. Only handshake revisions have requests of the server.
            meta = (message.get("params") or {}).get("_meta") or {}
            if self.revision is None or "io.modelcontextprotocol/subscriptionId" in meta:
                return self.schemas.violations(MODERN, message)
            found = self.schemas.violations(self.revision, message)
            # On a pipe that carries both eras, a notification about a call may belong to either.
            both = any(modern for _, modern in self._requests.values())
            return self.schemas.violations(MODERN, message) if found and both else found
        if "id" in message and message["id"] is None and self.revision is not None and self.revision < UNNEGOTIATED:
            # JSON-RPC's own answer to unreadable input, for schemas without errors that lack an id.
            message = {name: value for name, value in message.items() if name != "id"}
            return self.schemas.violations(UNNEGOTIATED, message)
        if message.get("id") is None:
            agreed = None if self._http else self.revision
            return self.schemas.violations(agreed or UNNEGOTIATED, message)
        method, modern = self._requests.get(json.dumps(message["id"]), (None, self._modern))
        if method == "initialize" and not modern and "result" in message and self.revision is None:
            agreed = message["result"].get("protocolVersion") if isinstance(message["result"], dict) else None
            if not isinstance(agreed, str) or not self.schemas.knows(agreed):
                return [f"initialize agreed on {agreed!r}"]
            self.revision = agreed
        found = self.schemas.violations(MODERN if modern else self.revision or UNNEGOTIATED, message, method)
        return found or self._check_output(message, method)

    def _check_output(self, message: dict, method: str | None) -> list[str]:
        """Checks a tool's result against its listed output schema, if this conversation has listed the tool."""
        assert self.schemas is not None
        result = message.get("result") or {}
        if method == "tools/list":
            for tool in result.get("tools", ()):
                self._outputs[tool["name"]] = tool.get("outputSchema")
        elif method == "tools/call" and "content" in result and not result.get("isError"):
            schema = self._outputs.get(self._called.get(json.dumps(message["id"])))
            if schema is not None:
                return self.schemas.output_violations(schema, result)
        return []


def _tool_of(request: dict) -> Any:
    params = request.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None


def is_modern(request: dict) -> bool:
    """Whether a request names 2026-07-28 itself."""
    if request["method"] == "server/discover":
        return True
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION in meta
