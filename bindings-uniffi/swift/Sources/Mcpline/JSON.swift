import Foundation

/// A JSON value.
///
/// ```swift
/// let value: JSON = ["city": "Oslo", "days": [1, 2], "wind": .null]
/// ```
public enum JSON: Hashable, Sendable {
    /// `null`.
    case null

    /// A boolean.
    case bool(Bool)

    /// A number without fraction and exponent, in the range of `Int`.
    case integer(Int)

    /// Any other number that a `Double` can hold.
    case number(Double)

    /// A number that neither `Int` nor `Double` can hold, with up to 38 digits: `18446744073709551615`.
    case decimal(Decimal)

    /// A string.
    case string(String)

    /// An array.
    case array([JSON])

    /// An object.
    case object(JSONObject)

    /// Parses a JSON text.
    ///
    /// - Throws: ``McplineError/usage(_:)`` if the text is not JSON.
    public init(parsing text: String) throws {
        var parser = JSONParser(text)
        guard let value = parser.document() else {
            throw McplineError.usage(ErrorDetails("invalid JSON at byte \(parser.position)"))
        }
        self = value
    }

    /// Encodes a value as JSON. Members keep the order in which they are encoded.
    ///
    /// A `Date` becomes a string (RFC 3339, with microseconds), `Data` base64, and a `Duration` a number of seconds.
    public init(encoding value: some Encodable) throws {
        self = try encodeJSON(value)
    }

    /// Decodes a value from this JSON.
    ///
    /// - Throws: `DecodingError`.
    public func decode<T: Decodable>(as type: T.Type = T.self) throws -> T {
        try decodeJSON(type, self)
    }

    /// The JSON text.
    public var text: String {
        var bytes: [UInt8] = []
        write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The value, if this is a string.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }

    /// The value, if this is a boolean.
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The value, if this is an integer.
    public var integerValue: Int? { if case .integer(let value) = self { value } else { nil } }

    /// The value, if this is a number. Rounded to the nearest `Double` if it has more digits.
    public var numberValue: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .decimal(let value): Double("\(value)")
        default: nil
        }
    }

    /// The value, if this is a number with up to 38 digits.
    public var decimalValue: Decimal? {
        switch self {
        case .integer(let value): Decimal(value)
        // By its text: `Decimal(0.1 + 0.2)` and others have digits that the number does not have.
        case .number(let value): value.isFinite ? Decimal(string: "\(value)") : nil
        case .decimal(let value): value
        default: nil
        }
    }

    /// The items, if this is an array.
    public var arrayValue: [JSON]? { if case .array(let value) = self { value } else { nil } }

    /// The members, if this is an object.
    public var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }

    /// A member, if this is an object that has it.
    public subscript(name: String) -> JSON? { objectValue?[name] }

    /// An item, if this is an array that has it.
    public subscript(index: Int) -> JSON? {
        guard let items = arrayValue, items.indices.contains(index) else { return nil }
        return items[index]
    }
}

/// A JSON object. Members keep their order, which equality ignores.
public struct JSONObject: Hashable, Sendable {
    /// The names of the members, in order.
    public private(set) var names: [String] = []
    private var values: [String: JSON] = [:]

    /// Creates an object without members.
    public init() {}

    /// Creates an object of these members. A later one replaces an earlier one of the same name.
    public init(_ members: some Sequence<(String, JSON)>) {
        for (name, value) in members { self[name] = value }
    }

    /// Parses a JSON text that is an object.
    ///
    /// - Throws: ``McplineError/usage(_:)`` if the text is not a JSON object.
    public init(parsing text: String) throws {
        guard case .object(let object) = try JSON(parsing: text) else {
            throw McplineError.usage(ErrorDetails("the JSON is not an object"))
        }
        self = object
    }

    /// Encodes a value as a JSON object.
    ///
    /// - Throws: ``McplineError/usage(_:)`` if the value is not encoded as an object.
    public init(encoding value: some Encodable) throws {
        guard case .object(let object) = try encodeJSON(value) else {
            throw McplineError.usage(ErrorDetails("\(type(of: value)) is not encoded as a JSON object"))
        }
        self = object
    }

    /// A member. Setting `nil` removes it.
    public subscript(name: String) -> JSON? {
        get { values[name] }
        set {
            guard let newValue else {
                if values.removeValue(forKey: name) != nil { names.removeAll { $0 == name } }
                return
            }
            if values.updateValue(newValue, forKey: name) == nil { names.append(name) }
        }
    }

    /// Whether the object has no members.
    public var isEmpty: Bool { names.isEmpty }

    /// The JSON text.
    public var text: String { JSON.object(self).text }

    /// Whether two objects have the same members.
    public static func == (left: JSONObject, right: JSONObject) -> Bool { left.values == right.values }

    /// Hashes the members.
    public func hash(into hasher: inout Hasher) { hasher.combine(values) }

    /// Returns this object with the members of another one, which replace its own.
    public func merging(_ other: JSONObject) -> JSONObject {
        var merged = self
        for (name, value) in other { merged[name] = value }
        return merged
    }
}

extension JSONObject: Sequence {
    /// Returns an iterator over the members, in order.
    public func makeIterator() -> AnyIterator<(name: String, value: JSON)> {
        var remaining = names.makeIterator()
        return AnyIterator {
            guard let name = remaining.next(), let value = values[name] else { return nil }
            return (name, value)
        }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object from a literal.
    public init(dictionaryLiteral elements: (String, JSON)...) { self.init(elements) }
}

// Not by `nil`: `isKnown ? value : nil` would be `.null` where an optional is meant.
extension JSON: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Creates an integer.
    public init(integerLiteral value: Int) { self = .integer(value) }

