// The server of `client-peer.mjs` as a program on stdio.

import { makeServer } from "./client-peer.mjs";

if (process.env.PEER_SAYS !== undefined) {
  console.error(process.env.PEER_SAYS);
}
await makeServer().run();
