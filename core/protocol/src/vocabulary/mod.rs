//! The vocabulary: the types of requests, results and notifications, one file per feature.
//!
//! The types cover every revision at once; [`adapt`](crate::adapt) adapts a value to the revision of a peer. Members
//! that no known revision defines survive a round trip in `extra`, unknown words and unknown kinds of content in the
//! `Other` variant of their enum.

mod caching;
mod capabilities;
mod completion;
mod content;
mod elicitation;
mod implementation;
mod input;
mod lifecycle;
mod listing;
mod logging;
mod macros;
pub mod meta;
mod progress;
mod prompts;
mod resources;
mod roots;
mod sampling;
mod subscriptions;
mod tools;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use caching::{CacheHints, CacheScope};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities,
};
pub use completion::{
    CompleteArgument, CompleteContext, CompleteParams, CompleteResult, Completion, PromptReference,
    Reference, ResourceReference,
};
pub use content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, Role, TextContent,
};
pub use elicitation::{
    Choice, Choices, ElicitAction, ElicitMode, ElicitParams, ElicitResult, ElicitationComplete,
    FieldSchema, FormFields, FormSchema, UrlElicitationRequired,
};
pub use implementation::{Icon, Implementation, Theme};
pub use input::{InputRequest, InputRequestOf, InputRequiredResult, ListRootsRequest};
pub use lifecycle::{DiscoverResult, InitializeParams, InitializeResult};
pub use listing::{
    ListParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult,
};
pub use logging::{LogMessage, LoggingLevel, SetLevelParams};
pub use progress::{Cancelled, Progress, ProgressToken};
pub use prompts::{GetPromptParams, GetPromptResult, Prompt, PromptArgument, PromptMessage};
pub use resources::{
    ReadResourceParams, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdated,
};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingContents, SamplingMessage, ToolChoice, ToolChoiceMode,
    ToolResultContent, ToolUseContent,
};
pub use subscriptions::{ListenParams, ListenResult, SubscriptionFilter};
pub use tools::{
    CallToolParams, CallToolResult, ResultType, TaskSupport, Tool, ToolAnnotations, ToolExecution,
    is_recommended_name,
};

/// A JSON object whose members keep their order.
pub type JsonObject = Map<String, Value>;

/// Members that no known revision defines, kept for applications that know them.
pub type Extra = JsonObject;

/// Reads a member that is present even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