    /// Creates a number.
    public init(floatLiteral value: Double) { self = .number(value) }

    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// Creates an array.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }

    /// Creates an object.
    public init(dictionaryLiteral elements: (String, JSON)...) { self = .object(JSONObject(elements)) }
}

extension JSON: CustomStringConvertible {
    /// The JSON text.
    public var description: String { text }
}

extension JSONObject: CustomStringConvertible {
    /// The JSON text.
    public var description: String { text }
}

extension JSON {
    fileprivate func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .integer(let value): bytes += String(value).utf8
        // JSON has neither infinities nor NaN.
        case .number(let value): bytes += (value.isFinite ? "\(value)" : "null").utf8
        case .decimal(let value): bytes += (value.isFinite ? "\(value)" : "null").utf8
        case .string(let value): writeString(value, to: &bytes)
        case .array(let items):
            bytes.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                item.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                writeString(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}

extension JSON {
    /// Creates a number from its text in JSON.
    init?(number text: String, isInteger: Bool) {
        if isInteger, let value = Int(text) {
            self = .integer(value)
            return
        }
        guard let double = Double(text) else { return nil }
        // A `Double` holds any 15 digits, a `Decimal` 38.
        let digits = text.prefix { $0 != "e" && $0 != "E" }.filter(\.isNumber).drop { $0 == "0" }.count
        if digits > 15, digits <= 38, let decimal = Decimal(string: text),
            isInteger || Decimal(string: "\(double)") != decimal
        {
            self = .decimal(decimal)
        } else {
            self = .number(double)
        }
    }
}

private let hexDigits = Array("0123456789abcdef".utf8)

private func writeString(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
        case 0x0A: bytes += "\\n".utf8
        case 0x0D: bytes += "\\r".utf8
        case 0x09: bytes += "\\t".utf8
        case 0..<0x20: bytes += "\\u00".utf8 + [hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
        default: bytes.append(byte)
        }
    }
    bytes.append(UInt8(ascii: "\""))
}

/// Parses JSON (RFC 8259).
private struct JSONParser {
    /// Maximum nesting depth, so that the recursion is bounded. The core accepts 127 levels.
    private static let maxDepth = 256

    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// Returns the value of the whole text; `nil` at the first error.
    mutating func document() -> JSON? {
        guard let value = value(0) else { return nil }
        skipSpace()
        return position == bytes.count ? value : nil
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func take(_ word: StaticString, _ value: JSON) -> JSON? {
        let count = word.utf8CodeUnitCount
        guard position + count <= bytes.count else { return nil }
        for offset in 0..<count where bytes[position + offset] != word.utf8Start[offset] { return nil }
        position += count
        return value
    }

    private mutating func value(_ depth: Int) -> JSON? {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return depth < Self.maxDepth ? object(depth + 1) : nil
        case UInt8(ascii: "["): return depth < Self.maxDepth ? array(depth + 1) : nil
        case UInt8(ascii: "\""): return string().map(JSON.string)
        case UInt8(ascii: "t"): return take("true", .bool(true))
        case UInt8(ascii: "f"): return take("false", .bool(false))
        case UInt8(ascii: "n"): return take("null", .null)
        default: return number()
        }
    }

    private mutating func object(_ depth: Int) -> JSON? {
        position += 1
        var members = JSONObject()
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipSpace()
            guard let name = string() else { return nil }
            skipSpace()
            guard take(UInt8(ascii: ":")), let value = value(depth) else { return nil }
            members[name] = value
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) ? .object(members) : nil
    }

    private mutating func array(_ depth: Int) -> JSON? {
        position += 1
        var items: [JSON] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(items) }
        repeat {
            guard let item = value(depth) else { return nil }
            items.append(item)
            skipSpace()
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) ? .array(items) : nil
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = next, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        return position > start
    }

    private mutating func number() -> JSON? {
        let start = position
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")), !digits() { return nil }
        var isInteger = true
        if take(UInt8(ascii: ".")) {
            isInteger = false
            guard digits() else { return nil }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isInteger = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard digits() else { return nil }
        }
        return JSON(number: String(decoding: bytes[start..<position], as: UTF8.self), isInteger: isInteger)
    }

    private mutating func string() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
        if next == UInt8(ascii: "\"") {
            defer { position += 1 }
            return String(decoding: bytes[start..<position], as: UTF8.self)
        }
        var text = Array(bytes[start..<position])
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position += 1
                guard let escaped = escape() else { return nil }
                text += String(Character(escaped)).utf8
            case 0..<0x20: return nil
            default:
                text.append(byte)
                position += 1
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        guard let byte = next else { return nil }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{08}"
        case UInt8(ascii: "f"): return "\u{0C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return unicodeEscape()
        default: return nil
        }
    }

    /// A lone surrogate becomes U+FFFD, because a Swift string can't have one.
    private mutating func unicodeEscape() -> Unicode.Scalar? {
        guard let first = hex() else { return nil }
        guard first >= 0xD800, first <= 0xDFFF else { return Unicode.Scalar(first) }
        let afterFirst = position
        if first < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")), let second = hex(),
            second >= 0xDC00, second <= 0xDFFF
        {
            return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        }
        position = afterFirst
        return "\u{FFFD}"
    }

    private mutating func hex() -> UInt32? {
        guard position + 4 <= bytes.count else { return nil }
        let text = String(decoding: bytes[position..<position + 4], as: UTF8.self)
        guard text.utf8.count == 4, text.allSatisfy(\.isHexDigit), let value = UInt32(text, radix: 16) else { return nil }
        position += 4
        return value
    }
}
