package mcpline

import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlin.time.DurationUnit
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.builtins.MapSerializer
import kotlinx.serialization.builtins.serializer
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.PrimitiveSerialDescriptor
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.jsonPrimitive

/** Settings of a server. Every setting has a production-safe default. */
@Serializable
public class ServerSettings(
    /**
     * Where several processes of one service share sessions, event streams and notifications, so that a client may reach any of
     * the processes. `local` shares them among the processes of one user on one machine, such as the workers of one service;
     * `local://NAME` separates services whose servers have the same name, and `local:///path` names the directory to use (not on
     * Windows). `valkey://host:6379/0` shares them over a Valkey or Redis server, `valkeys://` with TLS; the URL's parameter
     * `key_prefix` separates services that share the server, and `timeout` limits each operation, in seconds (2). Default: each
     * process has its own sessions.
     */
    public val sharing: String? = null,
    /** Protocol revisions to serve. Default: all. */
    public val revisions: List<String>? = null,
    /** Maximum length of a message on stdio, in bytes. Default: 16 MiB. */
    public val maxLineBytes: Long? = null,
    /** Maximum number of messages in a JSON-RPC batch (2024-11-05 and 2025-03-26). Default: 100. */
    public val maxBatchMessages: Long? = null,
    /** Maximum nesting depth of the JSON in a message. Default: 127, which is also the highest allowed value. */
    public val maxJsonDepth: Long? = null,
    /** Maximum number of items per page of a list. Default: 1,000. Many clients never request a second page. */
    public val pageSize: Long? = null,
    /** Cache hints of lists (2026-07-28). Default: lifetime 0, private. */
    public val listCache: CacheHint? = null,
    /** Cache hints of resource contents (2026-07-28). Default: lifetime 0, private. */
    public val resourceCache: CacheHint? = null,
    /**
     * Time that an input request waits for the client's answer; each progress notification restarts it. Default: 10
     * minutes because a person may have to answer.
     */
    public val inputRequestIdleTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum total time that an input request waits, regardless of progress. Default: 1 hour. */
    public val inputRequestTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Secrets that seal `requestState`, the same in all processes of a service: base64 of at least 32 bytes each. The
     * first one seals, all of them open. Default: the environment variable `MCPLINE_STATE_SECRETS`, or else a key of
     * this process.
     */
    public val stateKeys: List<String>? = null,
    /**
     * Lifetime of a sealed `requestState` and of the suspended handler behind it (2026-07-28). Default: 10 minutes. A
     * `requestState` can be replayed during this time.
     */
    public val stateLifetime: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Maximum number of handlers suspended while they wait for the client's next round (2026-07-28). Default: 10,000.
     * When the limit is reached, the oldest handler of the client with the most suspended handlers is cancelled; the
     * retry of its request runs the handler again from the start.
     */
    public val maxSuspendedHandlers: Long? = null,
    /**
     * Maximum memory held on behalf of all clients together, in bytes: request bodies and their calls, unread
     * responses, events kept for resumption, sessions. Default: 512 MiB. Requests that would exceed it are refused as
     * busy (HTTP 503).
     */
    public val maxTotalClientBytes: Long? = null,
    /** Maximum number of calls in flight, over all sessions. Default: 10,000. Further calls are refused as busy. */
    public val maxCalls: Long? = null,
    /**
     * Largest fraction of each shared limit that one client may use, above 0 and at most 1. Applies to
     * `maxTotalClientBytes`, `maxCalls` and `maxSuspendedHandlers`, and over HTTP to `maxConnections` and
     * `maxSessions`. A client is identified by its principal if requests are authenticated, otherwise by its network
     * address. Default: 0.25. A client that exceeds its share is refused as busy (HTTP 429); other clients are
     * unaffected.
     */
    public val clientShare: Double? = null,
    /** Maximum number of input rounds per request (2026-07-28). Default: 16. */
    public val maxInputRounds: Long? = null,
    /**
     * Maximum number of input requests per call, for clients of the revisions up to 2025-11-25. Default: 1,000. For
     * 2026-07-28, `maxInputRounds` is the limit.
     */
    public val maxInputRequestsPerCall: Long? = null,
    /** Maximum size of a sealed `requestState`, in bytes. Default: 64 KiB. Clients send it with every retry. */
    public val maxStateBytes: Long? = null,
    /** Validate structured results against the output schema of their tool. Default: `true`. */
    public val checkOutput: Boolean? = null,
    /** Rate limit of the calls per tool, for all clients together. Default: unlimited. */
    public val toolRate: Rate? = null,
    /** Rate limit of completions, for all clients together. Default: unlimited. */
    public val completionRate: Rate? = null,
    /** Time that calls in flight have to finish after the server is stopped. Default: 5 seconds. */
    public val shutdownTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Write one line to stderr when a transport is ready, with the server's name, version, URL, revisions and number
     * of features. Default: over HTTP always, and over stdio if standard input is a terminal, because hosts show what
     * a server writes to stderr as errors.
     */
    public val startupMessage: Boolean? = null,
    /**
     * Debug mode, for development only: clients get the name and the message of every error that a handler throws,
     * results are validated even if `checkOutput` is `false`, and all messages are printed to stderr. Default: `true`
     * if the environment variable `MCPLINE_DEBUG` is `1`, otherwise `false`.
     */
    public val debug: Boolean? = null,
    /**
     * File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty
     * path turns it off. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For
     * development and bug reports: the file contains user data. It is renamed to `….1` when it would exceed 100 MiB.
     */
    public val trafficFile: String? = null,
    /**
     * Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions
     * for MCP. The HTTP server serves them at `metricsPath`. Default: `false`, because each request then costs a
     * little more, and because metrics contain the names of tools and prompts.
     */
    public val metrics: Boolean? = null,
    /**
     * Record the arguments and results of tool calls in spans, each as JSON of at most 8 KiB and without obvious
     * secrets. Default: `false`, because they may be confidential.
     */
    public val spanContents: Boolean? = null,
    /** Maximum number of requests in flight per session. Default: 1,024. Further requests are refused as busy. */
    public val maxRequestsInFlight: Long? = null,
    /** Maximum number of unanswered input requests per session. Default: 64. */
    public val maxOpenInputRequests: Long? = null,
    /** Maximum number of resource subscriptions per session. Default: 1,024. */
    public val maxSubscriptions: Long? = null,
    /** Maximum size of a session's `clientInfo` and `capabilities` together, in bytes of JSON. Default: 64 KiB. */
    public val maxClientInfoBytes: Long? = null,
    /** Maximum total length of the URIs that a session is subscribed to, in bytes. Default: 256 KiB. */
    public val maxSubscriptionBytes: Long? = null,
    /**
     * Rate limit of progress notifications per request. Default: 20 per second, burst of 64. Excess notifications are
     * dropped, except the last one.
     */
    public val progressRate: Rate? = null,
    /** Rate limit of log messages per session. Default: 50 per second, burst of 128. */
    public val logRate: Rate? = null,
    /**
     * Minimum level of the log messages that a client receives until it sets a level (revisions up to 2025-11-25). Default:
     * all levels. On 2026-07-28 each request names its level.
     */
    public val clientLogLevel: LogLevel? = null,
    /** Time without messages after which the server pings a client (revisions up to 2025-11-25). Default: no pings. */
    public val pingInterval: @Serializable(with = Seconds::class) Duration? = null,
    /** Number of consecutive unanswered pings after which the session is closed. Default: 3. */
    public val maxMissedPings: Long? = null,
    /** Experimental capabilities to declare, with their settings, by name. */
    public val experimental: Map<String, JsonObject>? = null,
    /** Capabilities to declare even while no feature of the kind is registered. */
    public val declare: List<String>? = null,
)

