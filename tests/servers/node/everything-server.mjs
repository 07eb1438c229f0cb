// The everything-server in JavaScript. Its specification is ../README.md; each family of tools has a module here.
import { parseArgs } from "node:util";

import { Server } from "mcpline";

import { addAskingTools } from "./asking.mjs";
import { addCallerTools } from "./caller.mjs";
import { addChangingTools } from "./changing.mjs";
import { addContentTools } from "./content.mjs";
import { addFailureTools } from "./failures.mjs";
import { addPrompts } from "./prompts.mjs";
import { addResources } from "./resources.mjs";
import { addReturningTools } from "./returned.mjs";
import { addRunningTools } from "./running.mjs";
import { addSchemaTools } from "./schemas.mjs";
import { addVisitTools } from "./visits.mjs";

const { values: options } = parseArgs({ options: { http: { type: "string" }, "page-size": { type: "string" } } });

const server = new Server({
  name: "mcpline-everything",
  version: "1.0.0",
  title: "mcpline everything server",
  instructions: "Fixture server of the mcpline tests.",
  settings: options["page-size"] === undefined ? {} : { pageSize: Number(options["page-size"]) },
});

addContentTools(server);
addSchemaTools(server);
addFailureTools(server);
addRunningTools(server);
addAskingTools(server);
addVisitTools(server);
addReturningTools(server);
addCallerTools(server);
addChangingTools(server);
addPrompts(server);
addResources(server);

if (options.http === undefined) {
  await server.run();
} else {
  await server.listen({ port: Number(options.http) });
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => void server.close());
  }
}
