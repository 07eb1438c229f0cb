import Foundation

/// Settings of a server. Every setting has a production-safe default.
public struct ServerSettings: Encodable, Hashable, Sendable {
    /// Where several processes of one service share sessions, event streams and notifications, so that a client may reach any of
    /// the processes. `local` shares them among the processes of one user on one machine, such as the workers of one service;
    /// `local://NAME` separates services whose servers have the same name, and `local:///path` names the directory to use (not on
    /// Windows). `valkey://host:6379/0` shares them over a Valkey or Redis server, `valkeys://` with TLS; the URL's parameter
    /// `key_prefix` separates services that share the server, and `timeout` limits each operation, in seconds (2). Default: each
    /// process has its own sessions.
    public var sharing: String?

    /// Protocol revisions to serve. Default: all.
    public var revisions: [String]?

    /// Maximum length of a message on stdio, in bytes. Default: 16 MiB.
    public var maxLineBytes: Int?

    /// Maximum number of messages in a JSON-RPC batch (2024-11-05 and 2025-03-26). Default: 100.
    public var maxBatchMessages: Int?

    /// Maximum nesting depth of the JSON in a message. Default: 127, which is also the highest allowed value.
    public var maxJsonDepth: Int?

    /// Maximum number of items per page of a list. Default: 1,000. Many clients never request a second page.
    public var pageSize: Int?

    /// Cache hints of lists (2026-07-28). Default: lifetime 0, private.
    public var listCache: CacheHint?

    /// Cache hints of resource contents (2026-07-28). Default: lifetime 0, private.
    public var resourceCache: CacheHint?

    /// Time that an input request waits for the client's answer; each progress notification restarts it. Default: 10
    /// minutes because a person may have to answer.
    public var inputRequestIdleTimeout: Duration?

    /// Maximum total time that an input request waits, regardless of progress. Default: 1 hour.
    public var inputRequestTimeout: Duration?

    /// Secrets that seal `requestState`, the same in all processes of a service: base64 of at least 32 bytes each. The
    /// first one seals, all of them open. Default: the environment variable `MCPLINE_STATE_SECRETS`, or else a key of
    /// this process.
    public var stateKeys: [String]?

    /// Lifetime of a sealed `requestState` and of the suspended handler behind it (2026-07-28). Default: 10 minutes. A
    /// `requestState` can be replayed during this time.
    public var stateLifetime: Duration?

    /// Maximum number of handlers suspended while they wait for the client's next round (2026-07-28). Default: 10,000.
    /// When the limit is reached, the oldest handler of the client with the most suspended handlers is cancelled; the
    /// retry of its request runs the handler again from the start.
    public var maxSuspendedHandlers: Int?

    /// Maximum memory held on behalf of all clients together, in bytes: request bodies and their calls, unread
    /// responses, events kept for resumption, sessions. Default: 512 MiB. Requests that would exceed it are refused as
    /// busy (HTTP 503).
    public var maxTotalClientBytes: Int?

    /// Maximum number of calls in flight, over all sessions. Default: 10,000. Further calls are refused as busy.
    public var maxCalls: Int?

    /// Largest fraction of each shared limit that one client may use, above 0 and at most 1. Applies to
    /// `maxTotalClientBytes`, `maxCalls` and `maxSuspendedHandlers`, and over HTTP to `maxConnections` and
    /// `maxSessions`. A client is identified by its principal if requests are authenticated, otherwise by its network
    /// address. Default: 0.25. A client that exceeds its share is refused as busy (HTTP 429); other clients are
    /// unaffected.
    public var clientShare: Double?

    /// Maximum number of input rounds per request (2026-07-28). Default: 16.
    public var maxInputRounds: Int?

    /// Maximum number of input requests per call, for clients of the revisions up to 2025-11-25. Default: 1,000. For
    /// 2026-07-28, `maxInputRounds` is the limit.
    public var maxInputRequestsPerCall: Int?

    /// Maximum size of a sealed `requestState`, in bytes. Default: 64 KiB. Clients send it with every retry.
    public var maxStateBytes: Int?

    /// Validate structured results against the output schema of their tool. Default: `true`.
    public var checkOutput: Bool?

    /// Rate limit of the calls per tool, for all clients together. Default: unlimited.
    public var toolRate: Rate?

    /// Rate limit of completions, for all clients together. Default: unlimited.
    public var completionRate: Rate?

    /// Time that calls in flight have to finish after the server is stopped. Default: 5 seconds.
    public var shutdownTimeout: Duration?

    /// Write one line to stderr when a transport is ready, with the server's name, version, URL, revisions and number
    /// of features. Default: over HTTP always, and over stdio if standard input is a terminal, because hosts show what
    /// a server writes to stderr as errors.
    public var startupMessage: Bool?

