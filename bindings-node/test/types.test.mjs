// The types that the compiler infers: test/types/inference.ts compiles.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

test("arguments, answers and results get their types from the schemas", () => {
  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const project = fileURLToPath(new URL("types", import.meta.url));
  const compiler = [join(typescript, "bin", "tsc"), "--pretty", "false", "--project", project];
  const { status, stdout } = spawnSync(process.execPath, compiler, { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});
