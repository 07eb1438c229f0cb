// Calls the weather server at a URL, with a client of the newest revision and with one of an older revision.
import assert from "node:assert/strict";

import { Client } from "mcpline";

for (const revision of ["2026-07-28", "2025-11-25"]) {
  const client = await Client.connect(process.argv[2], {
    revisions: [revision],
    elicit: () => ({ action: "accept", content: { city: "Bergen" } }),
  });
  assert.equal(client.protocolVersion, revision);
  const result = await client.callTool("forecast");
  assert.deepEqual(result.structuredContent, { city: "Bergen", days: 1, summary: "sunny in Bergen" });
  await client.close();
}
