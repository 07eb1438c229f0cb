internal import McplineNative

/// The kind of a message. A middleware sees messages other than client requests only if its scope names their methods.
public enum MessageKind: String, Decodable, Hashable, Sendable {
    /// A request of the client.
    case request

    /// A request of a handler to the client: `elicitation/create`. Its result is the client's answer.
    case inputRequest = "input_request"

    /// A notification of a handler to the client: `notifications/message`. Those of a handler keep their order.
    case sentNotification = "sent_notification"

    /// A notification of the client that the server has a handler for.
    case receivedNotification = "received_notification"
}

/// The requests that a middleware sees. Default: all requests of clients. A scope that selects features excludes list requests.
public struct MiddlewareScope: Hashable, Sendable {
    /// Methods: `tools/call`. They may also name input requests (`elicitation/create`) and notifications of handlers, and
    /// notifications of clients that have handlers.
    public var methods: [String]?

    /// Names of tools: short for ``names`` with ``kinds``, like ``resources`` and ``prompts``. Use only one of the three.
    public var tools: [String]?

    /// URIs of resources and templates.
    public var resources: [String]?

    /// Names of prompts.
    public var prompts: [String]?

    /// Names of features of any kind.
    public var names: [String]?

    /// Tags of features.
    public var tags: [String]?

    /// Kinds of features: `tool`, `resource` and `prompt`.
    public var kinds: [String]?

    /// Creates a scope.
    public init(
        methods: [String]? = nil,
        tools: [String]? = nil,
        resources: [String]? = nil,
        prompts: [String]? = nil,
        names: [String]? = nil,
        tags: [String]? = nil,
        kinds: [String]? = nil
    ) {
        self.methods = methods
        self.tools = tools
        self.resources = resources
        self.prompts = prompts
        self.names = names
        self.tags = tags
        self.kinds = kinds
    }

    /// As the core reads it.
    var json: JSONObject {
        get throws {
            let short = [("tool", tools), ("resource", resources), ("prompt", prompts)].filter { $0.1 != nil }
            if short.count > 1 || (short.count == 1 && (names != nil || kinds != nil)) {
                throw McplineError.usage(
                    ErrorDetails(
                        "`tools`, `resources` and `prompts` are short for `names` with `kinds`: use only one of them, without "
                            + "`names` and `kinds`, or add the middleware once for each"))
            }
            var given = [("methods", methods), ("names", names), ("tags", tags), ("kinds", kinds)]
            for (kind, names) in short { given += [("names", names), ("kinds", [kind])] }
            return JSONObject(given.compactMap { name, values in values.map { (name, .array($0.map(JSON.string))) } })
        }
    }
}

/// A request, or another message, on its way through the middleware of a server.
///
/// Change a copy, and pass it to the ``Next`` of the middleware:
///
/// ```swift
/// var changed = request
/// changed.arguments["city"] = "Oslo"
/// return try await next(changed)
/// ```
///
/// With another `name` of a tool or prompt, or another `uri` of a resource, in ``params``, the request is for that feature. If a
/// tool asks the client for input, a client of 2026-07-28 sends the request again with the answers. Change the parameters of that
/// request in the same way, or the answers are refused.
public struct MiddlewareRequest: Sendable {
    /// The kind of the message.
    public let kind: MessageKind

    /// The method: `tools/call`.
    public let method: String

    /// The name of the tool or prompt, or the URI of the resource, that the request is for; for a completion, those of the prompt
    /// or template. `nil` for other methods. Changes of ``params`` do not change it.
    public let name: String?

    /// The parameters.
    public var params: JSONObject {
        didSet { isChanged = true }
    }

    /// Whether the parameters may differ from those that arrived.
    private(set) var isChanged = false

    init(_ described: JSON) throws {
        let request = try decodeJSON(DescribedRequest.self, described)
        kind = request.kind
        method = request.method
        name = request.name
        params = request.params ?? [:]
    }

    /// The arguments of a tool or prompt.
    public var arguments: JSONObject {
        get { params["arguments"]?.objectValue ?? [:] }
        set { params["arguments"] = .object(newValue) }
    }
}

/// A request as the core describes it.
private struct DescribedRequest: Decodable {
    let kind: MessageKind
    let method: String
    let name: String?
    let params: JSONObject?
}

/// The result of a request, as the client gets it.
public struct MiddlewareResult: Sendable {
    /// The result as JSON.
    public let json: String

    private let decoded = Locked<JSONObject?>(nil)

    init(json: String) {
        self.json = json
    }

    /// Creates a result from its members. Without members, it is the result of a notification.
    public init(_ members: JSONObject = [:]) {
        self.init(json: members.text)
    }

    /// Creates a result that the protocol defines: a ``CallToolResult``, ``ReadResourceResult``, ``GetPromptResult`` or another
    /// value that is encoded as an object.
    ///
    /// - Throws: ``McplineError/usage(_:)`` if the value is not encoded as an object.
    public init(encoding result: some Encodable) throws {
        self.init(try JSONObject(encoding: result))
    }

    /// Creates the result of a tool with this text.
    public init(text: String) {
        self.init(["content": [["type": "text", "text": .string(text)]]])
    }

    /// Creates a result of a type that an extension defines.
    public init(_ result: ExtendedResult) {
        self.init(result.json)
    }

    /// The members, which are decoded when they are first used.
    public var members: JSONObject {
        decoded.withLock { decoded in
            if let decoded { return decoded }
            let members = (try? JSONObject(parsing: json)) ?? [:]
            decoded = members
            return members
        }
    }

    /// Whether this is the result of a tool that failed.
    public var isError: Bool { members["isError"]?.boolValue ?? false }

    /// Whether this asks the client for input (2026-07-28). The client then sends the request again with the answers.
    public var isInputRequired: Bool { members["resultType"]?.stringValue == "input_required" }
}

/// The rest of the chain after a middleware: the next middleware or, at the end, the handler.
public struct Next: Sendable {
    private let call: Call

    init(_ call: Call) {
        self.call = call
    }

    /// Passes the request on, and returns its result. It may be called several times: the handler runs each time. If the wait is
    /// cancelled, for example by a timeout, the handler continues until the middleware ends.
    ///
    /// - Parameter request: The request of the middleware, or a changed copy.
    /// - Throws: ``McplineError/rpc(_:_:)`` if the request fails. The client gets the same error if the middleware does not catch
    ///   it. A `CancellationError` if the request is cancelled.
    public func callAsFunction(_ request: MiddlewareRequest) async throws -> MiddlewareResult {
        let params = request.isChanged ? request.params.text : nil
        do {
            return MiddlewareResult(json: try await nativeCall { try await call.runNext(params: params) })
        } catch McplineError.closed {
            // The task is cancelled as well, perhaps a moment later.
            throw CancellationError()
        }
    }
}

/// A function around the requests that a server answers: see ``Server/middleware(_:handler:)``.
public typealias Middleware =
    @Sendable (_ request: MiddlewareRequest, _ next: Next, _ call: CallContext) async throws -> MiddlewareResult

/// Runs a middleware for the call of a request.
func runMiddleware(
    _ middleware: Middleware, for described: JSON, in call: CallContext
) async throws -> HandlerOutcome {
    let request = try MiddlewareRequest(described)
    do {
        let result = try await middleware(request, Next(try call.open()), call)
        return HandlerOutcome(.methodResult(json: result.json))
    } catch let missing as ResourceNotFoundError where missing.uri == nil && request.method == "resources/read" {
        // As in a handler, it stands for the URI that the client reads.
        throw ResourceNotFoundError(uri: request.name)
    }
}