    /// Debug mode, for development only: clients get the name and the message of every error that a handler throws,
    /// results are validated even if `checkOutput` is `false`, and all messages are printed to stderr. Default: `true`
    /// if the environment variable `MCPLINE_DEBUG` is `1`, otherwise `false`.
    public var debug: Bool?

    /// File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty
    /// path is none. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For
    /// development and reports of defects: texts of users are in it. It is renamed to `….1` when it would exceed 100
    /// MiB.
    public var trafficFile: String?

    /// Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions
    /// for MCP. The HTTP server serves them at `metricsPath`. Default: `false`, because each request then costs a
    /// little more, and because metrics contain the names of tools and prompts.
    public var metrics: Bool?

    /// Record the arguments and results of tool calls in spans, each as JSON of at most 8 KiB and without obvious
    /// secrets. Default: `false`, because they may be confidential.
    public var spanContents: Bool?

    /// Maximum number of requests in flight per session. Default: 1,024. Further requests are refused as busy.
    public var maxRequestsInFlight: Int?

    /// Maximum number of unanswered input requests per session. Default: 64.
    public var maxOpenInputRequests: Int?

    /// Maximum number of resource subscriptions per session. Default: 1,024.
    public var maxSubscriptions: Int?

    /// Maximum size of a session's `clientInfo` and `capabilities` together, in bytes of JSON. Default: 64 KiB.
    public var maxClientInfoBytes: Int?

    /// Maximum total length of the URIs that a session is subscribed to, in bytes. Default: 256 KiB.
    public var maxSubscriptionBytes: Int?

    /// Rate limit of progress notifications per request. Default: 20 per second, burst of 64. Excess notifications are
    /// dropped, except the last one.
    public var progressRate: Rate?

    /// Rate limit of log messages per session. Default: 50 per second, burst of 128.
    public var logRate: Rate?

    /// Minimum level of the log messages that a client receives until it sets a level (revisions up to 2025-11-25). Default:
    /// all levels. On 2026-07-28 each request names its level.
    public var clientLogLevel: LogLevel?

    /// Time without messages after which the server pings a client (revisions up to 2025-11-25). Default: no pings.
    public var pingInterval: Duration?

    /// Number of consecutive unanswered pings after which the session is closed. Default: 3.
    public var maxMissedPings: Int?

    /// Experimental capabilities to declare, with their settings, by name.
    public var experimental: [String: JSONObject]?

    /// Capabilities to declare even while no feature of the kind is registered.
    public var declare: [String]?

    /// Creates a value from its members.
    public init(
        sharing: String? = nil,
        revisions: [String]? = nil,
        maxLineBytes: Int? = nil,
        maxBatchMessages: Int? = nil,
        maxJsonDepth: Int? = nil,
        pageSize: Int? = nil,
        listCache: CacheHint? = nil,
        resourceCache: CacheHint? = nil,
        inputRequestIdleTimeout: Duration? = nil,
        inputRequestTimeout: Duration? = nil,
        stateKeys: [String]? = nil,
        stateLifetime: Duration? = nil,
        maxSuspendedHandlers: Int? = nil,
        maxTotalClientBytes: Int? = nil,
        maxCalls: Int? = nil,
        clientShare: Double? = nil,
        maxInputRounds: Int? = nil,
        maxInputRequestsPerCall: Int? = nil,
        maxStateBytes: Int? = nil,
        checkOutput: Bool? = nil,
        toolRate: Rate? = nil,
        completionRate: Rate? = nil,
        shutdownTimeout: Duration? = nil,
        startupMessage: Bool? = nil,
        debug: Bool? = nil,
        trafficFile: String? = nil,
        metrics: Bool? = nil,
        spanContents: Bool? = nil,
        maxRequestsInFlight: Int? = nil,
        maxOpenInputRequests: Int? = nil,
        maxSubscriptions: Int? = nil,
        maxClientInfoBytes: Int? = nil,
        maxSubscriptionBytes: Int? = nil,
        progressRate: Rate? = nil,
        logRate: Rate? = nil,
        clientLogLevel: LogLevel? = nil,
        pingInterval: Duration? = nil,
        maxMissedPings: Int? = nil,
        experimental: [String: JSONObject]? = nil,
        declare: [String]? = nil
    ) {
        self.sharing = sharing
        self.revisions = revisions
        self.maxLineBytes = maxLineBytes
        self.maxBatchMessages = maxBatchMessages
        self.maxJsonDepth = maxJsonDepth
        self.pageSize = pageSize
        self.listCache = listCache
        self.resourceCache = resourceCache
        self.inputRequestIdleTimeout = inputRequestIdleTimeout
        self.inputRequestTimeout = inputRequestTimeout
        self.stateKeys = stateKeys
        self.stateLifetime = stateLifetime
        self.maxSuspendedHandlers = maxSuspendedHandlers
        self.maxTotalClientBytes = maxTotalClientBytes
        self.maxCalls = maxCalls
        self.clientShare = clientShare
        self.maxInputRounds = maxInputRounds
        self.maxInputRequestsPerCall = maxInputRequestsPerCall
        self.maxStateBytes = maxStateBytes
        self.checkOutput = checkOutput
        self.toolRate = toolRate
        self.completionRate = completionRate
        self.shutdownTimeout = shutdownTimeout
        self.startupMessage = startupMessage
        self.debug = debug
        self.trafficFile = trafficFile
        self.metrics = metrics
        self.spanContents = spanContents
        self.maxRequestsInFlight = maxRequestsInFlight
        self.maxOpenInputRequests = maxOpenInputRequests
        self.maxSubscriptions = maxSubscriptions
        self.maxClientInfoBytes = maxClientInfoBytes
        self.maxSubscriptionBytes = maxSubscriptionBytes
        self.progressRate = progressRate
        self.logRate = logRate
        self.clientLogLevel = clientLogLevel
        self.pingInterval = pingInterval
        self.maxMissedPings = maxMissedPings
        self.experimental = experimental
        self.declare = declare
    }
}

