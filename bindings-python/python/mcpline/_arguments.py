"""Arguments of handlers: their JSON Schema, and the decoder from bytes to typed values.

All parameters of a handler are fields of one msgspec Struct, so that one pass decodes and validates them. Parameters
that need pydantic are kept as raw JSON in this pass, and then validated by pydantic.
"""

from __future__ import annotations

import enum
import typing
from typing import Any

import msgspec

from . import _json, _native, _schemas
from ._functions import MISSING, Parameter
from .errors import RpcError, ToolError

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from ._functions import Function

__all__ = ["Arguments"]

_INVALID_PARAMS = -32602
# The core starts its own errors, for schemas that the author provides, with the same words.
_REFUSED = "Invalid arguments: "
_PLAIN_DEFAULTS = (int, str, float, bool, bytes, type(None), enum.Enum, msgspec.UnsetType)


class Arguments:
    """Schema and decoder of the arguments of one handler."""

    def __init__(self, function: Function, *, texts: bool = False) -> None:
        """Read the parameters of `function`. `texts`: all values arrive as strings.

        Raises:
            TypeError: The type of a parameter cannot be decoded.
        """
        self.name = function.name
        parameters = [_settled(parameter) for parameter in function.parameters]
        self.parameters = parameters
        self.positional = tuple(p.name for p in parameters if not p.keyword_only)
        self.keywords = tuple(p.name for p in parameters if p.keyword_only)
        self.schema, self.properties = _describe(function.name, parameters)
        self._texts = texts
        self._validator: _native.Schema | None = None
        self._converters: dict[str, Callable[[bytes], Any]] = {}
        self._struct = self._make_struct()
        self._strict = msgspec.json.Decoder(self._struct, strict=not texts)
        self.decode: Callable[[bytes], Any] | None
        if not parameters:
            self.decode = None
        elif self._converters:
            self.decode = self._decode_converted
        else:
            self.decode = self._strict.decode

    def recover(self, arguments: bytes, error: Exception) -> Any:
        """Handle arguments that the decoder rejected, with an error message in the core's words.

        Arguments that match the schema but not the strict decoder (5.0 for an integer) are decoded here.

        Raises:
            ToolError: The arguments are invalid. The text contains the path and the rule.
        """
        if not self._texts:
            if self._validator is None:
                self._validator = _native.Schema(_json.encode(self.schema))
            violation = self._validator.violation(arguments)
            if violation is not None:
                raise ToolError(f"{_REFUSED}{violation}")
            for allowed in (arguments, _with_whole_numbers(arguments)):
                try:
                    return self._converted(msgspec.json.decode(allowed, type=self._struct, strict=False))
                except Exception as lax:  # noqa: BLE001 - the types' own checks may raise anything
                    error = lax
        from . import _argument_errors

        raise ToolError(f"{_REFUSED}{_argument_errors.reason(error)}")

    def recover_texts(self, arguments: bytes, error: Exception) -> Any:
        """Reject the arguments of a prompt or of a resource template.

        Raises:
            RpcError: Invalid params.
        """
        try:
            return self.recover(arguments, error)
        except ToolError as refused:
            raise RpcError(_INVALID_PARAMS, str(refused)) from None

    def _make_struct(self) -> type[msgspec.Struct]:
        fields: list[Any] = []
        for parameter, schema in zip(self.parameters, self.properties):
            annotation = _schemas.refine(parameter.annotation)
            if _schemas.needs_pydantic(parameter.annotation):
                self._converters[parameter.name] = _pydantic_converter(parameter.annotation, texts=self._texts)
                annotation = msgspec.Raw
            elif self._texts and not _is_scalar(schema):
                self._converters[parameter.name] = _text_converter(annotation)
                annotation = msgspec.Raw
            if parameter.required:
                fields.append((parameter.name, annotation))
            else:
                fields.append((parameter.name, annotation, _default(parameter.default)))
        return msgspec.defstruct("Arguments", fields, kw_only=True)

    def _decode_converted(self, arguments: bytes) -> Any:
        return self._converted(self._strict.decode(arguments))

    def _converted(self, values: Any) -> Any:
        for name, convert in self._converters.items():
            value = getattr(values, name)
            if type(value) is msgspec.Raw:
                try:
                    setattr(values, name, convert(bytes(value)))
                except Exception as error:  # noqa: BLE001 - the user's validators may raise anything
                    from . import _argument_errors

                    raise _argument_errors.ArgumentDecodeError(name, error) from None
        return values


