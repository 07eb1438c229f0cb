// Starts `@modelcontextprotocol/server-everything` with the arguments of the other servers: `everything.mjs MODE
// [--http PORT]`.

const [mode, , port] = process.argv.slice(2);
if (port) process.env.PORT = port;
process.argv.splice(2, process.argv.length, mode);
await import("@modelcontextprotocol/server-everything/dist/index.js");
