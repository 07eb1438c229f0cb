// Copies `app.mjs` of a folder and the files that it uses into the folder `traced`, as serverless platforms do.
//
//     node trace.mjs FOLDER
import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

import { nodeFileTrace } from "@vercel/nft";

const folder = process.argv[2];
// As Next.js sets it. Otherwise, files of the condition `module-sync` are left out when Node 20 builds.
const options = { base: folder, moduleSyncCatchall: true };
const { fileList } = await nodeFileTrace([join(folder, "app.mjs")], options);
for (const file of fileList) {
  const copy = join(folder, "traced", file);
  mkdirSync(dirname(copy), { recursive: true });
  cpSync(join(folder, file), copy);
}
