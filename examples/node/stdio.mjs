// Serves weather.mjs to the host that starts this program: over its pipes, until the host closes them.
import { server } from "./weather.mjs";

await server.run();
