import Foundation
import XCTest

@testable import Mcpline

final class MiddlewareTests: XCTestCase {
    private struct Words: Codable, Sendable {
        var words: String
    }

    private struct UnexpectedError: Error {
        let reason: String
    }

    private var folder = URL(fileURLWithPath: "/")

    override func setUpWithError() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("mcpline-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    }

    override func tearDownWithError() throws {
        try FileManager.default.removeItem(at: folder)
    }

    private func file(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func lines(of path: String) throws -> [Substring] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    }

    private func archive() throws -> Server {
        let server = try Server("archive", version: "1.0.0")
        try server.tool("lookup") { (words: Words, _) in "pages about \(words.words)" }
        try server.tool("fail") { _ -> String in throw ToolError("no") }
        try server.tool("secret") { _ -> JSONObject in ["iban": "NO93", "city": "Oslo"] }
        try server.resource("test://{id}", name: "page") { variables, _ in "page \(variables["id"] ?? "")" }
        return server
    }

    func testMiddlewareSeesRequestsAndTheirResultsTheFirstOneOutermost() async throws {
        let seen = Locked<[String]>([])
        let server = try archive()
        try server.middleware { request, next, call in
            let result = try await next(request)
            let client = call.client?.name ?? ""
            seen.withLock {
                $0.append("\(request.kind) \(request.method) \(request.name ?? "-") \(result.isError) by \(client)")
            }
            return result
        }
        try server.middleware(MiddlewareScope(methods: ["tools/call"])) { request, next, _ in
            seen.withLock { $0.append("inner \(request.arguments)") }
            return try await next(request)
        }
        let client = try await Client.memory(server) { $0.name = "tester" }
        _ = try await client.listTools()
        let found = try await client.callTool("lookup", Words(words: "tea"))
        XCTAssertEqual(found.text, "pages about tea")
        let failed = try await client.callTool("fail")
        XCTAssertEqual(failed.text, "no")
        _ = try await client.readResource("test://1")
        await client.close()
        XCTAssertEqual(
            seen.withLock { $0 },
            [
                "request tools/list - false by tester",
                #"inner {"words":"tea"}"#,
                "request tools/call lookup false by tester",
                "inner {}",
                "request tools/call fail true by tester",
                "request resources/read test://1 false by tester",
            ])
    }

    func testMiddlewareChangesRepeatsAnswersAndRefusesRequests() async throws {
        let runs = Locked(0)
        let server = try archive()
        try server.tool("flaky") { _ -> String in
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            if run < 3 { throw ToolError("again") }
            return "done"
        }
        try server.middleware(MiddlewareScope(tools: ["lookup"])) { request, next, _ in
            switch request.arguments["words"] {
            case "help": return MiddlewareResult(text: "Look up pages by words.")
            case "whole":
                return try MiddlewareResult(encoding: CallToolResult(content: [.text(TextContent("c"))], isError: true))
            case "json": return MiddlewareResult(["content": [["type": "text", "text": "d"]]])
            case "nothing": throw ToolError("Say what to look up.")
            case "forbidden": throw RPCError(code: -31050, message: "no", data: "why")
            case "broken": throw UnexpectedError(reason: "secret-7c1f")
            case let words:
                var changed = request
                changed.arguments["words"] = .string("all \(words ?? .null)")
                return try await next(changed)
            }
        }
        try server.middleware(MiddlewareScope(tools: ["flaky"])) { request, next, _ in
            var result = try await next(request)
            while result.isError { result = try await next(request) }
            return result
        }
        try server.middleware(MiddlewareScope(methods: ["tools/list"])) { request, next, _ in
            var members = try await next(request).members
            members["tools"] = members["tools"]?.arrayValue.map { .array(Array($0.prefix(1))) }
            return MiddlewareResult(members)
        }
        let client = try await Client.memory(server)
        let lookup: @Sendable (String) async throws -> CallToolResult = { words in
            try await client.callTool("lookup", Words(words: words))
        }
        let changed = try await lookup("tea")
        XCTAssertEqual(changed.text, #"pages about all "tea""#)
        let answered = try await lookup("help")
        XCTAssertEqual(answered.text, "Look up pages by words.")
        let whole = try await lookup("whole")
        XCTAssertEqual(whole.isError, true)
        XCTAssertEqual(whole.text, "c")
        let json = try await lookup("json")
        XCTAssertEqual(json.text, "d")
        let nothing = try await lookup("nothing")
        XCTAssertEqual(nothing.isError, true)
        let forbidden = await rpcError { try await lookup("forbidden") }
        XCTAssertEqual(forbidden, RPCError(code: -31050, message: "no", data: "why"))
        let broken = await rpcError { try await lookup("broken") }
        XCTAssertEqual(broken?.message.contains("7c1f"), false)
        let flaky = try await client.callTool("flaky")
        XCTAssertEqual(flaky.text, "done")
        XCTAssertEqual(runs.withLock { $0 }, 3)
        let tools = try await client.listTools()
        XCTAssertEqual(tools.map(\.name), ["lookup"])
        await client.close()
    }

    func testErrorsOfRequestsReachMiddlewareAndTheClientUnchanged() async throws {
        let codes = Locked<[Int]>([])
        let server = try archive()
        try server.resource("gone://{id}", name: "gone") { _, _ -> String in throw ResourceNotFoundError() }
        try server.middleware(MiddlewareScope(kinds: ["resource"])) { request, next, _ in
            if request.name == "gone://2" { throw ResourceNotFoundError() }
            do {
                return try await next(request)
            } catch let error as McplineError {
                if case .rpc(let rpc, _) = error { codes.withLock { $0.append(rpc.code) } }
                throw error
            }
        }
        let client = try await Client.memory(server)
        let error = await rpcError { try await client.readResource("gone://1") }
        XCTAssertEqual(codes.withLock { $0 }, [try XCTUnwrap(error).code])
        let same = await rpcError { try await client.readResource("gone://2") }
        XCTAssertEqual(same?.code, error?.code)
        XCTAssertEqual(same?.data, ["uri": "gone://2"])
        await client.close()
    }

    func testMiddlewareIsCancelledWithItsRequest() async throws {
        let started = Promise<Bool>()
        let cancelled = Promise<Bool>()
        let server = try archive()
        try server.tool("wait") { _ in
            started.fulfil()
            try await cancellation()
            return ""
        }
        try server.middleware(MiddlewareScope(tools: ["wait"])) { request, next, _ in
            do {
                return try await next(request)
            } catch is CancellationError {
                cancelled.fulfil()
                throw CancellationError()
            }
        }
        let client = try await Client.memory(server)
        let call = Task { try await client.callTool("wait") }
        _ = await started.value
        call.cancel()
        _ = await cancelled.value
        await client.close()
    }

    func testNextCannotBeUsedAfterTheRequest() async throws {
        let kept = Locked<(MiddlewareRequest, Next)?>(nil)
        let server = try archive()
        try server.middleware { request, next, _ in
            kept.withLock { $0 = (request, next) }
            return try await next(request)
        }
        let client = try await Client.memory(server)
        _ = try await client.listTools()
        let (request, next) = try XCTUnwrap(kept.withLock { $0 })
        _ = await failure { try await next(request) }
        await client.close()
    }

    func testMiddlewareWhoseScopeNamesThemSeesWhatHandlersSend() async throws {
        let server = try archive()
        try server.tool("ask") { call in try await call.elicit("What?", as: Words.self).content?.words }
        try server.tool("log") { call in
            call.log(.error, "dropped")
            return "logged"
        }
        try server.middleware(MiddlewareScope(methods: ["elicitation/create"])) { request, _, _ in
            XCTAssertEqual(request.kind, .inputRequest)
            return MiddlewareResult(["action": "accept", "content": ["words": "tea"]])
        }
        try server.middleware(MiddlewareScope(methods: ["notifications/message"])) { request, _, _ in
            XCTAssertEqual(request.kind, .sentNotification)
            return MiddlewareResult()
        }
        let logged = Locked<[LogMessage]>([])
        let client = try await Client.memory(server) { host in
            host.onElicit { _ in throw UnexpectedError(reason: "it is not asked") }
            host.onLog { message in logged.withLock { $0.append(message) } }
        }
        let asked = try await client.callTool("ask")
        XCTAssertEqual(asked.text, "tea")
        _ = try await client.callTool("log", options: RequestOptions(logLevel: .debug))
        await client.close()
        XCTAssertEqual(logged.withLock { $0 }, [])
    }

    func testTheMiddlewareOfTheLibraryLimitsRecordsHidesAndDenies() async throws {
        let log = file("audit.jsonl")
        let server = try archive()
        try server.addMiddleware(
            AuditLog(log, arguments: true, redact: ["words"]), scope: MiddlewareScope(methods: ["tools/call"]))
        try server.addMiddleware(
            RateLimit(1, period: .seconds(3600), per: [.target]), scope: MiddlewareScope(tools: ["lookup"]))
        try server.addMiddleware(Redaction(members: ["iban"]))
        try server.addMiddleware(ToolPolicy(denied: ["f*"]))
        let client = try await Client.memory(server)
        let tools = try await client.listTools()
        XCTAssertEqual(tools.map(\.name), ["lookup", "secret"])
        let secret = try await client.callTool("secret")
        XCTAssertEqual(secret.text, #"{"iban":"[redacted]","city":"Oslo"}"#)
        _ = try await client.callTool("lookup", Words(words: "tea"))
        let limited = await rpcError { try await client.callTool("lookup", Words(words: "tea")) }
        XCTAssertEqual(limited?.code, -31000)
        _ = await rpcError { try await client.callTool("fail") }
        await client.close()
        let records = try lines(of: log)
        XCTAssertEqual(records.count, 4)
        XCTAssertTrue(records[1].contains(#"{"words":"[redacted]"}"#), "\(records[1])")
    }

    func testEveryOptionOfTheMiddlewareOfServersIsAccepted() throws {
        let scope = MiddlewareScope(methods: ["tools/call"], names: ["lookup"], tags: ["a"], kinds: ["tool"])
        let all: [any BuiltInMiddleware] = [
            RateLimit(1, period: .seconds(2), burst: 3, per: LimitKey.allCases, shared: "calls"),
            ConcurrencyLimit(1, maxWaiting: 2, per: LimitKey.allCases),
            ResponseCache(.seconds(1), tools: ["lookup"], maxBytes: 1000),
            ResponseSizeLimit(1000, pages: true, maxKeptBytes: 2000, lifetime: .seconds(3)),
            AuditLog(
                file("audit.jsonl"), maxBytes: 1000, maxFiles: 2, arguments: true, results: true, redact: ["a"],
                required: false),
            Redaction(members: ["a"], patterns: ["[0-9]+"], replacement: "", arguments: true),
            ToolPolicy(allowed: ["a*"], denied: ["b"], approval: ["c"], exemptScopes: ["admin"]),
        ]
        let server = try archive()
        for middleware in all { try server.addMiddleware(middleware, scope: scope) }
    }

    func testInvalidMiddlewareIsRefused() throws {
        let server = try archive()
        let invalid: [() throws -> Void] = [
            { try server.addMiddleware(RateLimit(0)) },
            { try server.addMiddleware(AuditLog("")) },
            { try server.middleware(MiddlewareScope(methods: ["initialize"])) { request, next, _ in try await next(request) } },
            {
                try server.middleware(MiddlewareScope(tools: ["a"], prompts: ["b"])) { request, next, _ in
                    try await next(request)
                }
            },
            {
                try server.middleware(MiddlewareScope(tools: ["a"], kinds: ["tool"])) { request, next, _ in
                    try await next(request)
                }
            },
        ]
        for add in invalid {
            XCTAssertThrowsError(try add()) { error in
                guard case McplineError.usage = error else { return XCTFail("\(error)") }
            }
        }
    }

    func testTheMiddlewareOfClientsRetriesRecordsAndReplaces() async throws {
        let runs = Locked(0)
        let log = file("client.jsonl")
        let server = try archive()
        try server.tool("busy") { _ -> String in
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            if run < 3 { throw RPCError(code: -31000, message: "busy") }
            return "done"
        }
        let client = try await Client.memory(server) { host in
            host.middleware = [
                Retry(attempts: 3, firstDelay: .milliseconds(1)),
                CircuitBreaker(),
                ClientToolPolicy(denied: ["f*"]),
                AuditLog(log),
                Redaction(members: ["iban"]),
            ]
        }
        let busy = try await client.callTool("busy")
        XCTAssertEqual(busy.text, "done")
        let secret = try await client.callTool("secret")
        XCTAssertEqual(secret.text, #"{"iban":"[redacted]","city":"Oslo"}"#)
        let denied = await failure { try await client.callTool("fail") }
        guard case McplineError.toolCallRefused = denied else { return XCTFail("\(denied)") }
        await client.close()
        XCTAssertEqual(runs.withLock { $0 }, 3)
        XCTAssertGreaterThanOrEqual(try lines(of: log).count, 2)
    }

    func testEveryOptionOfTheMiddlewareOfClientsIsAccepted() async throws {
        let server = try archive()
        let client = try await Client.memory(server) { host in
            host.middleware = [
                Retry(attempts: 2, firstDelay: .milliseconds(1), maxDelay: .seconds(1), tools: ["lookup"]),
                CircuitBreaker(failures: 2, reset: .seconds(1)),
                ClientToolPolicy(allowed: ["*"], denied: ["b"], approval: ["c"], pin: true, pinFile: file("pins.json")),
                AuditLog(
                    file("audit.jsonl"), maxBytes: 1000, maxFiles: 2, arguments: true, results: true, redact: ["a"],
                    required: false),
                Redaction(members: ["a"], patterns: ["[0-9]+"], replacement: "", arguments: true),
            ]
        }
        _ = try await client.listTools()
        await client.close()
        let error = await failure { try await Client.memory(server) { $0.middleware = [Retry(attempts: 0)] } }
        guard case McplineError.usage = error else { return XCTFail("\(error)") }
    }
}
