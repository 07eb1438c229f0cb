internal import McplineNative

/// What the server asks the user.
public struct Elicitation: Decodable, Hashable, Sendable {
    /// Message to the user.
    public let message: String

    /// JSON Schema of the form; `nil` if the user is asked to open a URL.
    public let schema: JSONObject?

    /// The URL to open.
    public let url: String?

    /// Id under which the server reports that the URL elicitation is complete.
    public let elicitationId: String?

    private enum CodingKeys: String, CodingKey {
        case message, url, elicitationId
        case schema = "requestedSchema"
    }

    /// Accepts with these contents of the form, or to open the URL.
    public func accept(_ content: JSONObject = [:]) -> ElicitResult<JSONObject> { .accepted(content) }

    /// Accepts with contents of an encodable type.
    public func accept(_ content: some Encodable) throws -> ElicitResult<JSONObject> {
        .accepted(try JSONObject(encoding: content))
    }
}

/// A log message of a server.
public struct LogMessage: Decodable, Hashable, Sendable {
    /// Its severity.
    public let level: LogLevel

    /// Any JSON value; usually a text.
    public let data: JSON

    /// Name of the logger.
    public let logger: String?
}

/// A change of a client's connection.
public enum ConnectionEvent: Hashable, Sendable {
    /// The client has connected for the first time.
    case connected

    /// The connection was lost, or could not be opened again, for this reason. The next request opens a new one.
    case lost(McplineError)

    /// The client opens a new connection, possibly after a pause.
    case retrying

    /// The client does not connect again for now: the last attempt that its settings allow has failed, for this reason. After
    /// 30 seconds, a request makes another attempt.
    case givenUp(McplineError)

    /// A new connection has taken the place of the lost one.
    case restored

    /// The client was closed. No event follows.
    case closed
}

/// Handlers and settings of a client. Setting a handler declares its capability to the server.
public struct ClientBuilder: Sendable {
    /// Name of the host, as sent to servers.
    public var name = "mcpline"

    /// Version of the host. Default: that of this library.
    public var version = Library.version

    /// Display name of the host.
    public var title: String?

    /// Settings.
    public var settings = ClientSettings()

    /// Source of access tokens for an HTTP server. Default: none.
    public var auth: Auth?

    /// Capabilities in addition to, or in place of, those of the handlers: `{"sampling": {"tools": {}}}`.
    public var capabilities: JSONObject = [:]

    /// Middleware that the library provides for the client's requests, the outermost first.
    public var middleware: [any BuiltInClientMiddleware] = []

    var answers: [String: @Sendable (JSONObject) async throws -> JSON] = [:]
    private var extensions: [ClientExtension] = []
    private var toolCall: (@Sendable (ToolCall) async throws -> Void)?
    private var toolOutcome: (@Sendable (ToolCallOutcome) async throws -> Void)?
    var log: (@Sendable (LogMessage) async -> Void)?
    var notification: (@Sendable (ServerNotification) async -> Void)?
    var connection: (@Sendable (ConnectionEvent) async -> Void)?
    var stderr: (@Sendable (String) async -> Void)?
    private var requestEnd: (@Sendable (ClientRequestRecord) async -> Void)?

    static func configured(_ configure: (inout ClientBuilder) throws -> Void) throws -> ClientBuilder {
        var builder = ClientBuilder()
        try configure(&builder)
        return builder
    }

    /// Asks the user what the server asks.
    public mutating func onElicit(_ handler: @escaping @Sendable (Elicitation) async throws -> ElicitResult<JSONObject>) {
        answers["elicitation/create"] = { params in
            let answer = try await handler(try decodeJSON(Elicitation.self, .object(params)))
            var json: JSONObject = ["action": .string(answer.action)]
            json["content"] = answer.content.map(JSON.object)
            return .object(json)
        }
    }

