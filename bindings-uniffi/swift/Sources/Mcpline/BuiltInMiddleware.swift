/// Middleware of servers that the library provides, for ``Server/addMiddleware(_:scope:)``: ``RateLimit``, ``ConcurrencyLimit``,
/// ``ResponseCache``, ``ResponseSizeLimit``, ``AuditLog``, ``Redaction`` and ``ToolPolicy``. It runs in the core, without Swift
/// code.
public protocol BuiltInMiddleware: Sendable {
    /// Describes the middleware for the core.
    func definition() throws -> MiddlewareDefinition
}

/// A middleware that the library provides, for the core.
public struct MiddlewareDefinition: Sendable {
    let json: JSONObject

    init(_ name: String, _ options: some Encodable) throws {
        json = [name: .object(try optionsObject(options))]
    }
}

/// The key by which a limit counts requests.
public enum LimitKey: String, Encodable, Hashable, Sendable, CaseIterable {
    /// The authenticated caller, else the address, else the connection.
    case client

    /// The session, over HTTP on revisions up to 2025-11-25. Other requests count by client.
    case session

    /// The method, and the tool, prompt or resource.
    case target
}

/// Limits how often requests are answered, by a token bucket for each key. Further requests are refused with the error -31000;
/// `retryAfter` in its data says how many seconds to wait.
public struct RateLimit: BuiltInMiddleware, Encodable, Hashable {
    /// Average number of requests per period.
    public var requests: Int

    /// The period. Default: 1 second.
    public var period: Duration?

    /// Maximum number of requests at once. Default: the number per period.
    public var burst: Int?

    /// Keys by which requests are counted, in combination. Default: none; all requests are counted together.
    public var per: [LimitKey]

    /// The name under which all processes that share state (``ServerSettings/sharing``) count together. Limits with the same name
    /// should have the same options. While the store fails, each process counts on its own. Default: each process counts on its
    /// own.
    public var shared: String?

    /// Creates a limit.
    public init(
        _ requests: Int, period: Duration? = nil, burst: Int? = nil, per: [LimitKey] = [], shared: String? = nil
    ) {
        self.requests = requests
        self.period = period
        self.burst = burst
        self.per = per
        self.shared = shared
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("rate_limit", self) }
}

/// Limits how many requests run at the same time. Further requests wait in the order of their arrival, and are refused with the
/// error -31000 when too many wait.
public struct ConcurrencyLimit: BuiltInMiddleware, Encodable, Hashable {
    /// Maximum number of requests that run at the same time.
    public var maxRunning: Int

    /// Maximum number of requests that wait. Default: 0.
    public var maxWaiting: Int

    /// Keys by which requests are counted, in combination. Default: none; all requests are counted together.
    public var per: [LimitKey]

    /// Creates a limit.
    public init(_ maxRunning: Int, maxWaiting: Int = 0, per: [LimitKey] = []) {
        self.maxRunning = maxRunning
        self.maxWaiting = maxWaiting
        self.per = per
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("concurrency_limit", self) }
}

/// Caches resource contents, prompts and the results of ``tools``, and answers identical requests from the cache.
///
/// A cached result is used only for the caller that it was made for, with the same scopes; without authorization, only for the
/// same session or connection, and over HTTP on 2026-07-28 for all, if its `cacheScope` is `public`. Errors and results that ask
/// for input are not cached. Results are dropped when features of their kind change, and those of a resource also by
/// ``Server/notifyResourceUpdated(_:)``.
public struct ResponseCache: BuiltInMiddleware, Encodable, Hashable {
    /// How long a result is cached.
    public var ttl: Duration

    /// Names of tools without side effects whose results are cached too.
    public var tools: [String]

    /// Maximum total size of cached results in bytes; the oldest are dropped. Default: 16 MiB.
    public var maxBytes: Int?

    /// Creates a cache.
    public init(_ ttl: Duration, tools: [String] = [], maxBytes: Int? = nil) {
        self.ttl = ttl
        self.tools = tools
        self.maxBytes = maxBytes
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("response_cache", self) }
}

/// Limits the size of the results of tools, which models have to read: the longest text of a larger result is cut, with a note.
/// If that is not enough, or the result has structured content, the client gets a tool error that names the size and the limit.
public struct ResponseSizeLimit: BuiltInMiddleware, Encodable, Hashable {
    /// Maximum size of a result as JSON, in bytes; at least 512.
    public var maxBytes: Int

    /// Whether clients can read the rest page by page, as resources `result://{id}/{page}` that the note names. Default: `false`.
    public var pages: Bool

    /// Maximum total size of kept pages in bytes; the oldest are dropped. Default: 16 MiB.
    public var maxKeptBytes: Int?

    /// How long pages are kept. Default: 10 minutes.
    public var lifetime: Duration?

