import Foundation
import Mcpline
import XCTest

final class JSONTests: XCTestCase {
    func testTextIsParsedAndWritten() throws {
        let text = #"{"b":[1,-2.5,1e+20,true,null],"a":{"c":"\"\\\n\u0001é😀"}}"#
        let json = try JSON(parsing: text)
        XCTAssertEqual(json.text, text)
        XCTAssertEqual(json["b"]?[0], 1)
        XCTAssertEqual(json["b"]?[2]?.numberValue, 1e20)
        XCTAssertEqual(json.objectValue?.names, ["b", "a"])
        XCTAssertEqual(try JSON(parsing: #" "\ud83d\ude00\ud800\/" "#), "😀\u{FFFD}/")
        XCTAssertEqual(try JSON(parsing: "9223372036854775807"), .integer(.max))
        XCTAssertEqual(try JSON(parsing: "9223372036854775808"), .number(9223372036854775808))
        XCTAssertEqual(JSON.number(.infinity).text, "null")
    }

    func testInvalidTextIsRefused() {
        let deep = String(repeating: "[", count: 100_000)
        for text in ["", "{", "[1,]", "01", "1.", #""\x""#, #""\u12""#, "\"\n\"", "nul", "1 2", #"{"a" 1}"#, "+1", "1e", deep] {
            XCTAssertThrowsError(try JSON(parsing: text), text)
        }
    }

    func testObjectsKeepTheOrderOfMembers() {
        var object: JSONObject = ["b": 1, "a": 2, "c": 3]
        object["a"] = nil
        object["b"] = 4
        object["a"] = 5
        XCTAssertEqual(object.names, ["b", "c", "a"])
        XCTAssertEqual(object.text, #"{"b":4,"c":3,"a":5}"#)
        XCTAssertEqual(object, ["a": 5, "b": 4, "c": 3])
    }

    private struct All: Codable, Equatable {
        enum Level: String, Codable { case low, high }
        struct Inner: Codable, Equatable { var id: UInt8 }
        var text: String
        var count: Int
        var ratio: Double
        var flag: Bool
        var level: Level
        var inner: [Inner]
        var map: [String: Int]
        var missing: Int?
        var date: Date
        var data: Data
        var url: URL
        var any: JSON
        var wait: Duration
    }

    func testValuesAreEncodedAndDecoded() throws {
        let all = All(
            text: "a", count: -1, ratio: 0.5, flag: true, level: .high, inner: [All.Inner(id: 255)], map: ["aB": 1],
            missing: nil, date: Date(timeIntervalSince1970: 0), data: Data([1]), url: URL(string: "https://example.com/")!,
            any: ["x": [1]], wait: .milliseconds(1500))
        let json = try JSON(encoding: all)
        let expected = #"{"text":"a","count":-1,"ratio":0.5,"flag":true,"level":"high","inner":[{"id":255}],"map":{"aB":1},"#
            + #""date":"1970-01-01T00:00:00Z","data":"AQ==","url":"https://example.com/","any":{"x":[1]},"wait":1.5}"#
        XCTAssertEqual(json.text, expected)
        XCTAssertEqual(try json.decode(as: All.self), all)
    }

    func testDurationsThatAreTooLargeAreRefused() throws {
        struct Wait: Codable { var wait: Duration }
        for seconds in ["1e300", "-1e300", "1e19"] {
            let json = try JSON(parsing: #"{"wait":\#(seconds)}"#)
            XCTAssertThrowsError(try json.decode(as: Wait.self), seconds)
        }
    }

    func testOtherFormatsCodeJSON() throws {
        let json: JSON = ["a": [1, 2.5, "b", true, .null]]
        let data = try JSONEncoder().encode(json)
        XCTAssertEqual(try JSONDecoder().decode(JSON.self, from: data), json)
    }
}