    /// Asks the model what the server asks.
    public mutating func onSample(_ handler: @escaping @Sendable (CreateMessageParams) async throws -> CreateMessageResult) {
        answers["sampling/createMessage"] = { params in
            try JSON(encoding: try await handler(try decodeJSON(CreateMessageParams.self, .object(params))))
        }
    }

    /// Returns the root directories of the host.
    public mutating func onListRoots(_ handler: @escaping @Sendable () async throws -> [Root]) {
        answers["roots/list"] = { _ in try JSON(encoding: Roots(roots: try await handler())) }
    }

    /// Offers these root directories to the server.
    public mutating func roots(_ uris: String...) {
        onListRoots { uris.map { Root(uri: $0) } }
    }

    /// Answers custom requests of the server.
    public mutating func onRequest(
        _ method: String, _ handler: @escaping @Sendable (_ params: JSONObject) async throws -> JSONObject
    ) {
        answers[method] = { params in .object(try await handler(params)) }
    }

    /// Declares an extension of the protocol that the client supports, to servers of every revision.
    ///
    /// - Parameters:
    ///   - identifier: A domain as prefix, and a name: `com.example/stamps`.
    ///   - settings: Settings to declare, whose members the extension defines.
    ///   - configure: Sets its handlers.
    public mutating func `extension`(
        _ identifier: String, settings: JSONObject = [:], configure: (inout ClientExtension) -> Void = { _ in }
    ) {
        var declared = ClientExtension(identifier, settings: settings)
        configure(&declared)
        extensions.append(declared)
    }

    /// Called before each tool call is sent, to get the user's consent. The timeouts of the call start when it is sent.
    ///
    /// - Parameter hook: Returns to allow the call. Throws ``McplineError/toolCallRefused(_:)`` to refuse it, with a reason that
    ///   the caller gets. Any other error refuses it too.
    public mutating func onToolCall(_ hook: @escaping @Sendable (_ call: ToolCall) async throws -> Void) { toolCall = hook }

    /// Called with the outcome of each tool call, also of refused and cancelled ones, before the caller gets it.
    public mutating func onToolOutcome(_ hook: @escaping @Sendable (_ outcome: ToolCallOutcome) async throws -> Void) {
        toolOutcome = hook
    }

    /// Called with the log messages of the server.
    public mutating func onLog(_ handler: @escaping @Sendable (LogMessage) async -> Void) { log = handler }

    /// Called with all notifications of the server. ``Client/notifications`` has them as a sequence.
    public mutating func onNotification(_ handler: @escaping @Sendable (ServerNotification) async -> Void) {
        notification = handler
    }

    /// Called with changes of the connection.
    public mutating func onConnection(_ handler: @escaping @Sendable (ConnectionEvent) async -> Void) {
        connection = handler
    }

    /// Called with the lines that the server's process writes to stderr.
    public mutating func onStderr(_ handler: @escaping @Sendable (_ line: String) async -> Void) { stderr = handler }

    /// Called at the end of each request of the client, for a log of requests: those that it sends, and those of the server that it
    /// answers. While 4,096 records wait because the function is slow, further records are dropped.
    public mutating func onRequestEnd(_ listener: @escaping @Sendable (ClientRequestRecord) async -> Void) {
        requestEnd = listener
    }

    /// The listener of the client's requests, if the program has one.
    var requestListener: (any RequestListener)? { requestEnd.map { RequestRecords($0) } }

    /// The options of the host, as the core reads them.
    var offer: JSONObject {
        get throws {
            let standard: Set = ["elicitation/create", "sampling/createMessage", "roots/list"]
            let custom = answers.keys.filter { !standard.contains($0) }.sorted()
            return [
                "info": try JSON(encoding: Implementation(name: name, version: version, title: title)),
                "elicit": .bool(answers["elicitation/create"] != nil),
                "sample": .bool(answers["sampling/createMessage"] != nil),
                "roots": .bool(answers["roots/list"] != nil),
                "requests": .array(custom.map(JSON.string)),
                "notifications": .bool(notification != nil),
                "logs": .bool(log != nil),
                "connection": .bool(connection != nil),
                "stderr": .bool(stderr != nil),
                "capabilities": .object(capabilities),
                "tool_call": .bool(toolCall != nil),
                "tool_outcome": .bool(toolOutcome != nil),
                "middleware": .array(try middleware.map { .object(try $0.definition().json) }),
                "extensions": .array(extensions.map(\.json)),
            ]
        }
    }

