import Foundation
internal import McplineNative

/// Input requests that a handler returns: it is called again, from its start, with the answers in
/// ``CallContext/inputResponses``.
///
/// ```swift
/// var questions = InputRequired()
/// try questions.elicit("name", message: "What is your name?", as: Name.self)
/// return questions
/// ```
public struct InputRequired: Sendable {
    /// State for the next run, which finds it in ``CallContext/requestState``. Clients can neither read nor change it.
    public var state: String?

    private var requests: [JSON] = []

    /// Creates a value without input requests.
    public init(state: String? = nil) {
        self.state = state
    }

    /// Asks the user with a form for a `T`, whose properties must be of primitive types.
    public mutating func elicit<T: Decodable>(_ key: String, message: String, as type: T.Type) throws {
        elicit(key, message: message, schema: try formSchema(of: type))
    }

    /// Asks the user with a form of this JSON Schema.
    public mutating func elicit(_ key: String, message: String, schema: JSONObject) {
        request(key, "elicitation/create", params: formParams(message, schema))
    }

    /// Asks the user to open a URL.
    public mutating func elicitURL(_ key: String, _ elicitation: URLElicitation) {
        request(key, "elicitation/create", params: elicitation.params)
    }

    /// Asks the client's model.
    public mutating func sample(_ key: String, _ params: CreateMessageParams) throws {
        request(key, "sampling/createMessage", params: try JSONObject(encoding: params))
    }

    /// Asks the client for its root directories.
    public mutating func listRoots(_ key: String) {
        request(key, "roots/list", params: nil)
    }

    /// Sends any other request to the client.
    public mutating func request(_ key: String, _ method: String, params: JSONObject?) {
        requests.append([.string(key), .string(method), params.map(JSON.object) ?? .null])
    }

    fileprivate var outcome: Outcome {
        var members: JSONObject = ["requests": .array(requests)]
        members["state"] = state.map(JSON.string)
        return .inputRequired(json: members.text)
    }
}

/// A result of a type that an ``Extension`` defines.
public struct ExtendedResult: Sendable {
    /// The type.
    public var resultType: String

    /// The members of the result.
    public var members: JSONObject

    /// Creates a result.
    public init(_ resultType: String, members: JSONObject) {
        self.resultType = resultType
        self.members = members
    }

    var json: JSONObject { (["resultType": .string(resultType)] as JSONObject).merging(members) }

    fileprivate var outcome: Outcome { .complete(json: json.text) }
}

/// An extension of the protocol, which a server declares.
public struct Extension: Sendable {
    /// Identifier: a domain of yours, and a name.
    public var identifier: String

    /// What the server tells clients about it.
    public var settings: JSONObject

    /// Types of results that it defines: see ``ExtendedResult``.
    public var resultTypes: [String]

    /// Creates an extension.
    public init(_ identifier: String, settings: JSONObject = [:], resultTypes: [String] = []) {
        self.identifier = identifier
        self.settings = settings
        self.resultTypes = resultTypes
    }
}

/// What a handler returns, for the core.
public struct HandlerOutcome: Sendable {
    let native: Outcome

    init(_ native: Outcome) {
        self.native = native
    }

    fileprivate static func content(_ items: [some Encodable]) throws -> HandlerOutcome {
        HandlerOutcome(.content(json: try JSON(encoding: items).text))
    }

    fileprivate static func complete(_ result: some Encodable) throws -> HandlerOutcome {
        HandlerOutcome(.complete(json: try JSON(encoding: result).text))
    }
}

/// What a tool can return: a `String`, a ``ContentBlock``, an array of these, a ``JSON`` or a ``JSONObject``, a
/// ``CallToolResult``, an ``InputRequired``, an ``ExtendedResult``, or an optional of these. `CallToolResult()` has no content.
/// A function that returns different types wraps each in an ``AnyToolOutput``.
public protocol ToolOutput: Sendable {
    /// Converts the value for the core.
    func toolOutcome() throws -> HandlerOutcome
}

/// What a resource can return: a `String`, `Data`, ``ResourceContents``, an array of these, a ``JSON`` or a ``JSONObject``, a
/// ``ReadResourceResult``, an ``InputRequired`` or an ``ExtendedResult``. A function that returns different types wraps each in
/// an ``AnyResourceOutput``.
public protocol ResourceOutput: Sendable {
    /// Converts the value for the core.
    func resourceOutcome() throws -> HandlerOutcome
}