/** Settings of serving over HTTP. Every setting has a production-safe default. */
@Serializable
public class HttpSettings(
    /**
     * Path of the MCP endpoint. This and the other paths are relative to the prefix of a mount; with the default, the
     * mount point itself is an endpoint, too. Default: `/mcp`.
     */
    public val path: String? = null,
    /** Paths of the event stream and of the message endpoint of HTTP+SSE (2024-11-05). Default: `/sse` and `/messages`. */
    public val ssePaths: List<String>? = null,
    /** Whether HTTP+SSE (2024-11-05) is served. Default: `true`. */
    public val serveSse: Boolean? = null,
    /** Path of the health check, which responds with 200 `ok` while the process serves HTTP. Default: `/health`. */
    public val healthPath: String? = null,
    /** Whether there is a health check. Default: `true`. */
    public val serveHealth: Boolean? = null,
    /** Path of the readiness check: 200 `ready`, and 503 from the beginning of a shutdown on. Default: `/ready`. */
    public val readyPath: String? = null,
    /** Whether there is a readiness check. Default: `true`. */
    public val serveReady: Boolean? = null,
    /**
     * Path at which the HTTP server serves the metrics of the server in the text format of Prometheus, such as
     * `/metrics`. The server's `metrics` must be on. Hosts and origins are checked as at the MCP endpoint, but access
     * tokens are not required. Default: not served.
     */
    public val metricsPath: String? = null,
    /**
     * Path prefix that a reverse proxy removes before it forwards requests. Used for the message endpoint announced to
     * HTTP+SSE clients. Default: none.
     */
    public val proxyPrefix: String? = null,
    /**
     * Accepted host names of the `Host` header, without port. `*.example.com` accepts all names below `example.com`,
     * but not the web pages of these hosts; `*` accepts any name. Loopback names and the bound address are always
     * accepted. The check prevents DNS rebinding: with `*`, a web page can send requests to a server that only this
     * machine or its network reaches, so use it only if any program may reach the server. Default: none.
     */
    public val allowedHosts: List<String>? = null,
    /**
     * Accepted values of the `Origin` header, such as `https://app.example.com`, in addition to the origins of allowed
     * hosts; `*` accepts any. Pages of these origins may also read the responses (CORS). Requests without `Origin` are
     * not affected. Default: none.
     */
    public val allowedOrigins: List<String>? = null,
    /** Maximum size of a request body, in bytes. Default: 16 MiB. */
    public val maxBodyBytes: Long? = null,
    /**
     * Time that a client has to send the headers of a request, and then its body; with TLS also for the handshake.
     * Default: 30 seconds.
     */
    public val readTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Time after which a response ends if the client reads nothing of it. Default: 30 seconds. */
    public val writeTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum number of open connections; further ones wait to be accepted. Default: 10,000. */
    public val maxConnections: Long? = null,
    /**
     * Serve clients of handshake revisions without sessions, so that any process can answer any request. Default:
     * `false`. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications
     * of changes and resumable streams, the log level that they set has no effect, and HTTP+SSE is not served. Clients
     * of 2026-07-28 never have sessions.
     */
    public val stateless: Boolean? = null,
    /**
     * Maximum number of sessions (revisions up to 2025-11-25). Default: 10,000. At the limit, a session that was idle
     * for at least a thirtieth of `sessionIdleTimeout` is closed to make room; if there is none, `initialize` is
     * refused with HTTP 503.
     */
    public val maxSessions: Long? = null,
    /** Idle time after which a session is closed. Default: 30 minutes. */
    public val sessionIdleTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Time without output after which the response to a pending call becomes an event stream with keep-alive comments.
     * Default: 10 seconds.
     */
    public val streamUpgradeDelay: @Serializable(with = Seconds::class) Duration? = null,
    /** Interval between keep-alive comments on an idle event stream. Default: 15 seconds. */
    public val keepAliveInterval: @Serializable(with = Seconds::class) Duration? = null,
    /** Reconnection delay that is sent to clients as `retry` of an event stream. Default: 500 milliseconds. */
    public val retry: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum number of events kept per resumable stream, for clients that reconnect. Default: 1,024. */
    public val maxKeptEvents: Long? = null,
    /**
     * Maximum size of the events kept per resumable stream, in bytes. Each event counts as its message plus 128 bytes.
     * Default: 4 MiB.
     */
    public val maxKeptBytes: Long? = null,
    /**
     * Maximum size of the unread events of one event stream, in bytes, counted as for `maxKeptBytes`; one message is
     * accepted in any case. Default: 16 MiB. Beyond it notifications are dropped, and a stream whose responses alone
     * exceed it ends.
     */
    public val maxUnreadBytes: Long? = null,
    /**
     * Header in which a reverse proxy sends the address of the client, for example `X-Forwarded-For`; the last address
     * in it counts. Used to distinguish clients if requests are not authenticated (see `clientShare`). Set it only
     * behind a proxy that sets this header: otherwise clients can forge their address. Default: none.
     */
    public val clientAddressHeader: String? = null,
    /** Authentication of callers (`basic/authorization`). Default: none; every request is served. */
    public val auth: ResourceServerSettings? = null,
)

