import Foundation
import Mcpline
import XCTest

final class SchemaTests: XCTestCase {
    private enum Unit: String, Codable, CaseIterable { case celsius, kelvin }

    private struct Place: Codable { var name: String }

    private struct Forecast: Codable, SchemaDescriptionProviding {
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

    private enum Files {
        struct Node: Codable { var children: [Node] }
    }

    private enum Menus {
        struct Node: Codable { var children: [Node] }
    }

    private struct Tree<Value: Codable>: Codable {
        var value: Value
        var children: [Tree<Value>]
    }

    private struct Forest: Codable {
        var files: Files.Node
        var menus: Menus.Node
        var tree: Tree<Files.Node>
    }

    func testDefinitionsHaveNamesOfTheirOwn() throws {
        let schema = try jsonSchema(of: Forest.self)
        XCTAssertEqual(schema["$defs"]?.objectValue?.names, ["Node", "Node2", "Tree_Node"])
        XCTAssertEqual(schema["properties"]?["menus"], ["$ref": "#/$defs/Node2"])
        let node = schema["$defs"]?["Node2"]
        XCTAssertEqual(node?["properties"]?["children"], ["type": "array", "items": ["$ref": "#/$defs/Node2"]])
    }

    private enum Figure: Codable, Equatable, JSONSchemaProviding {
        case circle(radius: Double)
        case square(side: Double)

        static var jsonSchema: JSONObject {
            let size: JSONObject = ["type": "number", "minimum": 1]
            func branch(_ name: String, _ member: String) -> JSON {
                let inner: JSON = ["type": "object", "properties": [member: .object(size)], "required": [.string(member)]]
                return ["type": "object", "properties": [name: inner], "required": [.string(name)]]
            }
            return ["oneOf": [branch("circle", "radius"), branch("square", "side")]]
        }
    }

    private struct Code: Decodable, JSONSchemaProviding {
        let text: String
        init(from decoder: any Decoder) throws {
            text = try String(from: decoder)
            guard text.count == 3 else {
                throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "three letters"))
            }
        }
        static let jsonSchema: JSONObject = ["type": "string", "pattern": "^...$", "examples": ["abc"]]
    }

    private struct Unknown: Decodable, JSONSchemaProviding {
        init(from decoder: any Decoder) throws {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "never"))
        }
        static let jsonSchema: JSONObject = ["type": "string"]
    }

    private struct Drawing: Decodable {
        var figure: Figure
        var code: Code
        var name: String
        var others: [Figure]
    }

    private struct Undrawable: Decodable { var unknown: Unknown }

    func testRequiredPropertiesMayHaveSchemasOfTheirOwn() throws {
        let figure = JSON.object(Figure.jsonSchema)
        try check(
            Drawing.self,
            [
                "type": "object",
                "properties": [
                    "figure": figure, "code": .object(Code.jsonSchema), "name": ["type": "string"],
                    "others": ["type": "array", "items": figure],
                ],
                "required": ["figure", "code", "name", "others"],
            ])
        XCTAssertThrowsError(try jsonSchema(of: Undrawable.self)) { error in
            guard case McplineError.usage(let details) = error else { return XCTFail("\(error)") }
            XCTAssertTrue(details.message.contains("examples"), details.message)
        }
    }

    private enum Level: String, Codable, CaseIterable, JSONSchemaProviding {
        case low, high
        static let jsonSchema: JSONObject = ["type": "string", "description": "low or high"]
    }

    private enum Direction: Decodable, CaseIterable, JSONSchemaProviding {
        case up, down
        init(from decoder: any Decoder) throws {
            switch try String(from: decoder) {
            case "u": self = .up
            case "d": self = .down
            default: throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "u or d"))
            }
        }
        static let jsonSchema: JSONObject = ["type": "string", "pattern": "^[ud]$"]
    }

    private struct Alarm: Decodable {
        var level: Level
        var direction: Direction
    }

    func testRequiredPropertiesMayBeEnumsWhoseSchemasHaveNoValues() throws {
        try check(
            Alarm.self,
            [
                "type": "object",
                "properties": ["level": .object(Level.jsonSchema), "direction": .object(Direction.jsonSchema)],
                "required": ["level", "direction"],
            ])
    }

    private struct Route: Codable, JSONSchemaProviding {
        var stops: [String]
        static let jsonSchema: JSONObject = [
            "type": "object",
            "properties": ["stops": ["type": "array", "items": ["$ref": "#/$defs/Stop"]], "$ref": ["$ref": "#"]],
            "required": ["stops"],
            "examples": [["stops": [], "$ref": "#"]],
            "$defs": ["Stop": ["type": "string", "minLength": 1]],
        ]
    }

    private struct Journey: Codable {
        var there: Route
        var back: Route?
        var others: [Route]
    }

    func testProvidedSchemasKeepTheirDefinitions() async throws {
        let route: JSONObject = [
            "type": "object",
            "properties": [
                "stops": ["type": "array", "items": ["$ref": "#/$defs/Route/$defs/Stop"]], "$ref": ["$ref": "#/$defs/Route"],
            ],
            "required": ["stops"],
            "examples": [["stops": [], "$ref": "#"]],
            "$defs": ["Stop": ["type": "string", "minLength": 1]],
        ]
        let reference: JSON = ["$ref": "#/$defs/Route"]
        try check(
            Journey.self,
            [
                "type": "object",
                "properties": [
                    "there": reference, "back": ["anyOf": [reference, ["type": "null"]]],
                    "others": ["type": "array", "items": reference],
                ],
                "required": ["there", "others"],
                "$defs": ["Route": .object(route)],
            ])
        try check(Route.self, Route.jsonSchema)
        // The core finds the places of the references.
        let server = try Server("routes", version: "1.0.0")
        try server.tool("travel") { (journey: Journey, _) in journey.there.stops.joined() }
        let client = try await Client.memory(server)
        let travelled = try await client.callTool("travel", ["there": ["stops": ["a", "b"]], "others": []])
        XCTAssertEqual(travelled.text, "ab")
        let refused = try await client.callTool("travel", ["there": ["stops": [""]], "others": []])
        XCTAssertEqual(refused.isError, true)
        await client.close()
    }

    private struct Term: Decodable, JSONSchemaProviding {
        static let jsonSchema: JSONObject = [
            "anyOf": [
                ["type": "object", "properties": ["sum": ["$ref": "#"]], "required": ["sum"]],
                ["type": "object", "properties": ["number": ["type": "object"]], "required": ["number"]],
            ]
        ]
    }

    private struct Equation: Decodable {
        var left: Term
        var right: Term
    }

    func testSamplesOfRecursiveSchemasEnd() throws {
        let schema = try jsonSchema(of: Equation.self)
        XCTAssertEqual(schema["properties"]?["left"], ["$ref": "#/$defs/Term"])
        XCTAssertEqual(schema["$defs"]?["Term"]?["anyOf"]?[0]?["properties"]?["sum"], ["$ref": "#/$defs/Term"])
    }
}
