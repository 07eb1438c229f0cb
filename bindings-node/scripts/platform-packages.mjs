// Writes what is published: a package for each platform, which holds the addon, and the package `mcpline`, which holds the
// rest and names these as its optional dependencies, so that npm installs the one that fits.
//
//     node scripts/platform-packages.mjs ADDONS OUT [--dist FOLDER] [--without PLATFORM]...
//     node scripts/platform-packages.mjs --list                               prints the platforms as JSON
//     node scripts/platform-packages.mjs --whole OUT                          the package with this platform's addon in it
//
// ADDONS has `PLATFORM.node` for each platform below; one that is missing is an error, unless it is named. The compiled
// JavaScript and the types are taken from dist/, or from the folder named. OUT gets a folder for each package, ready for `npm publish`.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)));
const ADDON = "mcpline.node";
/** The licenses of what the addon contains. */
const NOTICES = "THIRD-PARTY-NOTICES.md";

/** What npm has to know of each platform to leave out the packages of the others. */
const PLATFORMS = {
  "darwin-arm64": { os: ["darwin"], cpu: ["arm64"] },
  "darwin-x64": { os: ["darwin"], cpu: ["x64"] },
  "linux-arm64-gnu": { os: ["linux"], cpu: ["arm64"], libc: ["glibc"] },
  "linux-arm64-musl": { os: ["linux"], cpu: ["arm64"], libc: ["musl"] },
  "linux-x64-gnu": { os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
  "linux-x64-musl": { os: ["linux"], cpu: ["x64"], libc: ["musl"] },
  "win32-x64": { os: ["win32"], cpu: ["x64"] },
};

function main() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      dist: { type: "string", default: join(PACKAGE, "dist") },
      without: { type: "string", multiple: true, default: [] },
      list: { type: "boolean", default: false },
      whole: { type: "boolean", default: false },
    },
  });
  if (values.list) {
    console.log(JSON.stringify(Object.keys(PLATFORMS)));
    return;
  }
  const manifest = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  if (values.whole && positionals.length === 1) {
    writeMain(manifest, [], values.dist, positionals[0]);
    cpSync(join(values.dist, ADDON), join(positionals[0], manifest.name, "dist", ADDON));
    return;
  }
  const [addons, out] = positionals;
  if (addons === undefined || out === undefined) {
    throw new Error("usage: platform-packages.mjs ADDONS OUT [--dist FOLDER] [--without PLATFORM]...");
  }
  const platforms = Object.keys(PLATFORMS).filter((platform) => !values.without.includes(platform));
  rmSync(out, { recursive: true, force: true });
  for (const platform of platforms) {
    writePlatform(manifest, platform, resolve(addons, `${platform}.node`), out);
  }
  writeMain(manifest, platforms, values.dist, out);
}

function platformName(manifest, platform) {
  return `${manifest.name}-${platform}`;
}

/** What all the packages say alike. */
function shared({ version, license, repository, homepage, engines }) {
  return { version, license, repository, homepage, engines };
}

function writePlatform(manifest, platform, addon, out) {
  if (!existsSync(addon)) {
    throw new Error(`there is no addon for ${platform}: ${addon}`);
  }
  const name = platformName(manifest, platform);
  const folder = join(out, name);
  mkdirSync(folder, { recursive: true });
  cpSync(addon, join(folder, ADDON));
  cpSync(join(PACKAGE, "..", "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(PACKAGE, "..", NOTICES), join(folder, NOTICES));
  writeFileSync(join(folder, "README.md"), `The addon of \`${manifest.name}\` for ${platform}.\n`);
  const description = `The addon of ${manifest.name} for ${platform}.`;
  writeManifest(folder, {
    name,
    description,
    ...shared(manifest),
    main: ADDON,
    files: [ADDON, NOTICES],
    ...PLATFORMS[platform],
  });
}

function writeMain(manifest, platforms, dist, out) {
  const folder = join(out, manifest.name);
  cpSync(dist, join(folder, "dist"), {
    recursive: true,
    filter: (source) => ![ADDON, "internals.js", "internals.d.ts"].includes(basename(source)),
  });
  for (const file of readdirSync(PACKAGE).filter((file) => /^(README|LICENSE)/.test(file))) {
    cpSync(join(PACKAGE, file), join(folder, file));
  }
  cpSync(join(PACKAGE, "..", "LICENSE"), join(folder, "LICENSE"));
  const forUs = ["devDependencies", "scripts", "private"];
  const published = Object.fromEntries(Object.entries(manifest).filter(([name]) => !forUs.includes(name)));
  const optionalDependencies = Object.fromEntries(
    platforms.map((platform) => [platformName(manifest, platform), manifest.version]),
  );
  writeManifest(folder, platforms.length === 0 ? published : { ...published, optionalDependencies });
}

function writeManifest(folder, manifest) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

main();