def _with_whole_numbers(arguments: bytes) -> bytes:
    """Replace 5.0 by 5 in JSON: they are equal for a schema, but not for the decoder of an enum."""

    def whole(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, list):
            return [whole(item) for item in value]
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        return value

    return _json.encode(whole(msgspec.json.decode(arguments)))


def _settled(parameter: Parameter) -> Parameter:
    """Return a parameter with pydantic's `Field` resolved to its default."""
    annotation, default = parameter.annotation, parameter.default
    if default is not MISSING and type(default).__name__ == "FieldInfo" and hasattr(default, "is_required"):
        annotation = typing.Annotated[annotation, default]
        default = MISSING if default.is_required() else default.get_default(call_default_factory=True)
    elif default is MISSING and (given := _schemas.field_default(annotation)) is not msgspec.UNSET:
        default = given
    return Parameter(parameter.name, annotation, default, parameter.description, parameter.keyword_only)


def _describe(function: str, parameters: list[Parameter]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the schema of all parameters, and of each."""
    described: list[dict[str, Any]] = []
    try:
        described = _schemas.schemas_of(
            [
                _schemas.refine(Any if _schemas.needs_pydantic(p.annotation) else p.annotation, p.description)
                for p in parameters
            ]
        )
    except TypeError:
        for parameter in parameters:
            _check(function, parameter)
        raise
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for parameter, plain in zip(parameters, described):
        schema = plain
        if _schemas.needs_pydantic(parameter.annotation):
            schema = _schemas.schema_of(parameter.annotation)
            if parameter.description:
                schema.setdefault("description", parameter.description)
        definitions.update(schema.pop("$defs", {}))
        if "x-mcp-header" in schema:
            schema = _without_null(schema)
        if not parameter.required and parameter.default is not msgspec.UNSET:
            try:
                schema["default"] = msgspec.to_builtins(parameter.default, enc_hook=_json.encode_hook)
            except (TypeError, NotImplementedError, ValueError):
                pass
        properties[parameter.name] = schema
    schema = {"type": "object", "properties": properties}
    if required := [parameter.name for parameter in parameters if parameter.required]:
        schema["required"] = required
    if definitions:
        schema["$defs"] = definitions
    return schema, list(properties.values())


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from the schema of a header: a missing value is omitted from the headers."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return schema
    return {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}}


def _check(function: str, parameter: Parameter) -> None:
    if _schemas.needs_pydantic(parameter.annotation):
        return
    try:
        _schemas.schemas_of([_schemas.refine(parameter.annotation)])
    except TypeError as error:
        text = str(error).partition("\n")[0] if "schema_hook" not in str(error) else "this type is not supported"
        raise TypeError(
            f"{function}: the parameter {parameter.name} ({_spelled(parameter.annotation)}) can't be decoded: {text}"
        ) from None


def _spelled(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _default(default: Any) -> Any:
    if isinstance(default, _PLAIN_DEFAULTS):
        return default
    # As in any Python function, a default is one object, created once.
    return msgspec.field(default_factory=lambda: default)


def _is_scalar(schema: dict[str, Any]) -> bool:
    """Return whether a value of this schema can be read from a string."""
    options = schema.get("anyOf") or [schema]
    return not any(option.get("type") in ("object", "array") or "$ref" in option for option in options)


def _pydantic_converter(annotation: Any, *, texts: bool) -> Callable[[bytes], Any]:
    adapter = _schemas.pydantic_adapter(annotation)
    if not texts:
        convert: Callable[[bytes], Any] = adapter.validate_json
        return convert

    def convert_text(value: bytes) -> Any:
        text = msgspec.json.decode(value, type=str)
        try:
            return adapter.validate_strings(text)
        except ValueError:
            return adapter.validate_json(text)

    return convert_text


def _text_converter(annotation: Any) -> Callable[[bytes], Any]:
    """Return a function that reads JSON in a string; or a list of strings, from an exploded template variable."""
    decoder = msgspec.json.Decoder(annotation, strict=False)

    def convert(value: bytes) -> Any:
        if value.startswith(b'"'):
            return decoder.decode(msgspec.json.decode(value, type=str))
        return decoder.decode(value)

    return convert