/** Settings of serving a Unix socket. */
@Serializable
public class UnixSettings(
    /** File mode of the socket, in octal digits: `0660`. Default: `0600`. */
    public val mode: String? = null,
    /** Maximum number of open connections; further ones wait to be accepted. */
    public val maxConnections: Long? = null,
)

/** Settings of a client. */
@Serializable
public class ClientSettings(
    /** Protocol revisions that the client may use. Default: all. */
    public val revisions: List<String>? = null,
    /** Kind of opening to try first; the other one is tried only if it fails. Default: probe with `server/discover`. */
    public val era: Era? = null,
    /**
     * Time to wait for the answer to the first message before the server is treated as one of an earlier revision.
     * Default: 3 seconds.
     */
    public val probeTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Time to wait for each further answer while a connection is opened, and for opening a socket or a channel of a
     * custom transport. Default: 30 seconds.
     */
    public val openTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Time to wait for the result of a request; each progress notification restarts it. Default: 1 minute. */
    public val timeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum total time to wait for the result of a request, regardless of progress. Default: 1 hour. */
    public val totalTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Time without messages after which the client pings the server (revisions up to 2025-11-25; 2026-07-28 has no
     * `ping`). Default: no pings. An unanswered ping is logged and treated as a lost connection: requests in flight
     * fail with [ConnectionLostException].
     */
    public val pingInterval: @Serializable(with = Seconds::class) Duration? = null,
    /** Time to wait for the answer to such a ping. Default: 30 seconds. */
    public val pingTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum number of times that a server may request input during one request. Default: 10. */
    public val maxInputRounds: Long? = null,
    /**
     * Maximum total size of the pages of one list, in bytes. Default: 32 MiB. A longer list fails with
     * [InvalidResponseException].
     */
    public val maxListBytes: Long? = null,
    /**
     * Maximum length of a message from a server over stdio or a Unix socket, in bytes. Default: 16 MiB. A longer message is
     * skipped with a warning, and a request that it answers times out.
     */
    public val maxLineBytes: Long? = null,
    /** Validate structured content against the output schema of its tool. Default: `true`. */
    public val checkOutput: Boolean? = null,
    /**
     * Trust the annotations of the server's tools. If `true`, a tool call whose connection was lost is sent again if
     * the tool is annotated as read-only or idempotent; otherwise only with `Reissue.Always`. Default: `false`.
     */
    public val trustToolAnnotations: Boolean? = null,
    /**
     * Send requests even if the server has not declared the capability that they need. Default: `false`; such requests
     * fail with [NotSupportedException]. Needed for servers of the official Python SDK before version 2, which declare
     * `"subscribe": false` even if they handle `resources/subscribe`.
     */
    public val allowUndeclaredCapabilities: Boolean? = null,
    /** Cache lists and resource contents for the time that the server allows (2026-07-28). Default: `true`. */
    public val cache: Boolean? = null,
    /**
     * Maximum number of consecutive connections that are lost before they answered anything. Default: 5. 0 disables
     * reconnection.
     */
    public val reconnectAttempts: Long? = null,
    /**
     * Delay before the second consecutive attempt to reconnect; it doubles with each further attempt. Default: 200
     * milliseconds.
     */
    public val reconnectDelay: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum delay between attempts to reconnect. Default: 10 seconds. */
    public val reconnectMaxDelay: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Subscribe to change notifications (`subscriptions/listen`, 2026-07-28) while a handler of notifications exists.
     * Default: `true`. Servers of earlier revisions send them without a subscription.
     */
    public val listen: Boolean? = null,
    /**
     * Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions
     * for MCP; see [Client.metrics]. Default: `false`, because each request then costs some allocations and a short
     * lock, and because the metrics contain the names of tools and prompts.
     */
    public val metrics: Boolean? = null,
    /**
     * Record the arguments and results of tool calls in spans, each as JSON of at most 8 KiB and without obvious
     * secrets. Default: `false`, because they may be confidential.
     */
    public val spanContents: Boolean? = null,
    /**
     * File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty
     * path turns it off. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For
     * development and bug reports: the file contains user data. It is renamed to `….1` when it would exceed 100 MiB.
     */
    public val trafficFile: String? = null,
)

