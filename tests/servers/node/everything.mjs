// The features of the everything-server; each family of tools has a module here.
import { Server } from "mcpline";

import { addInputRequestTools } from "./input_requests.mjs";
import { addCallerTools } from "./caller.mjs";
import { addChangingTools } from "./changing.mjs";
import { addContentTools } from "./content.mjs";
import { addCustomRequests } from "./custom.mjs";
import { addExtensions, makeExtensions } from "./extensions.mjs";
import { addExtras } from "./extras.mjs";
import { addFailureTools } from "./failures.mjs";
import { addMore } from "./more.mjs";
import { addPrompts } from "./prompts.mjs";
import { addResources } from "./resources.mjs";
import { addReturningTools } from "./returned_input_requests.mjs";
import { addRunningTools } from "./running.mjs";
import { addSchemaTools } from "./schemas.mjs";
import { SMALL } from "./small.mjs";
import { addUrlElicitationTools } from "./url_elicitations.mjs";

/** Creates the server of ../README.md with these settings and the `parts` of its command line. */
export function everything(settings, parts) {
  const small = SMALL[parts.find((part) => part in SMALL)];
  const server = new Server({
    name: "mcpline-everything",
    version: "1.0.0",
    title: "mcpline everything server",
    instructions: "Fixture server of the mcpline tests.",
    settings: { ...settings, declare: small?.declare },
    extensions: parts.includes("extensions") ? makeExtensions() : [],
  });

  if (small !== undefined) {
    small.add(server);
    return server;
  }
  addContentTools(server);
  addSchemaTools(server);
  addFailureTools(server);
  addRunningTools(server);
  addInputRequestTools(server);
  addUrlElicitationTools(server);
  addReturningTools(server);
  addCallerTools(server);
  addChangingTools(server);
  addPrompts(server);
  addResources(server);
  addCustomRequests(server);
  if (parts.includes("more")) {
    addMore(server);
  }
  if (parts.includes("extensions")) {
    addExtensions(server);
  }
  if (parts.includes("extras")) {
    addExtras(server);
  }
  return server;
}