/// Settings of serving over HTTP. Every setting has a production-safe default.
public struct HTTPSettings: Encodable, Hashable, Sendable {
    /// Path of the MCP endpoint. This and the other paths are relative to the prefix of a mount; with the default, the
    /// mount point itself is an endpoint, too. Default: `/mcp`.
    public var path: String?

    /// Paths of the event stream and of the message endpoint of HTTP+SSE (2024-11-05). Default: `/sse` and `/messages`.
    public var ssePaths: [String]?

    /// Whether HTTP+SSE (2024-11-05) is served. Default: `true`.
    public var serveSse: Bool?

    /// Path of the health check, which responds with 200 `ok` while the process serves HTTP. Default: `/health`.
    public var healthPath: String?

    /// Whether there is a health check. Default: `true`.
    public var serveHealth: Bool?

    /// Path of the readiness check: 200 `ready`, and 503 from the beginning of a shutdown on. Default: `/ready`.
    public var readyPath: String?

    /// Whether there is a readiness check. Default: `true`.
    public var serveReady: Bool?

    /// Path at which the HTTP server serves the metrics of the server in the text format of Prometheus, such as
    /// `/metrics`. The server's `metrics` must be on. Hosts and origins are checked as at the MCP endpoint, but access
    /// tokens are not required. Default: not served.
    public var metricsPath: String?

    /// Path prefix that a reverse proxy removes before it forwards requests. Used for the message endpoint announced to
    /// HTTP+SSE clients. Default: none.
    public var proxyPrefix: String?

    /// Accepted host names of the `Host` header, without port. `*.example.com` accepts all names below `example.com`,
    /// but not the web pages of these hosts; `*` accepts any name. Loopback names and the bound address are always
    /// accepted. The check prevents DNS rebinding: with `*`, a web page can send requests to a server that only this
    /// machine or its network reaches, so use it only if any program may reach the server. Default: none.
    public var allowedHosts: [String]?

    /// Accepted values of the `Origin` header, such as `https://app.example.com`, in addition to the origins of allowed
    /// hosts; `*` accepts any. Pages of these origins may also read the responses (CORS). Requests without `Origin` are
    /// not affected. Default: none.
    public var allowedOrigins: [String]?

    /// Maximum size of a request body, in bytes. Default: 16 MiB.
    public var maxBodyBytes: Int?

    /// Time that a client has to send the headers of a request, and then its body; with TLS also for the handshake.
    /// Default: 30 seconds.
    public var readTimeout: Duration?

    /// Time after which a response ends if the client reads nothing of it. Default: 30 seconds.
    public var writeTimeout: Duration?

    /// Maximum number of open connections; further ones wait to be accepted. Default: 10,000.
    public var maxConnections: Int?

    /// Serve clients of handshake revisions without sessions, so that any process can answer any request. Default:
    /// `false`. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications
    /// of changes and resumable streams, the log level that they set has no effect, and HTTP+SSE is not served. Clients
    /// of 2026-07-28 never have sessions.
    public var stateless: Bool?

    /// Maximum number of sessions (revisions up to 2025-11-25). Default: 10,000. At the limit, a session that was idle
    /// for at least a thirtieth of `sessionIdleTimeout` is closed to make room; if there is none, `initialize` is
    /// refused with HTTP 503.
    public var maxSessions: Int?