/** Options of a client over HTTP. [ClientBuilder.auth] sets the source of access tokens. */
@Serializable
public class HttpClientOptions(
    /** Headers to send with every request. */
    public val headers: @Serializable(with = HeaderPairs::class) Map<String, String>? = null,
    /**
     * URL of the proxy: `http://`, `socks5://` or `socks5h://`, with credentials if needed; `direct` for none.
     * Default: the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
     */
    public val proxy: String? = null,
    /**
     * CA certificates in PEM that are trusted in addition to those of the system, for servers with certificates of a
     * private CA.
     */
    public val tlsRoots: String? = null,
    /** Trust only `tlsRoots`, not the CA certificates of the system. Default: `false`. */
    public val onlyTlsRoots: Boolean? = null,
    /** Maximum time to reach the server: name resolution, connection, proxy and TLS together. Default: 10 seconds. */
    public val connectTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum number of redirects that one request follows. Default: 5. */
    public val maxRedirects: Long? = null,
    /** Maximum consecutive attempts to resume a call's stream before the call fails. Default: 5. */
    public val resumeAttempts: Long? = null,
    /** Delay before the second of these attempts; it doubles with each further attempt. Default: 500 milliseconds. */
    public val resumeDelay: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum delay between these attempts. Default: 30 seconds. */
    public val resumeMaxDelay: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum size of a response, and of one event of a stream, in bytes. Default: 16 MiB. */
    public val maxBodyBytes: Long? = null,
)

