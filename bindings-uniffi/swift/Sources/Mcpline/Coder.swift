import Foundation

/// Maximum number of seconds that are converted to a `Duration`, which traps at about ten times as many.
let maxDurationSeconds = 1e18

extension JSON: Codable {
    /// Decodes any value, from any format.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? ValueDecoder {
            self = decoder.value
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(UInt64.self) {
            self = .decimal(Decimal(value))
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode(JSONObject.self))
        }
    }

    /// Encodes the value.
    public func encode(to encoder: any Encoder) throws {
        if let encoder = encoder as? ValueEncoder {
            encoder.node.content = .value(self)
            return
        }
        if case .object(let object) = self { return try object.encode(to: encoder) }
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .decimal(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object: break
        }
    }
}

extension JSONObject: Codable {
    /// Decodes an object, from any format.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? ValueDecoder {
            guard case .object(let object) = decoder.value else { throw decoder.mismatch("an object") }
            self = object
            return
        }
        let members = try decoder.container(keyedBy: AnyKey.self)
        self.init(try members.allKeys.map { ($0.stringValue, try members.decode(JSON.self, forKey: $0)) })
    }

    /// Encodes the object.
    public func encode(to encoder: any Encoder) throws {
        if let encoder = encoder as? ValueEncoder {
            encoder.node.content = .value(.object(self))
            return
        }
        var members = encoder.container(keyedBy: AnyKey.self)
        for (name, value) in self { try members.encode(value, forKey: AnyKey(name)) }
    }
}

/// A key that is any string or index.
struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ name: String) {
        stringValue = name
        intValue = nil
    }

    init(stringValue: String) { self.init(stringValue) }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}

/// Encodes a value as JSON. With `snakeCase`, names of properties are in snake case, as in the options of the core.
func encodeJSON(_ value: some Encodable, snakeCase: Bool = false) throws -> JSON {
    let node = EncodedNode()
    try encode(value, to: node, path: [], snakeCase: snakeCase)
    return node.json
}

/// Decodes a value. With `fromStrings`, numbers and booleans are read from strings: the arguments of prompts.
func decodeJSON<T: Decodable>(_ type: T.Type, _ json: JSON, fromStrings: Bool = false) throws -> T {
    try ValueDecoder(json, path: [], fromStrings: fromStrings).decode(type)
}

/// Describes why a value could not be decoded: the place, and what is wrong.
func describe(_ error: any Error) -> String {
    let context: DecodingError.Context
    switch error {
    case DecodingError.typeMismatch(_, let found), DecodingError.valueNotFound(_, let found), DecodingError.dataCorrupted(let found):
        context = found
    case DecodingError.keyNotFound(let key, let found):
        let place = (found.codingPath.map(\.stringValue) + [key.stringValue]).joined(separator: ".")
        return "\(place): missing"
    default: return "\(error)"
    }
    let place = context.codingPath.map(\.stringValue).joined(separator: ".")
    return place.isEmpty ? context.debugDescription : "\(place): \(context.debugDescription)"
}

// MARK: - Encoding

/// A value that is being encoded.
private final class EncodedNode {
    enum Content {
        case value(JSON)
        case object
        case array
    }

    var content = Content.object
    private var members: [(String, EncodedNode)] = []
    private(set) var items: [EncodedNode] = []

    var json: JSON {
        switch content {
        case .value(let value): value
        case .object: .object(JSONObject(members.map { ($0, $1.json) }))
        case .array: .array(items.map(\.json))
        }
    }

    func member(_ name: String) -> EncodedNode {
        let node = EncodedNode()
        members.append((name, node))
        return node
    }

    func item() -> EncodedNode {
        let node = EncodedNode()
        items.append(node)
        return node
    }
}

private protocol StringDictionary {
    func encodeMembers(to node: EncodedNode, path: [any CodingKey], snakeCase: Bool) throws
}

extension Dictionary: StringDictionary where Key == String, Value: Encodable {
    /// Keys are data, whose case is kept.
    fileprivate func encodeMembers(to node: EncodedNode, path: [any CodingKey], snakeCase: Bool) throws {
        node.content = .object
        for name in keys.sorted() {
            guard let value = self[name] else { continue }
            try encode(value, to: node.member(name), path: path + [AnyKey(name)], snakeCase: snakeCase)
        }
    }

    private func encode(_ value: Value, to node: EncodedNode, path: [any CodingKey], snakeCase: Bool) throws {
        try Mcpline.encode(value, to: node, path: path, snakeCase: snakeCase)
    }
}

