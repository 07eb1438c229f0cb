"""JSON encoding of this package."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENCODED_BY", "ENCODED_MODULES", "encode", "encode_hook", "encode_object", "encode_settings", "read_object"]

ENCODED_BY = ("model_dump", "to_content", "__fspath__", "__pydantic_core_schema__", "__get_pydantic_core_schema__")
"""Attributes of classes that `encode_hook` encodes; it encodes iterables, too."""
ENCODED_MODULES = ("ipaddress", "zoneinfo", "re", "pydantic", "pydantic_core", "pydantic_extra_types")
"""Modules whose classes `encode_hook` encodes."""

# In seconds; as in TypeScript.
_LONGEST_TIME = 2**53 - 1


def encode_hook(value: Any) -> Any:
    """Encode what msgspec does not support: pydantic's types, paths and addresses, and this package's media."""
    if hasattr(value, "model_dump") and hasattr(type(value), "__pydantic_core_schema__"):
        return value.model_dump(mode="json", by_alias=True)
    if hasattr(value, "to_content"):
        return value.to_content()
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Enum):
        return value.value
    module = type(value).__module__.partition(".")[0]
    if module in ("ipaddress", "zoneinfo"):
        return str(value)
    if module == "re" and hasattr(value, "pattern"):
        return value.pattern
    if module in ("pydantic", "pydantic_core", "pydantic_extra_types") or hasattr(value, "__pydantic_core_schema__"):
        return sys.modules["pydantic_core"].to_jsonable_python(value, by_alias=True)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"objects of type {type(value).__name__} can't be written as JSON")


ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)
"""Encodes all values that handlers pass to the protocol."""

encode: Callable[[Any], bytes] = ENCODER.encode


def encode_settings(settings: Mapping[str, Any]) -> bytes:
    """Encode settings for the core. JSON has no infinity: an infinite time becomes the longest one.

    Raises:
        UsageError: A value is NaN, or a text with a surrogate, such as the name of a file that is not UTF-8.
    """
    finite = dict(settings)
    for name, value in finite.items():
        if isinstance(value, float) and not math.isfinite(value):
            if value != math.inf:
                from .errors import UsageError

                raise UsageError(f"`{name}` must be a number, not {value!r}")
            finite[name] = _LONGEST_TIME
    try:
        return encode(finite)
    except UnicodeEncodeError as error:
        from .errors import UsageError

        raise UsageError(f"{error.object!r} is not valid Unicode") from None


def encode_object(value: Any) -> bytes:
    """Encode the result of a custom request; `None` becomes an empty object.

    Raises:
        TypeError: It is not a JSON object.
    """
    written = b"{}" if value is None else encode(value)
    if not written.startswith(b"{"):
        raise TypeError(f"the handler of a custom request returns an object, not {type(value).__name__}")
    return written


def read_object(json: bytes) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        ValueError: It is not a JSON object.
    """
    value: dict[str, Any] = msgspec.json.decode(json, type=dict[str, Any])
    return value
