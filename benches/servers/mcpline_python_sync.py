"""mcpline for Python with a sync handler only, over stdio: no event loop is ever created."""

from mcpline import Server

server = Server("bench", "1.0.0")


@server.tool
def echo(text: str) -> str:
    """Echo."""
    return text


server.run()
