"""A weather server. `python weather.py` serves stdio, `python weather.py --http 8000` serves HTTP, with metrics at `/metrics`."""

import sys
from dataclasses import dataclass
from typing import Annotated

from mcpline import Context, Server, ToolError

server = Server("weather", "1.0.0", instructions="Ask for forecasts by city.", metrics=True)


@dataclass
class Forecast:
    city: str
    days: int
    summary: str


@dataclass
class Where:
    city: str


@server.tool
async def forecast(
    city: Annotated[str | None, "The city; the user is asked when it is left out"] = None,
    days: Annotated[int, "How many days ahead, 1 to 7"] = 1,
    *,
    ctx: Context,
) -> Forecast:
    """Forecast for a city."""
    if not 1 <= days <= 7:
        raise ToolError("I can see one to seven days ahead")
    await ctx.progress(0.0, total=1.0, message="looking at the sky")
    if city is None:
        answer = await ctx.elicit("Which city?", Where)
        if not answer.accepted:
            raise ToolError("no city was given")
        city = answer.data.city
    await ctx.progress(1.0, total=1.0)
    return Forecast(city, days, f"sunny in {city}")


@server.resource("weather://units", mime_type="text/plain")
def units() -> str:
    """The units that forecasts come in."""
    return "Celsius"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("http", port=int(sys.argv[2]), metrics_path="/metrics")
    else:
        server.run()
