import Foundation
import Mcpline
import XCTest

final class SchemaTests: XCTestCase {
    private enum Unit: String, Codable, CaseIterable { case celsius, kelvin }

    private struct Place: Codable { var name: String }

    private struct Forecast: Codable, Described {
        var city: String
        var days: Int?
        var unit: Unit
        var place: Place
        var tags: Set<String>
        var scores: [String: Double]
        var at: Date
        var extra: JSONObject?
        static let typeDescription: String? = "A forecast"
        static let descriptions = ["city": "The name of a city"]
    }

    private func check<T: Decodable>(_ type: T.Type, _ expected: JSONObject, line: UInt = #line) throws {
        XCTAssertEqual(try jsonSchema(of: type).text, expected.text, line: line)
    }

    func testPropertiesAreDescribed() throws {
        try check(
            Forecast.self,
            [
                "type": "object",
                "properties": [
                    "city": ["type": "string", "description": "The name of a city"],
                    "days": ["type": ["integer", "null"]],
                    "unit": ["type": "string", "enum": ["celsius", "kelvin"]],
                    "place": ["type": "object", "properties": ["name": ["type": "string"]], "required": ["name"]],
                    "tags": ["type": "array", "items": ["type": "string"], "uniqueItems": true],
                    "scores": ["type": "object", "additionalProperties": ["type": "number"]],
                    "at": ["type": "string", "format": "date-time"],
                    "extra": ["type": ["object", "null"]],
                ],
                "required": ["city", "unit", "place", "tags", "scores", "at"],
                "description": "A forecast",
            ])
    }

    private struct Node: Codable {
        var name: String
        var children: [Node]
    }

    private struct Left: Codable { var right: Right }
    private struct Right: Codable { var lefts: [Left]? }

    func testRecursiveTypesRefer() throws {
        let node: JSONObject = [
            "type": "object",
            "properties": ["name": ["type": "string"], "children": ["type": "array", "items": ["$ref": "#/$defs/Node"]]],
            "required": ["name", "children"],
        ]
        try check(Node.self, node.merging(["$defs": ["Node": .object(node)]]))
        XCTAssertNotNil(try jsonSchema(of: Left.self)["$defs"]?["Left"])
    }

    private struct Lenient: Decodable {
        var days: Int
        enum CodingKeys: String, CodingKey { case days }
        init(from decoder: any Decoder) throws {
            days = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Int.self, forKey: .days) ?? 1
        }
    }

    private struct Celsius: Codable {
        var degrees: Double
        init(from decoder: any Decoder) throws { degrees = try decoder.singleValueContainer().decode(Double.self) }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(degrees)
        }
    }

    func testTypesMayDecodeThemselves() throws {
        try check(Lenient.self, ["type": "object", "properties": ["days": ["type": ["integer", "null"]]]])
        try check(Celsius.self, ["type": "number"])
    }

    private struct Booking: Codable {
        var city: String
        var nights: Int?
        var unit: Unit?
    }

    func testFormsLeaveOptionalPropertiesOut() throws {
        let expected: JSONObject = [
            "type": "object",
            "properties": [
                "city": ["type": "string"], "nights": ["type": "integer"],
                "unit": ["type": "string", "enum": ["celsius", "kelvin"]],
            ],
            "required": ["city"],
        ]
        XCTAssertEqual(try formSchema(of: Booking.self).text, expected.text)
    }

    private enum Shape: Codable {
        case circle(radius: Double)
        case point
    }

    private struct Own: Decodable, JSONSchemaProviding {
        static let jsonSchema: JSONObject = ["type": "object", "maxProperties": 1]
    }

    func testOtherTypesNeedASchema() throws {
        XCTAssertThrowsError(try jsonSchema(of: Shape.self)) { error in
            guard case McplineError.usage(let details) = error else { return XCTFail("\(error)") }
            XCTAssertTrue(details.message.contains("Shape"), details.message)
        }
        try check(Own.self, Own.jsonSchema)
    }
}
