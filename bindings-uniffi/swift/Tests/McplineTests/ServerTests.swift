import Foundation
import XCTest

@testable import Mcpline

struct Forecast: Codable, SchemaDescriptionProviding {
    var city: String
    var days: Int?
    static let descriptions = ["city": "The name of a city"]
}

struct Weather: Codable, Equatable {
    var city: String
    var summary: String
}

struct Name: Codable {
    var name: String
}

final class ServerTests: XCTestCase {
    func testToolsReturnWhatTheirHandlersReturn() async throws {
        let server = try Server("weather", version: "1.0.0", title: "Weather", instructions: "Ask by city.")
        try server.tool("text", description: "A text") { (forecast: Forecast, _) in "\(forecast.city): \(forecast.days ?? 1)" }
        try server.structuredTool("structured") { (forecast: Forecast, _) in Weather(city: forecast.city, summary: "sunny") }
        try server.tool("image") { _ in ContentBlock.image(ImageContent(bytes: Data([1, 2]), mimeType: "image/png")) }
        try server.tool("blocks") { _ -> [ContentBlock] in [.text("a"), .text("b")] }
        try server.tool("texts") { _ in ["a", "b"] }
        try server.tool("data") { _ -> JSON in ["a": [1, 2]] }
        try server.tool("optional") { _ in nil as String? }
        try server.tool("result") { _ in CallToolResult(content: [.text("no")], isError: true) }
        let client = try await Client.memory(server)
        XCTAssertEqual(client.serverInfo?.title, "Weather")
        XCTAssertEqual(client.instructions, "Ask by city.")
        let tool = try await client.listTools()[0]
        XCTAssertEqual(tool.inputSchema, try jsonSchema(of: Forecast.self))
        let text = try await client.callTool("text", Forecast(city: "Oslo", days: 2))
        XCTAssertEqual(text.text, "Oslo: 2")
        let structured = try await client.callTool("structured", Forecast(city: "Oslo"))
        XCTAssertEqual(try structured.data(as: Weather.self), Weather(city: "Oslo", summary: "sunny"))
        guard case .image(let image) = try await client.callTool("image").content.first else { return XCTFail("no image") }
        XCTAssertEqual(image.bytes, Data([1, 2]))
        for (name, expected) in ["blocks": "a\nb", "texts": "a\nb", "data": #"{"a":[1,2]}"#, "optional": "", "result": "no"] {
            let result = try await client.callTool(name)
            XCTAssertEqual(result.text, expected, name)
            XCTAssertEqual(result.isError ?? false, name == "result", name)
        }
        await client.close()
    }

    func testInvalidArgumentsAreRefusedBeforeTheHandler() async throws {
        let server = try Server("weather", version: "1.0.0")
        try server.tool("forecast") { (_: Forecast, _) -> String in throw ToolError("not called") }
        let client = try await Client.memory(server)
        let refused = try await client.callTool("forecast", ["days": 2])
        XCTAssertEqual(refused.isError, true)
        XCTAssertTrue(refused.text.contains("city"), refused.text)
        // It matches the schema, but not the type.
        let beyond = try await client.callTool("forecast", ["city": "Oslo", "days": 1e30])
        XCTAssertEqual(beyond.isError, true)
        XCTAssertFalse(beyond.text.contains("not called"), beyond.text)
        await client.close()
    }

    private struct SecretError: Error { let text = "secret-7c1f" }

    func testFailuresOfHandlersAreForTheModelOrTheClient() async throws {
        let server = try Server("failures", version: "1.0.0")
        try server.tool("tool") { _ -> String in throw ToolError("try again") }
        try server.tool("rpc") { _ -> String in throw RPCError(code: -31050, message: "no", data: "why") }
        try server.tool("secret") { _ -> String in throw SecretError() }
        try server.resource("test://{id}", name: "missing") { _, _ -> String in throw ResourceNotFoundError() }
        let client = try await Client.memory(server)
        let failed = try await client.callTool("tool")
        XCTAssertEqual(failed.text, "try again")
        XCTAssertThrowsError(try failed.data(as: Weather.self)) { XCTAssertEqual($0 as? ToolError, ToolError("try again")) }
        let rpc = await rpcError { try await client.callTool("rpc") }
        XCTAssertEqual(rpc, RPCError(code: -31050, message: "no", data: "why"))
        let secret = try await client.callTool("secret")
        XCTAssertEqual(secret.isError, true)
        XCTAssertFalse(secret.text.contains("7c1f"), secret.text)
        _ = await rpcError { try await client.readResource("test://1") }
        await client.close()
    }

