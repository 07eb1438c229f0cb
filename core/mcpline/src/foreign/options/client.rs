//! Options of a client and its host.

use std::path::PathBuf;

use mcpline_protocol::methods::{check_custom_request, check_custom_result_type};
use mcpline_protocol::vocabulary::{Implementation, JsonObject};
use mcpline_protocol::{Era, InputMethod, Revision};
use serde::Deserialize;

use crate::client::{Client, ClientBuilder, ClientSettings, Extension, HostRequestHandler};
use crate::error::Error;

use super::call::timeouts;
use super::client_middleware::BuiltInClientMiddleware;
use super::options_macro::options;
use super::{checked_revisions, seconds, set, set_seconds};

options! {
    /// [`ClientSettings`] from foreign code.
    #[derive(Debug, Default)]
    pub struct ClientOptions {
        revisions: Option<Vec<Revision>>,
        era: Option<EraOption>,
        probe_timeout: Option<f64>,
        open_timeout: Option<f64>,
        timeout: Option<f64>,
        total_timeout: Option<f64>,
        ping_interval: Option<f64>,
        ping_timeout: Option<f64>,
        max_input_rounds: Option<usize>,
        max_list_bytes: Option<usize>,
        max_line_bytes: Option<usize>,
        check_output: Option<bool>,
        trust_tool_annotations: Option<bool>,
        allow_undeclared_capabilities: Option<bool>,
        cache: Option<bool>,
        reconnect_attempts: Option<u32>,
        reconnect_delay: Option<f64>,
        reconnect_max_delay: Option<f64>,
        listen: Option<bool>,
        metrics: Option<bool>,
        span_contents: Option<bool>,
        traffic_file: Option<PathBuf>,
    }
}

#[derive(Debug, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EraOption {
    Legacy,
    Modern,
}

impl ClientOptions {
    /// Converts into the core's settings.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn settings(self) -> Result<ClientSettings, Error> {
        let mut settings = ClientSettings::default();
        set(&mut settings.revisions, checked_revisions(self.revisions)?);
        settings.era = self.era.map(|era| match era {
            EraOption::Legacy => Era::Legacy,
            EraOption::Modern => Era::Modern,
        });
        set_seconds(&mut settings.open_timeouts.probe, self.probe_timeout)?;
        set_seconds(&mut settings.open_timeouts.answer, self.open_timeout)?;
        let idle = self.timeout.map(seconds).transpose()?;
        let total = self.total_timeout.map(seconds).transpose()?;
        settings.timeouts = timeouts(settings.timeouts, idle, total);
        settings.ping_interval = self.ping_interval.map(seconds).transpose()?;
        set_seconds(&mut settings.ping_timeout, self.ping_timeout)?;
        set(&mut settings.max_input_rounds, self.max_input_rounds);
        set(&mut settings.max_list_bytes, self.max_list_bytes);
        set(&mut settings.max_line_bytes, self.max_line_bytes);
        set(&mut settings.check_output, self.check_output);
        set(
            &mut settings.trust_tool_annotations,
            self.trust_tool_annotations,
        );
        set(
            &mut settings.allow_undeclared_capabilities,
            self.allow_undeclared_capabilities,
        );
        set(&mut settings.cache, self.cache);
        let reconnect = &mut settings.reconnect;
        set(&mut reconnect.attempts, self.reconnect_attempts);
        set_seconds(&mut reconnect.first_delay, self.reconnect_delay)?;
        set_seconds(&mut reconnect.max_delay, self.reconnect_max_delay)?;
        set(&mut settings.listen, self.listen);
        set(&mut settings.metrics, self.metrics);
        set(&mut settings.span_contents, self.span_contents);
        settings.traffic_file = self.traffic_file;
        Ok(settings)
    }
}

options! {
    /// Description and handlers of the host.
    #[derive(Debug, Default)]
    pub struct HostOptions {
        /// Name and version of the host.
        pub info: Implementation,
        elicit: bool,
        sample: bool,
        roots: bool,
        /// Custom requests that the host answers.
        requests: Vec<String>,
        /// Extensions that the host supports.
        extensions: Vec<HostExtensionOptions>,
        /// Further result types that `host/extended_result` resolves.
        result_types: Vec<String>,
        /// Whether the host answers `host/tool_call` before each tool call.
        tool_call: bool,
        /// Whether the host receives `host/tool_outcome` after each tool call.
        tool_outcome: bool,
        /// Whether the host listens for all notifications.
        pub notifications: bool,
        /// Whether the host listens for log messages.
        pub logs: bool,
        /// Whether the host listens for changes of the connection.
        pub connection: bool,
        /// Whether the host listens for the lines of a child's stderr.
        pub stderr: bool,
        /// The middleware that the library provides, the outermost first.
        pub middleware: Vec<BuiltInClientMiddleware>,
        /// Capabilities that replace those declared by handlers, member by member.
        pub capabilities: serde_json::Map<String, serde_json::Value>,
    }
    needs info, elicit, sample, roots, notifications, logs, stderr;
}

