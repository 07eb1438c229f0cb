//! What Python says of a client to be made: what is absent keeps the core's default.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcpline::client::{
    Address, Client as CoreClient, ClientBuilder, ClientSettings, Command, HttpSettings, Proxy,
    Reissue, RequestOptions, Stderr,
};
use mcpline::protocol::client::CallTimeouts;
use mcpline::protocol::vocabulary::{ClientCapabilities, Implementation, LoggingLevel};
use mcpline::protocol::wire::Raw;
use mcpline::protocol::{Era, Revision};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors;
use crate::outcome::checked;

use super::host::{self, Host};
use super::port::{Event, Outlet};

/// `ClientSettings` of the package.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    revisions: Option<Vec<Revision>>,
    era: Option<Known>,
    probe_timeout: Option<f64>,
    open_timeout: Option<f64>,
    timeout: Option<f64>,
    total_timeout: Option<f64>,
    max_rounds: Option<usize>,
    check_output: Option<bool>,
    cache: Option<bool>,
    reconnect_attempts: Option<u32>,
    reconnect_delay: Option<f64>,
    reconnect_max_delay: Option<f64>,
    listen: Option<bool>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Known {
    Legacy,
    Modern,
}

/// Which handlers there are, and what else the host says of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Offer {
    info: Implementation,
    elicit: bool,
    sample: bool,
    roots: bool,
    notifications: bool,
    logs: bool,
    stderr: bool,
    /// Beyond what handlers declare, in its place member by member.
    capabilities: serde_json::Map<String, serde_json::Value>,
}

/// `ClientHttpSettings` of the package.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Http {
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
}

/// A program and how it is started.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    program: String,
    arguments: Vec<String>,
    env: HashMap<String, String>,
    inherit_env: bool,
    cwd: Option<String>,
    stderr: Stream,
    grace: Option<f64>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Stream {
    Capture,
    Inherit,
    Null,
}

impl Settings {
    pub(super) fn core(&self, py: Python<'_>) -> PyResult<ClientSettings> {
        let seconds = |value: Option<f64>| value.map(|value| seconds(py, value)).transpose();
        let mut settings = ClientSettings::default();
        set(&mut settings.revisions, self.revisions.clone());
        settings.remembered = self.era.map(|era| match era {
            Known::Legacy => Era::Legacy,
            Known::Modern => Era::Modern,
        });
        set(
            &mut settings.open_timeouts.probe,
            seconds(self.probe_timeout)?,
        );
        set(
            &mut settings.open_timeouts.answer,
            seconds(self.open_timeout)?,
        );
        let (idle, total) = (seconds(self.timeout)?, seconds(self.total_timeout)?);
        settings.timeouts = timeouts(settings.timeouts, idle, total);
        set(&mut settings.max_rounds, self.max_rounds);
        set(&mut settings.check_output, self.check_output);
        set(&mut settings.cache, self.cache);
        let reconnect = &mut settings.reconnect;
        set(&mut reconnect.attempts, self.reconnect_attempts);
        set(&mut reconnect.first_delay, seconds(self.reconnect_delay)?);
        set(&mut reconnect.max_delay, seconds(self.reconnect_max_delay)?);
        set(&mut settings.listen, self.listen);
        Ok(settings)
    }
}

impl Offer {
    /// A builder whose handlers are the host's.
    pub(super) fn builder(
        self,
        settings: ClientSettings,
        outlet: &Arc<Outlet>,
        host: &Arc<Host>,
        py: Python<'_>,
    ) -> PyResult<ClientBuilder> {
        let mut builder = CoreClient::builder(self.info.name.clone(), self.info.version.clone())
            .implementation(self.info)
            .settings(settings);
        let answerer = |method| host::answerer(outlet, host, method);
        if self.elicit {
            builder = builder.elicit_with(answerer("elicitation/create"));
        }
        if self.sample {
            builder = builder.sample_with(answerer("sampling/createMessage"));
        }
        if self.roots {
            builder = builder.list_roots_with(answerer("roots/list"));
        }
        if self.notifications || self.logs {
            builder = host::listening(builder, outlet, host, !self.notifications);
        }
        if self.capabilities.is_empty() {
            return Ok(builder);
        }
        let mut unfit = None;
        let given = self.capabilities;
        let builder = builder.capabilities(|capabilities| match merged(capabilities, given) {
            Ok(merged) => *capabilities = merged,
            Err(error) => unfit = Some(error),
        });
        match unfit {
            Some(error) => Err(errors::misuse(py, format!("the capabilities: {error}"))),
            None => Ok(builder),
        }
    }

