// Builds the package into dist/: the addon by cargo, the types and the JavaScript by tsc, and the ESM face of both. The
// modules are bundled into one file, because Node takes twice as long to load them one by one.
//
//   npm run build [-- [--debug] [--keyring]]
//   node scripts/build.mjs --addon FILE [--out FOLDER]
//
// Needs a Rust toolchain. A debug build is made in a tenth of the time and is several times slower. With `--keyring`
// clients can keep tokens in the system's keyring. With `--addon`, an addon for this machine that exists is used, and not
// stripped. `--out` names another folder than dist/.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { values: options } = parseArgs({
  options: {
    addon: { type: "string" },
    debug: { type: "boolean", default: false },
    keyring: { type: "boolean", default: false },
    out: { type: "string", default: join(root, "dist") },
  },
});
const dist = resolve(options.out);
const profile = options.debug ? "dev" : "release";

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
    ...(options.keyring ? ["--features=keyring"] : []),
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

/** Installs what the package is built with, unless it is there: npm runs this script before, for a package in a folder. */
function installTools() {
  const { resolve } = createRequire(import.meta.url);
  try {
    resolve("rollup");
    resolve("typescript");
  } catch {
    const { npm_execpath: npm } = process.env;
    const [program, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]];
    run(program, [...first, "ci", "--ignore-scripts", "--prefix", root]);
  }
}

/** Compiles the modules: the types into dist/, the JavaScript without comments, which the types have, into another folder. */
function compile(modules) {
  const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
  const emit = (...flags) => run(process.execPath, [tsc, "--project", root, ...flags], { stdio: "inherit" });
  emit("--emitDeclarationOnly", "--outDir", dist);
  emit("--outDir", modules, "--declaration", "false", "--removeComments");
}

/** Bundles a module and those that it imports into one CommonJS file. Names and lines stay as they are, for stack traces. */
async function bundle(modules, name) {
  const { rollup } = await import("rollup");
  const built = await rollup({
    input: join(modules, name),
    external: /^node:/,
    onLog(level, log) {
      // Modules may import each other, as long as none needs another one while it is loaded.
      if (log.code !== "CIRCULAR_DEPENDENCY") {
        console.error(`${level}: ${log.message}`);
      }
    },
  });
  await built.write({ file: join(dist, name), format: "cjs", esModule: true, generatedCode: { constBindings: true } });
  await built.close();
}

/**
 * The ESM face: the same objects as `require` gives, by name. It requires, rather than imports, because an import of
 * CommonJS has to look for the names that it exports, which takes milliseconds. Bundlers do not follow that, and neither
 * do versions of Node without the condition `module-sync`: they get the face that imports (`exports` of package.json).
 */
function writeEsmEntry() {
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

installTools();
// The old package stays usable until the addon is built, which takes longest.
const library = options.addon ?? addon();
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
// By renaming, because a process may have the old one mapped.
copyFileSync(library, join(dist, "mcpline.node.new"));
if (options.addon === undefined && profile === "release" && process.platform === "linux") {
  run("strip", ["--strip-unneeded", join(dist, "mcpline.node.new")]);
}
renameSync(join(dist, "mcpline.node.new"), join(dist, "mcpline.node"));
const modules = join(dist, "modules");
compile(modules);
await bundle(modules, "index.js");
await bundle(modules, "internals.js");
rmSync(modules, { recursive: true });
writeEsmEntry();
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
console.log(`mcpline ${version} is built (${profile})`);
