import Foundation

/// A type with a JSON Schema of its own, which is used instead of a derived one.
///
/// If another type has a property of this type, its schema is derived by decoding a value that matches ``jsonSchema``. If the schema
/// restricts values by more than `type`, `enum` and `required`, such as by a `pattern`, add a valid value as `examples`. A type that
/// conforms to `CaseIterable` needs none.
///
/// ```swift
/// enum Shape: Codable, JSONSchemaProviding {
///     case circle(radius: Double)
///     case square(side: Double)
///
///     static var jsonSchema: JSONObject { ["type": "object", "examples": [["circle": ["radius": 1]]]] }
/// }
/// ```
public protocol JSONSchemaProviding {
    /// The JSON Schema (2020-12).
    static var jsonSchema: JSONObject { get }
}

/// A type whose derived JSON Schema has descriptions, for the model or the user.
///
/// ```swift
/// struct Forecast: Codable, SchemaDescriptionProviding {
///     var city: String
///     static let descriptions = ["city": "The name of a city"]
/// }
/// ```
public protocol SchemaDescriptionProviding {
    /// Descriptions of the properties, by their names in JSON.
    static var descriptions: [String: String] { get }

    /// Description of the type. Default: none.
    static var typeDescription: String? { get }
}

extension SchemaDescriptionProviding {
    /// None.
    public static var typeDescription: String? { nil }
}

/// Returns the JSON Schema (2020-12) of a type.
///
/// The schema is derived from what the type decodes. A property is required unless it is optional, or decoded with
/// `decodeIfPresent`. Enums with raw values need `CaseIterable`; an enum with associated values, and a type that refuses
/// samples in `init(from:)`, needs ``JSONSchemaProviding``. ``SchemaDescriptionProviding`` adds descriptions.
///
/// - Throws: ``McplineError/usage(_:)`` if the schema can't be derived.
public func jsonSchema<T: Decodable>(of type: T.Type) throws -> JSONObject {
    let writer = SchemaWriter()
    do {
        return try writer.root(type)
    } catch let error as McplineError {
        throw error
    } catch {
        throw underivable(type, describe(error))
    }
}

/// Returns the JSON Schema of a form that asks the user for a value of this type: see ``CallContext/elicit(_:as:key:)``.
///
/// It is that of ``jsonSchema(of:)``, but optional properties have no `null`: a form leaves them out.
///
/// - Throws: ``McplineError/usage(_:)`` if the schema can't be derived.
public func formSchema<T: Decodable>(of type: T.Type) throws -> JSONObject {
    var schema = try jsonSchema(of: type)
    var properties = JSONObject()
    for (name, property) in schema["properties"]?.objectValue ?? [:] {
        properties[name] = .object(withoutNull(property.objectValue ?? [:]))
    }
    schema["properties"] = .object(properties)
    return schema
}

private func withoutNull(_ property: JSONObject) -> JSONObject {
    var property = property
    if let type = property["type"]?[0] { property["type"] = type }
    guard let value = property["anyOf"]?[0]?.objectValue, property["anyOf"]?[1] == ["type": "null"] else { return property }
    property["anyOf"] = nil
    return value.merging(property)
}

private func underivable(_ type: Any.Type, _ reason: String) -> McplineError {
    .usage(ErrorDetails("the JSON Schema of \(type) can't be derived (\(reason)): conform to JSONSchemaProviding"))
}

private protocol OptionalType {
    static var wrappedType: any Decodable.Type { get }
}

extension Optional: OptionalType where Wrapped: Decodable {
    fileprivate static var wrappedType: any Decodable.Type { Wrapped.self }
}

private protocol ListType {
    static var itemType: any Decodable.Type { get }
    static var isUnique: Bool { get }
}

extension Array: ListType where Element: Decodable {
    fileprivate static var itemType: any Decodable.Type { Element.self }
    fileprivate static var isUnique: Bool { false }
}

extension Set: ListType where Element: Decodable {
    fileprivate static var itemType: any Decodable.Type { Element.self }
    fileprivate static var isUnique: Bool { true }
}

private protocol MapType {
    static var valueType: any Decodable.Type { get }
}

extension Dictionary: MapType where Key == String, Value: Decodable {
    fileprivate static var valueType: any Decodable.Type { Value.self }
}

/// Derives schemas: decodes each type from samples, and records what it asks for.
private final class SchemaWriter {
    /// Types that are being described, so that one within itself becomes a reference.
    private var open: [ObjectIdentifier] = []
    private var definitions = JSONObject()
    private var definitionNames: [ObjectIdentifier: String] = [:]
    private var recursive: Set<ObjectIdentifier> = []
    /// Maximum nesting depth of samples, which ends only for types that do not contain themselves.
    private static let maxDepth = 64
    private var sampleDepth = 0

