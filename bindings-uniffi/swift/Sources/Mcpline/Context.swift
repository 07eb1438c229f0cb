internal import McplineNative

/// An authenticated caller. Does not contain the token.
public struct Caller: Codable, Hashable, Sendable {
    /// The caller (`sub`); unique per issuer.
    public let subject: String?

    /// The OAuth client that acts for the subject.
    public let clientId: String?

    /// The authorization server that issued the token.
    public let issuer: String?

    /// The granted scopes.
    public let scopes: [String]?

    /// All claims of the token, or all members of the introspection response.
    public let claims: JSONObject?

    /// The audiences of the token (`aud`).
    public let audience: [String]?

    /// Expiry of the token, in seconds since 1970.
    public let expiresAt: Int?

    /// Creates a caller, as authenticated by a custom transport: see ``Server/serveChannel(_:principal:)``.
    public init(
        subject: String? = nil,
        clientId: String? = nil,
        issuer: String? = nil,
        scopes: [String]? = nil,
        claims: JSONObject? = nil,
        audience: [String]? = nil,
        expiresAt: Int? = nil
    ) {
        self.subject = subject
        self.clientId = clientId
        self.issuer = issuer
        self.scopes = scopes
        self.claims = claims
        self.audience = audience
        self.expiresAt = expiresAt
    }

    private enum CodingKeys: String, CodingKey {
        case subject, issuer, scopes, claims, audience
        case clientId = "client_id"
        case expiresAt = "expires_at"
    }
}

/// What the user answered to an elicitation.
public enum ElicitResult<Content: Sendable>: Sendable {
    /// The user filled in the form, or agreed to open the URL.
    case accepted(Content)

    /// The user declined.
    case declined

    /// The user dismissed the question.
    case cancelled

    /// What the user entered, if the user accepted.
    public var content: Content? { if case .accepted(let content) = self { content } else { nil } }

    /// The protocol's name of the action: `accept`, `decline` or `cancel`.
    public var action: String {
        switch self {
        case .accepted: "accept"
        case .declined: "decline"
        case .cancelled: "cancel"
        }
    }
}

extension ElicitResult: Equatable where Content: Equatable {}

/// The context of a request, which the handlers of a server get. It can be used until the handler returns. Afterwards its facts are
/// absent: `nil` or empty. Read what you need of them, such as ``auth``, before you start a task that outlives the handler.
///
/// If the client cancels the request, or its connection ends, the task of the handler is cancelled.
public final class CallContext: Sendable {
    private let call: Locked<Call?>
    /// Facts of the request, from their first use on.
    private let facts = Locked<JSONObject?>(nil)

    init(_ call: Call) {
        self.call = Locked(call)
    }

    /// Ends its use: the handler has returned.
    func end() { call.withLock { $0 = nil } }

    func open() throws -> Call {
        guard let call = call.withLock({ $0 }) else { throw McplineError.closed(ErrorDetails("the request has ended")) }
        return call
    }

    /// Facts that may be as large as the request. They are decoded at each use: kept, they would take memory in addition to the
    /// request while the handler waits.
    private static let largeFacts: Set = ["meta", "inputResponses", "requestState"]

    /// Returns a fact of the request.
    private func fact(_ name: String) -> JSON? {
        if !Self.largeFacts.contains(name), let known = facts.withLock({ $0 }) { return known[name] }
        guard let call = call.withLock({ $0 }), let all = try? JSONObject(parsing: call.info()) else { return nil }
        var small = all
        for large in Self.largeFacts { small[large] = nil }
        facts.withLock { [small] in $0 = small }
        return all[name]
    }

    /// The name of the tool, if the call is one of a tool.
    public var toolName: String? { fact("toolName")?.stringValue }

    /// The name of the prompt, if the call gets one.
    public var promptName: String? { fact("promptName")?.stringValue }

    /// The URI of the resource, if the call reads one.
    public var uri: String? { fact("uri")?.stringValue }

    /// The revision of the protocol that the request follows: `2026-07-28`.
    public var revision: String { fact("revision")?.stringValue ?? "" }

    /// The JSON-RPC id of the request: a string or a number.
    public var requestId: JSON { fact("requestId") ?? .null }

    /// Name and version of the client, if it sent them.
    public var client: Implementation? { try? fact("client")?.decode() }

    /// The capabilities that the client declares.
    public var clientCapabilities: JSONObject { fact("clientCapabilities")?.objectValue ?? [:] }

    /// The id of the HTTP session (revisions up to 2025-11-25).
    public var sessionId: String? { fact("sessionId")?.stringValue }

    /// The `_meta` of the request.
    public var meta: JSONObject? { fact("meta")?.objectValue }

    /// The HTTP headers of the request: values by name, in lower case. `nil` on other transports.
    public var headers: [String: [String]]? { try? fact("headers")?.decode() }

    /// The authenticated caller. `nil` if callers are not authenticated.
    public var auth: Caller? { try? fact("auth")?.decode() }

    /// Answers to the input requests that the previous run of the handler returned (``InputRequired``), by their keys.
    public var inputResponses: JSONObject? { fact("inputResponses")?.objectValue }

