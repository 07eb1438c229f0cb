import Foundation
import McplineNative
import XCTest

@testable import Mcpline

final class ClientTests: XCTestCase {
    func testProgramsAreSpawnedAndEnd() async throws {
        let client = try await Client.spawn(program("TestServer"))
        XCTAssertNotNil(client.pid)
        XCTAssertEqual(client.serverInfo?.name, "test-server")
        let result = try await client.callTool("repeat", ["text": "a", "times": 3])
        XCTAssertEqual(result.text, "a a a")
        // What the program prints does not disturb the protocol.
        let printed = try await client.callTool("print")
        XCTAssertEqual(printed.text, "printed")
        await client.close()
        let error = await failure { try await client.callTool("print") }
        guard case McplineError.closed = error else { return XCTFail("\(error)") }
    }

    func testProgramsHaveArguments() async throws {
        let arguments = ["-c", "exec \"$0\"", program("TestServer")]
        let client = try await Client.spawn("sh", arguments: arguments)
        XCTAssertEqual(client.serverInfo?.name, "test-server")
        await client.close()
    }

    func testSignalsCloseServers() async throws {
        for number in [SIGTERM, SIGINT] {
            let client = try await Client.spawn(program("TestServer"))
            let pid = try XCTUnwrap(client.pid)
            let error = await rpcError { try await client.callTool("wait") { _ in kill(pid_t(pid), number) } }
            XCTAssertEqual(error?.code, -31002)
            await client.close()
        }
    }

    func testProgramsThatDoNotExistAreReported() async throws {
        let error = await failure { try await Client.spawn("/nonexistent/server") }
        guard case McplineError.serverUnreachable(let details) = error else { return XCTFail("\(error)") }
        XCTAssertNotNil(details.source)
    }

