export default function Page() {
  return <p>The MCP endpoint is at /mcp.</p>;
}
