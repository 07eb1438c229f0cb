// An additional reporter, which records the passed tests for the ledger of the specification if MCPLINE_RAN names a
// folder (`tests/harness/passed_tests.py`).

import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

export default async function* passed(source) {
  const names = [];
  for await (const { type, data } of source) {
    if (type === "test:pass" && data.skip === undefined && data.todo === undefined) names.push(`${data.name}\n`);
  }
  const folder = process.env.MCPLINE_RAN;
  if (folder) {
    mkdirSync(folder, { recursive: true });
    appendFileSync(join(folder, "node"), names.join(""));
  }
  yield "";
}
