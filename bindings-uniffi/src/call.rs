//! Calls of handlers: the foreign trait that handles them, their request context, and their outcome.

use std::sync::Arc;

use mcpline::foreign::results::{self, CallTarget};
use mcpline::foreign::{self, Failure as CoreFailure, IoAction, IoThreadQueue};
use mcpline::middleware::MiddlewareOutcome;
use mcpline::protocol::vocabulary::{ElicitParams, LoggingLevel};
use mcpline::protocol::wire::Raw;
use mcpline::server::CallKind;
use mcpline::{Context, ErrorKind, HandlerError, InputRequest, InputRequestMethod, Reply};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use crate::failure::{Failure, ForeignFailure, RpcFailure};

/// A handler in the other language. Dropping the future cancels it.
#[uniffi::export(with_foreign)]
#[async_trait::async_trait]
pub trait Handler: Send + Sync {
    /// Handles a call. `arguments` are JSON.
    async fn call(&self, arguments: String, call: Arc<Call>) -> Result<Outcome, ForeignFailure>;
}

/// How a handler ends.
#[derive(Debug, uniffi::Enum)]
pub enum Outcome {
    /// A text: that of a tool, a prompt or a resource. Ignored for events and notifications.
    Text {
        /// The text.
        text: String,
    },
    /// Bytes of a resource, or of an image or sound of a tool.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// Their MIME type.
        mime_type: Option<String>,
    },
    /// The main array of the result: the content of a tool, the contents of a resource, the messages of a prompt.
    Content {
        /// A JSON array.
        json: String,
    },
    /// The structured content of a tool.
    Structured {
        /// JSON.
        json: String,
    },
    /// The complete result of the called method.
    Complete {
        /// A JSON object.
        json: String,
    },
    /// The result of a request as a middleware passes it on, or in its place: that of the called method.
    MethodResult {
        /// A JSON object.
        json: String,
    },
    /// The values of a completion.
    Values {
        /// The values.
        values: Vec<String>,
    },
    /// Input requests: `requests`, an array of key, method and parameters, and `state`.
    InputRequired {
        /// A JSON object.
        json: String,
    },
    /// A failure that the model reads.
    ToolFailure {
        /// The message.
        message: String,
    },
    /// A JSON-RPC error.
    RpcFailed {
        /// The error.
        error: RpcFailure,
    },
    /// The resource does not exist.
    ResourceNotFound {
        /// Its URI. `None`: the one that the client reads.
        uri: Option<String>,
    },
    /// The client lacks a capability.
    NotSupported {
        /// The message, for capabilities that the core does not know.
        message: String,
        /// The capability, as JSON.
        required: String,
    },
    /// URL elicitations that the user must complete first.
    UrlElicitationRequired {
        /// A JSON array of elicitation parameters in URL mode.
        json: String,
    },
    /// Any other exception. Clients get it in debug mode only.
    Exception {
        /// Type and message.
        summary: String,
        /// The stack trace.
        trace: String,
    },
}

/// Passes the calls of one feature to a foreign handler, each in a task of its own.
pub(crate) struct ForeignHandler {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) mime_type: Option<Arc<str>>,
    pub(crate) runtime: Handle,
    pub(crate) queue: IoThreadQueue,
}

impl mcpline::Handler for ForeignHandler {
    fn call(&self, call: mcpline::Call) {
        let (handler, mime_type) = (self.handler.clone(), self.mime_type.clone());
        let context = call.context();
        let cancelled = Arc::new(Notify::new());
        let notify = cancelled.clone();
        context.on_cancel(move || notify.notify_one());
        let queue = self.queue.clone();
        let shared = Arc::new(Call::new(context, queue.clone()));
        // The number of calls in flight is limited by the core (`max_calls`), and so is that of tasks.
        self.runtime.spawn(async move {
            let context = shared.context.clone();
            let arguments = call.arguments().as_str().to_owned();
            let outcome = tokio::select! {
                biased;
                outcome = handler.call(arguments, shared) => outcome,
                () = cancelled.notified() => {
                    // No client is waiting for the response any more.
                    return call.reply(Err(HandlerError::Tool("the request was cancelled".into())));
                }
            };
            let reply = match outcome {
                Ok(outcome) => converted(&call, &context, mime_type.as_deref(), outcome),
                Err(failure) => Err(HandlerError::Internal(failure.to_string())),
            };
            // After the reports of the handler, which are in the queue.
            queue.push(IoAction::Reply(call, reply));
        });
    }
}

