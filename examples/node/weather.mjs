// A weather server; the other files serve it: stdio.mjs, http.mjs, plain.mjs, hono.mjs, express.mjs.
import { Server, ToolError } from "mcpline";
import * as z from "zod";

export const server = new Server({
  name: "weather",
  version: "1.0.0",
  instructions: "Ask for forecasts by city.",
});

server.tool(
  "forecast",
  {
    description: "Forecast for a city",
    input: z.object({
      city: z.string().optional().describe("The city; the user is asked when it is left out"),
      days: z.int().min(1).max(7).default(1).describe("How many days ahead"),
    }),
    output: z.object({ city: z.string(), days: z.int(), summary: z.string() }),
  },
  async ({ city, days }, ctx) => {
    ctx.progress(0, 1, "looking at the sky");
    if (city === undefined) {
      const answer = await ctx.elicit("Which city?", z.object({ city: z.string() }));
      if (answer.action !== "accept") {
        throw new ToolError("no city was given");
      }
      city = answer.content.city;
    }
    ctx.progress(1, 1);
    return { city, days, summary: `sunny in ${city}` };
  },
);

server.resource(
  "weather://units",
  { name: "units", description: "The units that forecasts come in", mimeType: "text/plain" },
  () => "Celsius",
);

server.resource(
  "weather://city/{name}",
  {
    name: "city",
    description: "What is known of a city",
    mimeType: "application/json",
    complete: { name: ["Bergen", "Oslo", "Trondheim"] },
  },
  ({ name }) => JSON.stringify({ name, country: "Norway" }),
);

server.prompt(
  "plan",
  { description: "Plan a day", arguments: { city: { description: "Where", complete: ["Bergen", "Oslo"] } } },
  ({ city }) => `Plan a day in ${city}, considering the weather.`,
);
