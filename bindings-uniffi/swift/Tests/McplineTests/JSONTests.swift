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
        XCTAssertEqual(try JSON(parsing: "9223372036854775808"), .decimal(Decimal(UInt64(1) << 63)))
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

    func testNumbersKeepTheirDigits() throws {
        struct Numbers: Codable, Equatable {
            var max: UInt64
            var price: Decimal
            var whole: Decimal
            var long: Decimal
        }
        let text = #"{"max":18446744073709551615,"price":0.1,"whole":3,"long":-1234567890123456789.25}"#
        let json = try JSON(parsing: text)
        XCTAssertEqual(json.text, text)
        XCTAssertEqual(json["max"]?.numberValue, 18446744073709551616)
        XCTAssertNil(json["max"]?.integerValue)
        XCTAssertEqual(json["price"], 0.1)
        let numbers = try json.decode(as: Numbers.self)
        XCTAssertEqual(numbers.max, .max)
        XCTAssertEqual(numbers.price, Decimal(string: "0.1"))
        XCTAssertEqual(numbers.long, Decimal(string: "-1234567890123456789.25"))
        XCTAssertEqual(try JSON(encoding: numbers), json)
        XCTAssertThrowsError(try JSON(parsing: "18446744073709551616").decode(as: UInt64.self))
        // A `Double` has these.
        for number in [0.1 + 0.2, 1e300, .leastNonzeroMagnitude, 123456789012345683968] {
            XCTAssertEqual(try JSON(parsing: JSON.number(number).text).numberValue, number)
        }
        XCTAssertEqual(try JSON(parsing: "0.30000000000000004"), .number(0.1 + 0.2))
        // With more digits than any type holds.
        XCTAssertEqual(try JSON(parsing: String(repeating: "1", count: 60)).numberValue, Double(String(repeating: "1", count: 60)))
        let data = try JSONEncoder().encode(json)
        XCTAssertEqual(try JSONDecoder().decode(JSON.self, from: data)["max"], json["max"])
    }

    func testDatesHaveFractionsAndOffsets() throws {
        func date(_ text: String) throws -> Double { try JSON.string(text).decode(as: Date.self).timeIntervalSince1970 }
        XCTAssertEqual(try date("2026-07-28T12:00:00Z"), 1_785_240_000)
        XCTAssertEqual(try date("2026-07-28T12:00:00.25Z"), 1_785_240_000.25)
        XCTAssertEqual(try date("2026-07-28t14:30:00.250000000001+02:30"), 1_785_240_000.25)
        XCTAssertEqual(try date("2026-07-28T10:00:00-02:00"), 1_785_240_000)
        XCTAssertEqual(try date("1969-12-31T23:59:59.5Z"), -0.5)
        XCTAssertEqual(try date("2024-02-29T00:00:00Z"), 1_709_164_800)
        XCTAssertEqual(try date("0001-01-01T00:00:00Z"), -62_135_596_800)
        for text in [
            "2026-07-28", "2026-07-28T12:00Z", "2026-07-28T12:00:00", "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z",
            "2026-07-28T24:00:00Z", "2026-07-28T12:00:00.Z", "2026-07-28T12:00:00Z ", "2026-07-28T12:00:00+2:00", "",
        ] { XCTAssertThrowsError(try date(text), text) }
        for (seconds, text) in [
            (1_785_240_000.25, "2026-07-28T12:00:00.25Z"), (1_785_240_000.1, "2026-07-28T12:00:00.1Z"),
            (-0.5, "1969-12-31T23:59:59.5Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        ] { XCTAssertEqual(try JSON(encoding: Date(timeIntervalSince1970: seconds)), .string(text)) }
        // Not rounded into the year 10000.
        let last = Date(timeIntervalSince1970: Double(253_402_300_800).nextDown)
        XCTAssertEqual(try JSON(encoding: last), "9999-12-31T23:59:59.999968Z")
        for year in [1e12, -1e12, .infinity, .nan] {
            XCTAssertThrowsError(try JSON(encoding: Date(timeIntervalSince1970: year)))
        }
    }

    func testResultsOfToolsMayBeEmpty() throws {
        let empty = try JSON(parsing: "{}").decode(as: CallToolResult.self)
        XCTAssertEqual(empty, CallToolResult())
        let null = try JSON(parsing: #"{"structuredContent":null}"#).decode(as: CallToolResult.self)
        XCTAssertEqual(null, CallToolResult(structuredContent: .null))
    }

    func testDurationsThatAreTooLargeAreRefused() throws {
        struct Wait: Codable { var wait: Duration }
        for seconds in ["1e300", "-1e300", "1e19"] {
            let json = try JSON(parsing: #"{"wait":\#(seconds)}"#)
            XCTAssertThrowsError(try json.decode(as: Wait.self), seconds)
        }
    }

    func testTheLongestDurationsAreEncoded() throws {
        let longest = Duration.seconds(Int64.max)
        for duration in [longest, longest * 10] {
            XCTAssertEqual(try JSON(encoding: duration).numberValue, Double(Int64.max))
            XCTAssertEqual(try JSON(encoding: .zero - duration).numberValue, Double(Int64.min))
        }
    }

    func testOtherFormatsCodeJSON() throws {
        let json: JSON = ["a": [1, 2.5, "b", true, .null]]
        let data = try JSONEncoder().encode(json)
        XCTAssertEqual(try JSONDecoder().decode(JSON.self, from: data), json)
    }
}