    func testResourcesAndTemplatesAreRead() async throws {
        let server = try Server("files", version: "1.0.0")
        try server.resource("config://units", name: "units", mimeType: "text/plain") { _, _ in "Celsius" }
        try server.resource("blob://a", name: "a", mimeType: "image/png") { _, _ in Data([1]) }
        try server.resource("city://{name}", name: "city", mimeType: "application/json") { variables, _ -> JSON in
            ["name": .string(variables["name"] ?? "")]
        }
        try server.completion("city://{name}", argument: "name", candidates: ["Bergen", "Oslo"])
        let client = try await Client.memory(server)
        let units = try await client.readResource("config://units")
        XCTAssertEqual(units.text, "Celsius")
        let blob = try await client.readResource("blob://a")
        XCTAssertEqual(blob.contents[0].bytes, Data([1]))
        let city = try await client.readResource("city://Oslo").contents[0]
        XCTAssertEqual(city.text, #"{"name":"Oslo"}"#)
        XCTAssertEqual(city.mimeType, "application/json")
        let uris = try await client.listResources().map(\.uri)
        XCTAssertEqual(uris, ["config://units", "blob://a"])
        let templates = try await client.listResourceTemplates().map(\.uriTemplate)
        XCTAssertEqual(templates, ["city://{name}"])
        let completed = try await client.completeResource("city://{name}", variable: "name", value: "O")
        XCTAssertEqual(completed.values, ["Oslo"])
        XCTAssertTrue(try server.removeResource("config://units"))
        _ = await rpcError { try await client.readResource("config://units") }
        await client.close()
    }

    func testTemplatesListResources() async throws {
        let server = try Server("logs", version: "1.0.0")
        try server.resource(
            "log://{day}", name: "log", cache: CacheHint(ttlMs: 60_000, isPublic: true),
            list: { call in ["log://monday", Resource(uri: "log://\(call.revision)", name: "today"), "other://monday"] }
        ) { variables, _ in "on \(variables["day"] ?? "")" }
        try server.resource("log://all", name: "all") { _, _ in "everything" }
        let changed = Promise<Bool>()
        let client = try await Client.memory(server) { host in
            // The subscription may begin after a change.
            host.onNotification { notification in
                switch notification.method {
                case "notifications/subscriptions/acknowledged": server.notifyResourceListChanged()
                case "notifications/resources/list_changed": changed.fulfil()
                default: break
                }
            }
        }
        let resources = try await client.listResources()
        XCTAssertEqual(resources.map(\.uri), ["log://all", "log://monday", "log://2026-07-28"])
        XCTAssertEqual(resources.last?.name, "today")
        let log = try await client.readResource("log://monday")
        XCTAssertEqual(log.text, "on monday")
        XCTAssertEqual(log.ttlMs, 60_000)
        XCTAssertEqual(log.cacheScope, "public")
        _ = await changed.value
        XCTAssertTrue(try server.removeResource("log://{day}"))
        let left = try await client.listResources(options: RequestOptions(fresh: true))
        XCTAssertEqual(left.map(\.uri), ["log://all"])
        await client.close()
        let refused = await failure {
            try server.resource("log://none", name: "none", list: { _ in ["log://monday"] }) { _, _ in "" }
        }
        guard case McplineError.usage(let details) = refused else { return XCTFail("\(refused)") }
        XCTAssertTrue(details.message.contains("log://none"), details.message)
    }

    func testErrorsOfListsAreThoseOfTheRequest() async throws {
        let server = try Server("logs", version: "1.0.0")
        try server.resource(
            "log://{day}", name: "log", list: { _ in throw RPCError(code: -31050, message: "no days") }
        ) { _, _ in "" }
        let client = try await Client.memory(server)
        let error = await rpcError { try await client.listResources() }
        XCTAssertEqual(error, RPCError(code: -31050, message: "no days"))
        await client.close()
    }

    func testHandlersRequireScopes() async throws {
        let server = try Server("scopes", version: "1.0.0", settings: quiet)
        try server.tool("open") { call in
            try call.requireScopes("archive:2024", "archive:read")
            return "opened"
        }
        // Every caller in memory has all scopes.
        let client = try await Client.memory(server)
        let opened = try await client.callTool("open")
        XCTAssertEqual(opened.text, "opened")
        await client.close()
        // Callers over HTTP are anonymous without `auth`.
        let url = Promise<String>()
        let serving = Task { try await server.runHTTP(port: 0) { url.fulfil($0) } }
        let remote = try await Client.connect(await url.value)
        let refused = await failure { try await remote.callTool("open") }
        XCTAssertTrue("\(refused)".contains("scope"), "\(refused)")
        await remote.close()
        server.close()
        try await serving.value
    }

    func testPromptsConvertTheirArguments() async throws {
        let server = try Server("plans", version: "1.0.0")
        try server.prompt("plan") { (plan: Forecast, _) in "Plan \(plan.days ?? 1) day(s) in \(plan.city)." }
        try server.prompt("talk") { _ in [PromptMessage(.user, "2 + 2?"), PromptMessage(.assistant, "4")] }
        try server.completion("plan", argument: "city") { value, others, _ in ["\(value) of \(others["days"] ?? "")"] }
        let client = try await Client.memory(server)
        let plan = try await client.getPrompt("plan", ["city": "Oslo", "days": "3"])
        XCTAssertEqual(plan.messages.map(\.content), [.text("Plan 3 day(s) in Oslo.")])
        let arguments = try await client.listPrompts()[0].arguments
        XCTAssertEqual(arguments?.map(\.name), ["city", "days"])
        XCTAssertEqual(arguments?.map(\.required), [true, false])
        XCTAssertEqual(arguments?[0].description, "The name of a city")
        let roles = try await client.getPrompt("talk").messages.map(\.role)
        XCTAssertEqual(roles, [.user, .assistant])
        let refused = await rpcError { try await client.getPrompt("plan", ["city": "a", "days": "b"]) }
        XCTAssertEqual(refused?.code, -32602)
        let completed = try await client.completePrompt("plan", argument: "city", value: "Os", others: ["days": "3"])
        XCTAssertEqual(completed.values, ["Os of 3"])
        await client.close()
    }

    func testHandlersAskTheUserTheModelAndTheHost() async throws {
        let server = try Server("asking", version: "1.0.0")
        try server.tool("elicit") { call in
            switch try await call.elicit("Who?", as: Name.self) {
            case .accepted(let content): "Hello, \(content.name)"
            case .declined, .cancelled: "nothing"
            }
        }
        try server.tool("sample") { call in
            try await call.sample(CreateMessageParams(messages: [SamplingMessage(.user, "Hi")], maxTokens: 10)).text
        }
        try server.tool("roots") { call in try await call.listRoots().map(\.uri) }
        try server.tool("url") { call in
            try await call.elicitURL(URLElicitation(message: "Go", url: "https://example.com/", elicitationId: "a")).action
        }
        let client = try await Client.memory(server) { host in
            host.onElicit { $0.url == nil ? try $0.accept(Name(name: "Ada")) : .declined }
            host.onSample { _ in CreateMessageResult("Hm.", model: "none") }
            host.roots("file:///home/ada")
            host.capabilities = ["elicitation": ["form": [:], "url": [:]]]
        }
        for (name, expected) in ["elicit": "Hello, Ada", "sample": "Hm.", "roots": "file:///home/ada", "url": "decline"] {
            let result = try await client.callTool(name)
            XCTAssertEqual(result.text, expected, name)
        }
        await client.close()
        let other = try await Client.memory(server)
        _ = await rpcError { try await other.callTool("elicit") }
        await other.close()
    }

    func testHandlersReturnInputRequests() async throws {
        let server = try Server("asking", version: "1.0.0")
        try server.tool("greet") { call -> AnyToolOutput in
            if let name = call.inputResponses?["name"]?["content"] {
                return AnyToolOutput("\(call.requestState ?? "") \(name)")
            }
            var questions = InputRequired(state: "s")
            try questions.elicit("name", message: "Who?", as: Name.self)
            return AnyToolOutput(questions)
        }
        let client = try await Client.memory(server) { host in host.onElicit { try $0.accept(Name(name: "Ada")) } }
        let greeting = try await client.callTool("greet")
        XCTAssertEqual(greeting.text, #"s {"name":"Ada"}"#)
        await client.close()
    }

    func testProgressAndLogsReachTheClientInOrder() async throws {
        let server = try Server("reporter", version: "1.0.0")
        try server.tool("report") { call in
            for step in 1...3 { call.progress(Double(step), total: 3, message: "step \(step)") }
            return "done"
        }
        let client = try await Client.memory(server)
        let reports = Locked<[ProgressReport]>([])
        _ = try await client.callTool("report") { report in reports.withLock { $0.append(report) } }
        XCTAssertEqual(
            reports.withLock { $0 }, (1...3).map { ProgressReport(Double($0), total: 3, message: "step \($0)") })
        await client.close()
    }

    func testCancelledRequestsCancelTheirHandlers() async throws {
        let started = Promise<Bool>()
        let cancelled = Promise<Bool>()
        let server = try Server("slow", version: "1.0.0")
        try server.tool("wait") { _ -> String in
            started.fulfil()
            defer { cancelled.fulfil() }
            try await cancellation()
            return "not cancelled"
        }
        let client = try await Client.memory(server)
        let call = Task { try await client.callTool("wait") }
        _ = await started.value
        call.cancel()
        let error = await failure { try await call.value }
        XCTAssertTrue(error is CancellationError, "\(error)")
        _ = await cancelled.value
        // A task that is already cancelled sends nothing, and the connection goes on.
        let late = Task {
            try? await cancellation()
            return try await client.callTool("wait")
        }
        late.cancel()
        let lateError = await failure { try await late.value }
        XCTAssertTrue(lateError is CancellationError, "\(lateError)")
        let tools = try await client.listTools()
        XCTAssertEqual(tools.count, 1)
        await client.close()
    }

    func testContextsCannotBeUsedAfterTheirHandler() async throws {
        let kept = Promise<CallContext>()
        let server = try Server("kept", version: "1.0.0")
        try server.tool("keep") { call in
            kept.fulfil(call)
            return "kept"
        }
        let client = try await Client.memory(server)
        _ = try await client.callTool("keep")
        let call = await kept.value
        XCTAssertThrowsError(try call.notify("acme/late"))
        await client.close()
    }

    func testCustomRequestsAndNotificationsAreHandled() async throws {
        let noted = Promise<String>()
        let server = try Server("custom", version: "1.0.0")
        try server.request("acme/greet") { (name: Name, _) -> JSONObject in ["greeting": "Hello, \(name.name)"] }
        try server.notification("acme/note") { (name: Name, _) in noted.fulfil(name.name) }
        try server.tool("pick") { call in try await call.request("acme/pick", params: ["from": [1, 2]])["picked"] ?? .null }
        let client = try await Client.memory(server) { host in
            host.onRequest("acme/pick") { params in ["picked": params["from"] ?? .null] }
        }
        let greeting = try await client.request("acme/greet", params: ["name": "Ada"])
        XCTAssertEqual(greeting["greeting"], "Hello, Ada")
        _ = await rpcError { try await client.request("acme/greet", params: [:]) }
        try await client.notify("acme/note", params: ["name": "Bob"])
        let note = await noted.value
        XCTAssertEqual(note, "Bob")
        let picked = try await client.callTool("pick")
        XCTAssertEqual(picked.text, "[1,2]")
        await client.close()
    }

    func testLifespansSurroundServingOverHTTP() async throws {
        let events = Locked<[String]>([])
        let server = try Server("span", version: "1.0.0", settings: quiet)
        server.lifespan { serve in
            events.withLock { $0.append("open") }
            try await serve()
            events.withLock { $0.append("closed") }
        }
        try server.tool("headers") { call in call.headers?["x-fixture"] ?? [] }
        let url = Promise<String>()
        let serving = Task { try await server.runHTTP(port: 0) { url.fulfil($0) } }
        let client = try await Client.connect(await url.value, http: HTTPClientOptions(headers: ["x-fixture": "a"]))
        let headers = try await client.callTool("headers")
        XCTAssertEqual(headers.text, "a")
        await client.close()
        server.close()
        try await serving.value
        XCTAssertEqual(events.withLock { $0 }, ["open", "closed"])
    }

    func testCancellingTheTaskStopsServing() async throws {
        let server = try Server("stop", version: "1.0.0", settings: quiet)
        let url = Promise<String>()
        let serving = Task { try await server.runHTTP(port: 0) { url.fulfil($0) } }
        let address = await url.value
        serving.cancel()
        let error = await failure { try await serving.value }
        XCTAssertTrue(error is CancellationError, "\(error)")
        let refused = await failure { try await Client.connect(address) }
        guard case McplineError.serverUnreachable = refused else { return XCTFail("\(refused)") }
    }

    func testClientsConnectToUnixSockets() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("mcpline-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("socket").path
        let server = try Server("unix", version: "1.0.0", settings: quiet)
        try server.tool("ping") { _ in "pong" }
        let ready = Promise<Bool>()
        let serving = Task {
            try await server.runUnix(path, settings: UnixSettings(mode: "0600", maxConnections: 2)) { ready.fulfil() }
        }
        _ = await ready.value
        let client = try await Client.socket(path)
        let pong = try await client.callTool("ping")
        XCTAssertEqual(pong.text, "pong")
        await client.close()
        server.close()
        try await serving.value
    }

    func testServersCanBeClosedBeforeTheyListen() async throws {
        let server = try Server("early", version: "1.0.0", settings: quiet)
        server.lifespan { serve in
            server.close()
            try await serve()
        }
        try await server.runHTTP(port: 0) { url in
            XCTFail("it listens at \(url)")
            server.close()
        }
        // It can be served again.
        let url = Promise<String>()
        server.lifespan { try await $0() }
        let serving = Task { try await server.runHTTP(port: 0) { url.fulfil($0) } }
        _ = await url.value
        server.close()
        try await serving.value
    }

    func testHandlersMayReturnSeveralTypes() async throws {
        let server = try Server("several", version: "1.0.0")
        try server.tool("tool") { call in
            if call.inputResponses != nil { return AnyToolOutput("answered") }
            return AnyToolOutput([ContentBlock.text("a"), .text("b")])
        }
        try server.resource("test://{name}", name: "resource") { variables, _ in
            variables["name"] == "text" ? AnyResourceOutput("text") : AnyResourceOutput(Data([1]))
        }
        try server.prompt("prompt") { (name: Name, _) in
            if name.name.isEmpty { return AnyPromptOutput([ContentBlock.text("Who?"), .text("You?")]) }
            return AnyPromptOutput(PromptMessage(.assistant, name.name))
        }
        try server.prompt("texts") { _ in ["a", "b"] }
        try server.addRequest("acme/request") { params, _ in
            params.isEmpty ? AnyRequestOutput(["empty": true] as JSONObject) : AnyRequestOutput([1] as JSON)
        }
        let client = try await Client.memory(server)
        let called = try await client.callTool("tool")
        XCTAssertEqual(called.text, "a\nb")
        let text = try await client.readResource("test://text")
        XCTAssertEqual(text.contents[0].text, "text")
        let bytes = try await client.readResource("test://bytes")
        XCTAssertEqual(bytes.contents[0].bytes, Data([1]))
        let blocks = try await client.getPrompt("prompt", ["name": ""])
        XCTAssertEqual(blocks.messages, [PromptMessage(.user, "Who?"), PromptMessage(.user, "You?")])
        let message = try await client.getPrompt("prompt", ["name": "Ada"])
        XCTAssertEqual(message.messages, [PromptMessage(.assistant, "Ada")])
        let texts = try await client.getPrompt("texts")
        XCTAssertEqual(texts.messages, [PromptMessage(.user, "a"), PromptMessage(.user, "b")])
        let empty = try await client.request("acme/request")
        XCTAssertEqual(empty["empty"], true)
        // Results are objects.
        let refused = await rpcError { try await client.request("acme/request", params: ["a": 1]) }
        XCTAssertEqual(refused?.code, -32603)
        await client.close()
    }

    func testWrongUseIsRefusedWithAReason() throws {
        XCTAssertThrowsError(try Server("a", version: "1", settings: ServerSettings(clientShare: 2))) { error in
            guard case McplineError.usage(let details) = error else { return XCTFail("\(error)") }
            XCTAssertTrue(details.message.contains("client_share"), details.message)
        }
        let server = try Server("a", version: "1")
        try server.tool("twice") { _ in "" }
        XCTAssertThrowsError(try server.tool("twice") { _ in "" })
        XCTAssertFalse(try server.removeTool("none"))
    }
}
