import Foundation
import XCTest

@testable import Mcpline

/// Messages in one direction.
private actor Queue {
    private var messages: [String?] = []
    private var waiting: CheckedContinuation<Void, Never>?

    /// Adds a message, or `nil` for the end.
    func add(_ message: String?) {
        messages.append(message)
        waiting?.resume()
        waiting = nil
    }

    func next() async -> String? {
        while messages.isEmpty {
            await withTaskCancellationHandler {
                await withCheckedContinuation { waiting = $0 }
            } onCancel: {
                Task { await self.add(nil) }
            }
        }
        return messages.removeFirst()
    }
}

/// One end of a pair of queues.
private struct End: Mcpline.Channel {
    let outgoing: Queue
    let incoming: Queue
    let closed = Promise<Bool>()

    func send(_ message: String) async { await outgoing.add(message) }

    func receive() async -> String? { await incoming.next() }

    func close() async {
        await outgoing.add(nil)
        closed.fulfil()
    }

    static func pair() -> (End, End) {
        let (there, back) = (Queue(), Queue())
        return (End(outgoing: there, incoming: back), End(outgoing: back, incoming: there))
    }
}

private struct CableError: Error, LocalizedError {
    let errorDescription: String?
}

/// A channel that fails to receive.
private struct Failing: Mcpline.Channel {
    func send(_ message: String) {}

    func receive() throws -> String? { throw CableError(errorDescription: "the cable is cut") }

    func close() {}
}

/// A transport that a function implements.
private struct Opening: ClientTransport {
    let run: @Sendable () async throws -> any Mcpline.Channel

    func open() async throws -> any Mcpline.Channel { try await run() }
}

final class ChannelTests: XCTestCase {
    private func server() throws -> Server {
        let server = try Server("channels", version: "1.0.0", settings: quiet)
        try server.tool("whoami") { call in call.auth?.subject ?? "anonymous" }
        try server.tool("secret", scopes: ["admin"]) { _ in "42" }
        return server
    }

    func testClientAndServerSpeakOverAChannel() async throws {
        let server = try server()
        let (mine, others) = End.pair()
        let serving = Task { try await server.serveChannel(others) }
        let client = try await Client.over(Opening { mine })
        let result = try await client.callTool("whoami")
        XCTAssertEqual(result.text, "anonymous")
        await client.close()
        try await serving.value
        _ = await mine.closed.value
        _ = await others.closed.value
    }

    func testTheTransportNamesThePrincipal() async throws {
        let server = try server()
        for (principal, visible) in [(Caller(subject: "alice", scopes: ["admin"]), 2), (Caller(subject: "bob"), 1)] {
            let (mine, others) = End.pair()
            let serving = Task { try await server.serveChannel(others, principal: principal) }
            let client = try await Client.over(Opening { mine })
            let result = try await client.callTool("whoami")
            XCTAssertEqual(result.text, principal.subject)
            let tools = try await client.listTools()
            XCTAssertEqual(tools.count, visible)
            await client.close()
            try await serving.value
        }
    }

    func testATransportThatCannotOpenIsUnreachable() async throws {
        let error = await failure {
            try await Client.over(Opening { throw CableError(errorDescription: "no cable") })
        }
        guard case McplineError.serverUnreachable = error else { return XCTFail("\(error)") }
        XCTAssertTrue("\(error)".contains("no cable"), "\(error)")
    }

    func testAServerWhoseChannelFailsThrows() async throws {
        let server = try server()
        let error = await failure { try await server.serveChannel(Failing()) }
        guard case McplineError.transport = error else { return XCTFail("\(error)") }
        XCTAssertTrue("\(error)".contains("the cable is cut"), "\(error)")
    }

    func testCancellingTheTaskThatServesEndsTheChannel() async throws {
        let server = try server()
        let (mine, others) = End.pair()
        let serving = Task { try await server.serveChannel(others) }
        let client = try await Client.over(Opening { mine })
        serving.cancel()
        _ = await serving.result
        _ = await others.closed.value
        await client.close()
    }
}
