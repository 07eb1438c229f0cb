import Foundation
internal import McplineNative

/// Facts of an error besides its kind.
public struct ErrorDetails: Sendable, Hashable {
    /// The message.
    public let message: String

    /// Whether the peer certainly did not perform the request, so that it can be sent again.
    public let retrySafe: Bool

    /// Whether it is unknown if the peer performed the request.
    public let outcomeUnknown: Bool

    /// The method or action that failed, if known: `tools/call`, `connect`, `listen`.
    public let operation: String?

    /// The message of the operating system, or another cause in words.
    public let source: String?

    /// The JSON-RPC error that is the cause.
    public let cause: RPCError?

    let isForModel: Bool

    /// Creates the details of an error that a function of yours throws, such as the hook of ``ClientBuilder/onToolCall(_:)``.
    public init(_ message: String) {
        self.init(message, facts: [:])
    }

    init(_ message: String, facts: JSONObject) {
        self.message = message
        retrySafe = facts["retry_safe"]?.boolValue ?? false
        outcomeUnknown = facts["outcome_unknown"]?.boolValue ?? false
        operation = facts["operation"]?.stringValue
        source = facts["source"]?.stringValue
        cause = facts["source"]?.objectValue.map { RPCError($0) }
        isForModel = facts["is_for_model"]?.boolValue ?? false
    }
}

/// An error of mcpline. There is one case for each kind; the page "Errors" of the documentation describes the kinds, which are
/// the same in every language.
///
/// ```swift
/// do {
///     _ = try await client.callTool("forecast")
/// } catch McplineError.requestTimedOut {
///     print("too slow")
/// } catch let error as McplineError where error.details.retrySafe {
///     print("try again: \(error)")
/// }
/// ```
public enum McplineError: Error, Sendable, Hashable {
    /// The server returned a JSON-RPC error.
    case rpc(RPCError, ErrorDetails)

    /// No response arrived within `waited`. The request was cancelled; whether the peer performed it is unknown. `inAll`:
    /// it was the total timeout, which progress does not restart.
    case requestTimedOut(waited: Duration, inAll: Bool, ErrorDetails)

    /// The request was cancelled by its sender.
    case requestCancelled(ErrorDetails)

    /// The server responded with an HTTP error status instead of a JSON-RPC message. `body` has the first 4 KiB, `challenge`
    /// the `WWW-Authenticate` header.
    case http(status: Int, body: String, challenge: String?, ErrorDetails)

    /// The server could not be reached: the connection failed, or its process did not start. Nothing was sent.
    case serverUnreachable(ErrorDetails)

    /// The handshake failed: the server refused it, or both sides have no protocol revision in common.
    case handshakeFailed(ErrorDetails)

    /// The server did not respond to `initialize` or `server/discover` within `waited`.
    case handshakeTimedOut(waited: Duration, ErrorDetails)

    /// The connection ended before the response arrived. Whether the peer performed the request is unknown.
    case connectionLost(ErrorDetails)

    /// The server no longer knows the session, or the cursor of a list belongs to an earlier session. Nothing was performed.
    case sessionExpired(ErrorDetails)

    /// The server's process exited, with this status or signal and these last lines of its stderr.
    case serverExited(exit: String?, stderr: [String], ErrorDetails)

    /// The server requires authorization, and the client could not obtain an access token that it accepts. `reason` is a
    /// stable identifier, such as `unattended` or `insufficient_scope`.
    case authorizationFailed(reason: String, ErrorDetails)

    /// A response violates the protocol or a schema.
    case invalidResponse(ErrorDetails)

    /// An input request was answered with an error, which is the ``ErrorDetails/cause``.
    case inputRequestFailed(ErrorDetails)

    /// The host refused the tool call; nothing was sent. The hook of ``ClientBuilder/onToolCall(_:)`` throws it with a reason.
    case toolCallRefused(ErrorDetails)

    /// The peer or the protocol revision does not support the operation. Nothing was sent. `required`: the capabilities that
    /// the client lacks, as it would declare them.
    case notSupported(required: JSONObject?, ErrorDetails)

    /// A limit of this library is reached. The message names the limit.
    case limitExceeded(ErrorDetails)

    /// The client, the server or the connection was closed by this program, or the request has ended.
    case closed(ErrorDetails)

    /// The library was used incorrectly: an invalid argument, a name that is taken, or a call in the wrong order.
    case usage(ErrorDetails)

    /// The operating system reported an error of a socket, a pipe or a process.
    case transport(ErrorDetails)

    /// A defect of mcpline.
    case `internal`(ErrorDetails)

    /// The message and the other facts.
    public var details: ErrorDetails { facts.details }

    /// The message.
    public var message: String { details.message }

    /// Stable identifier of the kind, the same in every language: `request_timed_out`.
    public var kind: String { facts.kind }

    private var facts: (kind: String, details: ErrorDetails) {
        switch self {
        case .rpc(_, let details): ("rpc_error", details)
        case .requestTimedOut(_, _, let details): ("request_timed_out", details)
        case .requestCancelled(let details): ("request_cancelled", details)
        case .http(_, _, _, let details): ("http_error", details)
        case .serverUnreachable(let details): ("server_unreachable", details)
        case .handshakeFailed(let details): ("handshake_failed", details)
        case .handshakeTimedOut(_, let details): ("handshake_timed_out", details)
        case .connectionLost(let details): ("connection_lost", details)
        case .sessionExpired(let details): ("session_expired", details)
        case .serverExited(_, _, let details): ("server_exited", details)
        case .authorizationFailed(_, let details): ("authorization_failed", details)
        case .invalidResponse(let details): ("invalid_response", details)
        case .inputRequestFailed(let details): ("input_request_failed", details)
        case .toolCallRefused(let details): ("tool_call_refused", details)
        case .notSupported(_, let details): ("not_supported", details)
        case .limitExceeded(let details): ("limit_exceeded", details)
        case .closed(let details): ("closed", details)
        case .usage(let details): ("usage_error", details)
        case .transport(let details): ("transport_error", details)
        case .internal(let details): ("internal_error", details)
        }
    }

