//! Options of the middleware of clients that the library provides.

use std::sync::Arc;

use crate::client::middleware::{CircuitBreaker, ClientMiddleware, Retry, ToolPolicy};
use crate::error::Error;

use super::options_macro::options;
use super::shared_middleware::{
    AuditLogOptions, RedactionOptions, check_positive, checked_duration, require_one_middleware,
};

options! {
    /// A middleware of clients that the library provides: exactly one member.
    #[derive(Debug, Default)]
    pub struct BuiltInClientMiddleware {
        retry: Option<RetryOptions>,
        circuit_breaker: Option<CircuitBreakerOptions>,
        tool_policy: Option<ToolPolicyOptions>,
        audit_log: Option<AuditLogOptions>,
        redaction: Option<RedactionOptions>,
    }
}

options! {
    /// See [`Retry`].
    #[derive(Debug)]
    struct RetryOptions {
        attempts: u32,
        /// Seconds.
        first_delay: f64,
        /// Seconds.
        max_delay: f64,
        tools: Vec<String>,
    }
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_delay: 0.2,
            max_delay: 10.0,
            tools: Vec::new(),
        }
    }
}

options! {
    /// See [`CircuitBreaker`].
    #[derive(Debug)]
    struct CircuitBreakerOptions {
        failures: u32,
        /// Seconds.
        reset: f64,
    }
}

impl Default for CircuitBreakerOptions {
    fn default() -> Self {
        Self {
            failures: 5,
            reset: 30.0,
        }
    }
}

options! {
    /// See [`ToolPolicy`].
    #[derive(Debug, Default)]
    struct ToolPolicyOptions {
        allowed: Option<Vec<String>>,
        denied: Vec<String>,
        /// Tools whose calls need the approval of the host's hook. `None`: the hook decides on all.
        approval: Option<Vec<String>>,
        /// Whether definitions are pinned.
        pin: bool,
        /// File of the pinned definitions.
        pin_file: Option<String>,
    }
}

impl BuiltInClientMiddleware {
    /// Returns the middleware.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is not exactly one, or a value is out of range.
    pub(super) fn middleware(&self) -> Result<Arc<dyn ClientMiddleware>, Error> {
        let Self {
            retry,
            circuit_breaker,
            tool_policy,
            audit_log,
            redaction,
        } = self;
        let redaction = redaction.as_ref().map(|options| {
            #[cfg(feature = "redaction")]
            return shared(options.middleware());
            #[cfg(not(feature = "redaction"))]
            Err(options.unavailable())
        });
        let made = [
            retry.as_ref().map(|options| shared(options.middleware())),
            circuit_breaker
                .as_ref()
                .map(|options| shared(options.middleware())),
            tool_policy
                .as_ref()
                .map(|options| shared(options.middleware())),
            audit_log
                .as_ref()
                .map(|options| shared(options.middleware())),
            redaction,
        ];
        require_one_middleware(made.into_iter().flatten())
    }
}

fn shared(made: Result<impl ClientMiddleware, Error>) -> Result<Arc<dyn ClientMiddleware>, Error> {
    Ok(Arc::new(made?))
}

impl RetryOptions {
    fn middleware(&self) -> Result<Retry, Error> {
        check_positive("attempts", self.attempts.into())?;
        let first = checked_duration("first_delay", self.first_delay)?;
        let max = checked_duration("max_delay", self.max_delay)?;
        Ok(Retry::new(self.attempts)
            .with_delays(first, max)
            .with_tools(&self.tools))
    }
}

impl CircuitBreakerOptions {
    fn middleware(&self) -> Result<CircuitBreaker, Error> {
        check_positive("failures", self.failures.into())?;
        let reset = checked_duration("reset", self.reset)?;
        Ok(CircuitBreaker::new(self.failures, reset))
    }
}

impl ToolPolicyOptions {
    fn middleware(&self) -> Result<ToolPolicy, Error> {
        let mut policy = ToolPolicy::new().with_denied(&self.denied);
        if let Some(allowed) = &self.allowed {
            policy = policy.with_allowed(allowed);
        }
        if let Some(approval) = &self.approval {
            policy = policy.with_approval(approval);
        }
        match (&self.pin_file, self.pin) {
            (Some(file), _) => policy.with_pin_file(file),
            (None, true) => Ok(policy.with_pins()),
            (None, false) => Ok(policy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(definition: &str) -> Result<(), String> {
        let read: BuiltInClientMiddleware =
            serde_json::from_str(definition).map_err(|error| error.to_string())?;
        let made = read.middleware().map(drop);
        made.map_err(|error| error.to_string())
    }

    #[test]
    fn each_kind_is_read_with_its_options() {
        for definition in [
            r#"{"retry": {}}"#,
            r#"{"retry": {"attempts": 2, "first_delay": 0.1, "max_delay": 1, "tools": ["a"]}}"#,
            r#"{"circuit_breaker": {}}"#,
            r#"{"circuit_breaker": {"failures": 2, "reset": 1.5}}"#,
            #[cfg(feature = "redaction")]
            r#"{"redaction": {"members": ["iban"], "patterns": ["[0-9]+"], "replacement": "", "arguments": true}}"#,
            r#"{"tool_policy": {}}"#,
            r#"{"tool_policy": {"allowed": ["a*"], "denied": ["b"], "approval": ["c*"], "pin": true}}"#,
        ] {
            assert_eq!(made(definition), Ok(()), "{definition}");
        }
    }

    #[test]
    fn an_audit_log_opens_its_file() {
        let name = format!("mcpline-client-options-{}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name);
        let definition = serde_json::json!({"audit_log": {"path": path, "arguments": true}});
        assert_eq!(made(&definition.to_string()), Ok(()));
        assert!(path.exists());
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn mistakes_are_named() {
        for (definition, part) in [
            ("{}", "exactly one kind"),
            (
                r#"{"retry": {}, "circuit_breaker": {}}"#,
                "exactly one kind",
            ),
            (r#"{"retry": {"attempts": 0}}"#, "`attempts` is 0"),
            (r#"{"retry": {"first_delay": -1}}"#, "`first_delay`"),
            (r#"{"retry": {"attemps": 1}}"#, "attemps"),
            (r#"{"circuit_breaker": {"failures": 0}}"#, "`failures` is 0"),
            (r#"{"circuit_breaker": {"reset": -1}}"#, "`reset`"),
            (
                r#"{"audit_log": {"path": ""}}"#,
                "the `path` of the audit log is empty",
            ),
            #[cfg(feature = "redaction")]
            (r#"{"redaction": {}}"#, "needs `members` or `patterns`"),
            #[cfg(feature = "redaction")]
            (r#"{"redaction": {"patterns": ["("]}}"#, "is invalid"),
            (
                r#"{"audit_log": {"path": "."}}"#,
                "cannot open the audit log .",
            ),
            (
                r#"{"tool_policy": {"pin_file": "."}}"#,
                "the file of pinned tools, .",
            ),
        ] {
            let error = made(definition).expect_err(definition);
            assert!(error.contains(part), "{definition}: {error}");
        }
    }
}
