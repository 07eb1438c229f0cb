import Foundation

/// Author of a message.
public enum Role: String, Codable, CaseIterable, Sendable {
    /// The user.
    case user

    /// The model.
    case assistant
}

/// Severity of a log message (RFC 5424).
public enum LogLevel: String, Codable, CaseIterable, Sendable {
    /// For developers.
    case debug

    /// Normal operation.
    case info

    /// Normal, but significant.
    case notice

    /// A warning.
    case warning

    /// An error.
    case error

    /// A critical condition.
    case critical

    /// Action must be taken immediately.
    case alert

    /// The system is unusable.
    case emergency
}

/// An icon.
public struct Icon: Codable, Hashable, Sendable {
    /// URL of the image: `https:` or `data:`.
    public var src: String

    /// Media type of the image.
    public var mimeType: String?

    /// Sizes for which it is suitable, such as `48x48` or `any`.
    public var sizes: [String]?

    /// Theme for which it is designed: `light` or `dark`.
    public var theme: String?

    /// Creates a value from its members.
    public init(
        src: String,
        mimeType: String? = nil,
        sizes: [String]? = nil,
        theme: String? = nil
    ) {
        self.src = src
        self.mimeType = mimeType
        self.sizes = sizes
        self.theme = theme
    }
}

/// Annotations of content or of a resource.
public struct Annotations: Codable, Hashable, Sendable {
    /// Intended audience.
    public var audience: [Role]?

    /// Importance, from 0 (optional) to 1 (required).
    public var priority: Double?

    /// Time of the last change, in ISO 8601.
    public var lastModified: String?

    /// Creates a value from its members.
    public init(
        audience: [Role]? = nil,
        priority: Double? = nil,
        lastModified: String? = nil
    ) {
        self.audience = audience
        self.priority = priority
        self.lastModified = lastModified
    }
}

/// Text.
public struct TextContent: Codable, Hashable, Sendable {
    /// The text.
    public var text: String

    /// Annotations.
    public var annotations: Annotations?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        text: String,
        annotations: Annotations? = nil,
        meta: JSONObject? = nil
    ) {
        self.text = text
        self.annotations = annotations
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case text, annotations
        case meta = "_meta"
    }
}

/// An image.
public struct ImageContent: Codable, Hashable, Sendable {
    /// The image in base64.
    public var data: String

    /// Its media type.
    public var mimeType: String

    /// Annotations.
    public var annotations: Annotations?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        data: String,
        mimeType: String,
        annotations: Annotations? = nil,
        meta: JSONObject? = nil
    ) {
        self.data = data
        self.mimeType = mimeType
        self.annotations = annotations
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case data, mimeType, annotations
        case meta = "_meta"
    }
}

/// Audio.
public struct AudioContent: Codable, Hashable, Sendable {
    /// The audio in base64.
    public var data: String

    /// Its media type.
    public var mimeType: String

    /// Annotations.
    public var annotations: Annotations?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        data: String,
        mimeType: String,
        annotations: Annotations? = nil,
        meta: JSONObject? = nil
    ) {
        self.data = data
        self.mimeType = mimeType
        self.annotations = annotations
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case data, mimeType, annotations
        case meta = "_meta"
    }
}

/// A link to a resource.
public struct ResourceLink: Codable, Hashable, Sendable {
    /// URI of the resource.
    public var uri: String

    /// Name for programs.
    public var name: String

    /// Display name.
    public var title: String?

    /// Description for the model.
    public var description: String?

    /// Media type of the contents.
    public var mimeType: String?

    /// Size of the contents in bytes.
    public var size: Int?

    /// Icons.
    public var icons: [Icon]?

    /// Annotations.
    public var annotations: Annotations?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        uri: String,
        name: String,
        title: String? = nil,
        description: String? = nil,
        mimeType: String? = nil,
        size: Int? = nil,
        icons: [Icon]? = nil,
        annotations: Annotations? = nil,
        meta: JSONObject? = nil
    ) {
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.mimeType = mimeType
        self.size = size
        self.icons = icons
        self.annotations = annotations
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case uri, name, title, description, mimeType, size, icons, annotations
        case meta = "_meta"
    }
}