    /// Returns the handler of an input request of the server, or of the library.
    func answer(_ method: String) -> (@Sendable (JSONObject) async throws -> JSON)? {
        switch method {
        case "host/extended_result": return resolve
        case toolCallMethod:
            return { [toolCall] params in
                try await toolCall?(try decodeJSON(ToolCall.self, .object(params)))
                return [:]
            }
        case "host/tool_outcome":
            return { [toolOutcome] params in
                try await toolOutcome?(try decodeJSON(ToolCallOutcome.self, .object(params)))
                return [:]
            }
        default: break
        }
        return answers[method] ?? extensions.lazy.compactMap { $0.requests[method] }.first ?? auth?.answers[method]
    }

    @Sendable private func resolve(_ params: JSONObject) async throws -> JSON {
        let received = try decodeJSON(ReceivedResult.self, .object(params))
        let type = received.result["resultType"]?.stringValue ?? ""
        guard let handler = extensions.lazy.compactMap({ $0.resultTypes[type] }).first else {
            throw RPCError(code: -32601, message: "no handler for results of type \(type)")
        }
        return .object(try await handler(received))
    }
}

/// The method with which the core asks for consent to a tool call.
private let toolCallMethod = "host/tool_call"

/// The host of a client: answers input requests, and passes events on.
final class ClientHost: Host {
    private let builder: ClientBuilder
    let notifications = NotificationChannel()

    init(_ builder: ClientBuilder) {
        self.builder = builder
    }

    func inputRequest(method: String, params: String?) async throws -> InputAnswer {
        do {
            guard let handler = builder.answer(method) else {
                throw RPCError(code: -32601, message: "no handler for \(method)")
            }
            let answer = try await handler(try params.map { try JSONObject(parsing: $0) } ?? [:])
            return .answered(json: answer.text)
        } catch let error as RPCError {
            return .refused(error: error.failure)
        } catch McplineError.toolCallRefused(let details) where method == toolCallMethod {
            // The program gets its reason. That of a tool call within another handler is not for the server that asks.
            return .refused(error: RPCError(code: -32603, message: details.message).failure)
        } catch {
            if Task.isCancelled { throw error }
            writeToStandardError("mcpline: the handler of \(method) failed: \(describe(error))")
            // The message of one for authorization is that of the error, which the program itself gets.
            let reason = method.hasPrefix("auth/") ? "\(error)" : "the handler failed"
            return .refused(error: RPCError(code: -32603, message: reason).failure)
        }
    }

    func events(events: [ClientEvent]) async {
        for event in events { await pass(event) }
    }

    private func pass(_ event: ClientEvent) async {
        switch event {
        case .notification(let method, let params):
            let params = params.flatMap { try? JSONObject(parsing: $0) } ?? [:]
            if method == "notifications/message", let log = builder.log,
                let message = try? decodeJSON(LogMessage.self, .object(params))
            {
                await log(message)
            }
            let notification = ServerNotification(method: method, params: params)
            await builder.notification?(notification)
            await notifications.send(notification)
        case .connection(let state, let failure):
            switch state {
            case "connected": await builder.connection?(.connected)
            case "restored": await builder.connection?(.restored)
            case "retrying": await builder.connection?(.retrying)
            case "closed": await builder.connection?(.closed)
            case "given_up":
                if let failure { await builder.connection?(.givenUp(McplineError(failure))) }
            default:
                if let failure { await builder.connection?(.lost(McplineError(failure))) }
            }
        case .stderr(let line): await builder.stderr?(line)
        }
    }
}