/** Authentication of the callers of an HTTP server (`basic/authorization`). */
@Serializable
public class ResourceServerSettings(
    /** Public URL of the server, such as `https://mcp.example.com/mcp`. */
    public val resource: String,
    /**
     * Authorization servers whose signed tokens are accepted. With exactly one, clients of 2025-03-26 find it through the
     * origin of [resource].
     */
    public val issuers: List<String>? = null,
    /** URL of the signing keys. Default: read from the metadata of the issuer. */
    public val jwksUrl: String? = null,
    /** The signing keys, as a JSON Web Key Set. */
    public val jwks: JsonObject? = null,
    /** Introspection of opaque tokens. */
    public val introspection: IntrospectionSettings? = null,
    /** Authorization servers for clients to use, in addition to [issuers]. */
    public val authorizationServers: List<String>? = null,
    /** Accepted audiences of tokens. Default: [resource]. */
    public val audiences: List<String>? = null,
    /** Scopes that every request needs. Tools, resources and prompts can require scopes of their own. */
    public val requiredScopes: List<String>? = null,
    /** Scopes that clients request at first. Default: [requiredScopes]. */
    public val supportedScopes: List<String>? = null,
    /** Scopes that include others. */
    public val impliedScopes: Map<String, List<String>>? = null,
    /** Accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA. */
    public val algorithms: List<String>? = null,
    /** Tolerated difference between clocks. Default: 1 minute. */
    public val clockSkew: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Accept only tokens that are bound to a key (DPoP, RFC 9449). Such tokens always need their proof, also if this is
     * off. Default: `false`.
     */
    public val demandProofOfPossession: Boolean? = null,
    /** URL of the resource metadata. Default: the well-known URL of [resource] (RFC 9728). */
    public val metadataUrl: String? = null,
    /** Display name of the resource, for the metadata. */
    public val name: String? = null,
    /** URL of a page for developers, for the metadata. */
    public val documentation: String? = null,
    /** Proxy for requests to authorization servers; see [HttpClientOptions.proxy]. */
    public val proxy: String? = null,
    /** CA certificates in PEM that are trusted in addition to those of the system. */
    public val tlsRoots: String? = null,
    /** Trust only [tlsRoots], not the CA certificates of the system. Default: `false`. */
    public val onlyTlsRoots: Boolean? = null,
)

