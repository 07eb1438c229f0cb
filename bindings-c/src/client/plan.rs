//! How a client is to connect, and where to: what is said before it does.

#[cfg(feature = "stdio")]
use std::path::PathBuf;
use std::sync::Arc;

use mcpline::Server;
use mcpline::client::{Address, ClientBuilder, ClientSettings};
#[cfg(feature = "http")]
use mcpline::foreign::options::HttpClientOptions;
#[cfg(feature = "stdio")]
use mcpline::foreign::options::ProgramOptions;
use mcpline::foreign::options::{ClientOptions, HostOptions, read};
use mcpline::protocol::client::CallTimeouts;
use serde_json::{Map, Value, json};

use crate::status::{Done, Fault};

use mcpline::foreign::channel::ChannelAddress;

use super::channel::Dialler;
use super::handle::Client;
use super::hearing::{Ears, Lines};
use super::question::Answerers;

/// What a client is told before it connects.
#[derive(Default)]
pub(super) struct Plan {
    info: Map<String, Value>,
    capabilities: Map<String, Value>,
    settings: ClientSettings,
    pub(super) answerers: Answerers,
    pub(super) ears: Ears,
    pub(super) lines: Option<Arc<Lines>>,
    pub(super) target: Option<Target>,
}

/// Where a server is.
pub(super) enum Target {
    #[cfg(feature = "http")]
    Url {
        url: String,
        /// As JSON: it is read anew for each attempt.
        options: String,
    },
    /// The program's options as JSON.
    #[cfg(feature = "stdio")]
    Program(String),
    #[cfg(feature = "stdio")]
    Socket(PathBuf),
    Server(Server),
    Channel(Arc<Dialler>),
}

impl Plan {
    pub(super) fn new(name: &str, version: &str) -> Self {
        let mut plan = Self::default();
        plan.info.insert("name".into(), name.into());
        plan.info.insert("version".into(), version.into());
        plan
    }

    /// Takes options over: those of the core, and what the host says of itself.
    ///
    /// # Errors
    ///
    /// Invalid: they are not what they have to be. Then nothing has changed.
    pub(super) fn set_options(&mut self, options: &str) -> Done {
        let mut options: Map<String, Value> = read("the options", options.as_bytes())?;
        let mut next = Self {
            info: self.info.clone(),
            capabilities: self.capabilities.clone(),
            ..Self::default()
        };
        match options.remove("info") {
            Some(Value::Object(info)) => next.info.extend(info),
            None => {}
            Some(_) => return Err(Fault::invalid("`info` must be an object")),
        }
        match options.remove("capabilities") {
            Some(Value::Object(capabilities)) => next.capabilities = capabilities,
            None => {}
            Some(_) => return Err(Fault::invalid("`capabilities` must be an object")),
        }
        let settings: ClientOptions =
            read("the options", Value::from(options).to_string().as_bytes())?;
        next.settings = settings.settings()?;
        next.host()?;
        self.info = next.info;
        self.capabilities = next.capabilities;
        self.settings = next.settings;
        Ok(())
    }

    /// What connects a client, where to, and how long its requests wait.
    ///
    /// # Errors
    ///
    /// Invalid: it was not said where to.
    pub(super) fn planned(&self, client: &Client) -> Done<(ClientBuilder, Address, CallTimeouts)> {
        let target = self.target.as_ref().ok_or_else(|| {
            Fault::invalid("where the server is was not said: see mcpl_client_set_url and others")
        })?;
        let answerers = |method| self.answerers.answerer(method);
        let is_asked = self.answerers.authorize.is_some();
        let address = target.address(
            self.lines.as_ref(),
            is_asked.then_some(&answerers as &dyn Fn(_) -> _),
        )?;
        let mut builder = self.host()?;
        if let Some(listener) =
            self.ears
                .listener(client.handle(), client.owner(), client.backlog().clone())
        {
            builder = builder.on_notification(listener);
        }
        Ok((builder, address, self.settings.timeouts))
    }

    /// A builder that knows the host, and asks its handlers.
    fn host(&self) -> Done<ClientBuilder> {
        let host = json!({
            "info": self.info,
            "capabilities": self.capabilities,
            "elicit": self.answerers.elicit.is_some(),
            "sample": self.answerers.sample.is_some(),
            "roots": self.answerers.list_roots.is_some(),
            "requests": self.answerers.requests.keys().collect::<Vec<_>>(),
            "result_types": self.answerers.result_types.keys().collect::<Vec<_>>(),
            "tool_call": self.answerers.tool_call.is_some(),
            "tool_outcome": self.answerers.tool_outcome.is_some(),
            "notifications": false,
            "logs": false,
            "stderr": false,
        });
        let host: HostOptions = read("the options", host.to_string().as_bytes())?;
        let settings = self.settings.clone();
        Ok(host.builder(settings, |method| self.answerers.answerer(method))?)
    }
}