    /// Idle time after which a session is closed. Default: 30 minutes.
    public var sessionIdleTimeout: Duration?

    /// Time without output after which the response to a pending call becomes an event stream with keep-alive comments.
    /// Default: 10 seconds.
    public var streamUpgradeDelay: Duration?

    /// Interval between keep-alive comments on an idle event stream. Default: 15 seconds.
    public var keepAliveInterval: Duration?

    /// Reconnection delay that is sent to clients as `retry` of an event stream. Default: 500 milliseconds.
    public var retry: Duration?

    /// Maximum number of events kept per resumable stream, for clients that reconnect. Default: 1,024.
    public var maxKeptEvents: Int?

    /// Maximum size of the events kept per resumable stream, in bytes. Each event counts as its message plus 128 bytes.
    /// Default: 4 MiB.
    public var maxKeptBytes: Int?

    /// Maximum size of the unread events of one event stream, in bytes, counted as for `maxKeptBytes`; one message is
    /// accepted in any case. Default: 16 MiB. Beyond it notifications are dropped, and a stream whose responses alone
    /// exceed it ends.
    public var maxUnreadBytes: Int?

    /// Header in which a reverse proxy sends the address of the client, for example `X-Forwarded-For`; the last address
    /// in it counts. Used to distinguish clients if requests are not authenticated (see `clientShare`). Set it only
    /// behind a proxy that sets this header: otherwise clients can forge their address. Default: none.
    public var clientAddressHeader: String?

    /// Authentication of callers (`basic/authorization`). Default: none; every request is served.
    public var auth: ResourceServerSettings?

    /// Creates a value from its members.
    public init(
        path: String? = nil,
        ssePaths: [String]? = nil,
        serveSse: Bool? = nil,
        healthPath: String? = nil,
        serveHealth: Bool? = nil,
        readyPath: String? = nil,
        serveReady: Bool? = nil,
        metricsPath: String? = nil,
        proxyPrefix: String? = nil,
        allowedHosts: [String]? = nil,
        allowedOrigins: [String]? = nil,
        maxBodyBytes: Int? = nil,
        readTimeout: Duration? = nil,
        writeTimeout: Duration? = nil,
        maxConnections: Int? = nil,
        stateless: Bool? = nil,
        maxSessions: Int? = nil,
        sessionIdleTimeout: Duration? = nil,
        streamUpgradeDelay: Duration? = nil,
        keepAliveInterval: Duration? = nil,
        retry: Duration? = nil,
        maxKeptEvents: Int? = nil,
        maxKeptBytes: Int? = nil,
        maxUnreadBytes: Int? = nil,
        clientAddressHeader: String? = nil,
        auth: ResourceServerSettings? = nil
    ) {
        self.path = path
        self.ssePaths = ssePaths
        self.serveSse = serveSse
        self.healthPath = healthPath
        self.serveHealth = serveHealth
        self.readyPath = readyPath
        self.serveReady = serveReady
        self.metricsPath = metricsPath
        self.proxyPrefix = proxyPrefix
        self.allowedHosts = allowedHosts
        self.allowedOrigins = allowedOrigins
        self.maxBodyBytes = maxBodyBytes
        self.readTimeout = readTimeout
        self.writeTimeout = writeTimeout
        self.maxConnections = maxConnections
        self.stateless = stateless
        self.maxSessions = maxSessions
        self.sessionIdleTimeout = sessionIdleTimeout
        self.streamUpgradeDelay = streamUpgradeDelay
        self.keepAliveInterval = keepAliveInterval
        self.retry = retry
        self.maxKeptEvents = maxKeptEvents
        self.maxKeptBytes = maxKeptBytes
        self.maxUnreadBytes = maxUnreadBytes
        self.clientAddressHeader = clientAddressHeader
        self.auth = auth
    }
}

/// Settings of serving a Unix socket.
public struct UnixSettings: Encodable, Hashable, Sendable {
    /// File mode of the socket, in octal digits: `0660`. Default: `0600`.
    public var mode: String?

    /// Maximum number of open connections; further ones wait to be accepted.
    public var maxConnections: Int?

    /// Creates a value from its members.
    public init(
        mode: String? = nil,
        maxConnections: Int? = nil
    ) {
        self.mode = mode
        self.maxConnections = maxConnections
    }
}

/// Settings of a client.
public struct ClientSettings: Encodable, Hashable, Sendable {
    /// Protocol revisions that the client may use. Default: all.
    public var revisions: [String]?

    /// Kind of opening to try first; the other one is tried only if it fails. Default: probe with `server/discover`.
    public var era: Era?

