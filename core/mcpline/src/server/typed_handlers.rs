//! Typed handlers in Rust: closures over your own types.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_protocol::vocabulary::{
    CallToolResult, ContentBlock, GetPromptResult, ListResourcesResult, PromptMessage,
    ReadResourceResult, Resource, ResourceContents, Role, TextContent,
};
use mcpline_protocol::wire::Raw;
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json_error::without_column;

use super::handler::{Handler, handler};
use super::handler_function::{HandlerFunction, NoArguments};
use super::reply::{
    CompletionReply, HandlerError, InputRequired, PromptReply, Reply, ResourceReply, ToolReply,
};
use super::{Call, Context, ToolError};

/// Structured content of a tool, of any serializable type. If a tool's closure returns it, its output schema is
/// derived.
#[cfg(feature = "schemars")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Types that the function of a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool can't return `{Self}`",
    label = "not a result of a tool",
    note = "return a text, a number, `Json<T>` for structured content, content blocks, a `CallToolResult`, an `Option` of \
            these, or a `Result` of these with a `ToolError` or any other error"
)]
pub trait IntoToolReply {
    /// Converts into a reply.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_tool_reply(self) -> Result<Reply, HandlerError>;

    /// Returns the output schema, if the type has one.
    fn output_schema() -> Option<Value> {
        None
    }
}

impl IntoToolReply for String {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply::text(&self)))
    }
}

impl IntoToolReply for &'static str {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply::text(self)))
    }
}

macro_rules! text_reply {
    ($($kind:ty),*) => {$(
        impl IntoToolReply for $kind {
            fn into_tool_reply(self) -> Result<Reply, HandlerError> {
                Ok(Reply::Tool(ToolReply::text(&self.to_string())))
            }
        }
    )*};
}

text_reply!(bool, char, f32, f64);
text_reply!(i8, i16, i32, i64, i128, isize);
text_reply!(u8, u16, u32, u64, u128, usize);

impl IntoToolReply for Cow<'static, str> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply::text(&self)))
    }
}

/// `None` is a result without content. It has no output schema: structured content could be missing.
impl<T: IntoToolReply> IntoToolReply for Option<T> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        match self {
            Some(value) => value.into_tool_reply(),
            None => ().into_tool_reply(),
        }
    }
}

impl IntoToolReply for () {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            content: Some(Raw::EMPTY_ARRAY),
            ..ToolReply::default()
        }))
    }
}

impl IntoToolReply for ToolReply {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(self))
    }
}

impl IntoToolReply for Reply {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl IntoToolReply for InputRequired {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::InputRequired(self))
    }
}

impl IntoToolReply for ContentBlock {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        vec![self].into_tool_reply()
    }
}

/// One content block for each item: a text, an image, and so on. For other lists use [`Json`].
impl<T: Into<ContentBlock>> IntoToolReply for Vec<T> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        let blocks: Vec<ContentBlock> = self.into_iter().map(Into::into).collect();
        Ok(Reply::Tool(ToolReply {
            content: Some(raw(&blocks)?),
            ..ToolReply::default()
        }))
    }
}

impl IntoToolReply for CallToolResult {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            content: Some(raw(&self.content)?),
            structured: self.structured_content.as_ref().map(raw).transpose()?,
            is_error: self.is_error == Some(true),
            meta: self.meta.as_ref().map(raw).transpose()?,
        }))
    }
}

#[cfg(feature = "schemars")]
impl<T: Serialize + JsonSchema> IntoToolReply for Json<T> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Tool(ToolReply {
            structured: Some(raw(&self.0)?),
            ..ToolReply::default()
        }))
    }

    fn output_schema() -> Option<Value> {
        Some(schema_of::<T>())
    }
}