/// The contents of a resource, embedded in a result.
public struct EmbeddedResource: Codable, Hashable, Sendable {
    /// The contents.
    public var resource: ResourceContents

    /// Annotations.
    public var annotations: Annotations?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        resource: ResourceContents,
        annotations: Annotations? = nil,
        meta: JSONObject? = nil
    ) {
        self.resource = resource
        self.annotations = annotations
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case resource, annotations
        case meta = "_meta"
    }
}

/// A tool call that a model requests (2025-11-25).
public struct ToolUseContent: Codable, Hashable, Sendable {
    /// Identifies the call.
    public var id: String

    /// Name of the tool.
    public var name: String

    /// The arguments.
    public var input: JSONObject

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        id: String,
        name: String,
        input: JSONObject,
        meta: JSONObject? = nil
    ) {
        self.id = id
        self.name = name
        self.input = input
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case id, name, input
        case meta = "_meta"
    }
}

/// The result of a tool call, for a model (2025-11-25).
public struct ToolResultContent: Codable, Hashable, Sendable {
    /// The `id` of the call.
    public var toolUseId: String

    /// The content.
    public var content: [ContentBlock]

    /// Structured content: any JSON value.
    public var structuredContent: JSON?

    /// Whether the tool failed.
    public var isError: Bool?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        toolUseId: String,
        content: [ContentBlock],
        structuredContent: JSON? = nil,
        isError: Bool? = nil,
        meta: JSONObject? = nil
    ) {
        self.toolUseId = toolUseId
        self.content = content
        self.structuredContent = structuredContent
        self.isError = isError
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case toolUseId, content, structuredContent, isError
        case meta = "_meta"
    }
}

/// Contents of a resource: either `text` or, in base64, `blob`.
public struct ResourceContents: Codable, Hashable, Sendable {
    /// URI of the resource.
    public var uri: String

    /// Media type.
    public var mimeType: String?

    /// The contents, if they are text.
    public var text: String?

    /// The contents in base64, if they are bytes.
    public var blob: String?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        uri: String,
        mimeType: String? = nil,
        text: String? = nil,
        blob: String? = nil,
        meta: JSONObject? = nil
    ) {
        self.uri = uri
        self.mimeType = mimeType
        self.text = text
        self.blob = blob
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case uri, mimeType, text, blob
        case meta = "_meta"
    }
}

/// Hints about a tool's behaviour. Do not rely on them unless you trust the server.
public struct ToolAnnotations: Codable, Hashable, Sendable {
    /// Display name.
    public var title: String?

    /// The tool does not modify its environment.
    public var readOnlyHint: Bool?

    /// The tool may perform destructive updates.
    public var destructiveHint: Bool?

    /// Repeated calls with the same arguments have no additional effect.
    public var idempotentHint: Bool?

    /// The tool interacts with external entities.
    public var openWorldHint: Bool?

    /// Creates a value from its members.
    public init(
        title: String? = nil,
        readOnlyHint: Bool? = nil,
        destructiveHint: Bool? = nil,
        idempotentHint: Bool? = nil,
        openWorldHint: Bool? = nil
    ) {
        self.title = title
        self.readOnlyHint = readOnlyHint
        self.destructiveHint = destructiveHint
        self.idempotentHint = idempotentHint
        self.openWorldHint = openWorldHint
    }
}

/// A tool of a server (`server/tools`).
public struct Tool: Codable, Hashable, Sendable {
    /// Name for calls.
    public var name: String

    /// Display name.
    public var title: String?

    /// Description for the model.
    public var description: String?

    /// JSON Schema of the arguments.
    public var inputSchema: JSONObject

    /// JSON Schema of the structured content.
    public var outputSchema: JSONObject?

    /// Hints about the tool's behaviour.
    public var annotations: ToolAnnotations?

    /// Icons.
    public var icons: [Icon]?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        name: String,
        title: String? = nil,
        description: String? = nil,
        inputSchema: JSONObject,
        outputSchema: JSONObject? = nil,
        annotations: ToolAnnotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil
    ) {
        self.name = name
        self.title = title
        self.description = description
        self.inputSchema = inputSchema
        self.outputSchema = outputSchema
        self.annotations = annotations
        self.icons = icons
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case name, title, description, inputSchema, outputSchema, annotations, icons
        case meta = "_meta"
    }
}

