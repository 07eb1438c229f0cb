"""A server whose requests need tokens, and the authorization server that issues them: plain HTTP, in threads."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


class Guarded(ThreadingHTTPServer):
    """Forwards requests with a valid token to the server at a port."""

    daemon_threads = True

    def __init__(self, behind: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.base = f"http://127.0.0.1:{self.server_address[1]}"
        self.url = f"{self.base}/mcp"
        self.good = {"known"}
        self.codes: dict[str, dict[str, str]] = {}
        self.requests: list[str] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def count(self, what: str) -> int:
        return self.requests.count(what)

    def token(self) -> dict[str, Any]:
        with self.lock:
            token = f"token-{len(self.good)}"
            self.good.add(token)
        return {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": f"refresh-{token}",
        }

    def answer(self, url: str) -> str:
        """Return the URL that the authorization endpoint redirects a browser to."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc)
        connection.request("GET", f"{parts.path}?{parts.query}")
        location = connection.getresponse().getheader("Location")
        connection.close()
        assert location is not None
        return location


class _Handler(BaseHTTPRequestHandler):
    server: Guarded

    def log_message(self, *_arguments: object) -> None: ...

    def do_GET(self) -> None:
        base = self.server.base
        path = urlsplit(self.path).path
        if path == "/.well-known/oauth-protected-resource/mcp":
            self._json({"resource": self.server.url, "authorization_servers": [base]})
        elif path == "/.well-known/oauth-authorization-server":
            self._json(
                {
                    "issuer": base,
                    "authorization_endpoint": f"{base}/authorize",
                    "token_endpoint": f"{base}/token",
                    "registration_endpoint": f"{base}/register",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "authorization_response_iss_parameter_supported": True,
                }
            )
        elif path == "/authorize":
            self._authorize({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})
        else:
            self._json({}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/register":
            self.server.requests.append("register")
            self._json({**json.loads(body), "client_id": "registered"}, 201)
        elif self.path == "/token":
            self._token({name: values[0] for name, values in parse_qs(body.decode()).items()})
        elif self.path == "/mcp":
            self._pass_on(body)
        else:
            self._json({}, 404)

    def _authorize(self, params: dict[str, str]) -> None:
        self.server.requests.append("authorize")
        code = f"code-{len(self.server.codes)}"
        self.server.codes[code] = params
        answer = urlencode({"code": code, "state": params["state"], "iss": self.server.base})
        self.send_response(302)
        self.send_header("Location", f"{params['redirect_uri']}?{answer}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _token(self, params: dict[str, str]) -> None:
        grant = params["grant_type"]
        self.server.requests.append(grant)
        if grant == "authorization_code":
            wanted = self.server.codes.pop(params["code"])
            digest = hashlib.sha256(params["code_verifier"].encode()).digest()
            good = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == wanted["code_challenge"]
        elif grant == "client_credentials":
            good = self.headers.get("Authorization") == "Basic " + base64.b64encode(b"machine:hush").decode()
        else:
            good = params["refresh_token"].startswith("refresh-")
        self._json(self.server.token() if good else {"error": "invalid_grant"}, 200 if good else 400)

    def _pass_on(self, body: bytes) -> None:
        if (self.headers.get("Authorization") or "").removeprefix("Bearer ") not in self.server.good:
            metadata = f"{self.server.base}/.well-known/oauth-protected-resource/mcp"
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Bearer resource_metadata="{metadata}"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse()
        given = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(given)))
        self.end_headers()
        self.wfile.write(given)
        connection.close()

    def _json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
