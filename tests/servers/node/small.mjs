// Servers that have little, or declare what they have none of.

/** Of each option of the command line: what such a server declares, and what it has. */
export const SMALL = {
  declared: { declare: ["tools", "prompts", "resources"], add: () => {} },
  "tools-only": {
    add: (server) =>
      server.tool(
        "test_simple_text",
        { description: "Returns a text" },
        () => "This is a simple text response for testing.",
      ),
  },
  "prompts-only": {
    add: (server) =>
      server.prompt(
        "test_simple_prompt",
        { description: "A prompt without arguments" },
        () => "This is a simple prompt for testing.",
      ),
  },
};
