"""Runs one vector with a server: sends the client's messages, and compares the responses with the patterns."""

from __future__ import annotations

import json
from typing import Any

from harness.schemas import Conversation, Schemas

from pattern import BadPattern, differences, fill, rule_of, show
from transports import MAIN, MODERN, Answer, Arrived, Broken, Channel, Http, Sse, Stdio, Transport, given
from vector import Vector, verb

META = "io.modelcontextprotocol/"
# The name of the everything-servers.
EVERYTHING = "mcpline-everything"
CLIENT = {"name": "vectors", "version": "1.0.0"}


class Mismatch(Exception):
    """The server's messages do not match the vector."""


class Player:
    """Runs the steps of one vector over one transport."""

    def __init__(self, vector: Vector, transport: Transport, schemas: Schemas | None, name: str = EVERYTHING):
        self.vector = vector
        self.name = name
        self.transport = transport
        self.modern = vector.revision == MODERN
        over_http = vector.transport != "stdio"
        self.conversation = Conversation(schemas, modern=self.modern and over_http, http=over_http)
        self.values: dict[str, Any] = {"revision": vector.revision}
        self.ids: dict[str, Any] = {}
        self.last = MAIN
        """The name of the latest request."""
        self.server_request_id: Any = None
        self._next_id = 1
        self._fences = 0
        self._exited = False

    def play(self) -> None:
        """Runs the steps; raises Mismatch, which names the step."""
        place = "the handshake"
        try:
            if self.vector.handshake and not self.modern:
                self._shake_hands()
            for row in self.vector.rows:
                self.values |= row
                beside = f" for {show(row)}" if row else ""
                for number, step in enumerate(self.vector.steps, 1):
                    place = f"step {number} {show(step)}{beside}"
                    self._step(step)
                    self._fits_schema()
                place = f"after the last step{beside}"
                self._nothing_left()
            place = "the end"
            self._finish()
            self._fits_schema()
        except (Broken, BadPattern, Mismatch) as problem:
            raise Mismatch(f"{place}\n{problem}") from problem
        except (OSError, ValueError, KeyError) as problem:
            raise Mismatch(f"{place}\n{type(problem).__name__}: {problem}") from problem

    def _step(self, step: dict[str, Any]) -> None:
        name = verb(step)
        options = {key: value for key, value in step.items() if key != name}
        getattr(self, "_" + name.replace(" ", "_"))(step[name], **options)

    def _fits_schema(self) -> None:
        if self.conversation.problems:
            raise Mismatch("against the schema: " + "\n".join(self.conversation.problems))

    # --- Steps of the client -----------------------------------------------------------------------------------

    def _shake_hands(self) -> None:
        revision = self.vector.revision
        params = {"protocolVersion": revision, "capabilities": self.vector.capabilities, "clientInfo": CLIENT}
        self._request("initialize", params=params, id="open", **{"as": "open"})
        opened = self._response("open")
        agreed = opened.message.get("result", {}).get("protocolVersion")
        if agreed != revision:
            raise Mismatch(f"expected agreement on {revision}, got {show(opened.message)}")
        if isinstance(self.transport, Http):
            answer = self.transport.channels.pop("open")
            self.transport.session = answer.response.getheader("mcp-session-id")
            self.values["session"] = self.transport.session
        self._notify("notifications/initialized")

    def _request(self, method, *, params=None, id=None, headers=None, meta=None, **options) -> None:
        name = options.get("as") or f"request {self._next_id}"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._next_id if id is None else self._fill(id)}
        self._next_id += 1
        message["method"] = self._fill(method)
        params = self._fill(params)
        if self.modern or meta:
            params = dict(params or {})
            own = self._own_meta() if self.modern else {}
            params["_meta"] = own | self._fill(meta or {}) | params.get("_meta", {})
        if params is not None:
            message["params"] = params
        self._send(message, headers=headers, **{"as": name})

    def _own_meta(self) -> dict[str, Any]:
        return {
            META + "protocolVersion": MODERN,
            META + "clientInfo": CLIENT,
            META + "clientCapabilities": self.vector.capabilities,
        }

    def _notify(self, method, *, params=None, headers=None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = self._fill(params)
        self._one_way(message, headers)

    def _answer(self, result, *, to=None) -> None:
        self._one_way({"jsonrpc": "2.0", "id": self._to(to), "result": self._fill(result)}, None)

    def _refuse(self, error, *, to=None) -> None:
        self._one_way({"jsonrpc": "2.0", "id": self._to(to), "error": self._fill(error)}, None)

    def _to(self, to: Any) -> Any:
        return self.server_request_id if to is None else self._fill(to)

    def _one_way(self, message: dict, headers: dict | None) -> None:
        last = self.last
        self._send(message, headers=headers, **{"as": "one-way"})
        if isinstance(self.transport, Http):
            self._accepted("one-way")
        self.last = last

    def _send(self, message, *, headers=None, **options) -> None:
        message = self._fill(message)
        name = options.get("as") or "sent"
        self.last = name
        if isinstance(message, dict) and "id" in message and "method" in message:
            self.ids[name] = message["id"]
        self.conversation.client(message)
        data = json.dumps(message, ensure_ascii=False).encode()
        self.transport.send(data, name, self._fill(headers or {}), message)

    def _raw(self, pieces, *, headers=None, **options) -> None:
        name = options.get("as") or "sent"
        self.last = name
        data = self._bytes(pieces)
        for line in data.split(b"\n"):
            self.conversation.client(line)
        self.transport.raw(data, name, self._fill(headers or {}))

    def _bytes(self, pieces: Any) -> bytes:
        if isinstance(pieces, dict) and "hex" in pieces:
            return bytes.fromhex(self._fill(pieces["hex"]))
        if isinstance(pieces, list):
            return b"".join(map(self._bytes, pieces))
        return self._fill(pieces).encode()

    def _http(self, method, *, path="/mcp", headers=None, body=None, **options) -> None:
        name = options.get("as") or "sent"
        self.last = name
        method = self._fill(method)
        own = self.transport.headers() if isinstance(self.transport, Http) else {}
        data = None
        if method == "GET":
            own["Accept"] = "text/event-stream"
        if method != "POST":
            own.pop("Content-Type", None)
        elif not own:
            own["Content-Type"] = "application/json"
        if body is not None:
            body = self._fill(body)
            self.conversation.client(body)
            data = json.dumps(body, ensure_ascii=False).encode()
        sent = given(own, self._fill(headers or {}))
        answer = Answer(self.transport.port, method, self._fill(path), sent, data)
        answer.endless = method == "GET"
        self.transport.channels[name] = answer
        # The following steps may depend on this request, so wait until the server has read it.
        _ = answer.response

    def _drop(self, name) -> None:
        self.transport.channels[name].drop()

    def _close(self, _input) -> None:
        self.transport.child.close_input()

    # --- Expected messages -------------------------------------------------------------------------------------

    def _result(self, pattern, *, of=None) -> None:
        arrived = self._response(of)
        message = arrived.message
        if "result" not in message:
            raise Mismatch(f"expected the result {show(pattern)}\ngot {show(message)}")
        self._id_is(message, of)
        self._match(pattern, self._bare(message["result"], pattern))

    def _text(self, pattern, *, of=None) -> None:
        content = [{"type": "text", "text": pattern}]
        self._result({"content": content, "isError": {"$optional": False}}, of=of)

    def _tool_error(self, pattern, *, of=None) -> None:
        self._result({"content": [{"type": "text", "text": pattern}], "isError": True}, of=of)

    def _error(self, pattern, *, of=None) -> None:
        arrived = self._response(of)
        if "error" not in arrived.message:
            raise Mismatch(f"expected the error {show(pattern)}\ngot {show(arrived.message)}")
        self._id_is(arrived.message, of)
        if isinstance(pattern, dict) and not rule_of(pattern):
            pattern = {"message": "$string"} | pattern
        self._match(pattern, arrived.message["error"])

    def _notification(self, method, *, params=None, on=None) -> None:
        message = self._message_on(on)
        params = {"$optional": "$any"} if params is None else params
        self._match({"jsonrpc": "2.0", "method": method, "params": params}, message)

    def _asked(self, method, *, params=None, on=None, **options) -> None:
        message = self._without_token(self._message_on(on), params)
        params = {"$optional": "$any"} if params is None else params
        self._match({"jsonrpc": "2.0", "id": {"$capture": "asked"}, "method": method, "params": params}, message)
        self.server_request_id = self.values["asked"]
        if "as" in options:
            self.values[options["as"]] = self.server_request_id

    def _message(self, pattern, *, on=None) -> None:
        self._match(pattern, self._message_on(on))

    def _line(self, pattern) -> None:
        arrived = self._next(None)
        self._match(pattern, arrived.raw.decode().rstrip("\n"))

    def _batch(self, patterns, *, on=None) -> None:
        message = self._message_on(on)
        if not isinstance(message, list) or len(message) != len(patterns):
            raise Mismatch(f"expected a batch of {len(patterns)}\ngot {show(message)}")
        left = list(message)
        for pattern in patterns:
            fits = [one for one in left if not differences(pattern, one, dict(self.values))]
            if not fits:
                raise Mismatch(f"expected in the batch {show(pattern)}\ngot {show(message)}")
            left.remove(fits[0])
            self._match(pattern, fits[0])

    def _event(self, pattern, *, on=None) -> None:
        arrived = self._next(on)
        if arrived.message is None and not arrived.raw and pattern.get("data") != "":
            # The priming event of a stream, which the vector does not mention.
            arrived = self._next(on)
        seen = dict(arrived.event) | {"data": arrived.raw.decode() if arrived.message is None else arrived.message}
        self._match(pattern, seen)

    def _status(self, expected, *, of=None, headers=None, body=None) -> None:
        answer = self._answer_of(of)
        seen = answer.response.status
        if differences(expected, seen, self.values):
            raise Mismatch(f"expected status {show(expected)}\ngot {seen} {answer.excerpt()}")
        for name, pattern in (headers or {}).items():
            value = answer.response.getheader(name)
            if pattern is None and value is not None:
                raise Mismatch(f"expected no header {name}\ngot {value}")
            if pattern is not None:
                self._match(pattern, value)
        if body == "":
            if (arrived := answer.next()) is not None:
                raise Mismatch(f"expected an empty body\ngot {arrived.raw[:400]!r}")
        elif body is not None:
            self._match(body, self._message_of(answer))
        elif isinstance(seen, int) and seen >= 400 and (refusal := answer.next()) is not None:
            self._seen(refusal)
            self._match({"jsonrpc": "2.0", "error": {"code": "$integer", "message": "$string"}}, refusal.message)

    def _nothing(self, _true) -> None:
        if isinstance(self.transport, Http):
            return self._accepted(self.last)
        self._fences += 1
        fence = f"fence {self._fences}"
        method, params = "ping", None
        if self.modern:
            method, params = "server/discover", {"_meta": self._own_meta()}
        message = {"jsonrpc": "2.0", "id": fence, "method": method}
        if params:
            message["params"] = params
        self.conversation.client(message)
        self.transport.send(json.dumps(message).encode(), MAIN, {}, message)
        arrived = self._message_on(MAIN)
        if not isinstance(arrived, dict) or arrived.get("id") != fence or "result" not in arrived:
            raise Mismatch(f"expected nothing, or the answer to a {method}\ngot {show(arrived)}")

    def _ends(self, name) -> None:
        channel = self.transport.channels[MAIN if name is True else name]
        if (arrived := channel.next()) is not None:
            raise Mismatch(f"expected the end\ngot {arrived.raw[:400]!r} {arrived.event}")

    def _exits(self, code) -> None:
        self._exited = True
        left = self.transport.channels[MAIN].rest()
        if left:
            raise Mismatch(f"expected no more\ngot {[arrived.raw[:400] for arrived in left]}")
        seen = self.transport.child.ended()
        if seen != code:
            raise Mismatch(f"expected exit code {code}\ngot {seen}")

    # --- Helpers -----------------------------------------------------------------------------------------------

    def _channel(self, name: str | None) -> Channel:
        return self.transport.channel(name or self.last)

    def _next(self, name: str | None) -> Arrived:
        arrived = self._channel(name).next()
        if arrived is None:
            raise Mismatch("expected a message\ngot the end")
        self._seen(arrived)
        return arrived

    def _seen(self, arrived: Arrived) -> None:
        if arrived.message is not None:
            self.conversation.server(arrived.message)

    def _message_on(self, name: str | None) -> Any:
        """Returns the next message; skips events without one (the priming event of a stream)."""
        while True:
            arrived = self._next(name)
            if arrived.message is not None:
                return arrived.message

    def _message_of(self, answer: Answer) -> Any:
        arrived = answer.next()
        if arrived is None:
            raise Mismatch("expected a body\ngot none")
        self._seen(arrived)
        return arrived.message

    def _response(self, name: str | None) -> Arrived:
        """Returns the response to a request; other messages before it stay available."""
        wanted = self.ids.get(name or self.last, MAIN)

        def answers(message: Any) -> bool:
            return isinstance(message, dict) and "method" not in message and (
                wanted == MAIN or message.get("id") == wanted or message.get("id") is None
            )

        if isinstance(self.transport, Http):
            while (arrived := self._channel(name).next()) is not None and arrived.message is None:
                pass
            if arrived is not None and not answers(arrived.message):
                raise Mismatch(f"expected the response to {name or self.last}\ngot {show(arrived.message)}")
        else:
            arrived = self._channel(name).find(answers)
        if arrived is None:
            raise Mismatch("expected a response\ngot the end")
        self._seen(arrived)
        return arrived

    def _id_is(self, message: dict, of: str | None) -> None:
        wanted = self.ids.get(of or self.last)
        if wanted is not None and message.get("id") != wanted:
            raise Mismatch(f"expected the id {show(wanted)}\ngot {show(message)}")

    def _match(self, pattern: Any, seen: Any) -> None:
        if found := differences(pattern, seen, self.values):
            raise Mismatch("\n".join(found))

    def _without_token(self, message: Any, pattern: Any) -> Any:
        """Returns a request of the server without its progress token, unless the pattern contains it."""
        own = isinstance(pattern, dict) and "_meta" in pattern.get("$has", pattern)
        if own or not isinstance(message, dict) or not isinstance(message.get("params"), dict):
            return message
        params = dict(message["params"])
        meta = dict(params.pop("_meta", {}))
        self._match(message.get("id"), meta.pop("progressToken", None))
        if meta:
            params["_meta"] = meta
        message = dict(message)
        if params:
            message["params"] = params
        else:
            del message["params"]
        return message

    def _bare(self, result: Any, pattern: Any) -> Any:
        """Returns a result without the members that every result of 2026-07-28 has, unless the pattern contains them."""
        if not self.modern or not isinstance(result, dict) or "resultType" not in result:
            return result
        spoken = pattern.get("$has", pattern) if isinstance(pattern, dict) else {}
        spoken = spoken if isinstance(spoken, dict) else {}
        result = dict(result)
        if "resultType" not in spoken:
            self._match("complete", result.pop("resultType"))
        if "_meta" in result:
            meta = dict(result["_meta"])
            if META + "serverInfo" not in spoken.get("_meta", {}):
                info = meta.pop(META + "serverInfo", None)
                self._match({"$has": {"name": self.name, "version": "1.0.0"}}, info)
            result["_meta"] = meta
            if not meta and "_meta" not in spoken:
                del result["_meta"]
        for name in ("ttlMs", "cacheScope"):
            if name not in spoken:
                result.pop(name, None)
        return result

    def _accepted(self, name: str) -> None:
        answer = self._answer_of(name)
        body = answer.next() if answer.response.status == 202 else None
        if answer.response.status != 202 or body is not None:
            text = body.raw[:400] if body else answer.excerpt()
            raise Mismatch(f"expected 202 without a body\ngot {answer.response.status} {text!r}")

    def _answer_of(self, name: str | None) -> Answer:
        if isinstance(self.transport, Sse) and (name or self.last) not in self.transport.channels:
            assert self.transport.last is not None
            return self.transport.last
        return self.transport.channels[name or self.last]

    def _fill(self, value: Any) -> Any:
        return fill(value, self.values)

    # --- The end ----------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Checks that no messages are left that the vector does not mention."""
        if isinstance(self.transport, Stdio):
            if not self._exited:
                self.transport.child.close_input()
                self._exits(0)
        elif isinstance(self.transport, Sse):
            if not self.transport.channels[MAIN].dropped and self.vector.handshake:
                self._nothing(True)
        else:
            self._finish_http()

    def _finish_http(self) -> None:
        transport = self.transport
        if transport.session:
            transport.request("DELETE", "/mcp", transport.headers(), None, "delete").response.read()
            transport.channels.pop("delete").drop()
        self._nothing_left(streams=True)

    def _nothing_left(self, *, streams: bool = False) -> None:
        """Checks that over HTTP every response has ended and, once the session is deleted, every stream."""
        if not isinstance(self.transport, Http):
            return
        for name, channel in list(self.transport.channels.items()):
            if channel.endless and (self.modern or not streams):
                continue
            del self.transport.channels[name]
            if channel.dropped:
                continue
            left = [arrived for arrived in channel.rest() if arrived.message is not None]
            channel.drop()
            if left:
                raise Mismatch(f"{name}: expected no more\ngot {[arrived.raw[:400] for arrived in left]}")