    init(kind: String, message: String, facts json: String) {
        let facts = (try? JSONObject(parsing: json)) ?? [:]
        let details = ErrorDetails(message, facts: facts)
        let waited = Duration.seconds(min(facts["waited"]?.numberValue ?? 0, maxDurationSeconds))
        self =
            switch kind {
            case "rpc_error": .rpc(details.cause ?? RPCError(code: 0, message: message), details)
            case "request_timed_out":
                .requestTimedOut(waited: waited, inAll: facts["in_all"]?.boolValue ?? false, details)
            case "request_cancelled": .requestCancelled(details)
            case "http_error":
                .http(
                    status: facts["status"]?.integerValue ?? 0,
                    body: facts["body"]?.stringValue ?? "",
                    challenge: facts["challenge"]?.stringValue,
                    details
                )
            case "server_unreachable": .serverUnreachable(details)
            case "handshake_failed": .handshakeFailed(details)
            case "handshake_timed_out": .handshakeTimedOut(waited: waited, details)
            case "connection_lost": .connectionLost(details)
            case "session_expired": .sessionExpired(details)
            case "server_exited":
                .serverExited(
                    exit: facts["exit"]?.stringValue,
                    stderr: facts["stderr"]?.arrayValue?.compactMap(\.stringValue) ?? [],
                    details
                )
            case "authorization_failed":
                .authorizationFailed(reason: facts["reason"]?.stringValue ?? "", details)
            case "invalid_response": .invalidResponse(details)
            case "input_request_failed": .inputRequestFailed(details)
            case "tool_call_refused": .toolCallRefused(details)
            case "not_supported": .notSupported(required: facts["required"]?.objectValue, details)
            case "limit_exceeded": .limitExceeded(details)
            case "closed": .closed(details)
            case "usage_error": .usage(details)
            case "transport_error": .transport(details)
            default: .internal(details)
            }
    }

    init(_ failure: FailureRecord) {
        self.init(kind: failure.kind, message: failure.text, facts: failure.facts)
    }
}

extension McplineError: LocalizedError, CustomStringConvertible {
    /// The message.
    public var errorDescription: String? { message }

    /// The kind and the message.
    public var description: String { "\(kind): \(message)" }
}

/// A JSON-RPC error (JSON-RPC 2.0, section 5.1).
///
/// Throw it in a handler to return this error to the client. Use codes outside of -32768 to -32000, which JSON-RPC and the
/// protocol reserve. Clients throw it within ``McplineError/rpc(_:_:)``.
public struct RPCError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The error code.
    public var code: Int

    /// The message, as the peer sent it.
    public var message: String

    /// Further data.
    public var data: JSON?

    /// Creates an error.
    public init(code: Int, message: String, data: JSON? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    init(_ error: JSONObject) {
        self.init(code: error["code"]?.integerValue ?? 0, message: error["message"]?.stringValue ?? "", data: error["data"])
    }

    init(_ failure: RpcFailure) {
        self.init(code: Int(failure.code), message: failure.message, data: failure.data.flatMap { try? JSON(parsing: $0) })
    }

    var failure: RpcFailure { RpcFailure(code: Int64(code), message: message, data: data?.text) }

    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}

/// A tool failed. Throw it in a tool: its message is returned to the model as the result, marked as an error.
public struct ToolError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The message for the model.
    public var message: String

    /// Creates an error.
    public init(_ message: String) {
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

/// The resource does not exist. Throw it in a handler, usually that of a resource template.
///
/// The client receives the same JSON-RPC error as for a URI that no resource has.
public struct ResourceNotFoundError: Error, Hashable, Sendable {
    /// URI of the resource; `nil` stands for the URI that the client reads.
    public var uri: String?

    /// Creates an error.
    public init(uri: String? = nil) {
        self.uri = uri
    }
}

/// The user must open these URLs first. Throw it in a handler.
///
/// The client tries again after ``Server/notifyElicitationComplete(_:)`` (2025-11-25) or the user's answer (2026-07-28).
public struct URLElicitationRequiredError: Error, Hashable, Sendable {
    /// The URLs, with their messages.
    public var elicitations: [URLElicitation]

    /// Creates an error.
    public init(_ elicitations: [URLElicitation]) {
        self.elicitations = elicitations
    }
}

/// Runs a call of the native library, with its errors as ``McplineError``.
func nativeCall<T>(_ call: () throws -> T) throws -> T {
    do {
        return try call()
    } catch {
        throw converted(error)
    }
}

/// Runs an asynchronous call of the native library. If the task is cancelled, so is the call, with a `CancellationError`.
func nativeCall<T>(_ call: () async throws -> T) async throws -> T {
    do {
        return try await call()
    } catch {
        throw converted(error)
    }
}

private func converted(_ error: any Error) -> any Error {
    switch error {
    case is CancellationError: error
    case Failure.Failed(let kind, let text, let facts): McplineError(kind: kind, message: text, facts: facts)
    default: McplineError.internal(ErrorDetails("\(error)"))
    }
}

/// Decodes what a peer has sent.
func decodeResult<T: Decodable>(_ json: JSON, _ what: String) throws -> T {
    do {
        return try decodeJSON(T.self, json)
    } catch {
        throw McplineError.invalidResponse(ErrorDetails("\(what): \(describe(error))"))
    }
}