    /// Time to wait for the answer to the first message before the server is treated as one of an earlier revision.
    /// Default: 3 seconds.
    public var probeTimeout: Duration?

    /// Time to wait for each further answer while a connection is opened, and for opening a socket or a channel of a
    /// custom transport. Default: 30 seconds.
    public var openTimeout: Duration?

    /// Time to wait for the result of a request; each progress notification restarts it. Default: 1 minute.
    public var timeout: Duration?

    /// Maximum total time to wait for the result of a request, regardless of progress. Default: 1 hour.
    public var totalTimeout: Duration?

    /// Time without messages after which the client pings the server (revisions up to 2025-11-25; 2026-07-28 has no
    /// `ping`). Default: no pings. An unanswered ping is logged and treated as a lost connection: requests in flight
    /// fail with ``McplineError/connectionLost``.
    public var pingInterval: Duration?

    /// Time to wait for the answer to such a ping. Default: 30 seconds.
    public var pingTimeout: Duration?

    /// Maximum number of times that a server may request input during one request. Default: 10.
    public var maxInputRounds: Int?

    /// Maximum total size of the pages of one list, in bytes. Default: 32 MiB. A longer list fails with
    /// ``McplineError/invalidResponse``.
    public var maxListBytes: Int?

    /// Maximum length of a message from a server over stdio or a Unix socket, in bytes. Default: 16 MiB. A longer message is
    /// skipped with a warning, and a request that it answers times out.
    public var maxLineBytes: Int?

    /// Validate structured content against the output schema of its tool. Default: `true`.
    public var checkOutput: Bool?

    /// Trust the annotations of the server's tools. If `true`, a tool call whose connection was lost is sent again if
    /// the tool is annotated as read-only or idempotent; otherwise only with `Reissue.always`. Default: `false`.
    public var trustToolAnnotations: Bool?

    /// Send requests even if the server has not declared the capability that they need. Default: `false`; such requests
    /// fail with ``McplineError/notSupported``. Needed for servers of the official Python SDK before version 2, which declare
    /// `"subscribe": false` even if they handle `resources/subscribe`.
    public var allowUndeclaredCapabilities: Bool?

    /// Cache lists and resource contents for the time that the server allows (2026-07-28). Default: `true`.
    public var cache: Bool?

    /// Maximum number of consecutive connections that are lost before they answered anything. Default: 5. 0 disables
    /// reconnection.
    public var reconnectAttempts: Int?

    /// Delay before the second consecutive attempt to reconnect; it doubles with each further attempt. Default: 200
    /// milliseconds.
    public var reconnectDelay: Duration?

    /// Maximum delay between attempts to reconnect. Default: 10 seconds.
    public var reconnectMaxDelay: Duration?

    /// Subscribe to change notifications (`subscriptions/listen`, 2026-07-28) while a handler of notifications exists.
    /// Default: `true`. Servers of earlier revisions send them without a subscription.
    public var listen: Bool?

    /// Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions
    /// for MCP; see ``Client/metrics``. Default: `false`, because each request then costs some allocations and a short
    /// lock, and because the metrics contain the names of tools and prompts.
    public var metrics: Bool?

    /// Record the arguments and results of tool calls in spans, each as JSON of at most 8 KiB and without obvious
    /// secrets. Default: `false`, because they may be confidential.
    public var spanContents: Bool?

    /// File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty
    /// path is none. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For
    /// development and reports of defects: texts of users are in it. It is renamed to `….1` when it would exceed 100
    /// MiB.
    public var trafficFile: String?

    /// Creates a value from its members.
    public init(
        revisions: [String]? = nil,
        era: Era? = nil,
        probeTimeout: Duration? = nil,
        openTimeout: Duration? = nil,
        timeout: Duration? = nil,
        totalTimeout: Duration? = nil,
        pingInterval: Duration? = nil,
        pingTimeout: Duration? = nil,
        maxInputRounds: Int? = nil,
        maxListBytes: Int? = nil,
        maxLineBytes: Int? = nil,
        checkOutput: Bool? = nil,
        trustToolAnnotations: Bool? = nil,
        allowUndeclaredCapabilities: Bool? = nil,
        cache: Bool? = nil,
        reconnectAttempts: Int? = nil,
        reconnectDelay: Duration? = nil,
        reconnectMaxDelay: Duration? = nil,
        listen: Bool? = nil,
        metrics: Bool? = nil,
        spanContents: Bool? = nil,
        trafficFile: String? = nil
    ) {
        self.revisions = revisions
        self.era = era
        self.probeTimeout = probeTimeout
        self.openTimeout = openTimeout
        self.timeout = timeout
        self.totalTimeout = totalTimeout
        self.pingInterval = pingInterval
        self.pingTimeout = pingTimeout
        self.maxInputRounds = maxInputRounds
        self.maxListBytes = maxListBytes
        self.maxLineBytes = maxLineBytes
        self.checkOutput = checkOutput
        self.trustToolAnnotations = trustToolAnnotations
        self.allowUndeclaredCapabilities = allowUndeclaredCapabilities
        self.cache = cache
        self.reconnectAttempts = reconnectAttempts
        self.reconnectDelay = reconnectDelay
        self.reconnectMaxDelay = reconnectMaxDelay
        self.listen = listen
        self.metrics = metrics
        self.spanContents = spanContents
        self.trafficFile = trafficFile
    }
}