/** Token introspection at an authorization server (RFC 7662), for opaque tokens. */
@Serializable
public class IntrospectionSettings(
    /** URL of the introspection endpoint. */
    public val endpoint: String,
    /** Client identifier for authentication at the endpoint, with [clientSecret]. */
    public val clientId: String? = null,
    /** Client secret. */
    public val clientSecret: String? = null,
    /** Bearer token for authentication at the endpoint, in place of [clientId]. */
    public val token: String? = null,
    /** Cache lifetime of a response. Default: 1 minute. A revoked token is accepted for as long. */
    public val keepFor: @Serializable(with = Seconds::class) Duration? = null,
    /**
     * Set this if the endpoint reports only tokens for this server as active. Otherwise its response must name the
     * audience. Default: `false`.
     */
    public val knowsAudience: Boolean? = null,
)

/** Options of a client that starts its server as a child process. */
@Serializable
public class ProgramOptions(
    /** Environment variables of the program, in addition to those that it gets by default (see [inheritEnv]). */
    public val env: Map<String, String>? = null,
    /**
     * Pass the whole environment to the program, including secrets. Default: `false`; the program gets only `HOME`,
     * `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and `LC_*`.
     */
    public val inheritEnv: Boolean? = null,
    /** Working directory of the program. Default: that of this process. */
    public val cwd: String? = null,
    /** Destination of the program's stderr. Default: captured; the last lines are part of the error if the program exits. */
    public val stderr: StderrMode? = null,
    /** Time that the program has to exit after its stdin is closed, and again after SIGTERM. Default: 2 seconds. */
    public val exitTimeout: @Serializable(with = Seconds::class) Duration? = null,
)

/** Destination of the stderr of a server that a client starts. */
@Serializable
public enum class StderrMode {
    /** Captured: [ClientBuilder.onStderr] gets each line. */
    @SerialName("capture")
    Capture,

    /** The stderr of this process. */
    @SerialName("inherit")
    Inherit,

    /** Nowhere. */
    @SerialName("null")
    Ignore,
}

/** Kind of opening of a client. */
@Serializable
public enum class Era {
    /** With `initialize`: revisions up to 2025-11-25. */
    @SerialName("legacy")
    Legacy,

    /** Without a handshake: 2026-07-28. */
    @SerialName("modern")
    Modern,
}

/** Whether a request is sent again, at most twice, if the connection is lost before the response arrives. */
@Serializable
public enum class Reissue {
    /**
     * Repeats lists, reads and similar requests, and calls of tools that are annotated as read-only or idempotent if
     * [ClientSettings.trustToolAnnotations] is on.
     */
    @SerialName("if-safe")
    IfSafe,

    /** Repeats any request. */
    @SerialName("always")
    Always,

    /** Repeats none. */
    @SerialName("never")
    Never,
}

/** Options of a request. */
@Serializable
public class RequestOptions(
    /** Time to wait for the result; each progress notification restarts it. Default: [ClientSettings.timeout]. */
    public val timeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Maximum total time to wait for the result, regardless of progress. Default: [ClientSettings.totalTimeout]. */
    public val totalTimeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Members of the request's `_meta`. */
    public val meta: JsonObject? = null,
    /** Minimum level of the log messages sent during the request (2026-07-28). */
    public val logLevel: LogLevel? = null,
    /** Whether to send the request again if the connection is lost. Default: [Reissue.IfSafe]. */
    public val reissue: Reissue? = null,
    /** Bypass the cache of results (2026-07-28). Default: `false`. */
    public val fresh: Boolean? = null,
    /**
     * Return a result that requests input unchanged, instead of answering its input requests with the client's handlers
     * (2026-07-28). Default: `false`.
     */
    public val manualResults: Boolean? = null,
)