/// Converts the outcome of the handler of a call. `mime_type` is that of the feature.
pub(crate) fn converted(
    call: &mcpline::Call,
    context: &Context,
    mime_type: Option<&str>,
    outcome: Outcome,
) -> Result<Reply, HandlerError> {
    let target = CallTarget {
        kind: match call.kind() {
            // Other outcomes than a result or an error are those of a tool.
            CallKind::Middleware => CallKind::Tool,
            kind => kind,
        },
        uri: match call.kind() {
            CallKind::Resource => context.uri().unwrap_or_default(),
            _ => String::new(),
        },
        mime_type,
    };
    reply(&target, outcome)
}

fn reply(target: &CallTarget<'_>, outcome: Outcome) -> Result<Reply, HandlerError> {
    let reply = match outcome {
        Outcome::Text { text } => results::text(target, &text),
        Outcome::Bytes { bytes, mime_type } => results::bytes(target, &bytes, mime_type.as_deref()),
        Outcome::Content { json } => results::content(target.kind, parsed(json)?),
        Outcome::Structured { json } => results::structured(target.kind, parsed(json)?),
        Outcome::Complete { json } => results::complete(target.kind, &parsed(json)?),
        Outcome::MethodResult { json } => results::complete(CallKind::Middleware, &parsed(json)?),
        Outcome::Values { values } => results::values(target.kind, values),
        Outcome::InputRequired { json } => results::input_required(json.as_bytes()),
        Outcome::ToolFailure { message } => return Err(HandlerError::Tool(message)),
        Outcome::RpcFailed { error } => return Err(HandlerError::Rpc(error.rpc_error())),
        Outcome::ResourceNotFound { uri } => return Err(HandlerError::ResourceNotFound(uri)),
        Outcome::NotSupported { message, required } => {
            let required: Value = serde_json::from_str(&required).unwrap_or_default();
            return Err(results::unsupported(&required, message));
        }
        Outcome::UrlElicitationRequired { json } => {
            let elicitations: Result<Vec<ElicitParams>, _> = serde_json::from_str(&json);
            return Err(match elicitations {
                Ok(elicitations) => HandlerError::UrlElicitationRequired(elicitations),
                Err(error) => HandlerError::Internal(error.to_string()),
            });
        }
        Outcome::Exception { summary, trace } => {
            return Err(HandlerError::Exception { summary, trace });
        }
    };
    reply.map_err(|error| HandlerError::Internal(error.to_string()))
}

fn parsed(json: String) -> Result<Raw, HandlerError> {
    Raw::parse(json)
        .map_err(|error| HandlerError::Internal(format!("the result is not valid JSON: {error}")))
}

/// Reads JSON from the other language.
pub(crate) fn read(what: &str, json: String) -> Result<Raw, Failure> {
    Raw::parse(json).map_err(|error| Failure::usage(format!("{what}: {error}")))
}

/// The context of a request.
#[derive(uniffi::Object)]
pub struct Call {
    context: Context,
    queue: IoThreadQueue,
}