/// Options of a client over HTTP. ``ClientBuilder/auth`` sets the source of access tokens.
public struct HTTPClientOptions: Encodable, Hashable, Sendable {
    /// Headers to send with every request.
    public var headers: [String: String]?

    /// URL of the proxy: `http://`, `socks5://` or `socks5h://`, with credentials if needed; `direct` for none.
    /// Default: the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    public var proxy: String?

    /// CA certificates in PEM that are trusted in addition to those of the system, for servers with certificates of a
    /// private CA.
    public var tlsRoots: String?

    /// Trust only `tlsRoots`, not the CA certificates of the system. Default: `false`.
    public var onlyTlsRoots: Bool?

    /// Maximum time to reach the server: name resolution, connection, proxy and TLS together. Default: 10 seconds.
    public var connectTimeout: Duration?

    /// Maximum number of redirects that one request follows. Default: 5.
    public var maxRedirects: Int?

    /// Maximum consecutive attempts to resume a call's stream before the call fails. Default: 5.
    public var resumeAttempts: Int?

    /// Delay before the second of these attempts; it doubles with each further attempt. Default: 500 milliseconds.
    public var resumeDelay: Duration?

    /// Maximum delay between these attempts. Default: 30 seconds.
    public var resumeMaxDelay: Duration?

    /// Maximum size of a response, and of one event of a stream, in bytes. Default: 16 MiB.
    public var maxBodyBytes: Int?

    /// Creates a value from its members.
    public init(
        headers: [String: String]? = nil,
        proxy: String? = nil,
        tlsRoots: String? = nil,
        onlyTlsRoots: Bool? = nil,
        connectTimeout: Duration? = nil,
        maxRedirects: Int? = nil,
        resumeAttempts: Int? = nil,
        resumeDelay: Duration? = nil,
        resumeMaxDelay: Duration? = nil,
        maxBodyBytes: Int? = nil
    ) {
        self.headers = headers
        self.proxy = proxy
        self.tlsRoots = tlsRoots
        self.onlyTlsRoots = onlyTlsRoots
        self.connectTimeout = connectTimeout
        self.maxRedirects = maxRedirects
        self.resumeAttempts = resumeAttempts
        self.resumeDelay = resumeDelay
        self.resumeMaxDelay = resumeMaxDelay
        self.maxBodyBytes = maxBodyBytes
    }
}

/// Authentication of the callers of an HTTP server (`basic/authorization`).
public struct ResourceServerSettings: Encodable, Hashable, Sendable {
    /// Public URL of the server, such as `https://mcp.example.com/mcp`.
    public var resource: String

    /// Authorization servers whose signed tokens are accepted. With exactly one, clients of 2025-03-26 find it through the
    /// origin of `resource`.
    public var issuers: [String]?

    /// URL of the signing keys. Default: read from the metadata of the issuer.
    public var jwksUrl: String?

    /// The signing keys, as a JSON Web Key Set.
    public var jwks: JSONObject?

    /// Introspection of opaque tokens.
    public var introspection: IntrospectionSettings?

    /// Authorization servers for clients to use, in addition to `issuers`.
    public var authorizationServers: [String]?

    /// Accepted audiences of tokens. Default: `resource`.
    public var audiences: [String]?

    /// Scopes that every request needs. Tools, resources and prompts can require scopes of their own.
    public var requiredScopes: [String]?

    /// Scopes that clients request at first. Default: `requiredScopes`.
    public var supportedScopes: [String]?

    /// Scopes that include others.
    public var impliedScopes: [String: [String]]?

    /// Accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA.
    public var algorithms: [String]?

    /// Tolerated difference between clocks. Default: 1 minute.
    public var clockSkew: Duration?

    /// Accept only tokens that are bound to a key (DPoP, RFC 9449). Such tokens always need their proof, also if this is
    /// off. Default: `false`.
    public var demandProofOfPossession: Bool?

    /// URL of the resource metadata. Default: the well-known URL of `resource` (RFC 9728).
    public var metadataUrl: String?

    /// Display name of the resource, for the metadata.
    public var name: String?

