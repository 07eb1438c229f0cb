// Calls the tool `hello` of the server at a URL, with a client of the newest revision and with one of an older revision.
import assert from "node:assert/strict";

import { Client } from "mcpline";

for (const revision of ["2026-07-28", "2025-11-25"]) {
  const client = await Client.connect(process.argv[2], { revisions: [revision] });
  assert.equal(client.protocolVersion, revision);
  assert.equal((await client.callTool("hello")).content[0].text, "hello");
  await client.close();
}
