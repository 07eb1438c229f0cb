// Packs the folder `app` of a folder as `app.asar`, as Electron's packagers do, and extracts it as `extracted`.
// Prints the files that are not in the archive but next to it, as JSON.
//
//     node archive.mjs FOLDER
import { join } from "node:path";

import { createPackageWithOptions, extractAll, listPackage, statFile } from "@electron/asar";

const folder = process.argv[2];
const archive = join(folder, "app.asar");
await createPackageWithOptions(join(folder, "app"), archive, { unpack: "**/*.node" });
const files = listPackage(archive).map((path) => path.slice(1));
const unpacked = files.filter((path) => {
  const entry = statFile(archive, path);
  return entry.unpacked === true && entry.files === undefined;
});
extractAll(archive, join(folder, "extracted"));
console.log(JSON.stringify(unpacked));
