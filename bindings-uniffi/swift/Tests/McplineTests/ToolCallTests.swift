import XCTest

@testable import Mcpline

final class ToolCallTests: XCTestCase {
    private struct Words: Codable, Sendable {
        var words: String
    }

    private struct UnexpectedError: Error {}

    func testHooksOfTheHostConsentToToolCallsAndGetTheirOutcomes() async throws {
        let server = try Server("archive", version: "1.0.0")
        try server.tool("lookup", annotations: ToolAnnotations(readOnlyHint: true)) { (words: Words, _) in
            "pages about \(words.words)"
        }
        try server.tool("erase") { _ in "erased" }
        let outcomes = Locked<[String]>([])
        let seen = Locked<[ToolCall]>([])
        let client = try await Client.memory(server) { host in
            host.onToolCall { call in
                seen.withLock { $0.append(call) }
                if call.arguments["words"] == "secret" { throw McplineError.toolCallRefused(ErrorDetails("not without the user")) }
                if call.name == "erase" { throw UnexpectedError() }
            }
            host.onToolOutcome { outcome in
                let hasContent = outcome.result?["content"] != nil
                outcomes.withLock { $0.append("\(outcome.call.name): \(hasContent) \(outcome.error?.kind ?? "")") }
            }
        }
        _ = try await client.listTools()
        let result = try await client.callTool("lookup", Words(words: "tea"))
        XCTAssertEqual(result.text, "pages about tea")
        let refused = await failure { try await client.callTool("lookup", Words(words: "secret")) }
        guard case McplineError.toolCallRefused(let details) = refused else { return XCTFail("\(refused)") }
        XCTAssertTrue(details.message.contains("not without the user"), details.message)
        let broken = await failure { try await client.callTool("erase") }
        guard case McplineError.toolCallRefused(let hidden) = broken else { return XCTFail("\(broken)") }
        XCTAssertFalse(hidden.message.contains("UnexpectedError"), hidden.message)
        await client.close()
        XCTAssertEqual(
            outcomes.withLock { $0 },
            ["lookup: true ", "lookup: false tool_call_refused", "erase: false tool_call_refused"])
        let calls = seen.withLock { $0 }
        XCTAssertEqual(calls.first?.annotations?.readOnlyHint, true)
        XCTAssertEqual(Set(calls.map(\.id)).count, 3)
    }

    func testARefusalWithinAnotherHandlerIsNotForTheServer() async throws {
        let server = try Server("asking", version: "1.0.0")
        try server.addRequest("acme/ask") { _, call -> JSONObject in try await call.request("acme/pick") }
        let client = try await Client.memory(server) { host in
            host.onRequest("acme/pick") { _ in throw McplineError.toolCallRefused(ErrorDetails("secret-7c1f")) }
        }
        let error = await failure { try await client.request("acme/ask") }
        XCTAssertFalse("\(error)".contains("7c1f"), "\(error)")
        await client.close()
    }
}