/// A resource of a server (`server/resources`).
public struct Resource: Codable, Hashable, Sendable {
    /// URI of the resource.
    public var uri: String

    /// Name for programs.
    public var name: String

    /// Display name.
    public var title: String?

    /// Description for the model.
    public var description: String?

    /// Media type of the contents.
    public var mimeType: String?

    /// Size of the contents in bytes.
    public var size: Int?

    /// Annotations.
    public var annotations: Annotations?

    /// Icons.
    public var icons: [Icon]?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        uri: String,
        name: String,
        title: String? = nil,
        description: String? = nil,
        mimeType: String? = nil,
        size: Int? = nil,
        annotations: Annotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil
    ) {
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.mimeType = mimeType
        self.size = size
        self.annotations = annotations
        self.icons = icons
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case uri, name, title, description, mimeType, size, annotations, icons
        case meta = "_meta"
    }
}

/// A resource template of a server (`server/resources`).
public struct ResourceTemplate: Codable, Hashable, Sendable {
    /// URI template (RFC 6570).
    public var uriTemplate: String

    /// Name for programs.
    public var name: String

    /// Display name.
    public var title: String?

    /// Description for the model.
    public var description: String?

    /// Media type of the contents, if all resources have the same.
    public var mimeType: String?

    /// Annotations.
    public var annotations: Annotations?

    /// Icons.
    public var icons: [Icon]?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        uriTemplate: String,
        name: String,
        title: String? = nil,
        description: String? = nil,
        mimeType: String? = nil,
        annotations: Annotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil
    ) {
        self.uriTemplate = uriTemplate
        self.name = name
        self.title = title
        self.description = description
        self.mimeType = mimeType
        self.annotations = annotations
        self.icons = icons
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case uriTemplate, name, title, description, mimeType, annotations, icons
        case meta = "_meta"
    }
}

/// An argument of a prompt.
public struct PromptArgument: Codable, Hashable, Sendable {
    /// Name of the argument.
    public var name: String

    /// Description for the user.
    public var description: String?

    /// Whether it must be given.
    public var required: Bool?

    /// Display name.
    public var title: String?

    /// Creates a value from its members.
    public init(
        name: String,
        description: String? = nil,
        required: Bool? = true,
        title: String? = nil
    ) {
        self.name = name
        self.description = description
        self.required = required
        self.title = title
    }
}

/// A prompt of a server (`server/prompts`).
public struct Prompt: Codable, Hashable, Sendable {
    /// Name for requests.
    public var name: String

    /// Display name.
    public var title: String?

    /// Description for the user.
    public var description: String?

    /// Its arguments.
    public var arguments: [PromptArgument]?

    /// Icons.
    public var icons: [Icon]?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        name: String,
        title: String? = nil,
        description: String? = nil,
        arguments: [PromptArgument]? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil
    ) {
        self.name = name
        self.title = title
        self.description = description
        self.arguments = arguments
        self.icons = icons
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case name, title, description, arguments, icons
        case meta = "_meta"
    }
}

/// A message of a prompt.
public struct PromptMessage: Codable, Hashable, Sendable {
    /// Author of the message.
    public var role: Role

    /// Its content.
    public var content: ContentBlock

    /// Creates a value from its members.
    public init(
        role: Role,
        content: ContentBlock
    ) {
        self.role = role
        self.content = content
    }
}

/// The result of a tool call.
public struct CallToolResult: Codable, Hashable, Sendable {
    /// Content blocks for the model.
    public var content: [ContentBlock]

    /// Structured content: any JSON value, as described by the tool's output schema.
    public var structuredContent: JSON?

    /// Whether the tool failed. The content describes the failure for the model.
    public var isError: Bool?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        content: [ContentBlock] = [],
        structuredContent: JSON? = nil,
        isError: Bool? = nil,
        meta: JSONObject? = nil
    ) {
        self.content = content
        self.structuredContent = structuredContent
        self.isError = isError
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case content, structuredContent, isError
        case meta = "_meta"
    }
}

