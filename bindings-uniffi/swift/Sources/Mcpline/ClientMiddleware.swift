/// Middleware of clients that the library provides, for ``ClientBuilder/middleware``: ``Retry``, ``CircuitBreaker``,
/// ``ClientToolPolicy``, ``AuditLog`` and ``Redaction``. It runs in the core, without Swift code.
public protocol BuiltInClientMiddleware: Sendable {
    /// Describes the middleware for the core.
    func definition() throws -> MiddlewareDefinition
}

/// Sends failed requests again, after a delay that doubles.
///
/// A request that the server did not perform, because it was busy or could not be reached, is always sent again. If the server
/// may have performed it, it is sent again only if that is safe: lists, reads, prompts, completions, calls of ``tools``, and calls
/// of tools that a trusted server (``ClientSettings/trustToolAnnotations``) annotates as read-only or idempotent.
public struct Retry: BuiltInClientMiddleware, Encodable, Hashable {
    /// Maximum number of attempts, including the first. Default: 3.
    public var attempts: Int?

    /// Delay before the second attempt; it doubles with each further attempt. Jitter shortens it by up to half. If the server
    /// asks for a longer delay (`retryAfter`), that one is used. Default: 200 milliseconds.
    public var firstDelay: Duration?

    /// Maximum delay. An error with a longer `retryAfter` is thrown. Default: 10 seconds.
    public var maxDelay: Duration?

    /// Names of tools that may run twice for one call, whatever their annotations say.
    public var tools: [String]

    /// Creates a middleware.
    public init(attempts: Int? = nil, firstDelay: Duration? = nil, maxDelay: Duration? = nil, tools: [String] = []) {
        self.attempts = attempts
        self.firstDelay = firstDelay
        self.maxDelay = maxDelay
        self.tools = tools
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("retry", self) }
}

/// Stops sending requests for a while to a server that has failed several times in a row. Meanwhile, requests fail with
/// ``McplineError/serverUnreachable(_:)``, and what the client has cached is still returned. Put ``Retry`` before it.
public struct CircuitBreaker: BuiltInClientMiddleware, Encodable, Hashable {
    /// Number of consecutive failures that opens the circuit. Default: 5.
    public var failures: Int?

    /// How long nothing is sent, before some requests are sent as trials. Default: 30 seconds.
    public var reset: Duration?

    /// Creates a middleware.
    public init(failures: Int? = nil, reset: Duration? = nil) {
        self.failures = failures
        self.reset = reset
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("circuit_breaker", self) }
}

/// Restricts which tools of a server the client can list and call. Calls of other tools fail with
/// ``McplineError/toolCallRefused(_:)``. Servers use ``ToolPolicy``.
///
/// With pins, a tool keeps the definition that it had when it was first listed: one whose definition has changed is left out of
/// lists, with a warning, and calls of it are refused.
public struct ClientToolPolicy: BuiltInClientMiddleware, Encodable, Hashable {
    /// Names of the tools that are allowed; `*` stands for any characters. Default: all.
    public var allowed: [String]?

    /// Names of tools that are denied, even if ``allowed`` matches them.
    public var denied: [String]

    /// Names of tools whose calls need the approval of ``ClientBuilder/onToolCall(_:)``, whose hook then runs only for these.
    /// Without this hook, their calls are refused. Default: the hook runs for all tools.
    public var approval: [String]?

    /// Whether definitions are pinned for the life of the client.
    public var pin: Bool

    /// File in which the pinned definitions are kept. Use one for each server.
    public var pinFile: String?

    /// Creates a policy.
    public init(
        allowed: [String]? = nil,
        denied: [String] = [],
        approval: [String]? = nil,
        pin: Bool = false,
        pinFile: String? = nil
    ) {
        self.allowed = allowed
        self.denied = denied
        self.approval = approval
        self.pin = pin
        self.pinFile = pinFile
    }

    /// Describes the middleware for the core.
    public func definition() throws -> MiddlewareDefinition { try MiddlewareDefinition("tool_policy", self) }
}