private func encode(_ value: some Encodable, to node: EncodedNode, path: [any CodingKey], snakeCase: Bool) throws {
    switch value {
    case let value as String: node.content = .value(.string(value))
    case let value as Bool: node.content = .value(.bool(value))
    case let value as Int: node.content = .value(.integer(value))
    case let value as any BinaryInteger: node.content = .value(JSON(number: "\(value)", isInteger: true) ?? .null)
    case let value as Decimal:
        let text = "\(value)"
        node.content = .value(JSON(number: text, isInteger: !text.contains(".")) ?? .null)
    case let value as Double: node.content = .value(.number(value))
    case let value as Float: node.content = .value(.number(Double(value)))
    case let value as Duration: node.content = .value(.number(value.seconds))
    case let value as Date:
        guard let text = value.rfc3339 else {
            let context = EncodingError.Context(codingPath: path, debugDescription: "`Date`: the year must be from 0 to 9999")
            throw EncodingError.invalidValue(value, context)
        }
        node.content = .value(.string(text))
    case let value as Data: node.content = .value(.string(value.base64EncodedString()))
    case let value as URL: node.content = .value(.string(value.absoluteString))
    case let value as any StringDictionary: try value.encodeMembers(to: node, path: path, snakeCase: snakeCase)
    default: try value.encode(to: ValueEncoder(node, path, snakeCase))
    }
}

private final class ValueEncoder: Encoder {
    let node: EncodedNode
    let codingPath: [any CodingKey]
    let snakeCase: Bool
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(_ node: EncodedNode, _ path: [any CodingKey], _ snakeCase: Bool) {
        self.node = node
        codingPath = path
        self.snakeCase = snakeCase
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        node.content = .object
        return KeyedEncodingContainer(KeyedWriter(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.content = .array
        return UnkeyedWriter(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { SingleWriter(encoder: self) }
}

private struct KeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: ValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    private func member(_ key: some CodingKey) -> ValueEncoder {
        let name = encoder.snakeCase ? snakeCased(key.stringValue) : key.stringValue
        return ValueEncoder(encoder.node.member(name), codingPath + [key], encoder.snakeCase)
    }

    func encodeNil(forKey key: Key) { member(key).node.content = .value(.null) }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        let member = member(key)
        try Mcpline.encode(value, to: member.node, path: member.codingPath, snakeCase: encoder.snakeCase)
    }

    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
        member(key).container(keyedBy: Nested.self)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { member(key).unkeyedContainer() }

    func superEncoder() -> any Encoder { member(AnyKey("super")) }

    func superEncoder(forKey key: Key) -> any Encoder { member(key) }
}

private struct UnkeyedWriter: UnkeyedEncodingContainer {
    let encoder: ValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.node.items.count }

    private func item() -> ValueEncoder {
        let path = codingPath + [AnyKey(intValue: count)]
        return ValueEncoder(encoder.node.item(), path, encoder.snakeCase)
    }

    func encodeNil() { item().node.content = .value(.null) }

    func encode<T: Encodable>(_ value: T) throws {
        let item = item()
        try Mcpline.encode(value, to: item.node, path: item.codingPath, snakeCase: encoder.snakeCase)
    }

    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type) -> KeyedEncodingContainer<Nested> {
        item().container(keyedBy: Nested.self)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { item().unkeyedContainer() }

    func superEncoder() -> any Encoder { item() }
}

private struct SingleWriter: SingleValueEncodingContainer {
    let encoder: ValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil() { encoder.node.content = .value(.null) }