/// The contents of a resource.
public struct ReadResourceResult: Codable, Hashable, Sendable {
    /// The contents.
    public var contents: [ResourceContents]

    /// Cache lifetime in milliseconds (2026-07-28).
    public var ttlMs: Int?

    /// `public` if shared caches may store the result (2026-07-28).
    public var cacheScope: String?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        contents: [ResourceContents],
        ttlMs: Int? = nil,
        cacheScope: String? = nil,
        meta: JSONObject? = nil
    ) {
        self.contents = contents
        self.ttlMs = ttlMs
        self.cacheScope = cacheScope
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case contents, ttlMs, cacheScope
        case meta = "_meta"
    }
}

/// A prompt with its arguments filled in.
public struct GetPromptResult: Codable, Hashable, Sendable {
    /// The messages.
    public var messages: [PromptMessage]

    /// Description of the prompt.
    public var description: String?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        messages: [PromptMessage],
        description: String? = nil,
        meta: JSONObject? = nil
    ) {
        self.messages = messages
        self.description = description
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case messages, description
        case meta = "_meta"
    }
}

/// Completions of an argument. At most 100 values are sent.
public struct CompletionValues: Codable, Hashable, Sendable {
    /// The candidates, best first.
    public var values: [String]

    /// Total number of candidates, if known.
    public var total: Int?

    /// Whether there are more candidates.
    public var hasMore: Bool?

    /// Creates a value from its members.
    public init(
        values: [String],
        total: Int? = nil,
        hasMore: Bool? = nil
    ) {
        self.values = values
        self.total = total
        self.hasMore = hasMore
    }
}

/// Name and version of a client or server.
public struct Implementation: Codable, Hashable, Sendable {
    /// Name for programs.
    public var name: String

    /// Its version.
    public var version: String

    /// Display name.
    public var title: String?

    /// Purpose of the client or server.
    public var description: String?

    /// Home page.
    public var websiteUrl: String?

    /// Icons.
    public var icons: [Icon]?

    /// Creates a value from its members.
    public init(
        name: String,
        version: String,
        title: String? = nil,
        description: String? = nil,
        websiteUrl: String? = nil,
        icons: [Icon]? = nil
    ) {
        self.name = name
        self.version = version
        self.title = title
        self.description = description
        self.websiteUrl = websiteUrl
        self.icons = icons
    }
}

/// A root directory or file of the client (`client/roots`).
public struct Root: Codable, Hashable, Sendable {
    /// A `file://` URI.
    public var uri: String

    /// Display name.
    public var name: String?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        uri: String,
        name: String? = nil,
        meta: JSONObject? = nil
    ) {
        self.uri = uri
        self.name = name
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case uri, name
        case meta = "_meta"
    }
}

/// A message to or from a model.
public struct SamplingMessage: Codable, Hashable, Sendable {
    /// Its author.
    public var role: Role

    /// Its content.
    public var content: [SamplingContent]

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        role: Role,
        content: [SamplingContent],
        meta: JSONObject? = nil
    ) {
        self.role = role
        self.content = content
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case role, content
        case meta = "_meta"
    }
}

/// A server's preferences for the choice of a model.
public struct ModelPreferences: Codable, Hashable, Sendable {
    /// Names of preferred models, best first.
    public var hints: [ModelHint]?

    /// Importance of low cost, from 0 to 1.
    public var costPriority: Double?

    /// Importance of speed, from 0 to 1.
    public var speedPriority: Double?

    /// Importance of capability, from 0 to 1.
    public var intelligencePriority: Double?

    /// Creates a value from its members.
    public init(
        hints: [ModelHint]? = nil,
        costPriority: Double? = nil,
        speedPriority: Double? = nil,
        intelligencePriority: Double? = nil
    ) {
        self.hints = hints
        self.costPriority = costPriority
        self.speedPriority = speedPriority
        self.intelligencePriority = intelligencePriority
    }
}

/// The name of a preferred model.
public struct ModelHint: Codable, Hashable, Sendable {
    /// The name, or a part of it.
    public var name: String?

    /// Creates a value from its members.
    public init(
        name: String? = nil
    ) {
        self.name = name
    }
}

