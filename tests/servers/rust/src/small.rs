//! Servers with a single feature, or with capabilities but no features.

use mcpline::protocol::vocabulary::Prompt;
use mcpline::server::ServerBuilder;
use mcpline::{Context, Error, Server};

use crate::content::Nothing;

/// The features of such a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Small {
    /// None, but it declares tools, prompts and resources.
    Declared,
    /// One tool.
    ToolsOnly,
    /// One prompt.
    PromptsOnly,
}

impl Small {
    /// The server.
    pub(crate) fn build(self, builder: ServerBuilder) -> Result<Server, Error> {
        Ok(match self {
            Self::Declared => builder
                .declare_tools()
                .declare_prompts()
                .declare_resources()
                .build()?,
            Self::ToolsOnly => builder.build()?.tool(
                "test_simple_text",
                "Returns a text",
                |_: Nothing, _: Context| async { "This is a simple text response for testing." },
            ),
            Self::PromptsOnly => builder.build()?.prompt(
                Prompt::new("test_simple_prompt").with_description("A prompt of the fixture"),
                |_: Nothing, _: Context| async { "This is a simple prompt for testing." },
            ),
        })
    }
}