    /// URL of a page for developers, for the metadata.
    public var documentation: String?

    /// Proxy for requests to authorization servers; see ``HTTPClientOptions/proxy``.
    public var proxy: String?

    /// CA certificates in PEM that are trusted in addition to those of the system.
    public var tlsRoots: String?

    /// Trust only `tlsRoots`, not the CA certificates of the system. Default: `false`.
    public var onlyTlsRoots: Bool?

    /// Creates a value from its members.
    public init(
        resource: String,
        issuers: [String]? = nil,
        jwksUrl: String? = nil,
        jwks: JSONObject? = nil,
        introspection: IntrospectionSettings? = nil,
        authorizationServers: [String]? = nil,
        audiences: [String]? = nil,
        requiredScopes: [String]? = nil,
        supportedScopes: [String]? = nil,
        impliedScopes: [String: [String]]? = nil,
        algorithms: [String]? = nil,
        clockSkew: Duration? = nil,
        demandProofOfPossession: Bool? = nil,
        metadataUrl: String? = nil,
        name: String? = nil,
        documentation: String? = nil,
        proxy: String? = nil,
        tlsRoots: String? = nil,
        onlyTlsRoots: Bool? = nil
    ) {
        self.resource = resource
        self.issuers = issuers
        self.jwksUrl = jwksUrl
        self.jwks = jwks
        self.introspection = introspection
        self.authorizationServers = authorizationServers
        self.audiences = audiences
        self.requiredScopes = requiredScopes
        self.supportedScopes = supportedScopes
        self.impliedScopes = impliedScopes
        self.algorithms = algorithms
        self.clockSkew = clockSkew
        self.demandProofOfPossession = demandProofOfPossession
        self.metadataUrl = metadataUrl
        self.name = name
        self.documentation = documentation
        self.proxy = proxy
        self.tlsRoots = tlsRoots
        self.onlyTlsRoots = onlyTlsRoots
    }
}

/// Token introspection at an authorization server (RFC 7662), for opaque tokens.
public struct IntrospectionSettings: Encodable, Hashable, Sendable {
    /// URL of the introspection endpoint.
    public var endpoint: String

    /// Client identifier for authentication at the endpoint, with `clientSecret`.
    public var clientId: String?

    /// Client secret.
    public var clientSecret: String?

    /// Bearer token for authentication at the endpoint, in place of `clientId`.
    public var token: String?

    /// Cache lifetime of a response. Default: 1 minute. A revoked token is accepted for as long.
    public var keepFor: Duration?

    /// Set this if the endpoint reports only tokens for this server as active. Otherwise its response must name the
    /// audience. Default: `false`.
    public var knowsAudience: Bool?

    /// Creates a value from its members.
    public init(
        endpoint: String,
        clientId: String? = nil,
        clientSecret: String? = nil,
        token: String? = nil,
        keepFor: Duration? = nil,
        knowsAudience: Bool? = nil
    ) {
        self.endpoint = endpoint
        self.clientId = clientId
        self.clientSecret = clientSecret
        self.token = token
        self.keepFor = keepFor
        self.knowsAudience = knowsAudience
    }
}

/// Options of a client that starts its server as a child process.
public struct ProgramOptions: Encodable, Hashable, Sendable {
    /// Environment variables of the program, in addition to those that it gets by default (see `inheritEnv`).
    public var env: [String: String]?

    /// Pass the whole environment to the program, including secrets. Default: `false`; the program gets only `HOME`,
    /// `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and `LC_*`.
    public var inheritEnv: Bool?

    /// Working directory of the program. Default: that of this process.
    public var cwd: String?

    /// Destination of the program's stderr. Default: captured; the last lines are part of the error if the program exits.
    public var stderr: StderrMode?

    /// Time that the program has to exit after its stdin is closed, and again after SIGTERM. Default: 2 seconds.
    public var exitTimeout: Duration?

    /// Creates a value from its members.
    public init(
        env: [String: String]? = nil,
        inheritEnv: Bool? = nil,
        cwd: String? = nil,
        stderr: StderrMode? = nil,
        exitTimeout: Duration? = nil
    ) {
        self.env = env
        self.inheritEnv = inheritEnv
        self.cwd = cwd
        self.stderr = stderr
        self.exitTimeout = exitTimeout
    }
}

/// Destination of the stderr of a server that a client starts.
public enum StderrMode: String, Codable, CaseIterable, Sendable {
    /// Captured: ``ClientBuilder/onStderr(_:)`` gets each line.
    case capture

    /// The stderr of this process.
    case inherit

    /// Nowhere.
    case ignore = "null"
}

