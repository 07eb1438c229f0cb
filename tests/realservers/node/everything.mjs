// `@modelcontextprotocol/server-everything` started as the other servers are: `everything.mjs MODE [--http PORT]`.

const [mode, , port] = process.argv.slice(2);
if (port) process.env.PORT = port;
process.argv.splice(2, process.argv.length, mode);
await import("@modelcontextprotocol/server-everything/dist/index.js");