impl<T: IntoToolReply, E: Into<ToolError>> IntoToolReply for Result<T, E> {
    fn into_tool_reply(self) -> Result<Reply, HandlerError> {
        self.map_err(handler_error)?.into_tool_reply()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

/// Returns the error of a handler for any error.
fn handler_error<E: Into<ToolError>>(error: E) -> HandlerError {
    error.into().into()
}

/// Types that the function of a resource can return.
#[diagnostic::on_unimplemented(
    message = "a resource can't return `{Self}`",
    label = "not the contents of a resource",
    note = "return a text, `Vec<u8>`, `ResourceContents`, a `ReadResourceResult`, or a `Result` of these with a \
            `ToolError` or any other error"
)]
pub trait IntoResourceReply {
    /// Converts into a reply for the resource at `uri`. `mime_type`, the type in its definition, applies where the
    /// value has none.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_resource_reply(self, uri: &str, mime_type: Option<&str>)
    -> Result<Reply, HandlerError>;
}

impl IntoResourceReply for String {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        typed(ResourceContents::text(uri, self), mime_type).into_resource_reply(uri, mime_type)
    }
}

impl IntoResourceReply for &'static str {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        self.to_owned().into_resource_reply(uri, mime_type)
    }
}

impl IntoResourceReply for Vec<u8> {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        typed(
            ResourceContents::blob(uri, STANDARD.encode(self)),
            mime_type,
        )
        .into_resource_reply(uri, mime_type)
    }
}

impl IntoResourceReply for ResourceContents {
    fn into_resource_reply(self, _: &str, _: Option<&str>) -> Result<Reply, HandlerError> {
        Ok(Reply::Resource(ResourceReply {
            contents: raw(&[self])?,
            cache: None,
            meta: None,
        }))
    }
}

impl IntoResourceReply for ReadResourceResult {
    fn into_resource_reply(self, _: &str, _: Option<&str>) -> Result<Reply, HandlerError> {
        Ok(Reply::Resource(ResourceReply {
            contents: raw(&self.contents)?,
            cache: None,
            meta: self.meta.as_ref().map(raw).transpose()?,
        }))
    }
}

impl IntoResourceReply for Reply {
    fn into_resource_reply(self, _: &str, _: Option<&str>) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl<T: IntoResourceReply, E: Into<ToolError>> IntoResourceReply for Result<T, E> {
    fn into_resource_reply(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<Reply, HandlerError> {
        self.map_err(handler_error)?
            .into_resource_reply(uri, mime_type)
    }
}

/// Types that the function that lists resources of a template can return.
#[diagnostic::on_unimplemented(
    message = "the list of a resource template can't be `{Self}`",
    label = "not a list of resources",
    note = "return `Vec<Resource>`, a `Vec` of URIs, a `ListResourcesResult`, or a `Result` of these with a `ToolError` or any \
            other error"
)]
pub trait IntoResourceList {
    /// Converts into a reply.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_resource_list(self) -> Result<Reply, HandlerError>;
}

impl IntoResourceList for Vec<Resource> {
    fn into_resource_list(self) -> Result<Reply, HandlerError> {
        resource_list(&self)
    }
}

impl IntoResourceList for Vec<String> {
    fn into_resource_list(self) -> Result<Reply, HandlerError> {
        resource_list(&self)
    }
}

impl IntoResourceList for Vec<&'static str> {
    fn into_resource_list(self) -> Result<Reply, HandlerError> {
        resource_list(&self)
    }
}

/// Only the resources are used: the list has no cursor of its own.
impl IntoResourceList for ListResourcesResult {
    fn into_resource_list(self) -> Result<Reply, HandlerError> {
        resource_list(&self.resources)
    }
}

impl IntoResourceList for Reply {
    fn into_resource_list(self) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl<T: IntoResourceList, E: Into<ToolError>> IntoResourceList for Result<T, E> {
    fn into_resource_list(self) -> Result<Reply, HandlerError> {
        self.map_err(handler_error)?.into_resource_list()
    }
}

fn resource_list(resources: &impl Serialize) -> Result<Reply, HandlerError> {
    Ok(Reply::Result(
        Raw::EMPTY_OBJECT.with("resources", &raw(resources)?),
    ))
}

/// Types that the function of a prompt can return.
#[diagnostic::on_unimplemented(
    message = "a prompt can't return `{Self}`",
    label = "not the messages of a prompt",
    note = "return a text, `Vec<PromptMessage>`, a `GetPromptResult`, or a `Result` of these with a `ToolError` or any \
            other error"
)]
pub trait IntoPromptReply {
    /// Converts into a reply.
    ///
    /// # Errors
    ///
    /// The error of the handler.
    fn into_prompt_reply(self) -> Result<Reply, HandlerError>;
}