/// What a prompt can return: a `String`, a ``ContentBlock``, a ``PromptMessage``, an array of these, a ``GetPromptResult``, an
/// ``InputRequired`` or an ``ExtendedResult``. A function that returns different types wraps each in an ``AnyPromptOutput``.
public protocol PromptOutput: Sendable {
    /// Converts the value for the core.
    func promptOutcome() throws -> HandlerOutcome
}

/// What the handler of a custom request can return: a ``JSONObject``, a ``JSON`` that is an object, an ``InputRequired``, an
/// ``ExtendedResult``, or a `Codable` value by ``JSONObject/init(encoding:)``. A function that returns different types wraps each
/// in an ``AnyRequestOutput``.
public protocol RequestOutput: Sendable {
    /// Converts the value for the core.
    func requestOutcome() throws -> HandlerOutcome
}

extension String: ToolOutput, ResourceOutput, PromptOutput {
    /// One text block.
    public func toolOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: self)) }

    /// The text of the resource.
    public func resourceOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: self)) }

    /// One message of the user.
    public func promptOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: self)) }
}

extension ContentBlock: ToolOutput, PromptOutput {
    /// This block.
    public func toolOutcome() throws -> HandlerOutcome { try .content([self]) }

    /// One message of the user.
    public func promptOutcome() throws -> HandlerOutcome { try .content([message]) }
}

/// An item of an array that a tool returns: a ``ContentBlock`` or a `String`.
public protocol ToolOutputItem: Sendable {
    /// The block of the item.
    var block: ContentBlock { get }
}

extension ContentBlock: ToolOutputItem {
    /// The block itself.
    public var block: ContentBlock { self }
}

extension String: ToolOutputItem {
    /// A text block.
    public var block: ContentBlock { .text(TextContent(self)) }
}

extension Array: ToolOutput where Element: ToolOutputItem {
    /// These blocks.
    public func toolOutcome() throws -> HandlerOutcome { try .content(map(\.block)) }
}

extension Optional: ToolOutput where Wrapped: ToolOutput {
    /// That of the value, or no content.
    public func toolOutcome() throws -> HandlerOutcome { try self?.toolOutcome() ?? HandlerOutcome(.content(json: "[]")) }
}

extension JSON: ToolOutput, ResourceOutput, RequestOutput {
    /// The JSON as a text block.
    public func toolOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: text)) }

    /// The JSON as the text of the resource.
    public func resourceOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: text)) }

    /// The JSON is the result. It must be an object.
    public func requestOutcome() -> HandlerOutcome { HandlerOutcome(.complete(json: text)) }
}

extension JSONObject: ToolOutput, ResourceOutput, RequestOutput {
    /// The JSON as a text block.
    public func toolOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: text)) }

    /// The JSON as the text of the resource.
    public func resourceOutcome() -> HandlerOutcome { HandlerOutcome(.text(text: text)) }

    /// The object is the result.
    public func requestOutcome() -> HandlerOutcome { HandlerOutcome(.complete(json: text)) }
}

extension CallToolResult: ToolOutput {
    /// This result.
    public func toolOutcome() throws -> HandlerOutcome { try .complete(self) }
}

extension Data: ResourceOutput {
    /// The bytes of the resource.
    public func resourceOutcome() -> HandlerOutcome { HandlerOutcome(.bytes(bytes: self, mimeType: nil)) }
}

extension ResourceContents: ResourceOutput {
    /// These contents.
    public func resourceOutcome() throws -> HandlerOutcome { try .content([self]) }
}

extension Array: ResourceOutput where Element == ResourceContents {
    /// These contents.
    public func resourceOutcome() throws -> HandlerOutcome { try .content(self) }
}

extension ReadResourceResult: ResourceOutput {
    /// This result.
    public func resourceOutcome() throws -> HandlerOutcome { try .complete(self) }
}

extension PromptMessage: PromptOutput {
    /// This message.
    public func promptOutcome() throws -> HandlerOutcome { try .content([self]) }

    /// Creates a message with one text.
    public init(_ role: Role, _ text: String) {
        self.init(role: role, content: .text(TextContent(text)))
    }
}

/// An item of an array that a prompt returns: a ``PromptMessage``, a ``ContentBlock`` or a `String`.
public protocol PromptOutputItem: Sendable {
    /// The message of the item.
    var message: PromptMessage { get }
}