    func root<T: Decodable>(_ type: T.Type) throws -> JSONObject {
        if let provider = type as? any JSONSchemaProviding.Type { return provider.jsonSchema }
        let schema = try schema(type)
        if definitions.isEmpty { return schema }
        // The root itself is described in place, because the schema of a tool must be an object.
        let name = schema["$ref"]?.stringValue?.split(separator: "/").last.map(String.init)
        let base = name.flatMap { definitions[$0]?.objectValue } ?? schema
        return base.merging(["$defs": .object(definitions)])
    }

    func schema(_ type: any Decodable.Type) throws -> JSONObject {
        if let provider = type as? any JSONSchemaProviding.Type { return nested(provider.jsonSchema, type) }
        if let type = type as? any OptionalType.Type { return nullable(try schema(type.wrappedType)) }
        if let simple = simple(type) { return simple.schema }
        if let type = type as? any ListType.Type {
            let list: JSONObject = ["type": "array", "items": .object(try schema(type.itemType))]
            return type.isUnique ? list.merging(["uniqueItems": true]) : list
        }
        if let type = type as? any MapType.Type {
            return ["type": "object", "additionalProperties": .object(try schema(type.valueType))]
        }
        if let values = try enumValues(type) {
            let kind: JSON = values.allSatisfy { $0.stringValue != nil } ? "string" : "integer"
            return described(["type": kind, "enum": .array(values)], type)
        }
        return try named(type) { try self.probe(type).schema }
    }

    /// Returns a value of the type, for the decoder of the type that contains it.
    func sample<T: Decodable>(_ type: T.Type) throws -> T {
        let json: JSON
        if let type = type as? any JSONSchemaProviding.Type {
            for sample in samples(of: type.jsonSchema) {
                if let value = try? decodeJSON(T.self, sample) { return value }
            }
            if let type = T.self as? any CaseIterable.Type, let value = firstCase(type) as? T { return value }
            // It may still decode what its properties ask for.
            if let value = try? T(from: Probe(writer: self, type: T.self, records: false)) { return value }
            throw McplineError.usage(ErrorDetails(
                "\(type): cannot derive the schema of a type with this property: no value that matches `jsonSchema` could be "
                    + "decoded; add a valid value to `examples` in `jsonSchema`"))
        }
        if let simple = simple(type) {
            json = simple.sample
        } else if type is any OptionalType.Type {
            json = .null
        } else if type is any ListType.Type {
            json = []
        } else if type is any MapType.Type {
            json = [:]
        } else if let first = try enumValues(type)?.first {
            json = first
        } else {
            guard sampleDepth < Self.maxDepth else { throw underivable(type, "it contains itself") }
            sampleDepth += 1
            defer { sampleDepth -= 1 }
            return try T(from: Probe(writer: self, type: type, records: false))
        }
        return try decodeJSON(type, json)
    }

    private func probe(_ type: any Decodable.Type) throws -> Probe {
        let probe = Probe(writer: self, type: type, records: true)
        _ = try type.init(from: probe)
        return probe
    }

    private func simple(_ type: any Decodable.Type) -> (schema: JSONObject, sample: JSON)? {
        switch type {
        case is String.Type: return (["type": "string"], "")
        case is Bool.Type: return (["type": "boolean"], false)
        case is any UnsignedInteger.Type: return (["type": "integer", "minimum": 0], 0)
        case is any FixedWidthInteger.Type: return (["type": "integer"], 0)
        case is Double.Type, is Float.Type, is Decimal.Type, is Duration.Type: return (["type": "number"], 0)
        case is Date.Type: return (["type": "string", "format": "date-time"], "2026-07-28T00:00:00Z")
        case is URL.Type: return (["type": "string", "format": "uri"], "https://example.com/")
        case is UUID.Type: return (["type": "string", "format": "uuid"], "00000000-0000-0000-0000-000000000000")
        case is Data.Type: return (["type": "string", "contentEncoding": "base64"], "")
        case is JSON.Type: return ([:], .null)
        case is JSONObject.Type: return (["type": "object"], [:])
        default: return nil
        }
    }

    /// Returns the raw values of an enum; `nil` for other types.
    private func enumValues(_ type: any Decodable.Type) throws -> [JSON]? {
        guard let type = type as? any CaseIterable.Type else { return nil }
        return try cases(type)
    }

    private func firstCase<C: CaseIterable>(_ type: C.Type) -> Any? { type.allCases.first }

    private func cases<C: CaseIterable>(_ type: C.Type) throws -> [JSON] {
        try type.allCases.map { value in
            guard let value = value as? any RawRepresentable else { throw underivable(type, "it has no raw values") }
            switch value.rawValue {
            case let text as String: return .string(text)
            case let number as any BinaryInteger: return .integer(Int(number))
            default: throw underivable(type, "its raw values are neither strings nor integers")
            }
        }
    }