options! {
    /// An extension of a host.
    #[derive(Debug, Default)]
    pub struct HostExtensionOptions {
        identifier: String,
        settings: JsonObject,
        /// Custom requests of servers that belong to it.
        requests: Vec<String>,
        /// Result types that `host/extended_result` resolves.
        result_types: Vec<String>,
    }
    needs identifier;
}

impl HostExtensionOptions {
    /// Converts into an extension whose handlers are the request_handlers of their methods.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a custom request has a name that is reserved for the library.
    fn extension(
        &self,
        request_handler: &impl Fn(&str) -> HostRequestHandler,
    ) -> Result<Extension, Error> {
        let mut extension =
            Extension::new(self.identifier.clone()).with_settings(self.settings.clone());
        for method in &self.requests {
            check_host_request(method)?;
            extension = extension.request_with(method.clone(), request_handler(method));
        }
        for result_type in &self.result_types {
            let answers = request_handler("host/extended_result");
            extension = extension.result_type_with(result_type.clone(), answers);
        }
        Ok(extension)
    }
}

/// Checks that a host may serve this custom request: the library's own requests to foreign code have reserved names.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): it begins with `auth/` or `host/`.
pub fn check_host_request(method: &str) -> Result<(), Error> {
    match ["auth/", "host/"].iter().any(|own| method.starts_with(own)) {
        true => Err(Error::usage(format!(
            "method {method:?} can't have a handler: names that begin with `auth/` and `host/` are this library's own"
        ))),
        false => Ok(()),
    }
}

impl HostOptions {
    /// Declares that the host answers this method: an input request of the protocol, `host/tool_call` or
    /// `host/tool_outcome`.
    pub fn answer(&mut self, method: &str) {
        match InputMethod::parse(method) {
            Some(InputMethod::Elicit) => self.elicit = true,
            Some(InputMethod::Sample) => self.sample = true,
            Some(InputMethod::ListRoots) => self.roots = true,
            None if method == "host/tool_call" => self.tool_call = true,
            None if method == "host/tool_outcome" => self.tool_outcome = true,
            None => {}
        }
    }

    /// Declares that the host answers custom requests of this method.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the protocol defines the method, or its name is reserved.
    pub fn answer_custom(&mut self, method: &str) -> Result<(), Error> {
        check_custom_request(method).map_err(|reason| {
            Error::usage(format!("method {method:?} can't have a handler: {reason}"))
        })?;
        check_host_request(method)?;
        add(&mut self.requests, method);
        Ok(())
    }

    /// Declares that `host/extended_result` resolves results of this type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the protocol defines the type.
    pub fn resolve(&mut self, result_type: &str) -> Result<(), Error> {
        check_custom_result_type(result_type)
            .map_err(|reason| Error::usage(format!("result type {result_type:?}: {reason}")))?;
        add(&mut self.result_types, result_type);
        Ok(())
    }

    /// Returns a builder whose handlers are the request_handlers of their methods. The caller adds listeners.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the capabilities are not the protocol's, or a custom request has
    /// a name that is reserved for the library.
    pub fn builder(
        &self,
        settings: ClientSettings,
        request_handler: impl Fn(&str) -> HostRequestHandler,
    ) -> Result<ClientBuilder, Error> {
        let mut builder = Client::builder(self.info.name.clone(), self.info.version.clone())
            .implementation(self.info.clone())
            .settings(settings);
        if self.elicit {
            builder = builder.elicit_with(request_handler(InputMethod::Elicit.as_str()));
        }
        if self.sample {
            builder = builder.sample_with(request_handler(InputMethod::Sample.as_str()));
        }
        if self.roots {
            builder = builder.list_roots_with(request_handler(InputMethod::ListRoots.as_str()));
        }
        for method in &self.requests {
            check_host_request(method)?;
            builder = builder.request_with(method, request_handler(method));
        }
        if self.tool_call {
            builder = builder.tool_call_with(request_handler("host/tool_call"));
        }
        if self.tool_outcome {
            builder = builder.tool_outcome_with(request_handler("host/tool_outcome"));
        }
        for middleware in &self.middleware {
            builder = builder.shared_middleware(middleware.middleware()?);
        }
        let mut unfit = None;
        if !self.capabilities.is_empty() {
            let given = self.capabilities.clone();
            builder = builder.capabilities(|capabilities| match capabilities.overridden(given) {
                Ok(all) => *capabilities = all,
                Err(error) => unfit = Some(error),
            });
        }
        if let Some(error) = unfit {
            return Err(Error::usage(format!("`capabilities`: {error}")));
        }
        for extension in &self.extensions {
            builder = builder.extension(extension.extension(&request_handler)?);
        }
        for result_type in &self.result_types {
            let answers = request_handler("host/extended_result");
            builder = builder.result_type_with(result_type.clone(), answers);
        }
        Ok(builder)
    }
}

/// Adds a name, unless it is present.
fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
