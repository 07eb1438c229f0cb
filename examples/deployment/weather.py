"""A server for several processes, which share its sessions over the Valkey of `VALKEY_URL`: `weather.py [--port PORT]`."""

import argparse
import os

from mcpline import Server

server = Server("weather", "1.0.0", sharing=os.environ["VALKEY_URL"])


@server.tool
async def forecast(city: str, days: int = 1) -> str:
    """Forecast for a city."""
    return f"{city}: sunny for {days} day(s)"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    # Names that clients use, separated by commas.
    names = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")
    # Limits per client count the address that the load balancer adds: clients must not reach the server without it.
    client = "X-Forwarded-For"
    server.run(
        "http", host="0.0.0.0", port=parser.parse_args().port, allowed_hosts=names, client_address_header=client
    )
