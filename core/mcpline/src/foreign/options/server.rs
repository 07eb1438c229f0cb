//! Options of a server.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::PathBuf;

use mcpline_protocol::Revision;
use mcpline_protocol::session::Rate;
use mcpline_protocol::vocabulary::{CacheHints, CacheScope, Implementation, LoggingLevel};

use crate::error::Error;
use crate::server::{Extension, Server, ServerBuilder, Settings, state_keys};
use crate::sharing::Sharing;

use super::options_macro::options;
use super::{checked_revisions, seconds, set, set_seconds};

type Members = serde_json::Map<String, serde_json::Value>;

options! {
    /// Options of a server: its [`Settings`], and its declarations.
    #[derive(Debug, Default)]
    pub struct ServerOptions {
        /// The URL of the state that servers share.
        sharing: Option<String>,
        revisions: Option<Vec<Revision>>,
        max_line_bytes: Option<usize>,
        max_batch_messages: Option<usize>,
        max_json_depth: Option<usize>,
        page_size: Option<usize>,
        list_cache: Option<(u64, bool)>,
        resource_cache: Option<(u64, bool)>,
        input_request_idle_timeout: Option<f64>,
        input_request_timeout: Option<f64>,
        state_keys: Option<Vec<String>>,
        state_lifetime: Option<f64>,
        max_suspended_handlers: Option<usize>,
        max_total_client_bytes: Option<usize>,
        max_calls: Option<usize>,
        client_share: Option<f64>,
        max_input_rounds: Option<u32>,
        max_input_requests_per_call: Option<u32>,
        max_state_bytes: Option<usize>,
        check_output: Option<bool>,
        tool_rate: Option<(u32, u32)>,
        completion_rate: Option<(u32, u32)>,
        shutdown_timeout: Option<f64>,
        startup_message: Option<bool>,
        debug: Option<bool>,
        traffic_file: Option<PathBuf>,
        metrics: Option<bool>,
        span_contents: Option<bool>,
        max_requests_in_flight: Option<usize>,
        max_open_input_requests: Option<usize>,
        max_subscriptions: Option<usize>,
        max_client_info_bytes: Option<usize>,
        max_subscription_bytes: Option<usize>,
        progress_rate: Option<(u32, u32)>,
        log_rate: Option<(u32, u32)>,
        client_log_level: Option<LoggingLevel>,
        ping_interval: Option<f64>,
        max_missed_pings: Option<u32>,
        extensions: HashMap<String, Members>,
        /// The extension that each result type belongs to.
        result_types: HashMap<String, String>,
        experimental: HashMap<String, Members>,
        declare: Vec<String>,
    }
}

