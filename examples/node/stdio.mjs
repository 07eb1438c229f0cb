// Serves weather.mjs over stdio, until the host closes the pipe.
import { server } from "./weather.mjs";

await server.run();