    private func named(_ type: any Decodable.Type, _ describe: () throws -> JSONObject) throws -> JSONObject {
        let id = ObjectIdentifier(type)
        if open.contains(id) {
            recursive.insert(id)
            return ["$ref": "#/$defs/\(definitionName(type))"]
        }
        open.append(id)
        defer { open.removeLast() }
        let schema = described(try describe(), type)
        if !recursive.contains(id) { return schema }
        let name = definitionName(type)
        definitions[name] = .object(schema)
        return ["$ref": "#/$defs/\(name)"]
    }

    /// Returns a schema that a type within the root provides. One that refers to itself or to its own `$defs` becomes a definition,
    /// to whose place these references are changed.
    private func nested(_ schema: JSONObject, _ type: any Decodable.Type) -> JSONObject {
        // Its references are relative to its identifier.
        if schema["$id"] != nil || !hasReferences(schema) { return schema }
        let place = "#/$defs/\(definitionName(type))"
        definitions[definitionName(type)] = .object(relocated(schema, to: place))
        return ["$ref": .string(place)]
    }

    /// Returns the name of the definition of a type. Types of the same name in different types have different ones, and it needs
    /// no escapes in a reference: `Tree<Int>` is `Tree_Int`.
    private func definitionName(_ type: any Decodable.Type) -> String {
        let id = ObjectIdentifier(type)
        if let name = definitionNames[id] { return name }
        let words = "\(type)".split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }
        let base = words.isEmpty ? "Type" : words.joined(separator: "_")
        let taken = Set(definitionNames.values)
        var name = base
        var number = 2
        while taken.contains(name) {
            name = base + String(number)
            number += 1
        }
        definitionNames[id] = name
        return name
    }

    private func nullable(_ schema: JSONObject) -> JSONObject {
        if schema.isEmpty { return schema }
        guard case .string(let type) = schema["type"], schema["enum"] == nil, schema["anyOf"] == nil else {
            return ["anyOf": [.object(schema), ["type": "null"]]]
        }
        return schema.merging(["type": [.string(type), "null"]])
    }

    private func described(_ schema: JSONObject, _ type: any Decodable.Type) -> JSONObject {
        guard let type = type as? any SchemaDescriptionProviding.Type, let text = type.typeDescription else { return schema }
        return schema.merging(["description": .string(text)])
    }
}

/// A decoder that records what a type asks for, and returns samples.
private final class Probe: Decoder {
    let writer: SchemaWriter
    let type: any Decodable.Type
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private var properties = JSONObject()
    private var required: [JSON] = []
    private var value: JSONObject?

    /// Whether schemas are recorded. Otherwise only a sample is wanted.
    private let records: Bool

    init(writer: SchemaWriter, type: any Decodable.Type, records: Bool) {
        self.writer = writer
        self.type = type
        self.records = records
    }

    var schema: JSONObject {
        if let value { return value }
        let base: JSONObject = ["type": "object", "properties": .object(properties)]
        return required.isEmpty ? base : base.merging(["required": .array(required)])
    }

    func property(_ key: any CodingKey, _ type: any Decodable.Type, isRequired: Bool) throws {
        guard records else { return }
        var schema = try writer.schema(type)
        if let text = (self.type as? any SchemaDescriptionProviding.Type)?.descriptions[key.stringValue] {
            schema["description"] = .string(text)
        }
        properties[key.stringValue] = .object(schema)
        if isRequired, !required.contains(.string(key.stringValue)) { required.append(.string(key.stringValue)) }
    }

    func wholeValue(_ type: any Decodable.Type) throws {
        if records { value = try writer.schema(type) }
    }

    func unsupported(_ what: String) -> McplineError { underivable(type, what) }

    func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(KeyedProbe(probe: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw unsupported("it decodes an array of its own") }

    func singleValueContainer() -> any SingleValueDecodingContainer { SingleProbe(probe: self) }
}

private struct KeyedProbe<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let probe: Probe
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { [] }

    func contains(_ key: Key) -> Bool { true }

    func decodeNil(forKey key: Key) -> Bool { false }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try probe.property(key, type, isRequired: !(type is any OptionalType.Type))
        return try probe.writer.sample(type)
    }

    private func optional<T: Decodable>(_ type: T.Type, _ key: Key) throws -> T? {
        try probe.property(key, T?.self, isRequired: false)
        return nil
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? { try optional(type, key) }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try optional(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try optional(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try optional(type, key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try optional(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try optional(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try optional(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try optional(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try optional(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try optional(type, key) }

    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey: Key) throws -> KeyedDecodingContainer<Nested> {
        throw probe.unsupported("it decodes a nested object")
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        throw probe.unsupported("it decodes a nested array")
    }

    func superDecoder() throws -> any Decoder { throw probe.unsupported("it has a superclass") }

    func superDecoder(forKey key: Key) throws -> any Decoder { throw probe.unsupported("it has a superclass") }
}

private struct SingleProbe: SingleValueDecodingContainer {
    let probe: Probe
    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { false }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try probe.wholeValue(type)
        return try probe.writer.sample(type)
    }
}
