import XCTest

@testable import Mcpline

final class RequestLogTests: XCTestCase {
    private func weather(_ running: Promise<Bool>) throws -> Server {
        let server = try Server("weather", version: "1.0.0")
        try server.tool("works") { _ in "sunny" }
        try server.tool("refuses") { _ -> String in throw ToolError("not today") }
        try server.tool("hangs") { _ -> String in
            running.fulfil()
            try await cancellation()
            return "never"
        }
        try server.tool("asks") { call in String(try await call.listRoots().count) }
        return server
    }

    func testServersReportEachRequestWhenItHasEnded() async throws {
        let (records, ended) = AsyncStream.makeStream(of: RequestRecord.self)
        let running = Promise<Bool>()
        let server = try weather(running)
        server.onRequestEnd { ended.yield($0) }
        let client = try await Client.memory(server) { host in
            host.name = "host"
            host.settings = ClientSettings(revisions: ["2025-11-25"])
        }
        _ = try await client.callTool("works")
        _ = try await client.callTool("refuses")
        _ = await rpcError { try await client.callTool("missing") }
        let hanging = Task { try await client.callTool("hangs") }
        _ = await running.value
        hanging.cancel()
        _ = await hanging.result
        let expected = [
            "initialize  ok nil host",
            "tools/call works ok nil host",
            "tools/call refuses tool_error nil host",
            "tools/call missing error -32602 host",
            "tools/call hangs cancelled nil host",
        ]
        var found: [String] = []
        for await record in records {
            let code = record.code.map(String.init) ?? "nil"
            found.append("\(record.method) \(record.name) \(record.outcome.rawValue) \(code) \(record.client ?? "")")
            XCTAssertGreaterThanOrEqual(record.duration, .zero)
            XCTAssertNil(record.session)
            if found.count == expected.count { break }
        }
        XCTAssertEqual(found, expected)
        await client.close()
    }

    func testClientsReportTheRequestsThatTheySendAndAnswer() async throws {
        let (records, ended) = AsyncStream.makeStream(of: ClientRequestRecord.self)
        let running = Promise<Bool>()
        let client = try await Client.memory(try weather(running)) { host in
            host.settings = ClientSettings(revisions: ["2025-11-25"])
            host.roots("file:///home")
            host.onRequestEnd { ended.yield($0) }
        }
        _ = try await client.callTool("works")
        _ = try await client.callTool("asks")
        _ = await rpcError { try await client.callTool("missing") }
        let hanging = Task { try await client.callTool("hangs") }
        _ = await running.value
        hanging.cancel()
        _ = await hanging.result
        let expected = [
            "sent tools/call works ok nil nil weather",
            "received roots/list  ok nil nil weather",
            "sent tools/call asks ok nil nil weather",
            "sent tools/call missing error rpc_error -32602 weather",
            "sent tools/call hangs cancelled nil nil weather",
        ]
        var found: [String] = []
        for await record in records {
            let (kind, code) = (record.errorKind ?? "nil", record.code.map(String.init) ?? "nil")
            let request = "\(record.direction.rawValue) \(record.method) \(record.name)"
            found.append("\(request) \(record.outcome.rawValue) \(kind) \(code) \(record.server ?? "")")
            XCTAssertGreaterThanOrEqual(record.duration, .zero)
            if found.count == expected.count { break }
        }
        XCTAssertEqual(found, expected)
        await client.close()
    }
}
