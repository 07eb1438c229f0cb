"""Arguments of handlers: their JSON Schema, and the decoder from bytes to typed values.

All parameters of a handler are fields of one msgspec Struct, so that one pass decodes and validates them. Parameters
that need pydantic are kept as raw JSON in this pass, and then validated by pydantic.
"""

from __future__ import annotations

import enum
import math
import re
import typing
from collections import abc
from typing import Any

import msgspec

from . import _annotations, _decoding, _json, _metadata, _native, _pydantic, _types
from ._signatures import MISSING, Parameter
from .errors import RpcError, ToolError

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._signatures import Function

__all__ = ["Arguments"]

_INVALID_PARAMS = -32602
# The core starts its own errors, for schemas that the author provides, with the same words.
_REFUSED = "Invalid arguments: "
# Names of unknown arguments are the client's: how many are compared with those of the parameters, and of which length.
_MAX_SUGGESTIONS = 3
_MAX_NAME_LENGTH = 64
# The strings that msgspec converts to numbers that JSON does not have.
_NOT_FINITE = re.compile(rb'"-?(?:nan|inf(?:inity)?)"', re.IGNORECASE)
_PLAIN_DEFAULTS = (int, str, float, bool, bytes, type(None), enum.Enum, msgspec.UnsetType)


class Arguments:
    """Schema and decoder of the arguments of one handler."""

    def __init__(
        self,
        function: Function,
        *,
        texts: bool = False,
        coerce: bool = False,
        must_match: bool = False,
        refuse_unknown: bool = False,
    ) -> None:
        """Read the parameters of `function`.

        Args:
            function: The handler.
            texts: All values arrive as strings.
            coerce: Values may have other JSON types that can be converted: `"5"` for a number.
            must_match: Values must match the schema, also those that pydantic would convert. Not with `coerce`.
            refuse_unknown: Arguments that are not parameters are refused.

        Raises:
            TypeError: The type of a parameter cannot be decoded.
        """
        self.name = function.name
        parameters = [_settled(function.name, parameter) for parameter in function.parameters]
        self.parameters = parameters
        self.positional = tuple(p.name for p in parameters if not p.keyword_only)
        self.keywords = tuple(p.name for p in parameters if p.keyword_only)
        types, reader = _read(function.name, parameters, lax=texts)
        self.schema, self.properties = _describe(parameters, types, reader.definitions)
        if refuse_unknown:
            self.schema["additionalProperties"] = False
        self._texts = texts
        self._coerce = coerce
        self._validator: _native.Schema | None = None
        self._converters: dict[str, Callable[[bytes], Any]] = {}
        self._refuse_unknown = refuse_unknown
        struct = self._make_struct(types)
        self._strict = _decoder(function.name, parameters, types, struct, strict=not texts)
        self._lax: msgspec.json.Decoder[Any] | None = None
        self.decode: Callable[[bytes], Any] | None
        if not parameters and not refuse_unknown:
            self.decode = None
        elif must_match and reader.delegates:
            self.decode = self._decode_matching
        elif self._converters:
            self.decode = self._decode_converted
        else:
            self.decode = self._strict.decode

    def recover(self, arguments: bytes, error: Exception) -> Any:
        """Handle arguments that the decoder rejected, with an error message in the core's words.

        Arguments that match the schema but not the strict decoder (5.0 for an integer) are decoded here, and with
        `coerce` those that can be converted.

        Raises:
            ToolError: The arguments are invalid. The text contains the path and the rule.
        """
        if not self._texts:
            violation = self._violation(arguments)
            if violation is not None and not self._coerce:
                raise ToolError(f"{_REFUSED}{violation}{self._suggestion(arguments)}")
            try:
                for allowed in self._convertible(arguments):
                    try:
                        decoded = self._decode_lax(allowed) if self._coerce else self._strict.decode(allowed)
                        return self._converted(decoded)
                    except Exception as lax:  # noqa: BLE001 - the types' own checks may raise anything
                        error = lax
            except RecursionError as nested:
                # The JSON in a string is not limited in its depth by the core.
                error = nested
            if violation is not None:
                raise ToolError(f"{_REFUSED}{violation}{self._suggestion(arguments)}")
        from . import _argument_errors

        raise ToolError(f"{_REFUSED}{_argument_errors.reason(error)}")

    def _convertible(self, arguments: bytes) -> Iterator[bytes]:
        """Yield what a decoder may accept in place of the arguments."""
        given = msgspec.json.decode(arguments)
        if self._coerce:
            # For the lax decoder.
            yield arguments
            if isinstance(given, dict):
                given = {key: self._parsed(key, value) for key, value in given.items()}
        yield _json.encode(_with_whole_numbers(given))

    def _parsed(self, key: str, value: Any) -> Any:
        """Return the array or object that a model wrote as a string."""
        schema = self.schema["properties"].get(key)
        if not isinstance(value, str) or value[:1] not in ("[", "{") or schema is None or _takes_text(schema):
            return value
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return value

    def _suggestion(self, arguments: bytes) -> str:
        """Return the parameters that were probably meant by the first unknown arguments."""
        given = msgspec.json.decode(arguments)
        known = self.schema["properties"]
        unknown = [] if not isinstance(given, dict) else [name for name in given if name not in known]
        unknown = [name for name in unknown[:_MAX_SUGGESTIONS] if len(name) <= _MAX_NAME_LENGTH]
        if not unknown:
            return ""
        from difflib import get_close_matches

        found: list[str] = []
        for name in unknown:
            for match in get_close_matches(name, [key for key in known if key not in given], 1):
                found.append(f'"{match}" instead of "{name}"')
        return f"; did you mean {', '.join(found)}?" if found else ""

    def recover_texts(self, arguments: bytes, error: Exception) -> Any:
        """Reject the arguments of a prompt or of a resource template.

        Raises:
            RpcError: Invalid params.
        """
        try:
            return self.recover(arguments, error)
        except ToolError as refused:
            raise RpcError(_INVALID_PARAMS, str(refused)) from None

    def _make_struct(self, types: list[_types.Type]) -> type[msgspec.Struct]:
        fields: list[Any] = []
        for parameter, type_ in zip(self.parameters, types):
            decoded = type_.decoded
            if type_.decoder is not None:
                self._converters[parameter.name] = _pydantic_converter(type_.decoder, texts=self._texts)
                decoded = msgspec.Raw
            elif self._texts and not _is_scalar(type_.schema):
                self._converters[parameter.name] = _text_converter(decoded)
                decoded = msgspec.Raw
            if parameter.required:
                fields.append((parameter.name, decoded))
            else:
                fields.append((parameter.name, decoded, _default(parameter.default)))
        keys = {parameter.name: parameter.key for parameter in self.parameters if parameter.key != parameter.name}
        return msgspec.defstruct(
            "Arguments", fields, kw_only=True, rename=keys or None, forbid_unknown_fields=self._refuse_unknown
        )

    def _decode_lax(self, arguments: bytes) -> Any:
        """Decode arguments of other JSON types, but no string as NaN or infinity, for which bounds do not hold."""
        if self._lax is None:
            types, _ = _read(self.name, self.parameters, lax=True)
            self._lax = _decoder(self.name, self.parameters, types, self._make_struct(types), strict=False)
        values = self._lax.decode(arguments)
        # Encoded again, because the characters of a string may be escaped.
        given = msgspec.json.decode(arguments)
        if _NOT_FINITE.search(_json.encode(given)):
            for parameter in self.parameters:
                # A default may be infinity.
                if parameter.key in given and not _is_finite(getattr(values, parameter.name)):
                    raise _decoding.DecodeError([((parameter.key,), "must be of finite numbers (type)")])
        return values

    def _violation(self, arguments: bytes) -> str | None:
        """Return how the arguments violate the schema."""
        if self._validator is None:
            self._validator = _native.Schema(_json.encode(self.schema))
        return self._validator.violation(arguments)

    def _decode_matching(self, arguments: bytes) -> Any:
        if (violation := self._violation(arguments)) is not None:
            # `recover` describes it.
            raise ValueError(violation)
        return self._decode_converted(arguments)

    def _decode_converted(self, arguments: bytes) -> Any:
        return self._converted(self._strict.decode(arguments))

    def _converted(self, values: Any) -> Any:
        for parameter in self.parameters:
            value = getattr(values, parameter.name)
            if type(value) is msgspec.Raw and (convert := self._converters.get(parameter.name)) is not None:
                try:
                    setattr(values, parameter.name, convert(bytes(value)))
                except Exception as error:  # noqa: BLE001 - the user's validators may raise anything
                    from . import _argument_errors

                    raise _argument_errors.ArgumentDecodeError(parameter.key, error) from None
        return values


