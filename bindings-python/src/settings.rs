//! Settings of a server as Python gives them: what is absent keeps the core's default.

use std::collections::HashMap;
use std::time::Duration;

use mcpline::Settings;
use mcpline::protocol::Revision;
use mcpline::protocol::session::Rate;
use mcpline::protocol::vocabulary::{CacheHints, CacheScope};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors;

type Members = serde_json::Map<String, serde_json::Value>;

/// `ServerSettings` of the package.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    revisions: Option<Vec<Revision>>,
    line_limit: Option<usize>,
    batch_limit: Option<usize>,
    depth_limit: Option<usize>,
    page_size: Option<usize>,
    list_cache: Option<(u64, bool)>,
    resource_cache: Option<(u64, bool)>,
    ask_idle_timeout: Option<f64>,
    ask_timeout: Option<f64>,
    state_keys: Option<Vec<String>>,
    state_lifetime: Option<f64>,
    suspended: Option<usize>,
    rounds: Option<u32>,
    state_size: Option<usize>,
    check_output: Option<bool>,
    tool_rate: Option<(u32, u32)>,
    shutdown_grace: Option<f64>,
    in_flight: Option<usize>,
    open_asks: Option<usize>,
    subscriptions: Option<usize>,
    progress_rate: Option<(u32, u32)>,
    log_rate: Option<(u32, u32)>,
    ping_interval: Option<f64>,
    ping_misses: Option<u32>,
    pub(crate) extensions: HashMap<String, Members>,
    pub(crate) experimental: HashMap<String, Members>,
    pub(crate) declare: Vec<String>,
}

impl Options {
    pub(crate) fn settings(&self, py: Python<'_>) -> PyResult<Settings> {
        let seconds = |value: f64| {
            Duration::try_from_secs_f64(value)
                .map_err(|error| errors::misuse(py, format!("{value} seconds: {error}")))
        };
        let mut settings = Settings::default();
        // Nobody runs a debug build of an installed package: the check is on when it is asked for.
        settings.check_output = self.check_output.unwrap_or(false);
        set(&mut settings.revisions, self.revisions.clone());
        set(&mut settings.wire.line, self.line_limit);
        set(&mut settings.wire.batch, self.batch_limit);
        set(&mut settings.wire.depth, self.depth_limit);
        set(&mut settings.page_size, self.page_size);
        set(&mut settings.list_cache, self.list_cache.map(cache_hints));
        let resources = self.resource_cache.map(cache_hints);
        set(&mut settings.resource_cache, resources);
        let idle = self.ask_idle_timeout.map(seconds).transpose()?;
        set(&mut settings.ask_timeouts.idle, idle);
        let total = self.ask_timeout.map(seconds).transpose()?;
        set(&mut settings.ask_timeouts.total, total);
        if let Some(secrets) = &self.state_keys {
            let keys = mcpline::server::state_keys(secrets.iter().map(String::as_str));
            settings.state_keys = Some(keys.map_err(|error| errors::core(py, &error))?);
        }
        let lifetime = self.state_lifetime.map(seconds).transpose()?;
        set(&mut settings.state_lifetime, lifetime);
        set(&mut settings.suspended, self.suspended);
        set(&mut settings.rounds, self.rounds);
        set(&mut settings.state_size, self.state_size);
        settings.tool_rate = self.tool_rate.map(rate);
        let grace = self.shutdown_grace.map(seconds).transpose()?;
        set(&mut settings.shutdown_grace, grace);
        let session = &mut settings.session;
        set(&mut session.in_flight, self.in_flight);
        set(&mut session.open_asks, self.open_asks);
        set(&mut session.subscriptions, self.subscriptions);
        set(&mut session.progress_rate, self.progress_rate.map(rate));
        set(&mut session.log_rate, self.log_rate.map(rate));
        session.ping_interval = self.ping_interval.map(seconds).transpose()?;
        set(&mut session.ping_misses, self.ping_misses);
        Ok(settings)
    }
}

fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

fn rate((per_second, burst): (u32, u32)) -> Rate {
    Rate { per_second, burst }
}

fn cache_hints((ttl_ms, public): (u64, bool)) -> CacheHints {
    let scope = if public {
        CacheScope::Public
    } else {
        CacheScope::Private
    };
    CacheHints::new(ttl_ms, scope)
}