impl Target {
    /// A URL, with options as JSON.
    #[cfg(feature = "http")]
    pub(super) fn url(url: &str, options: Option<&str>) -> Done<Self> {
        let target = Self::Url {
            url: url.to_owned(),
            options: options.unwrap_or("{}").to_owned(),
        };
        // Whoever answers for the host may be said later.
        let nobody = Answerers::default();
        target.address(None, Some(&|method| nobody.answerer(method)))?;
        Ok(target)
    }

    /// A program and its arguments, with options as JSON.
    #[cfg(feature = "stdio")]
    pub(super) fn program(mut command: Vec<String>, options: Option<&str>) -> Done<Self> {
        if command.is_empty() {
            return Err(Fault::invalid(
                "the command is empty: its first text is the program",
            ));
        }
        let mut options: Map<String, Value> =
            read("the options", options.unwrap_or("{}").as_bytes())?;
        for name in ["program", "arguments"] {
            if options.contains_key(name) {
                return Err(Fault::invalid(format!("the options can't hold the {name}")));
            }
        }
        options.insert("program".into(), command.remove(0).into());
        options.insert("arguments".into(), command.into());
        let target = Self::Program(Value::from(options).to_string());
        target.address(None, None)?;
        Ok(target)
    }

    /// What is left of the connection is to end.
    pub(super) fn end(&self) {
        if let Self::Channel(dialler) = self {
            dialler.end();
        }
    }

    fn address(
        &self,
        #[cfg_attr(not(feature = "stdio"), expect(unused_variables))] lines: Option<&Arc<Lines>>,
        #[cfg_attr(not(feature = "http"), expect(unused_variables))]
        answerers: mcpline::foreign::Answerers<'_>,
    ) -> Done<Address> {
        Ok(match self {
            #[cfg(feature = "http")]
            Self::Url { url, options } => {
                let options: HttpClientOptions = read("the options", options.as_bytes())?;
                options.address(url.clone(), answerers)?
            }
            #[cfg(feature = "stdio")]
            Self::Program(options) => {
                let options: ProgramOptions = read("the options", options.as_bytes())?;
                let command = options.command()?;
                match lines {
                    Some(lines) => Address::Command(command.on_stderr(lines.listener())),
                    None => Address::Command(command),
                }
            }
            #[cfg(feature = "stdio")]
            Self::Socket(path) => Address::Socket(path.clone()),
            Self::Server(server) => Address::Server(server.clone()),
            Self::Channel(dialler) => ChannelAddress::new(dialler.clone()).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::mcpl_status::MCPL_USAGE_ERROR;

    fn refused<T>(outcome: Done<T>) -> String {
        let fault = outcome.err().unwrap();
        assert_eq!(fault.status, MCPL_USAGE_ERROR);
        fault.message
    }

    #[test]
    fn options_that_cannot_be_change_nothing() {
        let mut plan = Plan::new("host", "1");
        plan.set_options(r#"{"info":{"title":"Host"},"timeout":2}"#)
            .unwrap();
        for unfit in [
            r#"{"tiemout":1}"#,
            r#"{"timeout":-1}"#,
            r#"{"info":1}"#,
            r#"{"info":{"name":1}}"#,
            r#"{"capabilities":[]}"#,
            r#"{"capabilities":{"roots":1}}"#,
            "[]",
        ] {
            refused(plan.set_options(unfit));
        }
        assert_eq!(plan.info["title"], "Host");
        assert_eq!(plan.info["name"], "host");
        assert_eq!(plan.settings.timeouts.idle.as_secs(), 2);
    }

    #[test]
    fn a_target_is_checked_when_it_is_set() {
        assert!(Target::url("http://localhost/mcp", Some(r#"{"headers":[["a","b"]]}"#)).is_ok());
        refused(Target::url(
            "http://localhost/mcp",
            Some(r#"{"haeders":[]}"#),
        ));
        let command = || vec!["true".to_owned(), "-x".to_owned()];
        assert!(Target::program(command(), Some(r#"{"env":{"A":"b"},"stderr":"null"}"#)).is_ok());
        assert!(Target::program(command(), None).is_ok());
        refused(Target::program(Vec::new(), None));
        refused(Target::program(command(), Some(r#"{"arguments":[]}"#)));
        refused(Target::program(command(), Some(r#"{"grace":-1}"#)));
    }
}