    func testCallsRunConcurrently() async throws {
        let count = 20
        let arrived = Locked(0)
        let all = Promise<Bool>()
        let server = try Server("meeting", version: "1.0.0")
        try server.tool("meet") { (name: Name, _) in
            let number = arrived.withLock { arrived in
                arrived += 1
                return arrived
            }
            if number == count { all.fulfil() }
            // All calls are in their handlers at once.
            _ = await all.value
            return name.name
        }
        let client = try await Client.memory(server)
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 1...count {
                group.addTask { try await client.callTool("meet", Name(name: "\(number)")).text }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        XCTAssertEqual(names, Set((1...count).map(String.init)))
        await client.close()
    }

    func testNotificationsAreASequenceThatEndsWithTheClient() async throws {
        let server = try Server("later", version: "1.0.0")
        try server.tool("notify") { call in
            for number in 1...100 { try call.notify("acme/count", params: ["number": .integer(number)]) }
            return "done"
        }
        let client = try await Client.memory(server)
        var iterator = client.notifications.makeAsyncIterator()
        let calling = Task { try await client.callTool("notify") }
        var numbers: [Int] = []
        while numbers.count < 100, let notification = await iterator.next() {
            if notification.method == "acme/count" { numbers.append(notification.params["number"]?.integerValue ?? 0) }
        }
        XCTAssertEqual(numbers, Array(1...100))
        _ = try await calling.value
        let ending = Task {
            for await _ in client.notifications {}
            return true
        }
        await client.close()
        let ended = await ending.value
        XCTAssertTrue(ended)
        let next = await client.notifications.first { _ in true }
        XCTAssertNil(next)
    }

    func testCancellingTheIterationEndsTheSequence() async throws {
        let client = try await Client.memory(try Server("quiet", version: "1.0.0"))
        let iterating = Task {
            for await _ in client.notifications {}
        }
        iterating.cancel()
        await iterating.value
        await client.close()
    }

    func testCancelledIterationsDoNotHoldTheClientBack() async throws {
        let server = try Server("noisy", version: "1.0.0")
        try server.tool("notify") { call in
            try call.notify("acme/a")
            try call.notify("acme/b")
            return "done"
        }
        let last = Promise<Bool>()
        let client = try await Client.memory(server) { host in
            host.onNotification { if $0.method == "acme/b" { last.fulfil() } }
        }
        let iterating = Task {
            for await _ in client.notifications {}
        }
        iterating.cancel()
        await iterating.value
        _ = try await client.callTool("notify")
        _ = await last.value
        await client.close()
    }

    func testCancellingATaskLeavesTheSubscriptionToOthers() async {
        let queue = Subscription.Queue()
        let cancelled = Task { await queue.take() }
        cancelled.cancel()
        let none = await cancelled.value
        XCTAssertNil(none)
        async let next = queue.take()
        await queue.put(ServerNotification(method: "acme/a", params: [:]))
        let taken = await next
        XCTAssertEqual(taken?.method, "acme/a")
    }

    func testCancelledTasksLeaveAWaitingNotificationToOthers() async {
        let queue = Subscription.Queue()
        async let put: Void = queue.put(ServerNotification(method: "acme/a", params: [:]))
        let cancelled = Task {
            try? await cancellation()
            return await queue.take()
        }
        cancelled.cancel()
        let none = await cancelled.value
        XCTAssertNil(none)
        let taken = await queue.take()
        XCTAssertEqual(taken?.method, "acme/a")
        await put
    }

    func testNotificationsAreTakenOnceWhileTasksAreCancelled() async {
        let queue = Subscription.Queue()
        let count = await withTaskGroup(of: Int.self) { group in
            group.addTask {
                var count = 0
                while await queue.take() != nil { count += 1 }
                return count
            }
            group.addTask {
                var count = 0
                for _ in 0..<1000 {
                    let taking = Task { await queue.take() }
                    taking.cancel()
                    if await taking.value != nil { count += 1 }
                }
                return count
            }
            group.addTask {
                for number in 0..<1000 { await queue.put(ServerNotification(method: "\(number)", params: [:])) }
                queue.end()
                return 0
            }
            return await group.reduce(0, +)
        }
        XCTAssertEqual(count, 1000)
    }

    func testSeveralTasksTakeFromASubscription() async {
        let queue = Subscription.Queue()
        let counts = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var count = 0
                    while await queue.take() != nil { count += 1 }
                    return count
                }
            }
            group.addTask {
                for number in 0..<100 { await queue.put(ServerNotification(method: "\(number)", params: [:])) }
                queue.end()
                return 0
            }
            return await group.reduce(0, +)
        }
        XCTAssertEqual(counts, 100)
    }

    func testAbandonedIteratorsDoNotHoldTheClientBack() async throws {
        let server = try Server("noisy", version: "1.0.0")
        try server.tool("notify") { call in
            try call.notify("acme/a")
            try call.notify("acme/b")
            return "done"
        }
        let last = Promise<Bool>()
        let client = try await Client.memory(server) { host in
            host.onNotification { if $0.method == "acme/b" { last.fulfil() } }
        }
        _ = client.notifications.makeAsyncIterator()
        _ = try await client.callTool("notify")
        _ = await last.value
        await client.close()
    }

    func testCancellingARequestWithdrawsItsInputRequest() async throws {
        let asked = Promise<Bool>()
        let withdrawn = Promise<Bool>()
        let server = try Server("asking", version: "1.0.0")
        try server.tool("ask") { call in try await call.elicit("Who?", as: Name.self).action }
        let client = try await Client.memory(server) { host in
            host.onElicit { _ in
                asked.fulfil()
                defer { withdrawn.fulfil() }
                try await cancellation()
                return .cancelled
            }
        }
        let call = Task { try await client.callTool("ask") }
        _ = await asked.value
        call.cancel()
        _ = await failure { try await call.value }
        _ = await withdrawn.value
        await client.close()
    }

    func testTimeoutsAreErrors() async throws {
        let server = try Server("slow", version: "1.0.0")
        try server.tool("wait") { _ -> String in
            try await cancellation()
            return ""
        }
        let client = try await Client.memory(server)
        let error = await failure { try await client.callTool("wait", options: RequestOptions(timeout: .milliseconds(20))) }
        guard case McplineError.requestTimedOut(let waited, let inAll, let details) = error else { return XCTFail("\(error)") }
        XCTAssertEqual(waited, .milliseconds(20))
        XCTAssertFalse(inAll)
        XCTAssertTrue(details.outcomeUnknown)
        XCTAssertEqual(details.operation, "tools/call")
        await client.close()
    }

    func testConnectionEventsAndLogsReachTheHost() async throws {
        let logged = Promise<LogMessage>()
        let events = Locked<[ConnectionEvent]>([])
        let closed = Promise<Bool>()
        let server = try Server("logging", version: "1.0.0")
        try server.tool("log") { call in
            call.log(.warning, ["a": 1], logger: "l")
            return "done"
        }
        let client = try await Client.memory(server) { host in
            host.onLog { logged.fulfil($0) }
            host.onConnection { event in
                events.withLock { $0.append(event) }
                if event == .closed { closed.fulfil() }
            }
        }
        _ = try await client.callTool("log", options: RequestOptions(logLevel: .debug))
        let message = await logged.value
        XCTAssertEqual(message.level, .warning)
        XCTAssertEqual(message.data, ["a": 1])
        XCTAssertEqual(message.logger, "l")
        await client.close()
        _ = await closed.value
        XCTAssertEqual(events.withLock { $0 }, [.connected, .closed])
    }

    func testTokensAreSentAndRefreshed() async throws {
        let server = try Server("tokens", version: "1.0.0", settings: quiet)
        try server.tool("authorization") { call in call.headers?["authorization"] ?? [] }
        let url = Promise<String>()
        let serving = Task { try await server.runHTTP(port: 0) { url.fulfil($0) } }
        let address = await url.value
        let auths: [(Auth, String)] = [
            (.bearer("a"), "Bearer a"), (.tokens { _ in Token("b", expiresIn: .seconds(60)) }, "Bearer b"),
        ]
        for (auth, expected) in auths {
            let client = try await Client.connect(address) { $0.auth = auth }
            let sent = try await client.callTool("authorization")
            XCTAssertEqual(sent.text, expected)
            await client.close()
        }
        server.close()
        try await serving.value
    }

    func testEveryKindOfErrorHasACase() throws {
        var kinds = Set<String>()
        for example in errorExamples() {
            let failure = try JSONObject(parsing: example)
            let kind = failure["kind"]?.stringValue ?? ""
            let facts = failure["facts"]?.stringValue ?? "{}"
            let error = McplineError(kind: kind, message: failure["text"]?.stringValue ?? "", facts: facts)
            XCTAssertEqual(error.kind, kind)
            XCTAssertFalse(error.message.isEmpty)
            kinds.insert(kind)
        }
        XCTAssertGreaterThan(kinds.count, 15)
    }
}
