"""What an OpenAPI document says of a request: written from the specification, without our import.

Requests are compared by meaning: decoded pairs of a query, the members of a JSON body, the parts of a form.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
# Headers that OpenAPI ignores as parameters ("Parameter Object"), and those that HTTP itself sets.
IGNORED_HEADERS = {
    "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "cookie", "expect", "host",
    "te", "trailer", "transfer-encoding", "upgrade",
}  # fmt: skip


@dataclass
class Request:
    """A request, decoded."""

    method: str
    path: str
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[tuple[str, str]] = field(default_factory=list)
    media_type: str | None = None
    body: Any = None


class Api:
    """A document and its operations."""

    def __init__(self, document: dict[str, Any]):
        self.document = document
        self.schemes = {
            name: self.resolve(scheme)
            for name, scheme in document.get("components", {}).get("securitySchemes", {}).items()
        }

    def resolve(self, value: Any) -> Any:
        for _ in range(32):
            if not (isinstance(value, dict) and isinstance(value.get("$ref"), str)):
                return value
            found: Any = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                part = unquote(part).replace("~1", "/").replace("~0", "~")
                found = found[int(part)] if isinstance(found, list) else found[part]
            value = found
        raise ValueError("references lead in a circle")

    def operations(self) -> dict[tuple[str, str], Operation]:
        """All operations, by method and path."""
        found = {}
        for path, item in self.document.get("paths", {}).items():
            item = self.resolve(item)
            for method in METHODS:
                if method in item:
                    found[method.upper(), path] = Operation(self, method.upper(), path, item)
        return found

    def credentials(self) -> dict[str, str | tuple[str, str]]:
        """A credential for each security scheme that can have one."""
        made: dict[str, str | tuple[str, str]] = {}
        for name, scheme in self.schemes.items():
            kind = scheme.get("type")
            if kind == "http" and scheme.get("scheme", "").lower() == "basic":
                made[name] = ("ada", f"password of {name}")
            elif kind in ("oauth2", "openIdConnect") or (kind == "http" and scheme["scheme"].lower() == "bearer"):
                made[name] = f"token-of-{name}"
            elif kind == "apiKey":
                made[name] = f"key-of-{name}"
        return made


class Operation:
    """An operation with its parameters."""

    def __init__(self, api: Api, method: str, path: str, item: dict[str, Any]):
        self.api = api
        self.method = method
        # Some documents tell operations with the same path apart by a fragment, which no request has.
        self.path = path.partition("#")[0]
        self.operation = api.resolve(item[method.lower()])
        self.variables = re.findall(r"\{([^{}]*)\}", self.path)
        parameters: dict[tuple[str, str], dict[str, Any]] = {}
        for one in [*item.get("parameters", []), *self.operation.get("parameters", [])]:
            one = api.resolve(one)
            parameters[one["in"], one["name"]] = one
        for name in self.variables:
            parameters.setdefault(("path", name), {"in": "path", "name": name})
        self.security = self.operation.get("security", api.document.get("security", []))
        self.parameters = [one for one in parameters.values() if self._is_argument(one)]

    def _is_argument(self, parameter: dict[str, Any]) -> bool:
        name, place = parameter["name"], parameter["in"]
        if place == "path":
            return name in self.variables
        if place == "header" and name.lower() in IGNORED_HEADERS:
            return False
        for scheme in (self.api.schemes[key] for alternative in self.security for key in alternative):
            if scheme.get("type") == "apiKey" and scheme["in"] == place:
                if scheme["name"] == name or (place == "header" and scheme["name"].lower() == name.lower()):
                    return False
        return True

    def arguments(self, properties: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        """Each parameter with the argument that it is, by the rule in docs/openapi.md."""
        taken: set[str] = set()
        named = []
        for parameter in self.parameters:
            name = accepted_name(parameter["name"])
            if name in taken:
                name = f"{name}_{parameter['in']}"
            taken.add(name)
            if name not in properties:
                raise ValueError(f"{parameter['in']} parameter {parameter['name']!r} is no argument of the tool")
            named.append((parameter, name))
        return named

    def request(self, arguments: dict[str, Any], properties: dict[str, Any], base: str) -> Request:
        """Returns what the document says of a call with these arguments."""
        named = self.arguments(properties)
        expected = Request(self.method, base + self.path)
        for parameter, name in named:
            if arguments.get(name) is not None:
                self._write(expected, parameter, arguments[name])
        self._authorize(expected)
        rest = {name for _, name in named}
        given = {name: value for name, value in arguments.items() if name not in rest}
        self._body(expected, given, [name for name in properties if name not in rest])
        return expected

    def _write(self, expected: Request, parameter: dict[str, Any], value: Any) -> None:
        name, place = parameter["name"], parameter["in"]
        if "content" in parameter:
            value = text(value) if not isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        style = parameter.get("style", "form" if place in ("query", "cookie") else "simple")
        explode = parameter.get("explode", style == "form")
        if place == "path":
            if style != "simple":
                raise ValueError(f"style {style!r} of a path parameter")
            written = in_simple(value, explode, lambda text: quote(text, safe=""))
            expected.path = expected.path.replace("{" + name + "}", written)
        elif place == "header":
            expected.headers[name.lower()] = in_simple(value, explode, str)
        elif place == "cookie":
            expected.cookies += in_form(name, value, style, explode)
        else:
            expected.query += in_form(name, value, style, explode)

    def _authorize(self, expected: Request) -> None:
        """The first alternative for which there are all credentials."""
        credentials = self.api.credentials()
        for alternative in self.security:
            if not alternative or any(name not in credentials for name in alternative):
                continue
            for name in alternative:
                scheme, value = self.api.schemes[name], credentials[name]
                if isinstance(value, tuple):
                    pair = base64.b64encode(":".join(value).encode()).decode()
                    expected.headers["authorization"] = f"Basic {pair}"
                elif scheme["type"] != "apiKey":
                    expected.headers["authorization"] = f"Bearer {value}"
                elif scheme["in"] == "header":
                    expected.headers[scheme["name"].lower()] = value
                elif scheme["in"] == "query":
                    expected.query.append((scheme["name"], value))
                else:
                    expected.cookies.append((scheme["name"], value))
            return

    def _body(self, expected: Request, given: dict[str, Any], names: list[str]) -> None:
        body = self.api.resolve(self.operation.get("requestBody"))
        if not body or not body.get("content"):
            if names:
                raise ValueError(f"the arguments {names} are neither parameters nor part of a body")
            return
        media_type, content = min(body["content"].items(), key=lambda one: (self._is_impossible(*one), rank(one[0])))
        schema = self.api.resolve(content.get("schema")) or {}
        declared = self._properties(schema)
        is_whole = (
            len(names) == 1
            and re.fullmatch(r"body(_\d+)?", names[0])
            and (names[0] not in declared or len(declared) > 1)
        )
        if is_whole:
            if names[0] not in given:
                return
            value = given[names[0]]
        else:
            by_argument = {accepted_name(name): name for name in declared}
            value = {by_argument[name]: one for name, one in given.items()}
            if not value and not body.get("required"):
                return
        kind = rank(media_type)
        if "*" in media_type:
            media_type, kind = (
                ("application/json", 0) if schema.get("format") != "binary" else ("application/octet-stream", 4)
            )
        expected.media_type = media_type.partition(";")[0].strip().lower()
        if kind == 1:
            encoding = content.get("encoding", {})
            expected.body = sorted(pair for name, one in value.items() for pair in form_pairs(name, one, encoding))
        elif kind == 2:
            expected.body = sorted(pair for name, one in value.items() for pair in part_pairs(name, one))
        elif kind == 3:
            expected.body = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        elif kind == 4:
            expected.body = base64.b64decode(value)
        else:
            expected.body = value

    def _is_impossible(self, media_type: str, content: dict[str, Any]) -> bool:
        """Whether the schema of a form describes no object."""
        kind = (self.api.resolve(content.get("schema")) or {}).get("type", "object")
        return rank(media_type) in (1, 2) and kind != "object"

    def _properties(self, schema: Any, depth: int = 0) -> dict[str, Any]:
        schema = self.api.resolve(schema)
        found: dict[str, Any] = {}
        if depth < 12 and isinstance(schema, dict):
            for part in schema.get("allOf", []):
                found |= self._properties(part, depth + 1)
            found |= schema.get("properties", {})
        return found


def accepted_name(name: str) -> str:
    """The name of an argument: hosts accept letters, digits, `_`, `-` and `.`."""
    if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        return name
    return re.sub(r"[^A-Za-z0-9-]+", "_", name).strip("_-")[:64] or "argument"


def rank(media_type: str) -> int:
    """The order of the table in docs/openapi.md."""
    essence = media_type.partition(";")[0].strip().lower()
    if essence in ("application/json", "text/json") or essence.endswith("+json"):
        return 0
    if essence == "application/x-www-form-urlencoded":
        return 1
    if essence == "multipart/form-data":
        return 2
    texts = (
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/graphql",
        "application/javascript",
    )
    if (
        essence in (*texts, "application/x-ndjson", "application/jsonl")
        or essence.startswith("text/")
        or essence.endswith("+xml")
    ):
        return 3
    return 4


def text(value: Any) -> str:
    """A value within another, without further structure."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def in_simple(value: Any, explode: bool, encode: Any) -> str:
    if isinstance(value, list):
        return ",".join(encode(text(one)) for one in value)
    if isinstance(value, dict):
        between = "=" if explode else ","
        return ",".join(f"{encode(name)}{between}{encode(text(one))}" for name, one in value.items())
    return encode(text(value))


