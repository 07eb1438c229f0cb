// How the package is loaded: its files, and where the addon is looked up, in bundles too.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const dist = fileURLToPath(new URL("../dist", import.meta.url));

/** A program in a folder of its own that contains the package as a bundle does, with this `__filename`. */
async function bundled(t, filename) {
  const folder = await mkdtemp(join(tmpdir(), "mcpline-"));
  t.after(() => rm(folder, { recursive: true }));
  const source = await readFile(join(dist, "internals.js"), "utf8");
  const program = `((__filename) => { ${source} })(${JSON.stringify(filename)});
console.log(exports.native.version());`;
  const path = join(folder, "app.cjs");
  await writeFile(path, program);
  return { folder, path };
}

const run = promisify(execFile);

test("consists of one file of JavaScript and the addon, for ESM and CommonJS alike", async () => {
  const program = `import { createRequire } from "node:module";
import { Server } from "mcpline";
const require = createRequire(import.meta.url);
const isSame = require("mcpline").Server === Server;
console.log(JSON.stringify([Object.keys(require.cache), isSame, Server.name]));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program], { cwd: dist });
  assert.deepEqual(JSON.parse(stdout), [[join(dist, "index.js"), join(dist, "mcpline.node")], true, "Server"]);
});

for (const [form, filename] of Object.entries({
  "of the machine that built it": "/nowhere/node_modules/mcpline/dist/index.js",
  "that is missing": undefined,
})) {
  test(`a bundle with a file name ${form} finds the addon next to the program`, async (t) => {
    const { folder, path } = await bundled(t, filename);
    await symlink(join(dist, "mcpline.node"), join(folder, "mcpline.node"));
    const { stdout } = await run(process.execPath, [path]);
    assert.match(stdout, /^\d+\.\d+\.\d+/);
  });
}

test("finds the addon in the package next to this one, copied without its package.json", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "mcpline-"));
  t.after(() => rm(folder, { recursive: true }));
  const { platform, arch } = process;
  const addon = join(folder, `mcpline-${platform}-${arch}${platform === "linux" ? "-gnu" : ""}`);
  await mkdir(addon);
  await symlink(join(dist, "mcpline.node"), join(addon, "mcpline.node"));
  const copied = join(folder, "mcpline", "dist");
  await cp(dist, copied, { recursive: true, filter: (path) => !path.endsWith(".node") });
  const { stdout } = await run(process.execPath, ["-p", 'require("./internals.js").native.version()'], { cwd: copied });
  assert.match(stdout, /^\d+\.\d+\.\d+/);
});

test("a bundle finds the addon in an installed package that contains it", async (t) => {
  const { folder, path } = await bundled(t, undefined);
  await mkdir(join(folder, "node_modules"));
  await symlink(join(dist, ".."), join(folder, "node_modules", "mcpline"));
  const { stdout } = await run(process.execPath, [path]);
  assert.match(stdout, /^\d+\.\d+\.\d+/);
});

test("a bundle without the addon says where it was looked up", async (t) => {
  const { path } = await bundled(t, "/nowhere/index.js");
  await assert.rejects(run(process.execPath, [path]), (error) => {
    assert.ok(error.stderr.includes(`no addon for this platform at /nowhere/index.js, ${path}, ${process.execPath}`));
    assert.match(error.stderr, /\.\/mcpline\.node was not found/);
    return true;
  });
});