extension PromptMessage: PromptOutputItem {
    /// The message itself.
    public var message: PromptMessage { self }
}

extension ContentBlock: PromptOutputItem {
    /// A message of the user.
    public var message: PromptMessage { PromptMessage(role: .user, content: self) }
}

extension String: PromptOutputItem {
    /// A message of the user.
    public var message: PromptMessage { PromptMessage(.user, self) }
}

extension Array: PromptOutput where Element: PromptOutputItem {
    /// These messages.
    public func promptOutcome() throws -> HandlerOutcome { try .content(map(\.message)) }
}

extension GetPromptResult: PromptOutput {
    /// This result.
    public func promptOutcome() throws -> HandlerOutcome { try .complete(self) }
}

extension InputRequired: ToolOutput, ResourceOutput, PromptOutput, RequestOutput {
    /// These input requests.
    public func toolOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }

    /// These input requests.
    public func resourceOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }

    /// These input requests.
    public func promptOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }

    /// These input requests.
    public func requestOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }
}

extension ExtendedResult: ToolOutput, ResourceOutput, PromptOutput, RequestOutput {
    /// This result.
    public func toolOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }

    /// This result.
    public func resourceOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }

    /// This result.
    public func promptOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }

    /// This result.
    public func requestOutcome() -> HandlerOutcome { HandlerOutcome(outcome) }
}

/// An item of the array with which a template lists its resources: a URI, or a ``Resource``.
public protocol ResourceListItem: Sendable {
    /// Returns the item as JSON.
    func listItem() throws -> JSON
}

extension String: ResourceListItem {
    /// The URI.
    public func listItem() -> JSON { .string(self) }
}

extension Resource: ResourceListItem {
    /// The resource.
    public func listItem() throws -> JSON { try JSON(encoding: self) }
}

/// A tool's result that is one of several kinds: for handlers that return different types.
public struct AnyToolOutput: ToolOutput {
    private let output: any ToolOutput

    /// Wraps a result.
    public init(_ output: some ToolOutput) {
        self.output = output
    }

    /// Converts the wrapped value.
    public func toolOutcome() throws -> HandlerOutcome { try output.toolOutcome() }
}

/// The contents of a resource that are one of several kinds: for handlers that return different types.
public struct AnyResourceOutput: ResourceOutput {
    private let output: any ResourceOutput

    /// Wraps contents.
    public init(_ output: some ResourceOutput) {
        self.output = output
    }

    /// Converts the wrapped value.
    public func resourceOutcome() throws -> HandlerOutcome { try output.resourceOutcome() }
}

/// A prompt's result that is one of several kinds: for handlers that return different types.
public struct AnyPromptOutput: PromptOutput {
    private let output: any PromptOutput

    /// Wraps a result.
    public init(_ output: some PromptOutput) {
        self.output = output
    }

    /// Converts the wrapped value.
    public func promptOutcome() throws -> HandlerOutcome { try output.promptOutcome() }
}

/// The result of a custom request that is one of several kinds: for handlers that return different types.
public struct AnyRequestOutput: RequestOutput {
    private let output: any RequestOutput

    /// Wraps a result.
    public init(_ output: some RequestOutput) {
        self.output = output
    }

    /// Converts the wrapped value.
    public func requestOutcome() throws -> HandlerOutcome { try output.requestOutcome() }
}

/// Converts what a handler threw.
func outcome(_ error: any Error) -> Outcome {
    switch error {
    case let error as ToolError: .toolFailure(message: error.message)
    case let error as RPCError: .rpcFailed(error: error.failure)
    case McplineError.rpc(let error, _): .rpcFailed(error: error.failure)
    case let error as ResourceNotFoundError: .resourceNotFound(uri: error.uri)
    case let error as URLElicitationRequiredError:
        .urlElicitationRequired(json: JSON.array(error.elicitations.map { .object($0.params) }).text)
    case McplineError.notSupported(let required?, let details):
        .notSupported(message: details.message, required: required.text)
    case let error as McplineError where error.details.isForModel: .toolFailure(message: error.message)
    // Swift's errors have no stack trace. The log has the trace only.
    default: .exception(summary: "\(type(of: error)): \(error)", trace: "\(type(of: error)): \(error)")
    }
}