    func encode<T: Encodable>(_ value: T) throws {
        try Mcpline.encode(value, to: encoder.node, path: codingPath, snakeCase: encoder.snakeCase)
    }
}

private func snakeCased(_ name: String) -> String {
    var snake = ""
    for character in name {
        if character.isUppercase { snake += "_" }
        snake += character.lowercased()
    }
    return snake
}

extension Duration {
    /// In seconds, as the core reads it.
    var seconds: Double {
        // `components` of longer ones trap. The core takes this as no limit.
        if self > .seconds(Int64.max) { return Double(Int64.max) }
        if self < .seconds(Int64.min) { return Double(Int64.min) }
        return Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

// MARK: - Decoding

private final class ValueDecoder: Decoder {
    let value: JSON
    let codingPath: [any CodingKey]
    let fromStrings: Bool
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(_ value: JSON, path: [any CodingKey], fromStrings: Bool) {
        self.value = value
        codingPath = path
        self.fromStrings = fromStrings
    }

    func mismatch(_ expected: String) -> DecodingError {
        .typeMismatch(JSON.self, DecodingError.Context(codingPath: codingPath, debugDescription: "expected \(expected)"))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let members) = value else { throw mismatch("an object") }
        return KeyedDecodingContainer(KeyedReader(decoder: self, members: members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let items) = value else { throw mismatch("an array") }
        return UnkeyedReader(decoder: self, items: items)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { SingleReader(decoder: self) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let found = try primitive(type) {
            guard let value = found as? T else { throw mismatch("\(type)") }
            return value
        }
        return try T(from: self)
    }

    /// Returns a value of a type that JSON or this library defines; `nil` for all other types.
    private func primitive(_ type: any Decodable.Type) throws -> Any? {
        switch type {
        case is String.Type: return try string()
        case is Bool.Type: return try bool()
        case is Double.Type: return try number()
        case is Float.Type: return Float(try number())
        case is Decimal.Type: return try decimal()
        case let type as any FixedWidthInteger.Type: return try integer(type)
        case is Duration.Type: return Duration.seconds(try seconds())
        case is Date.Type:
            guard let date = Date(rfc3339: try string()) else { throw mismatch("a date and time (RFC 3339)") }
            return date
        case is Data.Type:
            guard let data = Data(base64Encoded: try string()) else { throw mismatch("base64") }
            return data
        case is URL.Type:
            guard let url = URL(string: try string()) else { throw mismatch("a URL") }
            return url
        default: return nil
        }
    }

    private func string() throws -> String {
        guard case .string(let text) = value else { throw mismatch("a string") }
        return text
    }

    private func bool() throws -> Bool {
        switch value {
        case .bool(let value): return value
        case .string("true") where fromStrings: return true
        case .string("false") where fromStrings: return false
        default: throw mismatch("a boolean")
        }
    }

    private func number() throws -> Double {
        if let number = value.numberValue { return number }
        if fromStrings, case .string(let text) = value, let number = Double(text) { return number }
        throw mismatch("a number")
    }

    private func decimal() throws -> Decimal {
        if let number = value.decimalValue { return number }
        if fromStrings, case .string(let text) = value, Double(text) != nil, let number = Decimal(string: text) {
            return number
        }
        throw mismatch("a number")
    }

    /// Returns a number that a `Duration` can hold: the program would end at a larger one.
    private func seconds() throws -> Double {
        let number = try number()
        guard number.magnitude <= maxDurationSeconds else { throw mismatch("a number of seconds") }
        return number
    }

    private func integer<I: FixedWidthInteger>(_ type: I.Type) throws -> I {
        let found: I? =
            switch value {
            case .integer(let value): I(exactly: value)
            case .number(let value): I(exactly: value)
            case .decimal(let value): I("\(value)")
            case .string(let text) where fromStrings: I(text)
            default: throw mismatch("an integer")
            }
        guard let found else { throw mismatch("an integer from \(I.min) to \(I.max)") }
        return found
    }
}

private struct KeyedReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: ValueDecoder
    let members: JSONObject
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { members.names.compactMap(Key.init(stringValue:)) }

    private func member(_ key: some CodingKey) throws -> ValueDecoder {
        guard let value = members[key.stringValue] else {
            throw DecodingError.keyNotFound(key, DecodingError.Context(codingPath: codingPath, debugDescription: "missing"))
        }
        return ValueDecoder(value, path: codingPath + [key], fromStrings: decoder.fromStrings)
    }

    func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try member(key).value == .null }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try member(key).decode(type) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try member(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try member(key).unkeyedContainer() }

    func superDecoder() throws -> any Decoder { try member(AnyKey("super")) }

    func superDecoder(forKey key: Key) throws -> any Decoder { try member(key) }
}

private struct UnkeyedReader: UnkeyedDecodingContainer {
    let decoder: ValueDecoder
    let items: [JSON]
    var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex == items.count }

    init(decoder: ValueDecoder, items: [JSON]) {
        self.decoder = decoder
        self.items = items
    }

    private func item() throws -> ValueDecoder {
        let path = codingPath + [AnyKey(intValue: currentIndex)]
        guard !isAtEnd else {
            let context = DecodingError.Context(codingPath: path, debugDescription: "the array ends here")
            throw DecodingError.valueNotFound(JSON.self, context)
        }
        return ValueDecoder(items[currentIndex], path: path, fromStrings: decoder.fromStrings)
    }

    mutating func decodeNil() throws -> Bool {
        guard try item().value == .null else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let value = try item().decode(type)
        currentIndex += 1
        return value
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
        let container = try item().container(keyedBy: type)
        currentIndex += 1
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try item().unkeyedContainer()
        currentIndex += 1
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try item()
        currentIndex += 1
        return decoder
    }
}

private struct SingleReader: SingleValueDecodingContainer {
    let decoder: ValueDecoder
    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool { decoder.value == .null }

    func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode(type) }
}