/** Who may use a feature, and how its handler is run. Options that a kind of feature does not have are ignored. */
@Serializable
public class FeatureOptions(
    /** Scopes that a caller needs, all of them. Others do not see the feature. */
    public val scopes: List<String> = emptyList(),
    /** Words by which features are selected. Tools, resources, templates and prompts. */
    public val tags: List<String> = emptyList(),
    /** How long a handler may run. Tools. */
    public val timeout: @Serializable(with = Seconds::class) Duration? = null,
    /** Never run the handler again for a retried request. Tools and custom requests. */
    public val runOnce: Boolean = false,
    /** Variables that may have any value. Resource templates. */
    public val uncheckedVariables: List<String> = emptyList(),
    /** How long clients may cache the contents (2026-07-28). Resources and resource templates. */
    public val cache: CacheHint? = null,
    /** Identifier of the [Extension] that the feature belongs to. Custom methods. */
    public val extension: String? = null,
)

/**
 * A rate limit (token bucket).
 *
 * @property perSecond Sustained rate, per second.
 * @property burst Maximum number at once.
 */
@Serializable(with = RateAsPair::class)
public data class Rate(public val perSecond: Long, public val burst: Long)

/**
 * Cache hints of a result (2026-07-28).
 *
 * @property ttlMs Lifetime in milliseconds.
 * @property isPublic Whether shared caches may store the result.
 */
@Serializable(with = CacheHintAsPair::class)
public data class CacheHint(public val ttlMs: Long, public val isPublic: Boolean = false)

/** A time in seconds, as the core reads it. */
internal object Seconds : KSerializer<Duration> {
    override val descriptor: SerialDescriptor = PrimitiveSerialDescriptor("mcpline.Seconds", PrimitiveKind.DOUBLE)

    override fun serialize(encoder: Encoder, value: Duration) {
        // JSON has no infinity.
        encoder.encodeDouble(value.toDouble(DurationUnit.SECONDS).coerceAtMost(Long.MAX_VALUE.toDouble()))
    }

    override fun deserialize(decoder: Decoder): Duration = decoder.decodeDouble().seconds
}

internal object RateAsPair : KSerializer<Rate> {
    private val pair = ListSerializer(Long.serializer())
    override val descriptor: SerialDescriptor = pair.descriptor

    override fun serialize(encoder: Encoder, value: Rate): Unit =
        pair.serialize(encoder, listOf(value.perSecond, value.burst))

    override fun deserialize(decoder: Decoder): Rate = pair.deserialize(decoder).let { Rate(it[0], it[1]) }
}

internal object CacheHintAsPair : KSerializer<CacheHint> {
    private val pair = ListSerializer(JsonElement.serializer())
    override val descriptor: SerialDescriptor = pair.descriptor

    override fun serialize(encoder: Encoder, value: CacheHint): Unit =
        pair.serialize(encoder, listOf(JsonPrimitive(value.ttlMs), JsonPrimitive(value.isPublic)))

    override fun deserialize(decoder: Decoder): CacheHint {
        val (ttl, isPublic) = pair.deserialize(decoder).map { it.jsonPrimitive }
        return CacheHint(ttl.content.toLong(), isPublic.booleanOrNull == true)
    }
}

/** Headers, for the core as pairs of name and value; programs in Java give them as a map. */
internal object HeaderPairs : KSerializer<Map<String, String>> {
    private val pairs = ListSerializer(ListSerializer(String.serializer()))
    private val map = MapSerializer(String.serializer(), String.serializer())
    override val descriptor: SerialDescriptor = pairs.descriptor

    override fun serialize(encoder: Encoder, value: Map<String, String>): Unit =
        pairs.serialize(encoder, value.map { (name, header) -> listOf(name, header) })

    override fun deserialize(decoder: Decoder): Map<String, String> = map.deserialize(decoder)
}