def _with_whole_numbers(value: Any) -> Any:
    """Replace 5.0 by 5: they are equal for a schema, but not for the decoder of an enum."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    return value


def _is_finite(value: Any) -> bool:
    """Return whether a decoded value has neither NaN nor infinity in it."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return True
    if isinstance(value, abc.Mapping):
        return all(_is_finite(key) and _is_finite(item) for key, item in value.items())
    if isinstance(value, (abc.Sequence, abc.Set)):
        return all(map(_is_finite, value))
    kind: Any = type(value)
    names = [
        *getattr(kind, "__struct_fields__", ()),
        *getattr(kind, "__dataclass_fields__", ()),
        *(field.name for field in getattr(kind, "__attrs_attrs__", ())),
    ]
    return all(_is_finite(getattr(value, name, None)) for name in names)


def _takes_text(schema: dict[str, Any]) -> bool:
    """Return whether a schema accepts strings, as far as its own keywords say."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if options is not None:
        return any(_takes_text(option) for option in options)
    kind = schema.get("type")
    return "$ref" not in schema and kind not in ("array", "object", "null", "integer", "number", "boolean")


def _settled(function: str, parameter: Parameter) -> Parameter:
    """Return a parameter with pydantic's `Field` resolved to its default and its alias."""
    annotation, default = parameter.annotation, parameter.default
    if _metadata.is_field(default):
        annotation = typing.Annotated[annotation, default]
        default = MISSING if default.is_required() else default.get_default(call_default_factory=True)
    elif default is MISSING and typing.get_origin(annotation) is typing.Annotated:
        for item in typing.get_args(annotation)[1:]:
            if _metadata.is_field(item) and not item.is_required():
                default = item.get_default(call_default_factory=True)
    settled = Parameter(parameter.name, annotation, default, parameter.description, parameter.keyword_only)
    try:
        settled.key = _metadata.key_of(annotation) or parameter.name
    except TypeError as error:
        raise _undecodable(function, parameter, error) from None
    return settled


