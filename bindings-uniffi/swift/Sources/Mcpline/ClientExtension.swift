/// Handlers of a protocol extension that a client supports: see ``ClientBuilder/extension(_:settings:configure:)``.
public struct ClientExtension: Sendable {
    private let identifier: String
    private let settings: JSONObject
    private(set) var requests: [String: @Sendable (JSONObject) async throws -> JSON] = [:]
    private(set) var resultTypes: [String: @Sendable (ReceivedResult) async throws -> JSONObject] = [:]

    init(_ identifier: String, settings: JSONObject) {
        self.identifier = identifier
        self.settings = settings
    }

    /// Answers custom requests of the server that belong to the extension.
    public mutating func onRequest(
        _ method: String, _ handler: @escaping @Sendable (_ params: JSONObject) async throws -> JSONObject
    ) {
        requests[method] = { params in .object(try await handler(params)) }
    }

    /// Resolves results of a type that the extension defines (2026-07-28).
    ///
    /// - Parameter handler: Returns the ordinary result of the method, which the caller gets. It may send requests. If it throws,
    ///   the call fails with ``McplineError/inputRequestFailed(_:)``.
    public mutating func onResultType(
        _ resultType: String, _ handler: @escaping @Sendable (_ received: ReceivedResult) async throws -> JSONObject
    ) {
        resultTypes[resultType] = handler
    }

    /// As the core reads it.
    var json: JSON {
        [
            "identifier": .string(identifier),
            "settings": .object(settings),
            "requests": .array(requests.keys.sorted().map(JSON.string)),
            "result_types": .array(resultTypes.keys.sorted().map(JSON.string)),
        ]
    }
}

/// A result of a type that an extension defines: see ``ClientExtension/onResultType(_:_:)``.
public struct ReceivedResult: Decodable, Hashable, Sendable {
    /// Method of the request.
    public let method: String

    /// Parameters of the request.
    public let params: JSONObject

    /// The result as the server sent it.
    public let result: JSONObject

    private enum CodingKeys: String, CodingKey {
        case method, params, result
    }

    /// Decodes a result as the core describes it.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        method = try container.decode(String.self, forKey: .method)
        params = try container.decodeIfPresent(JSONObject.self, forKey: .params) ?? [:]
        result = try container.decode(JSONObject.self, forKey: .result)
    }
}
