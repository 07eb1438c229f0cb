/// A tool call that is about to be sent: see ``ClientBuilder/onToolCall(_:)``.
public struct ToolCall: Decodable, Hashable, Sendable {
    /// Number of the call, unique in this process.
    public let id: Int

    /// Name of the tool.
    public let name: String

    /// Arguments of the tool.
    public let arguments: JSONObject

    /// Annotations of the tool, if it was listed. Do not rely on them unless you trust the server.
    public let annotations: ToolAnnotations?

    private enum CodingKeys: String, CodingKey {
        case id, name, arguments, annotations
    }

    /// Decodes a call as the core describes it.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(Int.self, forKey: .id)
        name = try container.decode(String.self, forKey: .name)
        arguments = try container.decodeIfPresent(JSONObject.self, forKey: .arguments) ?? [:]
        annotations = try container.decodeIfPresent(ToolAnnotations.self, forKey: .annotations)
    }
}

/// The error of a tool call without a result.
public struct ToolCallError: Decodable, Hashable, Sendable {
    /// The kind of the error, as ``McplineError/kind``; `request_cancelled` if the caller cancelled the call.
    public let kind: String

    /// The message.
    public let message: String
}

/// The end of a tool call: see ``ClientBuilder/onToolOutcome(_:)``.
public struct ToolCallOutcome: Decodable, Hashable, Sendable {
    /// The call.
    public let call: ToolCall

    /// The result as the server sent it, also if it has `isError`; `nil` if there is none.
    public let result: JSONObject?

    /// The error, if there is no result.
    public let error: ToolCallError?
}
