internal import McplineNative

/// How a request ended.
public enum RequestOutcome: String, Codable, CaseIterable, Sendable {
    /// With a result.
    case ok

    /// With the result of a tool that reports an error.
    case toolError = "tool_error"

    /// With input requests to the client, whose next request continues it (2026-07-28).
    case inputRequired = "input_required"

    /// With an error.
    case error

    /// Without an outcome: it was cancelled or given up, or the other side is gone.
    case cancelled
}

/// Who has sent a request of a client.
public enum RequestDirection: String, Codable, CaseIterable, Sendable {
    /// The client has sent it to the server.
    case sent

    /// The server has sent it to the client: sampling, elicitation, roots or a custom request.
    case received
}

/// One request that a server has answered. See ``Server/onRequestEnd(_:)``. Texts that clients choose contain no control characters.
public struct RequestRecord: Decodable, Hashable, Sendable {
    /// The method, such as `tools/call`; at most 200 characters.
    public let method: String

    /// Name of the tool or prompt, or URI of the resource; at most 200 characters. Empty for other methods.
    public let name: String

    /// How it ended.
    public let outcome: RequestOutcome

    /// Code of the JSON-RPC error, if the outcome is ``RequestOutcome/error``.
    public let code: Int?

    /// Time from the arrival of the request to its response.
    public var duration: Duration { .seconds(seconds) }

    /// Name of the client, if it has identified itself; at most 200 characters.
    public let client: String?

    /// The first eight characters of the session's id, over HTTP on revisions with sessions.
    public let session: String?

    /// Issuer of the authenticated caller's token; at most 200 characters.
    public let issuer: String?

    /// Subject of the authenticated caller's token; at most 200 characters.
    public let subject: String?

    /// Client that acts for the subject, as the token says; at most 200 characters.
    public let clientId: String?

    /// Id of the trace that the message or the headers of its HTTP request name: 32 hexadecimal digits.
    public let traceId: String?

    private let seconds: Double

    private enum CodingKeys: String, CodingKey {
        case method, name, outcome, code, client, session, issuer, subject, clientId, traceId
        case seconds = "duration"
    }
}

/// One request of a client that has ended. See ``ClientBuilder/onRequestEnd(_:)``. Texts that servers choose contain no control
/// characters.
public struct ClientRequestRecord: Decodable, Hashable, Sendable {
    /// Whether the client has sent the request, or received it from the server.
    public let direction: RequestDirection

    /// The method, such as `tools/call`; at most 200 characters.
    public let method: String

    /// Name of the tool or prompt, or URI of the resource; at most 200 characters. Empty for other methods.
    public let name: String

    /// How it ended.
    public let outcome: RequestOutcome

    /// Kind of the error, as ``McplineError/kind``, if the outcome is ``RequestOutcome/error``; `rpc_error` for a request that the
    /// client has received.
    public let errorKind: String?

    /// Code of the JSON-RPC error, if there was one.
    public let code: Int?

    /// Time from the beginning of the request to its outcome, with middleware, input requests and repetitions.
    public var duration: Duration { .seconds(seconds) }

    /// Name of the server, if the client was connected and the server has identified itself; at most 200 characters.
    public let server: String?

    /// Host and port of the server's URL, or the path of its socket; at most 200 characters.
    public let address: String?

    /// The first eight characters of the session's id, over HTTP on revisions with sessions.
    public let session: String?

    /// Id of the trace that `_meta` of the request names: 32 hexadecimal digits.
    public let traceId: String?

    private let seconds: Double

    private enum CodingKeys: String, CodingKey {
        case direction, method, name, outcome, errorKind, code, server, address, session, traceId
        case seconds = "duration"
    }
}

/// Passes records to a function of the program. The library waits while one is handled, and holds the next ones.
final class RequestRecords<Record: Decodable & Sendable>: RequestListener {
    private let listener: @Sendable (Record) async -> Void

    init(_ listener: @escaping @Sendable (Record) async -> Void) {
        self.listener = listener
    }

    func ended(records: [String]) async {
        for record in records {
            guard let json = try? JSON(parsing: record), let record = try? decodeJSON(Record.self, json) else { continue }
            await listener(record)
        }
    }
}
