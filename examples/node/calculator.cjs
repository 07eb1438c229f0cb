// A server in CommonJS with a plain JSON Schema: needs only mcpline. `node calculator.cjs` serves stdio.
const { Server } = require("mcpline");

const server = new Server({ name: "calculator", version: "1.0.0" });

server.tool(
  "add",
  {
    description: "Adds two numbers",
    input: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
  },
  ({ a, b }) => String(a + b),
);

server.run();