def in_form(name: str, value: Any, style: str, explode: bool) -> list[tuple[str, str]]:
    if style == "deepObject":
        return list(deep(name, value))
    delimiter = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}[style]
    if isinstance(value, list):
        return [(name, text(one)) for one in value] if explode else [(name, delimiter.join(map(text, value)))]
    if isinstance(value, dict):
        if explode:
            return [(member, text(one)) for member, one in value.items()]
        return [(name, delimiter.join(f"{member}{delimiter}{text(one)}" for member, one in value.items()))]
    return [(name, text(value))]


def deep(name: str, value: Any) -> Any:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if members is None:
        yield name, text(value)
        return
    for member, one in members:
        yield from deep(f"{name}[{member}]", one)


def form_pairs(name: str, value: Any, encoding: dict[str, Any]) -> list[tuple[str, str]]:
    own = encoding.get(name, {})
    if own.get("style") or "explode" in own:
        style = own.get("style", "form")
        return in_form(name, value, style, own.get("explode", style == "form"))
    is_structured = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value)
    )
    if is_structured:
        return [(name, text(value))]
    return in_form(name, value, "form", True)


def part_pairs(name: str, value: Any) -> list[tuple[str, bytes]]:
    if isinstance(value, list):
        return [pair for one in value for pair in part_pairs(name, one)]
    if isinstance(value, dict) and "data" in value and value.keys() <= {"data", "filename", "content_type"}:
        return [(name, base64.b64decode(value["data"]))]
    return [(name, text(value).encode())]


