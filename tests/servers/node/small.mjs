// Servers with a single feature, or with capabilities but no features.

/** For each option of the command line: the capabilities and the features of the server. */
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
