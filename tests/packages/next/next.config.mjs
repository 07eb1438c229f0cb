export default {
  serverExternalPackages: ["mcpline"],
  ...(process.env.STANDALONE ? { output: "standalone" } : {}),
  outputFileTracingRoot: import.meta.dirname,
  turbopack: { root: import.meta.dirname },
};
