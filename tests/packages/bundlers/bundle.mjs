// Builds `app.mjs` and `app.cjs` of a folder with each bundler, and prints the paths of the bundles as JSON.
//
//     node bundle.mjs FOLDER
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import commonjs from "@rollup/plugin-commonjs";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { build } from "esbuild";
import { rollup } from "rollup";
import { build as viteBuild } from "vite";
import webpack from "webpack";

const { resolve } = createRequire(import.meta.url);
const folder = process.argv[2];
const [esm, cjs] = [join(folder, "app.mjs"), join(folder, "app.cjs")];
const out = (name) => join(folder, "out", name);
mkdirSync(join(folder, "out"));

/** Gives the CommonJS in a bundle of the form of an ES module what it needs; see docs/bundling.md. */
const BANNER = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

async function withEsbuild() {
  const common = { bundle: true, platform: "node", logLevel: "error" };
  await build({ ...common, entryPoints: [esm], format: "cjs", outfile: out("esbuild.cjs") });
  await build({ ...common, entryPoints: [cjs], format: "cjs", outfile: out("esbuild-of-cjs.cjs") });
  await build({ ...common, entryPoints: [esm], format: "esm", banner: { js: BANNER }, outfile: out("esbuild.mjs") });
  return ["esbuild.cjs", "esbuild-of-cjs.cjs", "esbuild.mjs"];
}

async function withRollup() {
  const plugins = [nodeResolve({ preferBuiltins: true }), commonjs()];
  const bundle = await rollup({ input: esm, plugins, onwarn: () => undefined });
  await bundle.write({ format: "es", file: out("rollup.mjs") });
  await bundle.write({ format: "cjs", file: out("rollup.cjs") });
  return ["rollup.mjs", "rollup.cjs"];
}

async function withVite() {
  const place = out("vite");
  await viteBuild({
    root: folder,
    configFile: false,
    logLevel: "error",
    ssr: { noExternal: ["mcpline"] },
    build: { ssr: esm, outDir: place, rolldownOptions: { output: { entryFileNames: "vite.mjs" } } },
  });
  copyFileSync(join(place, "vite.mjs"), out("vite.mjs"));
  return ["vite.mjs"];
}

async function withWebpack() {
  const output = { path: join(folder, "out"), filename: "webpack.cjs" };
  const compiler = webpack({ mode: "production", target: "node", entry: esm, output });
  const stats = await new Promise((resolve, reject) => {
    compiler.run((error, stats) => (error ? reject(error) : resolve(stats)));
  });
  if (stats.hasErrors()) {
    throw new Error(stats.toString("errors-only"));
  }
  return ["webpack.cjs"];
}

function withNcc() {
  const ncc = join(resolve("@vercel/ncc/package.json"), "..", "dist", "ncc", "cli.js");
  for (const [entry, name] of [
    [esm, "index.mjs"],
    [cjs, "index.cjs"],
  ]) {
    const place = out(`ncc-${name}`);
    execFileSync(process.execPath, [ncc, "build", entry, "--out", place, "--quiet"], { cwd: folder });
    copyFileSync(join(place, name), out(name.replace("index", "ncc")));
  }
  return ["ncc.mjs", "ncc.cjs"];
}

/** A single executable application of Node, from a bundle. */
function asExecutable() {
  const configuration = { main: out("esbuild.cjs"), output: out("app.blob"), disableExperimentalSEAWarning: true };
  writeFileSync(out("sea.json"), JSON.stringify(configuration));
  execFileSync(process.execPath, ["--experimental-sea-config", out("sea.json")], { stdio: "ignore" });
  copyFileSync(process.execPath, out("app"));
  const postject = join(resolve("postject/package.json"), "..", "dist", "cli.js");
  const fuse = ["--sentinel-fuse", "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2"];
  execFileSync(process.execPath, [postject, out("app"), "NODE_SEA_BLOB", out("app.blob"), ...fuse], {
    stdio: "ignore",
  });
  return ["app"];
}

const bundles = [
  ...(await withEsbuild()),
  ...(await withRollup()),
  ...(await withVite()),
  ...(await withWebpack()),
  ...withNcc(),
];
console.log(JSON.stringify({ bundles: bundles.map(out), executables: asExecutable().map(out) }));