def _read(function: str, parameters: list[Parameter], *, lax: bool) -> tuple[list[_types.Type], _types.TypeReader]:
    """Return the types of all parameters, and their reader, which has the definitions that their schemas refer to."""
    reader = _types.TypeReader(lax=lax)
    types: list[_types.Type] = []
    for parameter in parameters:
        try:
            types.append(reader.read(parameter.annotation))
        except _types.UnsupportedType as error:
            raise _undecodable(function, parameter, error) from None
    return types, reader


def _undecodable(function: str, parameter: Parameter, reason: object) -> TypeError:
    spelled = _annotations.spelled(parameter.annotation)
    return TypeError(f"{function}: the parameter {parameter.name} ({spelled}) can't be decoded: {reason}")


def _decoder(
    function: str, parameters: list[Parameter], types: list[_types.Type], struct: Any, *, strict: bool
) -> msgspec.json.Decoder[Any]:
    hook = _decoding.hook if strict else _decoding.lax_hook
    try:
        return msgspec.json.Decoder(struct, strict=strict, dec_hook=hook)
    except TypeError:
        for parameter, type_ in zip(parameters, types):
            try:
                msgspec.json.Decoder(type_.decoded)
            except TypeError as error:
                raise _undecodable(function, parameter, str(error).partition("\n")[0]) from None
        raise


def _describe(
    parameters: list[Parameter], types: list[_types.Type], definitions: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the schema of all parameters, and of each."""
    properties: dict[str, Any] = {}
    for parameter, type_ in zip(parameters, types):
        schema = type_.schema
        if parameter.description and not _is_described(parameter.annotation):
            schema = {**schema, "description": parameter.description}
        if "x-mcp-header" in schema:
            schema = _without_null(schema)
        properties[parameter.key] = _types.with_default(schema, parameter.default)
    schema = {"type": "object", "properties": properties}
    if required := [parameter.key for parameter in parameters if parameter.required]:
        schema["required"] = required
    if definitions:
        schema["$defs"] = definitions
    return schema, list(properties.values())


def _is_described(annotation: Any) -> bool:
    """Return whether the author describes the parameter itself, rather than its class."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return False
    return "description" in _metadata.read(typing.get_args(annotation)[1:]).keywords


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from the schema of a header: a missing value is omitted from the headers."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return schema
    return {**options[0], **{key: value for key, value in schema.items() if key != "anyOf"}}


def _default(default: Any) -> Any:
    if isinstance(default, _PLAIN_DEFAULTS):
        return default
    # As in any Python function, a default is one object, created once.
    return msgspec.field(default_factory=lambda: default)


def _is_scalar(schema: dict[str, Any]) -> bool:
    """Return whether a value of this schema can be read from a string."""
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return not any(option.get("type") in ("object", "array") or "$ref" in option for option in options)


def _pydantic_converter(decoder: _pydantic.Decoder, *, texts: bool) -> Callable[[bytes], Any]:
    if not texts:
        return decoder.decode

    def convert_text(value: bytes) -> Any:
        text = msgspec.json.decode(value, type=str)
        try:
            return decoder.decode_text(text)
        except _decoding.DecodeError:
            raise
        except ValueError:
            return decoder.decode(text.encode())

    return convert_text


def _text_converter(annotation: Any) -> Callable[[bytes], Any]:
    """Return a function that reads JSON in a string; or a list of strings, from an exploded template variable."""
    decoder = msgspec.json.Decoder(annotation, strict=False, dec_hook=_decoding.lax_hook)

    def convert(value: bytes) -> Any:
        if value.startswith(b'"'):
            return decoder.decode(msgspec.json.decode(value, type=str))
        return decoder.decode(value)

    return convert