/// Kind of opening of a client.
public enum Era: String, Codable, CaseIterable, Sendable {
    /// With `initialize`: revisions up to 2025-11-25.
    case legacy

    /// Without a handshake: 2026-07-28.
    case modern
}

/// Whether a request is sent again, at most twice, if the connection is lost before the response arrives.
public enum Reissue: String, Codable, CaseIterable, Sendable {
    /// Repeats lists, reads and similar requests, and calls of tools that are annotated as read-only or idempotent if
    /// ``ClientSettings/trustToolAnnotations`` is on.
    case ifSafe = "if-safe"

    /// Repeats any request.
    case always

    /// Repeats none.
    case never
}

/// Options of a request.
public struct RequestOptions: Encodable, Hashable, Sendable {
    /// Time to wait for the result; each progress notification restarts it. Default: ``ClientSettings/timeout``.
    public var timeout: Duration?

    /// Maximum total time to wait for the result, regardless of progress. Default: ``ClientSettings/totalTimeout``.
    public var totalTimeout: Duration?

    /// Members of the request's `_meta`.
    public var meta: JSONObject?

    /// Minimum level of the log messages sent during the request (2026-07-28).
    public var logLevel: LogLevel?

    /// Whether to send the request again if the connection is lost. Default: ``Reissue/ifSafe``.
    public var reissue: Reissue?

    /// Bypass the cache of results (2026-07-28). Default: `false`.
    public var fresh: Bool?

    /// Return a result that requests input unchanged, instead of answering its input requests with the client's handlers
    /// (2026-07-28). Default: `false`.
    public var manualResults: Bool?

    /// Creates a value from its members.
    public init(
        timeout: Duration? = nil,
        totalTimeout: Duration? = nil,
        meta: JSONObject? = nil,
        logLevel: LogLevel? = nil,
        reissue: Reissue? = nil,
        fresh: Bool? = nil,
        manualResults: Bool? = nil
    ) {
        self.timeout = timeout
        self.totalTimeout = totalTimeout
        self.meta = meta
        self.logLevel = logLevel
        self.reissue = reissue
        self.fresh = fresh
        self.manualResults = manualResults
    }
}

/// Who may use a feature, and how its handler is run. Options that a kind of feature does not have are ignored.
public struct FeatureOptions: Encodable, Hashable, Sendable {
    /// Scopes that a caller needs, all of them. Others do not see the feature.
    public var scopes: [String]

    /// Words by which features are selected. Tools, resources, templates and prompts.
    public var tags: [String]

    /// How long a handler may run. Tools.
    public var timeout: Duration?

    /// Never run the handler again for a retried request. Tools and custom requests.
    public var runOnce: Bool

    /// Variables that may have any value. Resource templates.
    public var uncheckedVariables: [String]

    /// How long clients may cache the contents (2026-07-28). Resources and resource templates.
    public var cache: CacheHint?

    /// Identifier of the ``Extension`` that the feature belongs to. Custom methods.
    public var `extension`: String?

    /// Creates a value from its members.
    public init(
        scopes: [String] = [],
        tags: [String] = [],
        timeout: Duration? = nil,
        runOnce: Bool = false,
        uncheckedVariables: [String] = [],
        cache: CacheHint? = nil,
        `extension`: String? = nil
    ) {
        self.scopes = scopes
        self.tags = tags
        self.timeout = timeout
        self.runOnce = runOnce
        self.uncheckedVariables = uncheckedVariables
        self.cache = cache
        self.`extension` = `extension`
    }
}

/// A rate limit (token bucket).
public struct Rate: Encodable, Hashable, Sendable {
    /// Sustained rate, per second.
    public var perSecond: Int

    /// Maximum number at once.
    public var burst: Int

    /// Creates a rate limit.
    public init(perSecond: Int, burst: Int) {
        self.perSecond = perSecond
        self.burst = burst
    }

    /// Encodes the limit as the pair that the core reads.
    public func encode(to encoder: any Encoder) throws {
        var pair = encoder.unkeyedContainer()
        try pair.encode(perSecond)
        try pair.encode(burst)
    }
}

/// Cache hints of a result (2026-07-28).
public struct CacheHint: Encodable, Hashable, Sendable {
    /// Lifetime in milliseconds.
    public var ttlMs: Int

    /// Whether shared caches may store the result.
    public var isPublic: Bool

    /// Creates cache hints.
    public init(ttlMs: Int, isPublic: Bool = false) {
        self.ttlMs = ttlMs
        self.isPublic = isPublic
    }

    /// Encodes the hints as the pair that the core reads.
    public func encode(to encoder: any Encoder) throws {
        var pair = encoder.unkeyedContainer()
        try pair.encode(ttlMs)
        try pair.encode(isPublic)
    }
}
