// Tools that fail.
import { readFileSync } from "node:fs";

import { RpcError, ToolError } from "mcpline";

const STDIN = 0;

export function addFailureTools(server) {
  server.tool("test_error_handling", { description: "Fails in a way that the model should read" }, () => {
    throw new ToolError("This tool intentionally returns an error for testing");
  });

  server.tool("test_exception", { description: "Fails unexpectedly" }, async () => {
    throw new TypeError("secret-detail-7c1f");
  });

  server.tool("test_protocol_error", { description: "Answers with a JSON-RPC error" }, () => {
    throw new RpcError(-31050, "deliberate protocol error", { reason: "fixture" });
  });

  server.tool("test_missing_capability", { description: "Needs a client that can sample" }, (_, ctx) => {
    if (!("sampling" in ctx.clientCapabilities)) {
      throw new RpcError(-32021, "the client must support sampling", { requiredCapabilities: { sampling: {} } });
    }
    return "sampling is available";
  });

  server.tool("test_stray_output", { description: "Prints to stdout and reads stdin" }, () => {
    console.log("stray output");
    return `read ${readFileSync(STDIN).length} bytes`;
  });
}
