/// Keywords whose members are names of the author, with schemas.
private let keywordsWithNames: Set = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]

/// Keywords with values, in which nothing is a schema.
private let keywordsWithValues: Set = ["const", "enum", "default", "examples"]

/// Whether a schema refers to a place within its document: `#`, `#/$defs/City`.
func hasReferences(_ schema: JSONObject) -> Bool {
    relocated(schema, to: "#/elsewhere") != schema
}

/// Returns the schema with its references to places within its document changed for a document that has it at `place`.
func relocated(_ schema: JSONObject, to place: String) -> JSONObject {
    var changed = JSONObject()
    for (keyword, value) in schema { changed[keyword] = relocated(value, of: keyword, to: place) }
    return changed
}

private func relocated(_ value: JSON, of keyword: String, to place: String) -> JSON {
    switch value {
    // Others name an anchor or another document.
    case .string(let reference) where keyword == "$ref" && (reference == "#" || reference.hasPrefix("#/")):
        return .string(place + reference.dropFirst())
    case .object(let members) where keywordsWithNames.contains(keyword):
        var changed = JSONObject()
        for (name, schema) in members {
            changed[name] = schema.objectValue.map { .object(relocated($0, to: place)) } ?? schema
        }
        return .object(changed)
    case .object(let schema) where !keywordsWithValues.contains(keyword):
        return .object(relocated(schema, to: place))
    case .array(let items) where !keywordsWithValues.contains(keyword):
        return .array(items.map { item in item.objectValue.map { .object(relocated($0, to: place)) } ?? item })
    default:
        return value
    }
}
