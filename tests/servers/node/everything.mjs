// Everything that the everything-servers have; each family of tools has a module here.
import { Server } from "mcpline";

import { addAskingTools } from "./asking.mjs";
import { addCallerTools } from "./caller.mjs";
import { addChangingTools } from "./changing.mjs";
import { addContentTools } from "./content.mjs";
import { addExtras } from "./extras.mjs";
import { addFailureTools } from "./failures.mjs";
import { addPrompts } from "./prompts.mjs";
import { addResources } from "./resources.mjs";
import { addReturningTools } from "./returned.mjs";
import { addRunningTools } from "./running.mjs";
import { addSchemaTools } from "./schemas.mjs";
import { addVisitTools } from "./visits.mjs";

/** The server of ../README.md, with these settings, and with what only tests/hostile uses if it `hasExtras`. */
export function everything(settings, hasExtras = false) {
  const server = new Server({
    name: "mcpline-everything",
    version: "1.0.0",
    title: "mcpline everything server",
    instructions: "Fixture server of the mcpline tests.",
    settings,
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
  if (hasExtras) {
    addExtras(server);
  }
  return server;
}
