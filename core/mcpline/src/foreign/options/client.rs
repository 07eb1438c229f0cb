//! What a client is made with.

#[cfg(unix)]
use std::collections::HashMap;

use mcpline_protocol::vocabulary::Implementation;
use mcpline_protocol::{Era, Revision};
use serde::Deserialize;

use crate::client::{
    Address, Answerer, Client, ClientBuilder, ClientSettings, HttpSettings, Proxy,
};
#[cfg(unix)]
use crate::client::{Command, Stderr};
use crate::error::Error;
use crate::foreign::auth::Answerers;

use super::call::timeouts;
use super::client_auth::AuthOptions;
use super::definition::options;
use super::{seconds, set, set_seconds};

options! {
    /// [`ClientSettings`] as foreign code gives them.
    #[derive(Debug, Default)]
    pub struct ClientOptions {
        revisions: Option<Vec<Revision>>,
        era: Option<Known>,
        probe_timeout: Option<f64>,
        open_timeout: Option<f64>,
        timeout: Option<f64>,
        total_timeout: Option<f64>,
        ping_interval: Option<f64>,
        ping_timeout: Option<f64>,
        max_rounds: Option<usize>,
        max_list_bytes: Option<usize>,
        check_output: Option<bool>,
        trusted: Option<bool>,
        allow_undeclared_capabilities: Option<bool>,
        cache: Option<bool>,
        reconnect_attempts: Option<u32>,
        reconnect_delay: Option<f64>,
        reconnect_max_delay: Option<f64>,
        listen: Option<bool>,
    }
}

#[derive(Debug, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Known {
    Legacy,
    Modern,
}

impl ClientOptions {
    /// The core's settings.
    ///
    /// # Errors
    ///
    /// Misuse: a value can't be.
    pub fn settings(self) -> Result<ClientSettings, Error> {
        let mut settings = ClientSettings::default();
        set(&mut settings.revisions, self.revisions);
        settings.remembered = self.era.map(|era| match era {
            Known::Legacy => Era::Legacy,
            Known::Modern => Era::Modern,
        });
        set_seconds(&mut settings.open_timeouts.probe, self.probe_timeout)?;
        set_seconds(&mut settings.open_timeouts.answer, self.open_timeout)?;
        let idle = self.timeout.map(seconds).transpose()?;
        let total = self.total_timeout.map(seconds).transpose()?;
        settings.timeouts = timeouts(settings.timeouts, idle, total);
        settings.ping_interval = self.ping_interval.map(seconds).transpose()?;
        set_seconds(&mut settings.ping_timeout, self.ping_timeout)?;
        set(&mut settings.max_rounds, self.max_rounds);
        set(&mut settings.max_list_bytes, self.max_list_bytes);
        set(&mut settings.check_output, self.check_output);
        set(&mut settings.trusted, self.trusted);
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
        Ok(settings)
    }
}

options! {
    /// What the host says of itself, and which handlers it has.
    #[derive(Debug, Default)]
    pub struct HostOptions {
        info: Implementation,
        elicit: bool,
        sample: bool,
        roots: bool,
        /// The custom requests that are answered.
        requests: Vec<String>,
        /// Whether `host/tool_call` is asked before each tool call.
        tool_call: bool,
        /// Whether `host/tool_outcome` is told how each tool call ended.
        tool_outcome: bool,
        /// Whether every notification is heard.
        pub notifications: bool,
        /// Whether log messages are heard.
        pub logs: bool,
        /// Whether the lines of a child's stderr are heard.
        pub stderr: bool,
        /// Beyond what handlers declare, in its place member by member.
        capabilities: serde_json::Map<String, serde_json::Value>,
    }
    needs info, elicit, sample, roots, notifications, logs, stderr;
}

/// Checks that a host may serve this custom request: what this library asks of a host in foreign code comes as a request too.
///
/// # Errors
///
/// Misuse: it begins with `auth/` or `host/`.
pub fn check_host_request(method: &str) -> Result<(), Error> {
    match ["auth/", "host/"].iter().any(|own| method.starts_with(own)) {
        true => Err(Error::misuse(format!(
            "method {method:?} can't have a handler: names that begin with `auth/` and `host/` are this library's own"
        ))),
        false => Ok(()),
    }
}

