"""Values that match JSON Schemas, as arguments of calls and as bodies of responses."""

from __future__ import annotations

import re
from typing import Any

# Beyond this depth, objects have only what they must have, and arrays are as short as they may be.
MAX_DEPTH = 3
# How deep values are followed before a schema counts as one that no finite value matches.
MAX_NESTING = 24
# Characters that are encoded in paths, queries and forms.
TEXT = "a b/ü&=+?#,;:%"

FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:30:00Z",
    "time": "12:30:00Z",
    "email": "ada@example.com",
    "uri": "https://example.com/a?b=c",
    "url": "https://example.com/a?b=c",
    "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
    "byte": "YQ==",
}

# Strings that are tried for a pattern.
CANDIDATES = (
    "a", "A", "ab", "abc", "ABC", "abcdef", "1", "12", "123", "1234", "12345", "123456", "a1", "A1", "a-b", "w",
    "0", "0.5", "1.0", "1.2.3", "true", "GET", "en", "en-US", "US", "USD", "v1", "#ffffff", "ffffff",
    "12:30", "12:30:00", "2026", "2026-01", "/a", "a/b", "a:b", "a.b", "a@b.c", "+4930123456", "AAAA-BBBB",
    "sha256:" + "a" * 64, "ssh-rsa AAAA", "arn:aws:iam::123456789012:role/a",
    *("a" * length for length in (8, 12, 16, 20, 24, 32, 40, 64)),
    *("1" * length for length in (6, 8, 10, 12, 18)),
    *FORMATS.values(),
)  # fmt: skip


class NoValue(Exception):
    """No value is known that matches a schema."""


class Generator:
    """Values for one schema with its definitions."""

    def __init__(self, schema: dict[str, Any]):
        self.definitions = schema.get("$defs", {})
        self.schema = schema

    def value(self) -> Any:
        return self._value(self.schema, 0)

    def _value(self, schema: Any, depth: int) -> Any:
        if depth > MAX_NESTING or schema is False:
            raise NoValue
        if schema is True:
            return TEXT
        schema = self._resolved(schema)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._alternative(schema, keyword, depth)
        if "allOf" in schema:
            return self._value(self._merged(schema), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return next((one for one in schema["enum"] if one not in (None, "")), schema["enum"][0])
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or [self._implied_type(schema)]
        kind = next((kind for kind in kinds if kind != "null"), "null")
        return getattr(self, f"_{kind}")(schema, depth)

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        for _ in range(32):
            reference = schema.get("$ref")
            if reference is None:
                return schema
            prefix, _, name = reference.rpartition("/")
            if prefix != "#/$defs":
                raise NoValue(reference)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            target = self.definitions[name]
            schema = {**target, **beside} if isinstance(target, dict) else beside
        raise NoValue

    def _merged(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The members of `allOf` as one schema: what values need that match all."""
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            if isinstance(part, bool):
                continue
            part = self._resolved(part)
            if "allOf" in part:
                part = self._merged(part)
            for key, value in part.items():
                if key == "properties":
                    merged[key] = {**merged.get(key, {}), **value}
                elif key == "required":
                    merged[key] = [*merged.get(key, []), *value]
                else:
                    merged.setdefault(key, value)
        return merged

    def _alternative(self, schema: dict[str, Any], keyword: str, depth: int) -> Any:
        base = {key: value for key, value in schema.items() if key != keyword}
        alternatives = [one for one in schema[keyword] if one is not False]
        for one in alternatives:
            if isinstance(one, dict) and one.get("type") == "null":
                continue
            try:
                both = {**base, "allOf": [*base.get("allOf", []), one]} if base else one
                return self._value(both, depth + 1)
            except NoValue:
                continue
        raise NoValue

    @staticmethod
    def _implied_type(schema: dict[str, Any]) -> str:
        if "properties" in schema or "additionalProperties" in schema or "required" in schema:
            return "object"
        return "array" if "items" in schema else "string"

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        made = {}
        for name in [*required, *(name for name in properties if name not in required)]:
            if name not in required and depth >= MAX_DEPTH:
                break
            extra = schema.get("additionalProperties", True)
            try:
                made[name] = self._value(properties.get(name, extra), depth + 1)
            except NoValue:
                if name in required:
                    raise
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and not properties and depth < MAX_DEPTH:
            try:
                made["key"] = self._value(extra, depth + 1)
            except NoValue:
                pass
        while len(made) < schema.get("minProperties", 0):
            made[f"key{len(made)}"] = self._value(schema.get("additionalProperties", True), depth + 1)
        if "maxProperties" in schema:
            made = dict(list(made.items())[: schema["maxProperties"]])
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        least = schema.get("minItems", 0)
        count = max(least, min(schema.get("maxItems", 2), 2) if depth < MAX_DEPTH else 0)
        if schema.get("uniqueItems"):
            count = max(least, min(count, 1))
        items = [self._value(one, depth + 1) for one in schema.get("prefixItems", [])]
        try:
            while len(items) < count:
                items.append(self._value(schema.get("items", True), depth + 1))
        except NoValue:
            if len(items) < least:
                raise
        return items

    def _string(self, schema: dict[str, Any], _depth: int) -> str:
        shortest, longest = schema.get("minLength", 0), schema.get("maxLength", 1 << 16)
        pattern = schema.get("pattern")
        if schema.get("contentEncoding") == "base64":
            return "AP8="
        if schema.get("description") == "The media type":
            # Of a file.
            return "application/x-test"
        if pattern is None:
            text = FORMATS.get(schema.get("format", ""), TEXT)
            text = text if len(text) >= shortest else text + "x" * (shortest - len(text))
            return text[:longest]
        for text in (*map(str, schema.get("examples", ())), str(schema.get("default", "")), *CANDIDATES):
            if text and shortest <= len(text) <= longest and self._matches(pattern, text):
                return text
        raise NoValue(pattern)

    @staticmethod
    def _matches(pattern: str, text: str) -> bool:
        try:
            return re.search(pattern, text) is not None
        except re.error:
            return False

    def _number(self, schema: dict[str, Any], _depth: int) -> float | int:
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        step = schema.get("multipleOf", 1)
        value = low if low is not None else min(step, high) if high is not None else step
        if value == schema.get("exclusiveMinimum"):
            value = value + step if high is None or value + step < high else (value + high) / 2
        if "multipleOf" in schema and value % step:
            value += step - value % step
        return value

    def _integer(self, schema: dict[str, Any], depth: int) -> int:
        value = int(self._number(schema, depth))
        # Integers with more digits are refused.
        return max(min(value, 2**62), -(2**62))

    def _boolean(self, _schema: dict[str, Any], _depth: int) -> bool:
        return True

    def _null(self, _schema: dict[str, Any], _depth: int) -> None:
        return None