/// Parameters of a sampling request, `sampling/createMessage`.
public struct CreateMessageParams: Codable, Hashable, Sendable {
    /// The conversation.
    public var messages: [SamplingMessage]

    /// Maximum number of tokens to generate.
    public var maxTokens: Int

    /// System prompt.
    public var systemPrompt: String?

    /// Preferences for the choice of a model.
    public var modelPreferences: ModelPreferences?

    /// Context of MCP servers to include: `none`, `thisServer` or `allServers`.
    public var includeContext: String?

    /// Sampling temperature.
    public var temperature: Double?

    /// Sequences that stop the generation.
    public var stopSequences: [String]?

    /// Metadata for the model provider.
    public var metadata: JSONObject?

    /// Tools that the model may call (2025-11-25).
    public var tools: [Tool]?

    /// Whether the model has to call tools (2025-11-25).
    public var toolChoice: ToolChoice?

    /// Creates a value from its members.
    public init(
        messages: [SamplingMessage],
        maxTokens: Int,
        systemPrompt: String? = nil,
        modelPreferences: ModelPreferences? = nil,
        includeContext: String? = nil,
        temperature: Double? = nil,
        stopSequences: [String]? = nil,
        metadata: JSONObject? = nil,
        tools: [Tool]? = nil,
        toolChoice: ToolChoice? = nil
    ) {
        self.messages = messages
        self.maxTokens = maxTokens
        self.systemPrompt = systemPrompt
        self.modelPreferences = modelPreferences
        self.includeContext = includeContext
        self.temperature = temperature
        self.stopSequences = stopSequences
        self.metadata = metadata
        self.tools = tools
        self.toolChoice = toolChoice
    }
}

/// Whether a model has to call tools.
public struct ToolChoice: Codable, Hashable, Sendable {
    /// `auto`, `required` or `none`.
    public var mode: String?

    /// Creates a value from its members.
    public init(
        mode: String? = nil
    ) {
        self.mode = mode
    }
}

/// The result of a sampling request.
public struct CreateMessageResult: Codable, Hashable, Sendable {
    /// Author of the message.
    public var role: Role

    /// Its content.
    public var content: [SamplingContent]

    /// Name of the model.
    public var model: String

    /// Why the model stopped, such as `endTurn`.
    public var stopReason: String?

    /// Additional members.
    public var meta: JSONObject?

    /// Creates a value from its members.
    public init(
        role: Role,
        content: [SamplingContent],
        model: String,
        stopReason: String? = nil,
        meta: JSONObject? = nil
    ) {
        self.role = role
        self.content = content
        self.model = model
        self.stopReason = stopReason
        self.meta = meta
    }

    private enum CodingKeys: String, CodingKey {
        case role, content, model, stopReason
        case meta = "_meta"
    }
}

/// A URL for the user to open (2025-11-25): for secrets, payments and sign-in.
public struct URLElicitation: Codable, Hashable, Sendable {
    /// Message to the user.
    public var message: String

    /// The URL.
    public var url: String

    /// Id for ``Server/notifyElicitationComplete(_:)``.
    public var elicitationId: String?

    /// Creates a value from its members.
    public init(
        message: String,
        url: String,
        elicitationId: String? = nil
    ) {
        self.message = message
        self.url = url
        self.elicitationId = elicitationId
    }
}

extension TextContent: ExpressibleByStringInterpolation {
    /// Creates text without annotations.
    public init(_ text: String) {
        self.init(text: text)
    }

    /// Creates text without annotations.
    public init(stringLiteral value: String) {
        self.init(text: value)
    }
}

extension ImageContent {
    /// Creates an image from its bytes.
    public init(bytes: Data, mimeType: String) {
        self.init(data: bytes.base64EncodedString(), mimeType: mimeType)
    }

    /// The bytes of the image; `nil` if ``data`` is not base64.
    public var bytes: Data? { Data(base64Encoded: data) }
}

extension AudioContent {
    /// Creates audio from its bytes.
    public init(bytes: Data, mimeType: String) {
        self.init(data: bytes.base64EncodedString(), mimeType: mimeType)
    }

    /// The bytes of the audio; `nil` if ``data`` is not base64.
    public var bytes: Data? { Data(base64Encoded: data) }
}