    /// The state that the previous run of the handler returned (``InputRequired``).
    public var requestState: String? { fact("requestState")?.stringValue }

    /// Reports progress. Does nothing if the client did not ask for it.
    ///
    /// - Parameters:
    ///   - progress: Progress so far; must increase with each report.
    ///   - total: Value of `progress` at the end, if known.
    ///   - message: Description of the current step.
    public func progress(_ progress: Double, total: Double? = nil, message: String? = nil) {
        call.withLock { $0 }?.progress(progress: progress, total: total, message: message)
    }

    /// Sends a log message to the client, if it wants messages of this level.
    public func log(_ level: LogLevel, _ data: JSON, logger: String? = nil) {
        // Level and data are valid.
        try? call.withLock { $0 }?.log(level: level.rawValue, logger: logger, data: data.text)
    }

    /// Sends a custom notification.
    public func notify(_ method: String, params: JSONObject? = nil) throws {
        let call = try open()
        try nativeCall { try call.notify(method: method, params: params?.text) }
    }

    /// Closes the response stream while the handler continues; the client reconnects for the rest (2025-11-25).
    public func closeStream() {
        call.withLock { $0 }?.closeStream()
    }

    /// Returns the settings with which the client declares an extension; `nil` if it does not.
    public func clientExtension(_ identifier: String) throws -> JSONObject? {
        try open().clientExtension(identifier: identifier).map { try JSONObject(parsing: $0) }
    }

    /// Checks that the client declares an extension.
    ///
    /// - Throws: ``RPCError`` if it does not: the error that the specification defines for this.
    public func requireExtension(_ identifier: String) throws {
        if let refused = try open().requireExtension(identifier: identifier) { throw RPCError(refused) }
    }

    /// Checks that the caller has all these scopes, for requirements that depend on the arguments. On transports without a
    /// principal, every caller has all scopes.
    ///
    /// Declare fixed requirements with the feature instead, with the argument `scopes`.
    ///
    /// - Throws: ``RPCError`` if the caller lacks a scope. Let it through: over HTTP, the client then gets a challenge with
    ///   the scopes.
    public func requireScopes(_ scopes: String...) throws {
        if let refused = try open().requireScopes(scopes: scopes) { throw RPCError(refused) }
    }

    /// Asks the user with a form for a `T`, whose properties must be of primitive types, and waits for the answer.
    ///
    /// - Parameters:
    ///   - message: Message to the user.
    ///   - type: The type of the answer, from which the form is derived: see ``formSchema(of:)``.
    ///   - key: Identifies the input request among those of the handler, if it may run again. Default: its number.
    /// - Throws: ``McplineError/notSupported(required:_:)`` if the client can't ask its user.
    public func elicit<T: Decodable & Sendable>(
        _ message: String, as type: T.Type, key: String? = nil
    ) async throws -> ElicitResult<T> {
        switch try await elicit(message, schema: try formSchema(of: type), key: key) {
        case .accepted(let content): .accepted(try decodeResult(.object(content), "the user's answer"))
        case .declined: .declined
        case .cancelled: .cancelled
        }
    }

    /// Asks the user with a form of this JSON Schema.
    public func elicit(_ message: String, schema: JSONObject, key: String? = nil) async throws -> ElicitResult<JSONObject> {
        elicited(try await request("elicitation/create", params: formParams(message, schema), key: key))
    }

    /// Asks the user to open a URL: for secrets, payments and sign-in.
    public func elicitURL(_ elicitation: URLElicitation, key: String? = nil) async throws -> ElicitResult<JSONObject> {
        elicited(try await request("elicitation/create", params: elicitation.params, key: key))
    }

    /// Asks the client's model.
    public func sample(_ params: CreateMessageParams, key: String? = nil) async throws -> CreateMessageResult {
        let answer = try await request("sampling/createMessage", params: JSONObject(encoding: params), key: key)
        return try decodeResult(.object(answer), "the model's answer")
    }

    /// Asks the client for its root directories.
    public func listRoots(key: String? = nil) async throws -> [Root] {
        let answer: Roots = try decodeResult(.object(try await request("roots/list", key: key)), "the client's roots")
        return answer.roots
    }

    /// Sends any other request to the client, and returns its result.
    public func request(_ method: String, params: JSONObject? = nil, key: String? = nil) async throws -> JSONObject {
        let call = try open()
        let answer = try await nativeCall { try await call.requestInput(method: method, params: params?.text, key: key) }
        return try JSONObject(parsing: answer)
    }
}

struct Roots: Codable {
    let roots: [Root]
}

private func elicited(_ answer: JSONObject) -> ElicitResult<JSONObject> {
    switch answer["action"]?.stringValue {
    case "accept": .accepted(answer["content"]?.objectValue ?? [:])
    case "decline": .declined
    default: .cancelled
    }
}

func formParams(_ message: String, _ schema: JSONObject) -> JSONObject {
    ["mode": "form", "message": .string(message), "requestedSchema": .object(schema)]
}

extension URLElicitation {
    var params: JSONObject {
        var params: JSONObject = ["mode": "url", "message": .string(message), "url": .string(url)]
        params["elicitationId"] = elicitationId.map(JSON.string)
        return params
    }
}