    pub(super) fn hears_stderr(&self) -> bool {
        self.stderr
    }
}

fn merged(
    declared: &ClientCapabilities,
    given: serde_json::Map<String, serde_json::Value>,
) -> Result<ClientCapabilities, serde_json::Error> {
    let mut all = serde_json::to_value(declared)?;
    if let Some(all) = all.as_object_mut() {
        all.extend(given);
        all.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(all)
}

impl Http {
    pub(super) fn address(self, py: Python<'_>, url: String) -> PyResult<Address> {
        let seconds = |value: Option<f64>| value.map(|value| seconds(py, value)).transpose();
        let mut settings = HttpSettings::default();
        settings.headers = self.headers;
        settings.proxy = match self.proxy.as_deref() {
            None => Proxy::Environment,
            Some("direct") => Proxy::Direct,
            Some(url) => Proxy::Url(url.to_owned()),
        };
        settings.tls_roots = self.tls_roots.map(String::into_bytes).unwrap_or_default();
        settings.only_these_roots = self.only_these_roots;
        set(
            &mut settings.connect_timeout,
            seconds(self.connect_timeout)?,
        );
        set(&mut settings.max_redirects, self.max_redirects);
        set(&mut settings.reconnect_attempts, self.resume_attempts);
        set(&mut settings.reconnect_first, seconds(self.resume_delay)?);
        set(&mut settings.reconnect_cap, seconds(self.resume_max_delay)?);
        set(&mut settings.body_limit, self.body_limit);
        Ok(Address::Url(url, settings))
    }
}

impl Program {
    pub(super) fn address(
        self,
        py: Python<'_>,
        stderr: Option<(Arc<Outlet>, Arc<Host>)>,
    ) -> PyResult<Address> {
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
            command = command.grace(seconds(py, grace)?);
        }
        if let Some((outlet, host)) = stderr {
            command = command.on_stderr(move |line| {
                let (host, line) = (host.clone(), line.to_owned());
                outlet.post(Event::Stderr { host, line });
            });
        }
        Ok(Address::Command(command))
    }
}

/// What Python gives with one request: timeouts without a sign of life and in all, who hears of progress, `_meta`, the
/// log level, whether to reissue, whether a kept result won't do, whether questions are answered by hand.
pub(super) type GivenOptions = (
    Option<f64>,
    Option<f64>,
    Option<Py<PyAny>>,
    Option<Vec<u8>>,
    Option<String>,
    Option<String>,
    bool,
    bool,
);

/// The options of one request, and who hears of progress.
pub(super) fn request_options(
    py: Python<'_>,
    defaults: CallTimeouts,
    given: GivenOptions,
) -> PyResult<(RequestOptions, Option<Py<PyAny>>)> {
    let (idle, total, progress, meta, log_level, reissue, fresh, by_hand) = given;
    let mut options = RequestOptions::new();
    if idle.is_some() || total.is_some() {
        let idle = idle.map(|idle| seconds(py, idle)).transpose()?;
        let total = total.map(|total| seconds(py, total)).transpose()?;
        options.timeouts = Some(timeouts(defaults, idle, total));
    }
    options.meta = meta.map(|meta| checked(py, meta)).transpose()?;
    options.log_level = log_level
        .map(|level| log_level_of(py, &level))
        .transpose()?;
    options.reissue = match reissue.as_deref() {
        None | Some("if-safe") => Reissue::IfSafe,
        Some("always") => Reissue::Always,
        Some("never") => Reissue::Never,
        Some(other) => {
            let text = format!("reissue is if-safe, always or never, not {other:?}");
            return Err(errors::misuse(py, text));
        }
    };
    options.fresh = fresh;
    options.by_hand = by_hand;
    Ok((options, progress))
}

pub(super) fn log_level_of(py: Python<'_>, name: &str) -> PyResult<LoggingLevel> {
    let name = Raw::string(name);
    name.decode()
        .map_err(|_| errors::misuse(py, format!("{} is no log level", name.as_str())))
}

/// A longer wait without a sign of life makes the wait in all no shorter than that.
fn timeouts(
    defaults: CallTimeouts,
    idle: Option<Duration>,
    total: Option<Duration>,
) -> CallTimeouts {
    let idle = idle.unwrap_or(defaults.idle);
    CallTimeouts {
        idle,
        total: total.unwrap_or_else(|| defaults.total.max(idle)),
    }
}

fn seconds(py: Python<'_>, value: f64) -> PyResult<Duration> {
    if value == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(value)
        .map_err(|error| errors::misuse(py, format!("{value} seconds: {error}")))
}

fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}
