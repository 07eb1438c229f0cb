// Tools about the caller.
import { object, string } from "./fixtures.mjs";

export function addCallerTools(server) {
  server.tool(
    "test_request_info",
    {
      description: "Tells what it knows of the request",
      output: object({ revision: string, client: string, capabilities: string, header: string }),
    },
    (_, ctx) => ({
      revision: ctx.revision,
      client: ctx.client === undefined ? "none" : `${ctx.client.name} ${ctx.client.version}`,
      capabilities: Object.keys(ctx.clientCapabilities).sort().join(","),
      header: ctx.headers?.get("x-fixture") ?? "none",
    }),
  );
}
