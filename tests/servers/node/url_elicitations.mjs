// Tools that require a URL elicitation first.
import { UrlElicitationRequiredError } from "mcpline";

import { object, string } from "./fixtures.mjs";

const visited = new Set();

export function addUrlElicitationTools(server) {
  server.tool(
    "test_url_elicitation_required",
    { description: "Needs a visit first", input: object({ id: string }) },
    ({ id }, ctx) => {
      if (!visited.has(id) && ctx.inputResponses?.[id]?.action !== "accept") {
        const url = `https://example.com/authorise?visit=${id}`;
        throw new UrlElicitationRequiredError({ message: "Please authorise access", url, elicitationId: id });
      }
      return `authorised ${id}`;
    },
  );

  server.tool(
    "test_complete_url_elicitation",
    { description: "Completes a visit", input: object({ id: string }) },
    ({ id }) => {
      visited.add(id);
      server.notifyElicitationComplete(id);
      return `completed ${id}`;
    },
  );
}