#[uniffi::export]
impl Call {
    /// Returns the facts of the request, as a JSON object.
    pub fn info(&self) -> String {
        let context = &self.context;
        let mut members = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                members.insert(name.to_owned(), value);
            }
        };
        let value = |json: Raw| serde_json::from_slice::<Value>(json.as_bytes()).ok();
        set("toolName", context.tool_name().map(Value::from));
        set("promptName", context.prompt_name().map(Value::from));
        set("uri", context.uri().map(Value::from));
        set("revision", Some(context.revision().as_str().into()));
        let peer = context.peer();
        set("client", peer.info.clone().and_then(value));
        set("clientCapabilities", value(peer.capabilities.clone()));
        set("requestId", value(context.request_id()));
        set("sessionId", context.session_id().map(Value::from));
        set("meta", context.meta().and_then(value));
        set("inputResponses", context.input_responses().and_then(value));
        set("requestState", context.request_state().map(Value::from));
        set("auth", context.auth().map(|caller| caller.to_json()));
        let headers = context.http().map(|http| {
            let mut headers = Map::new();
            for (name, value) in &http.headers {
                // Bytes that are not ASCII are characters of Latin-1.
                let value: String = value.as_bytes().iter().map(|byte| *byte as char).collect();
                let values = headers.entry(name.as_str()).or_insert_with(|| json!([]));
                if let Some(values) = values.as_array_mut() {
                    values.push(value.into());
                }
            }
            headers.into()
        });
        set("headers", headers);
        Value::from(members).to_string()
    }

    /// Reports progress.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let bytes = message.as_ref().map_or(0, String::len);
        let report = move |context: &Context| context.progress(progress, total, message.as_deref());
        self.hand_over(foreign::report(&self.context, bytes, report));
    }

    /// Sends a log message; `data` is JSON.
    pub fn log(&self, level: String, logger: Option<String>, data: String) -> Result<(), Failure> {
        let level = LoggingLevel::parse(&level)
            .ok_or_else(|| Failure::usage(format!("unknown log level {level}")))?;
        let data = read("the data", data)?;
        let bytes = data.as_bytes().len() + logger.as_ref().map_or(0, String::len);
        let log = move |context: &Context| context.log_raw(level, logger.as_deref(), &data);
        self.hand_over(foreign::report(&self.context, bytes, log));
        Ok(())
    }

    /// Sends a custom notification; `params` is JSON.
    pub fn notify(&self, method: String, params: Option<String>) -> Result<(), Failure> {
        let params = params.map(|params| read("the parameters", params));
        let notification = foreign::notification(&self.context, method, params.transpose()?)?;
        self.hand_over(notification);
        Ok(())
    }

    /// Closes the response stream, while the call continues.
    pub fn close_stream(&self) {
        let action = foreign::request(&self.context, Context::close_stream);
        self.hand_over(Some(action));
    }

    /// Returns the settings, as JSON, with which the client declares an extension; `None` if it does not.
    pub fn client_extension(&self, identifier: String) -> Option<String> {
        let settings = self.context.client_extension(&identifier)?;
        Some(settings.as_str().to_owned())
    }

    /// Checks that the client declares an extension.
    pub fn require_extension(&self, identifier: String) -> Option<RpcFailure> {
        let refused = self.context.require_extension(&identifier).err()?;
        Some(RpcFailure::from(refused))
    }

    /// Checks that the caller has these scopes.
    pub fn require_scopes(&self, scopes: Vec<String>) -> Option<RpcFailure> {
        let refused = self.context.require_scopes(scopes).err()?;
        Some(RpcFailure::from(refused))
    }

    /// Passes the request of a middleware on, with other parameters if `params`, a JSON object, are given. Returns its result, a
    /// JSON object. May be called again.
    pub async fn run_next(&self, params: Option<String>) -> Result<String, Failure> {
        let params = params.map(|params| read("the parameters", params));
        let (sender, outcome) = oneshot::channel();
        let callback = move |outcome: MiddlewareOutcome| {
            // The middleware may have given up.
            let _ = sender.send(outcome);
        };
        let action = foreign::run_next(&self.context, params.transpose()?, callback);
        self.queue.push(action);
        match outcome.await.map_err(|_| Failure::ended())? {
            Ok(result) => Ok(result.as_str().to_owned()),
            // Not a failure that the middleware might answer. Its coroutine is being cancelled.
            Err(_) if self.context.is_cancelled() => {
                Err(Failure::new(ErrorKind::Closed, "the request has ended"))
            }
            Err(error) => Err(Failure::rpc(&error)),
        }
    }

    /// Sends an input request and returns the client's answer; both are JSON.
    pub async fn request_input(
        &self,
        method: String,
        params: Option<String>,
        key: Option<String>,
    ) -> Result<String, Failure> {
        let params = params.map(|params| read("the parameters", params));
        let mut input_request =
            InputRequest::new(InputRequestMethod::parse(&method)?, params.transpose()?);
        input_request.key = key;
        let (sender, answer) = oneshot::channel();
        let sink = Box::new(move |answer: Result<Raw, _>| {
            // The handler may have ended.
            let _ = sender.send(answer.map_err(|error| {
                Failure::of(CoreFailure::of_input_request(&error).with_operation(&method))
            }));
        });
        let action = IoAction::InputRequest(self.context.clone(), input_request, sink);
        self.queue.push(action);
        let answer = answer.await.map_err(|_| Failure::ended())??;
        Ok(answer.as_str().to_owned())
    }
}

impl Call {
    pub(crate) fn new(context: Context, queue: IoThreadQueue) -> Self {
        Self { context, queue }
    }

    fn hand_over(&self, action: Option<IoAction>) {
        // `None`: a report that was dropped, because the memory of its client is used up.
        if let Some(action) = action {
            self.queue.push(action);
        }
    }
}