extension ResourceContents {
    /// The contents as bytes; `nil` if ``blob`` is not base64.
    public var bytes: Data? { blob.map { Data(base64Encoded: $0) } ?? Data((text ?? "").utf8) }
}

extension CallToolResult {
    /// The text of all text blocks, one to a line.
    public var text: String { joinedText(content) }

    /// Returns the structured content, decoded as a `T`.
    ///
    /// - Throws: ``ToolError`` with the tool's text if it failed; ``McplineError/invalidResponse(_:)`` if the content has
    ///   another form, or if there is none.
    public func data<T: Decodable>(as type: T.Type = T.self) throws -> T {
        if isError == true { throw ToolError(text) }
        guard let structuredContent else {
            throw McplineError.invalidResponse(ErrorDetails("the result has no structured content"))
        }
        return try decodeResult(structuredContent, "the structured content")
    }
}

extension ReadResourceResult {
    /// The text of all contents, one to a line.
    public var text: String { contents.compactMap(\.text).joined(separator: "\n") }
}

extension CreateMessageResult {
    /// Creates a result with one text.
    public init(_ text: String, model: String, stopReason: String? = nil) {
        self.init(role: .assistant, content: [.text(TextContent(text))], model: model, stopReason: stopReason)
    }

    /// The text of all text blocks, one to a line.
    public var text: String {
        let texts = content.compactMap { block -> String? in
            if case .text(let text) = block { text.text } else { nil }
        }
        return texts.joined(separator: "\n")
    }
}

extension SamplingMessage {
    /// Creates a message with one text.
    public init(_ role: Role, _ text: String) {
        self.init(role: role, content: [.text(TextContent(text))])
    }
}

func joinedText(_ content: [ContentBlock]) -> String {
    let texts = content.compactMap { block -> String? in
        if case .text(let text) = block { text.text } else { nil }
    }
    return texts.joined(separator: "\n")
}

/// A block of a tool's result or of a prompt's message.
public enum ContentBlock: Codable, Hashable, Sendable {
    /// Text.
    case text(TextContent)

    /// An image.
    case image(ImageContent)

    /// Audio.
    case audio(AudioContent)

    /// A link to a resource.
    case resourceLink(ResourceLink)

    /// The contents of a resource.
    case resource(EmbeddedResource)

    /// Decodes a block by its `type`.
    public init(from decoder: any Decoder) throws {
        switch try blockType(decoder) {
        case "text": self = .text(try TextContent(from: decoder))
        case "image": self = .image(try ImageContent(from: decoder))
        case "audio": self = .audio(try AudioContent(from: decoder))
        case "resource_link": self = .resourceLink(try ResourceLink(from: decoder))
        case "resource": self = .resource(try EmbeddedResource(from: decoder))
        case let type: throw unknownBlock(type, decoder)
        }
    }

    /// Encodes the block with its `type`.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .text(let block): try encodeBlock("text", block, encoder)
        case .image(let block): try encodeBlock("image", block, encoder)
        case .audio(let block): try encodeBlock("audio", block, encoder)
        case .resourceLink(let block): try encodeBlock("resource_link", block, encoder)
        case .resource(let block): try encodeBlock("resource", block, encoder)
        }
    }
}

/// Content of a message to or from a model.
public enum SamplingContent: Codable, Hashable, Sendable {
    /// Text.
    case text(TextContent)

    /// An image.
    case image(ImageContent)

    /// Audio.
    case audio(AudioContent)

    /// A tool call that a model requests (2025-11-25).
    case toolUse(ToolUseContent)

    /// The result of a tool call (2025-11-25).
    case toolResult(ToolResultContent)

    /// Decodes a block by its `type`.
    public init(from decoder: any Decoder) throws {
        switch try blockType(decoder) {
        case "text": self = .text(try TextContent(from: decoder))
        case "image": self = .image(try ImageContent(from: decoder))
        case "audio": self = .audio(try AudioContent(from: decoder))
        case "tool_use": self = .toolUse(try ToolUseContent(from: decoder))
        case "tool_result": self = .toolResult(try ToolResultContent(from: decoder))
        case let type: throw unknownBlock(type, decoder)
        }
    }

