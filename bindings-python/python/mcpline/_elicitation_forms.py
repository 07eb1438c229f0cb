"""Forms of elicitations: the schema that the client displays, and the decoder of the answer."""

from __future__ import annotations

import typing
import weakref
from typing import Any

import msgspec

from . import _annotations, _decoding, _types
from .errors import UsageError

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Form", "form"]

_VALUE = "value"
"""The property of a form that asks for one value."""


class Form(msgspec.Struct, frozen=True):
    """A form."""

    schema: dict[str, Any]
    """JSON Schema for the client: an object whose properties have primitive types."""
    read: Callable[[bytes], Any]
    """Decodes the content of an accepted form. Raises a `ValueError` if it does not match."""


# Weak, because a class that is defined in a function may be short-lived.
_forms: weakref.WeakKeyDictionary[type, Form] = weakref.WeakKeyDictionary()


def form(schema: Any) -> Form:
    """Return the form of a class with fields, of the type of one value, of a list of choices, or of a JSON Schema.

    Raises:
        UsageError: Clients cannot display the form.
    """
    if schema is None:
        return _EMPTY
    if isinstance(schema, dict):
        return Form(schema, _object)
    if isinstance(schema, type) and typing.get_origin(schema) is None:
        known = _forms.get(schema)
        if known is None:
            known = _forms[schema] = _form(schema)
        return known
    if isinstance(schema, (list, tuple)):
        schema = typing.Literal[tuple(schema)]
    return _form(schema)


def _object(content: bytes) -> Any:
    return msgspec.json.decode(content) or {}


_EMPTY = Form({"type": "object", "properties": {}}, _object)


def _form(annotation: Any) -> Form:
    reader = _types.TypeReader(lax=True)
    try:
        found = reader.read(annotation)
        decoder = msgspec.json.Decoder(found.decoded, strict=False, dec_hook=_decoding.lax_hook)
    except TypeError as error:
        raise UsageError(f"the form {_annotations.spelled(annotation)} can't be decoded: {error}") from None
    read: Callable[[bytes], Any] = decoder.decode if found.decoder is None else found.decoder.decode
    if "properties" in found.schema:
        return Form(_form_schema(annotation, found.schema), read)
    whole = {"type": "object", "properties": {_VALUE: found.schema}, "required": [_VALUE]}
    return Form(_form_schema(annotation, whole), _value_reader(found.decoded))


def _value_reader(decoded: Any) -> Callable[[bytes], Any]:
    struct = msgspec.defstruct("Form", [(_VALUE, decoded)])
    decoder = msgspec.json.Decoder(struct, strict=False, dec_hook=_decoding.lax_hook)

    def read(content: bytes) -> Any:
        return getattr(decoder.decode(content), _VALUE)

    return read


def _form_schema(annotation: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a form, reduced to what the protocol allows."""
    properties: dict[str, Any] = {}
    for name, item in schema["properties"].items():
        properties[name] = item = _property(item)
        if not _is_primitive(item):
            where = _annotations.spelled(annotation)
            raise UsageError(
                f"the form {where}: clients can't display the field {name}, because it {_obstacle(item)}: a field is a "
                "string, a number, a bool, an enumeration or a list of choices"
            )
    form: dict[str, Any] = {"type": "object", "properties": properties}
    if required := schema.get("required"):
        form["required"] = required
    return form


def _property(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field. An optional field is one that is not required: forms have no null."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        schema = {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    if schema.get("default", ...) is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    if schema.get("type") == ["string", "number"]:
        # The type of a Decimal.
        schema = {**schema, "type": "number"}
        del schema["format"]
    if schema.get("format") not in _FORMATS:
        schema = {key: value for key, value in schema.items() if key != "format"}
    return schema


# Those that the protocol defines; clients may refuse others.
_FORMATS = ("email", "uri", "date", "date-time")


def _obstacle(schema: dict[str, Any]) -> str:
    """Return why a client cannot display a field."""
    if "anyOf" in schema or "type" not in schema:
        return "has several types" if "$ref" not in schema else "is nested"
    return "is nested"


def _is_primitive(schema: dict[str, Any]) -> bool:
    if schema.get("type") == "array":
        items = schema.get("items", {})
        return "enum" in items or "anyOf" in items or "oneOf" in items
    if "oneOf" in schema:
        return all("const" in option for option in schema["oneOf"])
    return schema.get("type") in ("string", "number", "integer", "boolean")
