"""TLS of the built-in HTTP server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

__all__ = ["Tls"]


@dataclass(frozen=True)
class Tls:
    """The certificate and the private key of a server: `server.run("http", tls=Tls("cert.pem", "key.pem"))`.

    The server speaks TLS 1.2 and 1.3. If both are files, they are read again when clients connect, at most every ten
    seconds: a renewed certificate is used without a restart. If the new files cannot be used, the old certificate stays
    and the logger `mcpline` gets a warning.

    Args:
        certificate: Path of a PEM file, or PEM as bytes: the server's certificate, followed by the intermediate
            certificates up to the authority.
        key: Path of a PEM file, or PEM as bytes: the private key (PKCS #8, PKCS #1 or SEC 1), not encrypted.
    """

    certificate: str | os.PathLike[str] | bytes
    key: str | os.PathLike[str] | bytes = field(repr=False)

    def __repr__(self) -> str:
        # Bytes may contain the key as well, also by mistake.
        certificate = "<PEM>" if isinstance(self.certificate, bytes) else repr(self.certificate)
        return f"Tls({certificate})"

    def _json(self) -> bytes:
        """Return the options of the core."""
        from . import _json

        return _json.encode({"certificate": _text("certificate", self.certificate), "key": _text("key", self.key)})


def _text(name: str, value: object) -> str:
    from .errors import UsageError

    if isinstance(value, bytes):
        # The core distinguishes PEM from a path by this.
        if b"-----BEGIN " not in value:
            raise UsageError(f"`{name}`: the bytes contain no PEM (`-----BEGIN …-----`)")
        return value.decode(errors="replace")
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise UsageError(f"`{name}` must be a path, or PEM as bytes, not {type(value).__name__}")
