//! The middleware that the library provides, configured by JSON.

use std::sync::Arc;

use crate::error::Error;
use crate::middleware::{
    ConcurrencyLimit, LimitKey, Middleware, RateLimit, ResponseCache, ResponseSizeLimit, ToolPolicy,
};
use crate::server::Server;

use super::options::{
    BuiltInMiddleware, ConcurrencyLimitOptions, MiddlewareDefinition, RateLimitOptions,
    ResponseCacheOptions, ResponseSizeLimitOptions, ToolPolicyOptions, check_positive,
    checked_duration, read, require_one_middleware,
};

/// Adds a middleware that the library provides to a server. `definition` is JSON: a [`BuiltInMiddleware`]; `scope` is a
/// [`MiddlewareDefinition`], or `None` for all requests.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the options are invalid, or as for [`Server::add_middleware`].
pub fn add_built_in_middleware(
    server: &Server,
    definition: &[u8],
    scope: Option<&[u8]>,
) -> Result<(), Error> {
    let definition: BuiltInMiddleware = read("the middleware", definition)?;
    let scope = match scope {
        Some(scope) => read("the scope", scope)?,
        None => MiddlewareDefinition::default(),
    };
    server.add_middleware(scope.scope()?, definition.middleware()?)
}

impl BuiltInMiddleware {
    fn middleware(self) -> Result<Arc<dyn Middleware>, Error> {
        let Self {
            rate_limit,
            concurrency_limit,
            response_cache,
            response_size_limit,
            audit_log,
            redaction,
            tool_policy,
        } = self;
        let redaction = redaction.map(|options| {
            #[cfg(feature = "redaction")]
            return shared(options.middleware());
            #[cfg(not(feature = "redaction"))]
            Err(options.unavailable())
        });
        let made = [
            rate_limit.map(|options| shared(options.middleware())),
            concurrency_limit.map(|options| shared(options.middleware())),
            response_cache.map(|options| shared(options.middleware())),
            response_size_limit.map(|options| shared(options.middleware())),
            audit_log.map(|options| shared(options.middleware())),
            redaction,
            tool_policy.map(|options| shared(options.middleware())),
        ];
        require_one_middleware(made.into_iter().flatten())
    }
}

fn shared(made: Result<impl Middleware, Error>) -> Result<Arc<dyn Middleware>, Error> {
    Ok(Arc::new(made?))
}

impl RateLimitOptions {
    fn middleware(self) -> Result<RateLimit, Error> {
        check_positive("requests", self.requests.into())?;
        let period = checked_duration("period", self.period.unwrap_or(1.0))?;
        let mut limit = RateLimit::new(self.requests, period).per(keys(&self.per)?);
        if let Some(burst) = self.burst {
            check_positive("burst", burst.into())?;
            limit = limit.with_burst(burst);
        }
        if let Some(name) = self.shared {
            if name.is_empty() {
                return Err(Error::usage("`shared` is empty: name the limit"));
            }
            limit = limit.shared(name);
        }
        Ok(limit)
    }
}

impl ConcurrencyLimitOptions {
    fn middleware(self) -> Result<ConcurrencyLimit, Error> {
        check_positive("max_running", self.max_running as u64)?;
        Ok(ConcurrencyLimit::new(self.max_running)
            .with_queue(self.max_waiting)
            .per(keys(&self.per)?))
    }
}

impl ResponseCacheOptions {
    fn middleware(self) -> Result<ResponseCache, Error> {
        let cache = ResponseCache::new(checked_duration("ttl", self.ttl)?).with_tools(self.tools);
        Ok(match self.max_bytes {
            Some(max_bytes) => cache.with_max_bytes(max_bytes),
            None => cache,
        })
    }
}

impl ResponseSizeLimitOptions {
    fn middleware(self) -> Result<ResponseSizeLimit, Error> {
        check_positive("max_bytes", self.max_bytes as u64)?;
        let limit = ResponseSizeLimit::new(self.max_bytes);
        if !self.pages {
            let needless = [
                ("max_kept_bytes", self.max_kept_bytes.is_some()),
                ("lifetime", self.lifetime.is_some()),
            ];
            return match needless.iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(Error::usage(format!(
                    "`{name}` has no effect without `pages`"
                ))),
                None => Ok(limit),
            };
        }
        let lifetime = match self.lifetime {
            Some(lifetime) => checked_duration("lifetime", lifetime)?,
            None => ResponseSizeLimit::DEFAULT_LIFETIME,
        };
        let max_kept_bytes = self.max_kept_bytes;
        let max_kept_bytes = max_kept_bytes.unwrap_or(ResponseSizeLimit::DEFAULT_MAX_KEPT_BYTES);
        Ok(limit.with_pages(max_kept_bytes, lifetime))
    }
}

impl ToolPolicyOptions {
    fn middleware(self) -> Result<ToolPolicy, Error> {
        let mut policy = ToolPolicy::new()
            .with_denied(self.denied)
            .with_approval(self.approval);
        if let Some(allowed) = self.allowed {
            policy = policy.with_allowed(allowed);
        }
        match self.exempt_scopes {
            Some(scopes) => policy.with_exempt_scopes(scopes),
            None => Ok(policy),
        }
    }
}

