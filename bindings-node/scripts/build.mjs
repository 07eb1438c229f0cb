// Builds the package into dist/: the addon by cargo, the JavaScript by tsc, and the ESM face of both.
//
//   npm run build [-- [--debug] [--keyring]]
//
// Needs a Rust toolchain. A debug build is made in a tenth of the time and is several times slower. With `--keyring`
// clients can keep tokens in the system's keyring.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
const profile = process.argv.includes("--debug") ? "dev" : "release";

function run(program, args, options = {}) {
  const { status, stdout, error } = spawnSync(program, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  });
  if (error !== undefined) {
    console.error(`${program} can't be started: ${error.message}`);
    process.exit(1);
  }
  if (status !== 0) {
    process.stderr.write(stdout ?? "");
    process.exit(status ?? 1);
  }
  return stdout;
}

/** Builds the addon and returns where cargo has left it. */
function addon() {
  const messages = run("cargo", [
    "build",
    "--package=mcpline-node",
    `--profile=${profile}`,
    ...(process.argv.includes("--keyring") ? ["--features=keyring"] : []),
    "--message-format=json-render-diagnostics",
  ]);
  const artifacts = messages
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  const built = artifacts.find(
    ({ reason, target }) => reason === "compiler-artifact" && target.name === "mcpline_node",
  );
  return built.filenames.find((name) => /\.(so|dylib|dll)$/.test(name));
}

/** The compiler of TypeScript. npm runs this script before it has installed what a package in a folder is built with. */
function compiler() {
  const { resolve } = createRequire(import.meta.url);
  const find = () => join(dirname(resolve("typescript/package.json")), "bin", "tsc");
  try {
    return find();
  } catch {
    const { npm_execpath: npm } = process.env;
    const [program, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]];
    run(program, [...first, "ci", "--ignore-scripts", "--prefix", root]);
    return find();
  }
}

/**
 * The ESM face: the same objects as `require` gives, by name. It requires, rather than imports, because an import of
 * CommonJS has to look for the names that it exports, which takes milliseconds. Bundlers do not follow that, and neither
 * do versions of Node without the condition `module-sync`: they get the face that imports (`exports` of package.json).
 */
function face() {
  const names = Object.keys(createRequire(import.meta.url)(join(dist, "index.js"))).filter(
    (name) => name !== "__esModule",
  );
  const lines = [
    'import { createRequire } from "node:module";',
    `export const { ${names.join(", ")} } = createRequire(import.meta.url)("./index.js");`,
    "",
  ];
  writeFileSync(join(dist, "index.mjs"), lines.join("\n"));
  const imports = ['import mcpline from "./index.js";', `export const { ${names.join(", ")} } = mcpline;`, ""];
  writeFileSync(join(dist, "bundled.mjs"), imports.join("\n"));
  writeFileSync(join(dist, "index.d.mts"), 'export * from "./index.js";\n');
}

const tsc = compiler();
// The old package stays usable until the addon is built, which takes longest.
const library = addon();
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
// By renaming, because a process may have the old one mapped.
copyFileSync(library, join(dist, "mcpline.node.new"));
if (profile === "release" && process.platform === "linux") {
  run("strip", ["--strip-unneeded", join(dist, "mcpline.node.new")]);
}
renameSync(join(dist, "mcpline.node.new"), join(dist, "mcpline.node"));
run(process.execPath, [tsc, "--project", root], { stdio: "inherit" });
face();
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
console.log(`mcpline ${version} is built (${profile})`);