impl IntoPromptReply for String {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        vec![PromptMessage::new(Role::User, TextContent::new(self))].into_prompt_reply()
    }
}

impl IntoPromptReply for &str {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        self.to_owned().into_prompt_reply()
    }
}

impl IntoPromptReply for Vec<PromptMessage> {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Prompt(PromptReply {
            messages: raw(&self)?,
            description: None,
            meta: None,
        }))
    }
}

impl IntoPromptReply for GetPromptResult {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::Prompt(PromptReply {
            messages: raw(&self.messages)?,
            description: self.description,
            meta: self.meta.as_ref().map(raw).transpose()?,
        }))
    }
}

impl IntoPromptReply for InputRequired {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(Reply::InputRequired(self))
    }
}

impl IntoPromptReply for Reply {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        Ok(self)
    }
}

impl<T: IntoPromptReply, E: Into<ToolError>> IntoPromptReply for Result<T, E> {
    fn into_prompt_reply(self) -> Result<Reply, HandlerError> {
        self.map_err(handler_error)?.into_prompt_reply()
    }
}

/// Returns the JSON Schema of a type: self-contained, 2020-12.
#[cfg(feature = "schemars")]
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    if let Some(members) = value.as_object_mut() {
        members.remove("title");
        if members.get("type").is_none() && members.is_empty() {
            members.insert("type".into(), "object".into());
        }
    }
    value
}

/// Decodes arguments, which are an object, also if the type takes none (`()`) or is optional.
fn decode<T: DeserializeOwned>(arguments: &Raw) -> Result<T, String> {
    let error = match arguments.decode() {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    if size_of::<T>() == 0
        || arguments
            .members()
            .is_some_and(|mut members| members.next().is_none())
    {
        // A unit, which serde writes as `null`, or `None`.
        return serde_json::from_str("null").map_err(|_| mismatch::<T>(arguments, &error));
    }
    Err(mismatch::<T>(arguments, &error))
}

/// Says what does not match a type.
#[cfg(not(feature = "schemars"))]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "with the feature `schemars` it decodes the type"
)]
fn mismatch<T: DeserializeOwned>(_: &Raw, error: &serde_json::Error) -> String {
    without_column(error)
}

/// Says what does not match a type, and where. Decodes once more, because finding the place costs time in each decoding.
#[cfg(feature = "schemars")]
fn mismatch<T: DeserializeOwned>(arguments: &Raw, error: &serde_json::Error) -> String {
    let mut deserializer = serde_json::Deserializer::from_slice(arguments.as_bytes());
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) if error.path().iter().next().is_some() => {
            let place = error.path().to_string();
            format!("`{place}`: {}", without_column(&error.into_inner()))
        }
        _ => without_column(error),
    }
}

/// Makes the handler of a tool from a typed function or closure, for [`Server::add_tool`](super::Server::add_tool).
pub fn tool_handler<M, F>(run: F) -> Arc<dyn Handler>
where
    F: HandlerFunction<M, Output: IntoToolReply>,
{
    let function = Arc::new(run);
    handler(move |call: &Call| {
        let arguments = decode::<F::Arguments>(call.arguments());
        let running = arguments.map(|arguments| function.start(arguments, call.context()));
        async move {
            match running {
                Ok(running) => running.await.into_tool_reply(),
                Err(error) => Err(HandlerError::Tool(format!("Invalid arguments: {error}"))),
            }
        }
    })
}

/// Wraps the closure of a custom request in a handler.
pub(super) fn request_handler<P, F, Fut, R, E>(run: F) -> Arc<dyn Handler>
where
    P: DeserializeOwned,
    F: Fn(P, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    R: Serialize,
    E: Into<ToolError>,
{
    handler(move |call: &Call| {
        let running = decode::<P>(call.arguments()).map(|params| run(params, call.context()));
        async move {
            match running {
                Ok(running) => Ok(Reply::Result(raw(&running
                    .await
                    .map_err(handler_error)?)?)),
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!("params: {error}")),
                )),
            }
        }
    })
}