    /// Encodes the block with its `type`.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .text(let block): try encodeBlock("text", block, encoder)
        case .image(let block): try encodeBlock("image", block, encoder)
        case .audio(let block): try encodeBlock("audio", block, encoder)
        case .toolUse(let block): try encodeBlock("tool_use", block, encoder)
        case .toolResult(let block): try encodeBlock("tool_result", block, encoder)
        }
    }
}

private enum TypeKey: String, CodingKey {
    case type
}

private func blockType(_ decoder: any Decoder) throws -> String {
    try decoder.container(keyedBy: TypeKey.self).decode(String.self, forKey: .type)
}

private func unknownBlock(_ type: String, _ decoder: any Decoder) -> DecodingError {
    let text = "unknown type of content: \(type)"
    return .dataCorrupted(DecodingError.Context(codingPath: decoder.codingPath, debugDescription: text))
}

private func encodeBlock(_ type: String, _ block: some Encodable, _ encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: TypeKey.self)
    try members.encode(type, forKey: .type)
    try block.encode(to: encoder)
}

/// One block, or an array of blocks, which revisions before 2025-11-25 do not have.
private func decodeBlocks<Key: CodingKey>(_ members: KeyedDecodingContainer<Key>, _ key: Key) throws -> [SamplingContent] {
    if case .array = try members.decode(JSON.self, forKey: key) {
        return try members.decode([SamplingContent].self, forKey: key)
    }
    return [try members.decode(SamplingContent.self, forKey: key)]
}

private func encodeBlocks<Key: CodingKey>(
    _ content: [SamplingContent], _ members: inout KeyedEncodingContainer<Key>, _ key: Key
) throws {
    switch content.count == 1 ? content.first : nil {
    case .text, .image, .audio: try members.encode(content[0], forKey: key)
    default: try members.encode(content, forKey: key)
    }
}

extension SamplingMessage {
    /// Decodes a message, whose content may be one block.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        role = try members.decode(Role.self, forKey: .role)
        content = try decodeBlocks(members, .content)
        meta = try members.decodeIfPresent(JSONObject.self, forKey: .meta)
    }

    /// Encodes the message.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(role, forKey: .role)
        try encodeBlocks(content, &members, .content)
        try members.encodeIfPresent(meta, forKey: .meta)
    }
}

extension CallToolResult {
    /// Decodes a result. `content` may be absent, and structured content may be `null`.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        content = try members.decodeIfPresent([ContentBlock].self, forKey: .content) ?? []
        structuredContent =
            members.contains(.structuredContent) ? try members.decode(JSON.self, forKey: .structuredContent) : nil
        isError = try members.decodeIfPresent(Bool.self, forKey: .isError)
        meta = try members.decodeIfPresent(JSONObject.self, forKey: .meta)
    }
}

extension CreateMessageResult {
    /// Decodes a result, whose content may be one block.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        role = try members.decode(Role.self, forKey: .role)
        content = try decodeBlocks(members, .content)
        model = try members.decode(String.self, forKey: .model)
        stopReason = try members.decodeIfPresent(String.self, forKey: .stopReason)
        meta = try members.decodeIfPresent(JSONObject.self, forKey: .meta)
    }

    /// Encodes the result.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(role, forKey: .role)
        try encodeBlocks(content, &members, .content)
        try members.encode(model, forKey: .model)
        try members.encodeIfPresent(stopReason, forKey: .stopReason)
        try members.encodeIfPresent(meta, forKey: .meta)
    }
}

/// A notification of a server.
public struct ServerNotification: Hashable, Sendable {
    /// The method: `notifications/tools/list_changed`.
    public var method: String

    /// The parameters.
    public var params: JSONObject
}

/// A progress report (`basic/utilities/progress`).
public struct ProgressReport: Hashable, Sendable {
    /// Progress so far; increases with each report.
    public var progress: Double

    /// Value of ``progress`` at the end, if known.
    public var total: Double?

    /// Description of the current step.
    public var message: String?

    /// Creates a report.
    public init(_ progress: Double, total: Double? = nil, message: String? = nil) {
        self.progress = progress
        self.total = total
        self.message = message
    }
}
