//! Options of the middleware that the library provides.

use super::options_macro::options;
use super::shared_middleware::{AuditLogOptions, RedactionOptions};

options! {
    /// A middleware that the library provides: exactly one member.
    #[derive(Debug, Default)]
    pub struct BuiltInMiddleware {
        /// Limits how often requests are answered.
        pub rate_limit: Option<RateLimitOptions>,
        /// Limits how many requests run at the same time.
        pub concurrency_limit: Option<ConcurrencyLimitOptions>,
        /// Keeps results and answers equal requests with them.
        pub response_cache: Option<ResponseCacheOptions>,
        /// Limits the size of the results of tools.
        pub response_size_limit: Option<ResponseSizeLimitOptions>,
        /// Records requests in a file.
        pub audit_log: Option<AuditLogOptions>,
        /// Replaces values in results and arguments.
        pub redaction: Option<RedactionOptions>,
        /// Decides which tools clients list and call.
        pub tool_policy: Option<ToolPolicyOptions>,
    }
}

options! {
    /// See [`RateLimit`](crate::middleware::RateLimit).
    #[derive(Debug, Default)]
    pub struct RateLimitOptions {
        /// Requests in each period, on average.
        pub requests: u32,
        /// The period in seconds. `None`: 1.
        pub period: Option<f64>,
        /// Requests at once. `None`: as many as in a period.
        pub burst: Option<u32>,
        /// What requests are counted by: `client`, `session`, `target`, or several of them together.
        pub per: Vec<String>,
        /// The name under which all processes that share state count together. `None`: each process counts on its own.
        pub shared: Option<String>,
    }
    needs requests;
}

options! {
    /// See [`ConcurrencyLimit`](crate::middleware::ConcurrencyLimit).
    #[derive(Debug, Default)]
    pub struct ConcurrencyLimitOptions {
        /// Requests that run at the same time.
        pub max_running: usize,
        /// Requests that may wait.
        pub max_waiting: usize,
        /// What requests are counted by: `client`, `session`, `target`, or several of them together.
        pub per: Vec<String>,
    }
    needs max_running;
}

options! {
    /// See [`ResponseCache`](crate::middleware::ResponseCache).
    #[derive(Debug, Default)]
    pub struct ResponseCacheOptions {
        /// How many seconds a result is kept.
        pub ttl: f64,
        /// Tools whose results are kept, beside resources and prompts.
        pub tools: Vec<String>,
        /// Bytes of results that are kept. `None`: 16 MiB.
        pub max_bytes: Option<usize>,
    }
    needs ttl;
}

options! {
    /// See [`ResponseSizeLimit`](crate::middleware::ResponseSizeLimit).
    #[derive(Debug, Default)]
    pub struct ResponseSizeLimitOptions {
        /// Bytes of a result, at least 512.
        pub max_bytes: usize,
        /// Whether clients can read what is cut, in pages.
        pub pages: bool,
        /// Bytes that are kept for pages. `None`: 16 MiB.
        pub max_kept_bytes: Option<usize>,
        /// How many seconds they are kept. `None`: 600.
        pub lifetime: Option<f64>,
    }
    needs max_bytes;
}

options! {
    /// See [`ToolPolicy`](crate::middleware::ToolPolicy).
    #[derive(Debug, Default)]
    pub struct ToolPolicyOptions {
        /// Tools that are allowed. `None`: all.
        pub allowed: Option<Vec<String>>,
        /// Tools that are denied, also if they are allowed.
        pub denied: Vec<String>,
        /// Tools before whose calls the user is asked.
        pub approval: Vec<String>,
        /// Scopes whose callers are exempt. `None`: none are.
        pub exempt_scopes: Option<Vec<String>>,
    }
}
