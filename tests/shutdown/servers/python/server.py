"""A server whose calls never end by themselves, over stdio, a Unix socket, HTTP, or mounted under an ASGI server."""

import asyncio
import os
import sys
import time

from mcpline import Context, Server, SyncContext

server = Server("shutdown", "1", shutdown_timeout=1)


def write_line(text: str) -> None:
    # A single write keeps lines of several threads whole.
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@server.tool
async def waits(label: str, ctx: Context) -> None:
    """Waits until it is cancelled."""
    await ctx.progress(0, 1)
    write_line(f"waiting {label}")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        write_line(f"cancelled {label}")
        raise


@server.tool
def waits_in_thread(label: str, ctx: SyncContext) -> None:
    """Waits until it is cancelled, in a thread."""
    ctx.progress(0, 1)
    write_line(f"waiting {label}")
    while not ctx.cancelled:
        time.sleep(0.01)
    write_line(f"cancelled {label}")


@server.tool
def ignores(label: str, ctx: SyncContext) -> None:
    """Waits in a thread, and doesn't look whether it is cancelled."""
    ctx.progress(0, 1)
    write_line(f"waiting {label}")
    time.sleep(600)


# The commands of ASGI servers, which import this file.
COMMANDS = {
    "uvicorn-workers": "uvicorn server:app --workers 2 --log-level warning --port",
    "uvicorn-reload": "uvicorn server:app --reload --log-level warning --port",
    "gunicorn": "gunicorn server:app -k asgi --log-level warning -b 127.0.0.1:",
    "hypercorn": "hypercorn server:app --log-level warning -b 127.0.0.1:",
}

if __name__ != "__main__":
    app = server.asgi()
else:
    match sys.argv[1:]:
        case []:
            server.run()
        case ["http", port]:
            server.run("http", port=int(port))
        case ["unix", path]:
            server.run_unix(path)
        case ["starlette", port]:
            import uvicorn
            from starlette.applications import Starlette
            from starlette.routing import Mount

            app = server.asgi()
            outer = Starlette(routes=[Mount("/", app)], lifespan=lambda _: app.lifespan())
            uvicorn.run(outer, port=int(port), log_level="warning")
        case ["uvicorn", port]:
            import uvicorn

            uvicorn.run(server.asgi(), port=int(port), log_level="warning")
        case [name, port]:
            *command, last = COMMANDS[name].split()
            address = [last + port] if last.endswith(":") else [last, port]
            os.chdir(os.path.dirname(os.path.abspath(__file__)))
            os.execv(sys.executable, [sys.executable, "-m", *command, *address])