    /// Creates a limit.
    public init(_ maxBytes: Int, pages: Bool = false, maxKeptBytes: Int? = nil, lifetime: Duration? = nil) {
        self.maxBytes = maxBytes
        self.pages = pages
        self.maxKeptBytes = maxKeptBytes
        self.lifetime = lifetime
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("response_size_limit", self) }
}

/// Appends a record of each request to a file: a JSON object on a line of its own, with time, method, name, caller, duration and
/// outcome. See the page "Observability".
///
/// A record contains neither tokens nor session ids, and is passed to the operating system before the client gets the response.
/// ``Server/addMiddleware(_:scope:)`` opens the file, and throws ``McplineError/usage(_:)`` if that fails.
///
/// In ``ClientBuilder/middleware``, it records the requests that the client sends: with the server, its address and the kind of
/// the error, and without a caller. A request whose record cannot be written fails with ``McplineError/transport(_:)``.
public struct AuditLog: BuiltInMiddleware, BuiltInClientMiddleware, Encodable, Hashable {
    /// The file. A new one can be read and written by its owner only.
    public var path: String

    /// The size at which the file is rotated; 0: never. Default: 100 MiB.
    public var maxBytes: Int?

    /// How many rotated files are kept: `path.1`, which is the newest, `path.2` and so on; at most 1,000. Default: 10.
    public var maxFiles: Int?

    /// Whether records contain the arguments of tools and prompts; above 16 KiB only their size. Default: `false`.
    public var arguments: Bool

    /// Whether records contain results; above 16 KiB only their size. Default: `false`.
    public var results: Bool

    /// Names of members whose values are replaced by `[redacted]`, at any depth and without regard to case. The values of
    /// obvious secrets, such as `password`, always are.
    public var redact: [String]

    /// Whether a request fails if its record cannot be written. Otherwise a warning is logged. Default: `true`.
    public var required: Bool?

    /// Creates a log.
    public init(
        _ path: String,
        maxBytes: Int? = nil,
        maxFiles: Int? = nil,
        arguments: Bool = false,
        results: Bool = false,
        redact: [String] = [],
        required: Bool? = nil
    ) {
        self.path = path
        self.maxBytes = maxBytes
        self.maxFiles = maxFiles
        self.arguments = arguments
        self.results = results
        self.redact = redact
        self.required = required
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("audit_log", self) }
}

/// Replaces values in the results of tools, the texts of resources and the messages of prompts, and, if it is added without a
/// scope, in what handlers send.
///
/// Structured content is validated against the output schema before redaction, so declare redacted members as strings in the
/// schema. If redacting a value takes more than five seconds, it is not sent. Add a ``ResponseSizeLimit`` before this one.
///
/// In ``ClientBuilder/middleware``, results are replaced before the caller gets them, and arguments before they leave the host.
/// ``ClientBuilder/onToolOutcome(_:)`` gets the result as the server sent it.
public struct Redaction: BuiltInMiddleware, BuiltInClientMiddleware, Encodable, Hashable {
    /// Names of members whose values are replaced, at any depth, also in texts that are JSON. Case does not matter.
    public var members: [String]

    /// Regular expressions, of the Rust crate `regex`, whose matches are replaced in texts and messages of errors.
    public var patterns: [String]

    /// What takes the place of a value or match. Default: `[redacted]`.
    public var replacement: String?

    /// Whether the arguments of tools and prompts are redacted as well, before they are checked.
    public var arguments: Bool

    /// Creates a redaction.
    public init(members: [String] = [], patterns: [String] = [], replacement: String? = nil, arguments: Bool = false) {
        self.members = members
        self.patterns = patterns
        self.replacement = replacement
        self.arguments = arguments
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("redaction", self) }
}

/// Restricts which tools clients can list and call. For servers; clients use ``ClientToolPolicy``.
///
/// A tool that is not allowed is left out of lists, and a call of it fails like that of a tool that does not exist. Before each
/// call of a tool that needs approval, the server asks the user by an elicitation that shows the name and the arguments. If the
/// user declines, or the client does not support elicitation, the tool does not run.
public struct ToolPolicy: BuiltInMiddleware, Encodable, Hashable {
    /// Names of the tools that are allowed; `*` stands for any characters. Default: all.
    public var allowed: [String]?

    /// Names of tools that are denied, even if ``allowed`` matches them.
    public var denied: [String]

    /// Names of tools whose calls need the user's approval.
    public var approval: [String]

    /// Callers with all of these scopes may use every tool without approval. Callers on stdio, on Unix sockets and in memory
    /// count as having all scopes. Default: none are exempt.
    public var exemptScopes: [String]?

    /// Creates a policy.
    public init(
        allowed: [String]? = nil, denied: [String] = [], approval: [String] = [], exemptScopes: [String]? = nil
    ) {
        self.allowed = allowed
        self.denied = denied
        self.approval = approval
        self.exemptScopes = exemptScopes
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("tool_policy", self) }
}
