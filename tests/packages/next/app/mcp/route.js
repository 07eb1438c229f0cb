import { Server } from "mcpline";

const server = new Server({ name: "next", version: "1.0.0" }).tool("hello", {}, () => "hello");

const handle = (request) => server.fetch(request);
export { handle as DELETE, handle as GET, handle as POST };
