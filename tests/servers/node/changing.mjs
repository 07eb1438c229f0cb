// Tools that change the server's features.
import { watched } from "./resources.mjs";

const DYNAMIC = () => "dynamic";

export function addChangingTools(server) {
  server.tool("test_update_resource", { description: "Changes the watched resource" }, () => {
    watched.version += 1;
    server.notifyResourceUpdated(watched.uri);
    return `version ${watched.version}`;
  });

  server.tool("test_trigger_tool_change", { description: "Adds a tool, or removes it" }, () => {
    if (server.removeTool("test_dynamic_tool")) {
      return "removed";
    }
    server.tool("test_dynamic_tool", { description: "A tool that comes and goes" }, DYNAMIC);
    return "added";
  });

  server.tool("test_trigger_prompt_change", { description: "Adds a prompt, or removes it" }, () => {
    if (server.removePrompt("test_dynamic_prompt")) {
      return "removed";
    }
    server.prompt("test_dynamic_prompt", { description: "A prompt that comes and goes" }, DYNAMIC);
    return "added";
  });

  server.tool("test_trigger_resource_change", { description: "Adds a resource, or removes it" }, () => {
    const uri = "test://dynamic-resource";
    if (server.removeResource(uri)) {
      return "removed";
    }
    server.resource(uri, { name: "dynamic-resource", description: "A resource that comes and goes" }, DYNAMIC);
    return "added";
  });
}
