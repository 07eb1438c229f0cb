"""A server for one process, or for several that share sessions over Valkey (`VALKEY_URL`): `weather.py [--port PORT]`."""

import argparse
import os

from mcpline import Server
from mcpline.settings import ListenSettings, ServerSettings

settings: ServerSettings = {"metrics": True}
if valkey := os.environ.get("VALKEY_URL"):
    settings["sharing"] = valkey
server = Server("weather", "1.0.0", **settings)


@server.tool
async def forecast(city: str, days: int = 1) -> str:
    """Forecast for a city."""
    return f"{city}: sunny for {days} day(s)"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    options: ListenSettings = {
        "host": os.environ.get("HOST", "127.0.0.1"),
        "port": parser.parse_args().port,
        # The load balancer must not pass it: it needs no token.
        "metrics_path": "/metrics",
        # Names that clients and the scraper of the metrics use, separated by commas.
        "allowed_hosts": os.environ.get("ALLOWED_HOSTS", "localhost").split(","),
    }
    # The header in which a load balancer adds the client's address, such as X-Forwarded-For: limits per client count it. Set
    # it only if all requests come through the load balancer, because a client could otherwise choose its address.
    if header := os.environ.get("CLIENT_ADDRESS_HEADER"):
        options["client_address_header"] = header
    server.run("http", **options)