def decoded(method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> Request:
    """Decodes a request that the API has received."""
    path, _, query = target.partition("?")
    received = Request(method, path, parse_qsl(query, keep_blank_values=True))
    for name, value in headers:
        value = value.encode("latin-1").decode()
        if name.lower() == "cookie":
            pairs = (pair.partition("=") for pair in value.split("; "))
            received.cookies += [(unquote(key), unquote(one)) for key, _, one in pairs]
        else:
            received.headers[name.lower()] = value
    media_type = received.headers.get("content-type")
    if media_type is None:
        received.body = body or None
        return received
    received.media_type = media_type.partition(";")[0].strip().lower()
    kind = rank(received.media_type)
    if kind == 0:
        received.body = json.loads(body)
    elif kind == 1:
        received.body = sorted(parse_qsl(body.decode(), keep_blank_values=True))
    elif kind == 2:
        whole = f"Content-Type: {media_type}\r\n\r\n".encode() + body
        parts = BytesParser(policy=HTTP).parsebytes(whole).iter_parts()
        received.body = sorted(
            (part.get_param("name", header="content-disposition"), part_data(part)) for part in parts
        )
    elif kind == 3:
        received.body = body.decode()
    else:
        received.body = body
    return received


def part_data(part: Any) -> bytes:
    return part.get_payload(decode=True)


def differences(expected: Request, received: Request) -> list[str]:
    """Says what of a request is not as expected."""
    found = []
    if received.method != expected.method:
        found.append(f"method {received.method}, expected {expected.method}")
    if unquoted(received.path) != unquoted(expected.path):
        found.append(f"path {received.path!r}, expected {expected.path!r}")
    for what in ("query", "cookies"):
        ours, theirs = sorted(getattr(received, what)), sorted(getattr(expected, what))
        if ours != theirs:
            found.append(f"{what} {ours}, expected {theirs}")
    for name, value in expected.headers.items():
        if received.headers.get(name) != value.strip():
            found.append(f"header {name!r} {received.headers.get(name)!r}, expected {value!r}")
    if received.media_type != expected.media_type:
        found.append(f"media type {received.media_type!r}, expected {expected.media_type!r}")
    elif received.body != expected.body:
        found.append(f"body {received.body!r:.500}, expected {expected.body!r:.500}")
    return found


def unquoted(path: str) -> list[str]:
    """The segments of a path: an encoded `/` separates none."""
    return [unquote(segment) for segment in path.split("/")]