impl ServerOptions {
    /// Returns a builder for a server with this description and these options. `share` returns the state that is
    /// shared at a URL, for a server with this name, or why it can't be.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn builder<E: Display>(
        self,
        info: Implementation,
        instructions: Option<String>,
        share: impl FnOnce(&str, &str) -> Result<Sharing, E>,
    ) -> Result<ServerBuilder, Error> {
        let mut settings = self.settings()?;
        if let Some(url) = &self.sharing {
            let shared = share(url, &info.name);
            let shared = shared.map_err(|reason| Error::usage(format!("sharing: {reason}")))?;
            settings.sharing = Some(shared);
        }
        let mut builder = Server::builder(info.name.clone(), info.version.clone())
            .implementation(info)
            .settings(settings);
        if let Some(instructions) = instructions {
            builder = builder.instructions(instructions);
        }
        let mut result_types: Vec<(String, String)> = self.result_types.into_iter().collect();
        for (identifier, settings) in self.extensions {
            let mut extension = Extension::new(identifier).with_settings(settings);
            let own = |owner: &String| owner == extension.identifier();
            let (own, others): (Vec<_>, Vec<_>) =
                result_types.into_iter().partition(|(_, owner)| own(owner));
            result_types = others;
            for (result_type, _) in own {
                extension = extension.with_result_type(result_type);
            }
            builder = builder.extension(extension);
        }
        if let Some((result_type, owner)) = result_types.first() {
            return Err(Error::usage(format!(
                "result type {result_type:?} belongs to extension {owner:?}, which the server does not declare"
            )));
        }
        for (name, settings) in self.experimental {
            builder = builder.experimental(name, settings);
        }
        for feature in &self.declare {
            builder = match feature.as_str() {
                "tools" => builder.declare_tools(),
                "resources" => builder.declare_resources(),
                "prompts" => builder.declare_prompts(),
                "completions" => builder.declare_completions(),
                other => return Err(Error::usage(format!("unknown capability {other}"))),
            };
        }
        Ok(builder)
    }

    fn settings(&self) -> Result<Settings, Error> {
        let mut settings = Settings::default();
        set(&mut settings.check_output, self.check_output);
        let revisions = checked_revisions(self.revisions.clone())?;
        set(&mut settings.revisions, revisions);
        set(&mut settings.wire.max_line_bytes, self.max_line_bytes);
        set(
            &mut settings.wire.max_batch_messages,
            self.max_batch_messages,
        );
        set(&mut settings.wire.max_json_depth, self.max_json_depth);
        set(&mut settings.page_size, self.page_size);
        set(&mut settings.list_cache, self.list_cache.map(cache_hints));
        let resources = self.resource_cache.map(cache_hints);
        set(&mut settings.resource_cache, resources);
        set_seconds(
            &mut settings.input_request_timeouts.idle,
            self.input_request_idle_timeout,
        )?;
        set_seconds(
            &mut settings.input_request_timeouts.total,
            self.input_request_timeout,
        )?;
        if let Some(secrets) = &self.state_keys {
            settings.state_keys = Some(state_keys(secrets.iter().map(String::as_str))?);
        }
        set_seconds(&mut settings.state_lifetime, self.state_lifetime)?;
        set(
            &mut settings.max_suspended_handlers,
            self.max_suspended_handlers,
        );
        set(
            &mut settings.max_total_client_bytes,
            self.max_total_client_bytes,
        );
        set(&mut settings.max_calls, self.max_calls);
        if let Some(share) = self.client_share {
            if !(share > 0.0 && share <= 1.0) {
                return Err(Error::usage(format!(
                    "client_share: {share} must be greater than 0 and at most 1"
                )));
            }
            settings.client_share = share;
        }
        set(&mut settings.max_input_rounds, self.max_input_rounds);
        set(
            &mut settings.max_input_requests_per_call,
            self.max_input_requests_per_call,
        );
        set(&mut settings.max_state_bytes, self.max_state_bytes);
        settings.tool_rate = self.tool_rate.map(rate);
        settings.completion_rate = self.completion_rate.map(rate);
        set_seconds(&mut settings.shutdown_timeout, self.shutdown_timeout)?;
        settings.startup_message = self.startup_message;
        settings.debug = self.debug;
        settings.traffic_file.clone_from(&self.traffic_file);
        set(&mut settings.metrics, self.metrics);
        set(&mut settings.span_contents, self.span_contents);
        let session = &mut settings.session;
        set(
            &mut session.max_requests_in_flight,
            self.max_requests_in_flight,
        );
        set(
            &mut session.max_open_input_requests,
            self.max_open_input_requests,
        );
        set(&mut session.max_subscriptions, self.max_subscriptions);
        set(
            &mut session.max_client_info_bytes,
            self.max_client_info_bytes,
        );
        set(
            &mut session.max_subscription_bytes,
            self.max_subscription_bytes,
        );
        set(&mut session.progress_rate, self.progress_rate.map(rate));
        set(&mut session.log_rate, self.log_rate.map(rate));
        session.client_log_level = self.client_log_level;
        session.ping_interval = self.ping_interval.map(seconds).transpose()?;
        set(&mut session.max_missed_pings, self.max_missed_pings);
        Ok(settings)
    }
}

fn rate((per_second, burst): (u32, u32)) -> Rate {
    Rate { per_second, burst }
}

/// Returns the hints for a lifetime in milliseconds, and whether shared caches may store the result.
pub(in crate::foreign) fn cache_hints((ttl_ms, public): (u64, bool)) -> CacheHints {
    let scope = if public {
        CacheScope::Public
    } else {
        CacheScope::Private
    };
    CacheHints::new(ttl_ms, scope)
}