/// Wraps the closure of a custom notification in a handler.
pub(super) fn notification_handler<P, F, Fut>(run: F) -> Arc<dyn Handler>
where
    P: DeserializeOwned,
    F: Fn(P, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    handler(move |call: &Call| {
        let running = decode::<P>(call.arguments()).map(|params| run(params, call.context()));
        async move {
            match running {
                Ok(running) => {
                    running.await;
                    Ok(Reply::Result(Raw::EMPTY_OBJECT))
                }
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!("params: {error}")),
                )),
            }
        }
    })
}

/// Makes the handler of a prompt from a typed function or closure, for [`Server::add_prompt`](super::Server::add_prompt).
pub fn prompt_handler<M, F>(run: F) -> Arc<dyn Handler>
where
    F: HandlerFunction<M, Output: IntoPromptReply>,
{
    let function = Arc::new(run);
    handler(move |call: &Call| {
        let arguments = decode::<F::Arguments>(call.arguments());
        let running = arguments.map(|arguments| function.start(arguments, call.context()));
        async move {
            match running {
                Ok(running) => running.await.into_prompt_reply(),
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!(
                        "Invalid arguments: {error}"
                    )),
                )),
            }
        }
    })
}

/// Makes the handler of a resource or a resource template from a typed function or closure, for
/// [`Server::add_resource`](super::Server::add_resource) and
/// [`Server::add_resource_template`](super::Server::add_resource_template).
///
/// The arguments of the function are the variables of the template. `mime_type`, the type in the definition, applies where
/// the returned value has none.
pub fn resource_handler<M, F>(mime_type: Option<String>, run: F) -> Arc<dyn Handler>
where
    F: HandlerFunction<M, Output: IntoResourceReply>,
{
    let function = Arc::new(run);
    handler(move |call: &Call| {
        let uri = call.name();
        let mime_type = mime_type.clone();
        let variables = decode::<F::Arguments>(call.arguments());
        let running = variables.map(|variables| function.start(variables, call.context()));
        async move {
            match running {
                Ok(running) => running
                    .await
                    .into_resource_reply(&uri, mime_type.as_deref()),
                Err(error) => Err(HandlerError::Rpc(
                    mcpline_protocol::RpcError::invalid_params(format!("{uri}: {error}")),
                )),
            }
        }
    })
}

/// Makes the handler that lists resources of a template from a function or closure, for
/// [`Server::set_resource_template_list`](super::Server::set_resource_template_list).
pub fn resource_list_handler<M, F>(run: F) -> Arc<dyn Handler>
where
    F: HandlerFunction<M, Arguments = NoArguments, Output: IntoResourceList>,
{
    let function = Arc::new(run);
    handler(move |call: &Call| {
        let running = function.start(NoArguments {}, call.context());
        async move { running.await.into_resource_list() }
    })
}

/// Wraps the closure of a completion in a handler.
pub(super) fn completion_handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<String>> + Send + 'static,
{
    handler(move |call: &Call| {
        let asked = call.arguments().decode().unwrap_or_default();
        let running = run(asked, call.context());
        async move {
            Ok(Reply::Completion(CompletionReply {
                values: running.await,
                ..CompletionReply::default()
            }))
        }
    })
}

/// Wraps the closure of a session event in a handler.
pub(super) fn event_handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    handler(move |call: &Call| {
        let running = run(call.context());
        async move {
            running.await;
            Ok(Reply::Tool(ToolReply::default()))
        }
    })
}

/// Returns the contents with the resource's declared type.
fn typed(contents: ResourceContents, mime_type: Option<&str>) -> ResourceContents {
    match mime_type {
        Some(mime_type) => contents.with_mime_type(mime_type),
        None => contents,
    }
}

fn raw(value: &impl Serialize) -> Result<Raw, HandlerError> {
    Raw::from_serialize(value).map_err(|error| {
        HandlerError::Internal(format!("the result cannot be written as JSON: {error}"))
    })
}