impl HostOptions {
    /// A builder whose handlers answer with what `answerer` gives for a method. Who hears notifications is added by the
    /// caller.
    ///
    /// # Errors
    ///
    /// Misuse: the capabilities are not the protocol's, or a custom request has a name of the library's own.
    pub fn builder(
        self,
        settings: ClientSettings,
        answerer: impl Fn(&str) -> Answerer,
    ) -> Result<ClientBuilder, Error> {
        let mut builder = Client::builder(self.info.name.clone(), self.info.version.clone())
            .implementation(self.info)
            .settings(settings);
        if self.elicit {
            builder = builder.elicit_with(answerer("elicitation/create"));
        }
        if self.sample {
            builder = builder.sample_with(answerer("sampling/createMessage"));
        }
        if self.roots {
            builder = builder.list_roots_with(answerer("roots/list"));
        }
        for method in &self.requests {
            check_host_request(method)?;
            builder = builder.request_with(method, answerer(method));
        }
        if self.tool_call {
            builder = builder.tool_call_with(answerer("host/tool_call"));
        }
        if self.tool_outcome {
            builder = builder.tool_outcome_with(answerer("host/tool_outcome"));
        }
        if self.capabilities.is_empty() {
            return Ok(builder);
        }
        let mut unfit = None;
        let given = self.capabilities;
        let builder = builder.capabilities(|capabilities| match capabilities.overridden(given) {
            Ok(all) => *capabilities = all,
            Err(error) => unfit = Some(error),
        });
        match unfit {
            Some(error) => Err(Error::misuse(format!("the capabilities: {error}"))),
            None => Ok(builder),
        }
    }
}

options! {
    /// [`HttpSettings`] as foreign code gives them. The proxy is `direct` for none, or a URL.
    #[derive(Default)]
    pub struct HttpClientOptions {
        headers: Vec<(String, String)>,
        proxy: Option<String>,
        tls_roots: Option<String>,
        only_these_roots: bool,
        connect_timeout: Option<f64>,
        max_redirects: Option<usize>,
        resume_attempts: Option<u32>,
        resume_delay: Option<f64>,
        resume_max_delay: Option<f64>,
        body_limit: Option<usize>,
        auth: Option<AuthOptions>,
    }
}

/// Without what may be secret.
impl std::fmt::Debug for HttpClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClientOptions").finish_non_exhaustive()
    }
}

impl HttpClientOptions {
    /// A server behind this URL. What authorization needs of the host is answered with what `answerers` give for a method:
    /// the methods are listed in [`auth`](crate::foreign::auth).
    ///
    /// # Errors
    ///
    /// Misuse: a value can't be, or the host has to be asked and has no way to be.
    pub fn address(self, url: String, answerers: Answerers<'_>) -> Result<Address, Error> {
        let auth = self.auth.map(|auth| auth.auth(answerers)).transpose()?;
        let mut settings = HttpSettings {
            auth,
            headers: self.headers,
            proxy: match self.proxy.as_deref() {
                None => Proxy::Environment,
                Some("direct") => Proxy::Direct,
                Some(url) => Proxy::Url(url.to_owned()),
            },
            tls_roots: self.tls_roots.map(String::into_bytes).unwrap_or_default(),
            only_these_roots: self.only_these_roots,
            ..HttpSettings::default()
        };
        set_seconds(&mut settings.connect_timeout, self.connect_timeout)?;
        set(&mut settings.max_redirects, self.max_redirects);
        set(&mut settings.reconnect_attempts, self.resume_attempts);
        set_seconds(&mut settings.reconnect_first, self.resume_delay)?;
        set_seconds(&mut settings.reconnect_cap, self.resume_max_delay)?;
        set(&mut settings.body_limit, self.body_limit);
        Ok(Address::Url(url, settings))
    }
}

#[cfg(unix)]
options! {
    /// A [`Command`] as foreign code gives it. The program has to be given; whatever else is absent keeps the default.
    #[derive(Default)]
    pub struct ProgramOptions {
        program: String,
        arguments: Vec<String>,
        env: HashMap<String, String>,
        inherit_env: bool,
        cwd: Option<String>,
        stderr: Stream,
        grace: Option<f64>,
    }
    needs program;
}

#[cfg(unix)]
#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum Stream {
    #[default]
    Capture,
    Inherit,
    Null,
}

/// Without what may be secret.
#[cfg(unix)]
impl std::fmt::Debug for ProgramOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramOptions")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

#[cfg(unix)]
impl ProgramOptions {
    /// The program, to be started for each conversation.
    ///
    /// # Errors
    ///
    /// Misuse: a value can't be.
    pub fn command(self) -> Result<Command, Error> {
        let mut command = Command::new(self.program)
            .args(self.arguments)
            .inherit_env(self.inherit_env)
            .stderr(match self.stderr {
                Stream::Capture => Stderr::Capture,
                Stream::Inherit => Stderr::Inherit,
                Stream::Null => Stderr::Null,
            });
        for (name, value) in self.env {
            command = command.env(name, value);
        }
        if let Some(directory) = self.cwd {
            command = command.current_dir(directory);
        }
        if let Some(grace) = self.grace {
            command = command.grace(seconds(grace)?);
        }
        Ok(command)
    }
}
