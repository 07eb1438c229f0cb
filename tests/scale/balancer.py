"""Load balancers with the configurations that users begin with."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

#: Programs of which one must be there, with the package of Debian that has it.
NEEDED = {
    "redis-server": ("valkey-server", "redis-server"),
    "haproxy": ("haproxy",),
    "nginx": ("nginx",),
}
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "deployment"

NGINX = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  # Which replica has answered.
  add_header X-Backend $upstream_addr always;
  {site}
}}
"""


def program(package: str) -> str | None:
    """Returns the program of a package; `None` if this machine lacks it. Debian has some where only root looks."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    return next((found for name in NEEDED[package] if (found := shutil.which(name, path=path))), None)


def command(balancer: str, port: int, replicas: list[int], folder: Path) -> list[str]:
    """Writes the configuration of `haproxy`, `nginx` or `proxy` into the folder; returns the command that serves on this port.

    `proxy` is the nginx of the section on reverse proxies, in front of one server.
    """
    configuration = folder / f"{balancer}.conf"
    if balancer == "haproxy":
        servers = "".join(f"  server 127.0.0.1:{own} 127.0.0.1:{own}\n" for own in replicas)
        changes = {
            "bind :8080": f"bind 127.0.0.1:{port}",
            # A killed replica is found, and one that is back used, at once.
            "check inter 1s fall 2 rise 1": "check inter 50ms fall 1 rise 1",
            "(^  server .*\n)+": f"  http-response set-header x-backend %s\n{servers}",
        }
        configuration.write_text(_changed((EXAMPLES / "haproxy.cfg").read_text(), changes))
        return [program("haproxy") or "", "-db", "-f", str(configuration)]
    if balancer == "nginx":
        servers = "".join(f"  server 127.0.0.1:{own} max_fails=0;\n" for own in replicas)
        changes = {"listen 8080": f"listen 127.0.0.1:{port}", "(^  server .*;\n)+": servers}
        site = _changed((EXAMPLES / "nginx.conf").read_text(), changes)
    else:
        location = _changed(_documented_location(), {"http://127.0.0.1:8000": f"http://127.0.0.1:{replicas[0]}"})
        site = f"server {{ listen 127.0.0.1:{port};\n{location} }}"
    user = "user root;" if os.geteuid() == 0 else ""
    configuration.write_text(NGINX.format(user=user, folder=folder, site=site))
    return [program("nginx") or "", "-p", str(folder), "-c", str(configuration), "-e", str(folder / "nginx-error.log")]


def _documented_location() -> str:
    page = (ROOT / "docs" / "deployment.md").read_text()
    [location] = re.findall(r"^```nginx\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    return location


def _changed(text: str, changes: dict[str, str]) -> str:
    """Returns a text in which each of these patterns, which is there once, is replaced."""
    for pattern, replacement in changes.items():
        text, count = re.subn(pattern, lambda _: replacement, text, flags=re.MULTILINE)
        assert count == 1, f"{pattern} is there {count} times"
    return text