fn keys(names: &[String]) -> Result<Vec<LimitKey>, Error> {
    let key = |name: &String| {
        let mut keys = LimitKey::ALL.iter().copied();
        keys.find(|key| key.name() == name).ok_or_else(|| {
            Error::usage(format!(
                "`per`: unknown key {name:?}: use client, session or target"
            ))
        })
    };
    names.iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(definition: &str, scope: Option<&str>) -> Result<(), String> {
        let server = Server::new("test", "1");
        add_built_in_middleware(&server, definition.as_bytes(), scope.map(str::as_bytes))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_is_read_with_its_options() {
        for definition in [
            r#"{"rate_limit": {"requests": 5}}"#,
            r#"{"rate_limit": {"requests": 5, "period": 60, "burst": 2, "per": ["client", "target"]}}"#,
            r#"{"rate_limit": {"requests": 5, "shared": "calls"}}"#,
            r#"{"concurrency_limit": {"max_running": 2, "max_waiting": 10, "per": ["session"]}}"#,
            r#"{"response_cache": {"ttl": 1.5, "tools": ["a"], "max_bytes": 1000}}"#,
            r#"{"response_size_limit": {"max_bytes": 1000}}"#,
            r#"{"response_size_limit": {"max_bytes": 1000, "pages": true}}"#,
            r#"{"tool_policy": {}}"#,
            r#"{"tool_policy": {"allowed": ["a*"], "denied": ["b"], "approval": ["c*"], "exempt_scopes": ["admin"]}}"#,
            #[cfg(feature = "redaction")]
            r#"{"redaction": {"members": ["iban"], "patterns": ["[0-9]+"], "replacement": "", "arguments": true}}"#,
        ] {
            let scope = r#"{"methods": ["tools/call"], "tags": ["slow"]}"#;
            assert_eq!(add(definition, Some(scope)), Ok(()), "{definition}");
            assert_eq!(add(definition, None), Ok(()), "{definition}");
        }
    }

    #[test]
    fn an_audit_log_opens_its_file() {
        let path =
            std::env::temp_dir().join(format!("mcpline-options-{}.jsonl", std::process::id()));
        let definition = serde_json::json!({"audit_log": {
            "path": path, "max_bytes": 0, "max_files": 2, "arguments": true, "results": true, "redact": ["iban"],
            "required": false,
        }});
        assert_eq!(add(&definition.to_string(), None), Ok(()));
        assert!(path.exists());
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn mistakes_are_named() {
        for (definition, scope, part) in [
            ("{}", None, "exactly one kind"),
            (
                r#"{"response_cache": {"ttl": 1}, "rate_limit": {"requests": 1}}"#,
                None,
                "exactly one kind",
            ),
            (
                r#"{"rate_limit": {"requests": 0}}"#,
                None,
                "`requests` is 0",
            ),
            (r#"{"rate_limit": {}}"#, None, "requests"),
            (
                r#"{"rate_limit": {"requests": 1, "shared": ""}}"#,
                None,
                "`shared` is empty",
            ),
            (r#"{"rate_limt": {}}"#, None, "rate_limt"),
            (
                r#"{"rate_limit": {"requests": 1, "period": -1}}"#,
                None,
                "`period`",
            ),
            (
                r#"{"rate_limit": {"requests": 1, "per": ["ip"]}}"#,
                None,
                r#"`per`: unknown key "ip""#,
            ),
            (
                r#"{"response_size_limit": {"max_bytes": 1000, "lifetime": 5}}"#,
                None,
                "`lifetime` has no effect without `pages`",
            ),
            (
                r#"{"response_size_limit": {"max_bytes": 1000, "pages": true, "lifetime": -1}}"#,
                None,
                "`lifetime`",
            ),
            (
                r#"{"tool_policy": {"exempt_scopes": []}}"#,
                None,
                "every caller would be exempt",
            ),
            (
                r#"{"tool_policy": {"exempt_scopes": ["a b"]}}"#,
                None,
                r#""a b", which is not a scope"#,
            ),
            (r#"{"tool_policy": {"pin": true}}"#, None, "pin"),
            (r#"{"audit_log": {}}"#, None, "path"),
            (
                r#"{"audit_log": {"path": ""}}"#,
                None,
                "the `path` of the audit log is empty",
            ),
            (
                r#"{"audit_log": {"path": "/nowhere/at/all"}}"#,
                None,
                "cannot open the audit log /nowhere/at/all",
            ),
            (
                r#"{"audit_log": {"path": "a", "max_bytes": -1}}"#,
                None,
                "expected a whole number",
            ),
            #[cfg(feature = "redaction")]
            (
                r#"{"redaction": {"arguments": true}}"#,
                None,
                "needs `members` or `patterns`",
            ),
            #[cfg(feature = "redaction")]
            (
                r#"{"redaction": {"patterns": ["(a"]}}"#,
                None,
                r#"the pattern "(a" is invalid"#,
            ),
            #[cfg(not(feature = "redaction"))]
            (
                r#"{"redaction": {"members": ["a"]}}"#,
                None,
                "without the feature `redaction`",
            ),
            (
                r#"{"rate_limit": {"requests": 1}}"#,
                Some(r#"{"methods": ["ping"]}"#),
                "ping",
            ),
        ] {
            let error = add(definition, scope).expect_err(definition);
            assert!(error.contains(part), "{definition}: {error}");
        }
    }
}
