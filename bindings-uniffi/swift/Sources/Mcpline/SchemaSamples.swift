/// Maximum number of values that are tried, and of schemas within each other.
private let maxSamples = 16

/// Returns values that match a JSON Schema, as far as its types, enums, references, alternatives and required properties say, for
/// a type that refuses others. `examples` come first.
func samples(of schema: JSONObject) -> [JSON] {
    samples(schema, in: schema, depth: 0, limit: maxSamples)
}

private func samples(_ schema: JSONObject, in root: JSONObject, depth: Int, limit: Int) -> [JSON] {
    guard depth < maxSamples else { return [] }
    if let value = schema["const"] { return [value] }
    for name in ["examples", "enum"] {
        if let values = schema[name]?.arrayValue, !values.isEmpty { return Array(values.prefix(limit)) }
    }
    if let value = schema["default"] { return [value] }
    if let reference = schema["$ref"]?.stringValue {
        return resolved(reference, in: root).map { samples($0, in: root, depth: depth + 1, limit: limit) } ?? []
    }
    for name in ["oneOf", "anyOf"] {
        guard let branches = schema[name]?.arrayValue else { continue }
        var rest = schema
        rest[name] = nil
        var found: [JSON] = []
        for branch in branches where found.count < limit {
            let merged = rest.merging(branch.objectValue ?? [:])
            found += samples(merged, in: root, depth: depth + 1, limit: limit - found.count)
        }
        return found
    }
    let type = schema["type"]?.stringValue ?? schema["type"]?[0]?.stringValue
    switch type ?? (schema["properties"] == nil ? "null" : "object") {
    case "object": return object(schema, in: root, depth: depth).map { [.object($0)] } ?? []
    case "array":
        let count = schema["minItems"]?.integerValue ?? 0
        if count <= 0 { return [[]] }
        let item = samples(schema["items"]?.objectValue ?? [:], in: root, depth: depth + 1, limit: 1).first
        return item.map { [.array(Array(repeating: $0, count: min(count, maxSamples)))] } ?? []
    case "string": return [.string(string(schema["format"]?.stringValue))]
    case "integer", "number": return [schema["minimum"] ?? 0]
    case "boolean": return [false]
    default: return [.null]
    }
}

/// Returns an object with the required properties.
private func object(_ schema: JSONObject, in root: JSONObject, depth: Int) -> JSONObject? {
    var members = JSONObject()
    for name in schema["required"]?.arrayValue?.compactMap(\.stringValue) ?? [] {
        let property = schema["properties"]?[name]?.objectValue ?? [:]
        guard let value = samples(property, in: root, depth: depth + 1, limit: 1).first else { return nil }
        members[name] = value
    }
    return members
}

private func string(_ format: String?) -> String {
    switch format {
    case "date-time": "2026-07-28T00:00:00Z"
    case "date": "2026-07-28"
    case "uri": "https://example.com/"
    case "email": "a@example.com"
    case "uuid": "00000000-0000-0000-0000-000000000000"
    default: ""
    }
}

/// Returns the schema that a reference within the document names: `#/$defs/City`.
private func resolved(_ reference: String, in root: JSONObject) -> JSONObject? {
    guard reference.hasPrefix("#") else { return nil }
    let names = reference.dropFirst().split(separator: "/").map(String.init)
    return names.reduce(JSON.object(root) as JSON?) { $0?[$1] }?.objectValue
}
