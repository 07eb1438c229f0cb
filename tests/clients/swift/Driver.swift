// The driver in Swift: a client that reads one job per line and writes one report per line. Its specification is ../README.md.

import EverythingFeatures
import Foundation
import Mcpline

/// The first wait between reconnections.
private let quickly = Duration.milliseconds(20)

/// A job that this driver can't do.
private struct Unsupported: Error {
    let what: String
}

extension JSONObject {
    fileprivate func time(_ name: String) -> Duration? { self[name]?.numberValue.map { .seconds($0) } }

    fileprivate func flag(_ name: String) -> Bool { self[name]?.boolValue ?? false }

    fileprivate func text(_ name: String) -> String { self[name]?.stringValue ?? "" }

    fileprivate func members(_ name: String) -> JSONObject { self[name]?.objectValue ?? [:] }
}

private func strings(_ json: JSON?) -> [String] { (json?.arrayValue ?? []).compactMap(\.stringValue) }

private func strings(_ members: JSONObject) -> [String: String] {
    var strings: [String: String] = [:]
    for (name, value) in members { strings[name] = value.stringValue }
    return strings
}

private func errorReport(_ error: any Error) -> JSON {
    let known = error as? McplineError
    var report: JSONObject = [
        "kind": .string(known?.kind ?? "\(type(of: error))"),
        "text": .string(known?.message ?? "\(error)"),
        "status": .null,
        "code": .null,
        "retry_safe": .bool(known?.details.retrySafe ?? false),
        "outcome_unknown": .bool(known?.details.outcomeUnknown ?? false),
    ]
    switch known {
    case .http(let status, _, _, _): report["status"] = .integer(status)
    case .rpc(let rpc, _): report["code"] = .integer(rpc.code)
    default: break
    }
    return .object(report)
}

/// Notifications that a client has received.
private actor Received {
    private typealias Waiting = (method: String, count: Int, continuation: CheckedContinuation<[JSON], Never>)

    private var params: [String: [JSON]] = [:]
    private var waiting: [Waiting] = []

    func add(_ notification: ServerNotification) {
        params[notification.method, default: []].append(.object(notification.params))
        let all = waiting
        waiting = []
        for each in all { wait(each) }
    }

    /// Waits for the first notifications of a method and returns their params.
    func first(_ method: String, _ count: Int) async -> [JSON] {
        await withCheckedContinuation { wait((method, count, $0)) }
    }

    private func wait(_ each: Waiting) {
        let found = params[each.method] ?? []
        if found.count < each.count {
            waiting.append(each)
        } else {
            each.continuation.resume(returning: Array(found.prefix(each.count)))
        }
    }
}

/// The client of a job, for handlers that send requests.
private actor Connected {
    private var opened: Client?
    private var waiting: [CheckedContinuation<Client, Never>] = []

    func open(_ client: Client) {
        opened = client
        for continuation in waiting { continuation.resume(returning: client) }
        waiting = []
    }

    /// Forgets the client, whose handlers have this value.
    func close() { opened = nil }

    /// Waits until the client is connected.
    func client() async -> Client {
        if let opened { return opened }
        return await withCheckedContinuation { waiting.append($0) }
    }
}

/// Counts calls of a listener, the first of which may take its time.
private actor Listener {
    private(set) var count = 0
    private let pause: Duration?

    init(pause: Duration? = nil) {
        self.pause = pause
    }

    func called() async {
        count += 1
        if count == 1, let pause { try? await Task.sleep(for: pause) }
    }
}

/// Sets what a job says of its client.
private func configure(
    _ builder: inout ClientBuilder, _ given: JSONObject, _ received: Received, _ connected: Connected
) {
    builder.name = "driver"
    builder.settings.revisions = given["revisions"].map { strings($0) }
    builder.settings.era = Era(rawValue: given.text("era"))
    builder.settings.probeTimeout = given.time("probe")
    builder.settings.openTimeout = given.time("answer")
    builder.settings.reconnectAttempts = given["attempts"]?.integerValue
    builder.settings.reconnectDelay = quickly
    builder.settings.trustToolAnnotations = given["trust_tool_annotations"]?.boolValue
    builder.settings.pingInterval = given.time("ping_interval")
    builder.settings.pingTimeout = given.time("ping_timeout")
    if let pause = given.time("listener_pause") {
        let listener = Listener(pause: pause)
        builder.onNotification { _ in await listener.called() }
    }
    if given.flag("answers") {
        builder.roots("file:///")
        builder.onElicit { _ in .declined }
        builder.onSample { _ in CreateMessageResult("sampled", model: "none") }
    }
    if given.flag("listens") { builder.onNotification { await received.add($0) } }
    for (identifier, declared) in given.members("extensions") {
        let declared = declared.objectValue ?? [:]
        builder.extension(identifier, settings: declared.members("settings")) { own in
            for (type, method) in declared.members("resolves") {
                own.onResultType(type) { received in
                    let client = await connected.client()
                    let params: JSONObject = ["token": received.result["token"] ?? .null]
                    return try await client.request(method.stringValue ?? "", params: params)
                }
            }
        }
    }
    for (method, members) in given.members("serves") {
        builder.onRequest(method) { params in try copied(members.objectValue ?? [:], from: params) }
    }
}

/// Answers a custom request: for each member of the result, the member of the params to copy.
private func copied(_ members: JSONObject, from params: JSONObject) throws -> JSONObject {
    var result: JSONObject = [:]
    for (name, source) in members {
        guard let value = params[source.stringValue ?? ""] else {
            throw RPCError(code: -32602, message: "params have no \(source)")
        }
        result[name] = value
    }
    return result
}

private func connect(_ job: JSONObject, _ received: Received, _ connected: Connected) async throws -> Client {
    let given = job.members("settings")
    let settings: (inout ClientBuilder) -> Void = { configure(&$0, given, received, connected) }
    let address = job.members("address")
    if let url = address["url"]?.stringValue {
        let http = HTTPClientOptions(resumeDelay: quickly, maxBodyBytes: given["max_body_bytes"]?.integerValue)
        return try await Client.connect(url, http: http, configure: settings)
    }
    if let path = address["socket"]?.stringValue { return try await Client.socket(path, configure: settings) }
    if address["memory"] != nil {
        let server = try everything(ServerSettings(startupMessage: false), parts: ["extensions"])
        return try await Client.memory(server, configure: settings)
    }
    let command = strings(address["command"])
    guard let program = command.first else { throw Unsupported(what: "the address \(address)") }
    return try await Client.spawn(program, arguments: Array(command.dropFirst()), configure: settings)
}

/// Runs a job as often as it says, until something fails, and returns the report of the last run.
private func run(_ job: JSONObject) async -> JSONObject {
    var report: JSONObject = [:]
    for _ in 0..<(job["times"]?.integerValue ?? 1) {
        report = await play(job)
        let steps = report["steps"]?.arrayValue ?? []
        if report["error"] != .null || steps.contains(where: { $0["error"] != nil }) { break }
    }
    return report
}

private func play(_ job: JSONObject) async -> JSONObject {
    var report: JSONObject = [
        "job": job["job"] ?? .null, "revision": .null, "server": .null, "error": .null, "steps": [],
    ]
    let received = Received()
    let connected = Connected()
    let client: Client
    do {
        client = try await connect(job, received, connected)
        await connected.open(client)
    } catch {
        report["error"] = errorReport(error)
        return report
    }
    report["revision"] = .string(client.revision)
    report["server"] = client.serverInfo.map { .string($0.name) } ?? .null
    var steps: [JSON] = []
    for step in job["steps"]?.arrayValue ?? [] {
        do {
            steps.append(.object(try await take(client, step.objectValue ?? [:], received)))
        } catch {
            steps.append(["error": errorReport(error)])
        }
    }
    await client.close()
    await connected.close()
    report["steps"] = .array(steps)
    return report
}

private func take(_ client: Client, _ step: JSONObject, _ received: Received) async throws -> JSONObject {
    let options = RequestOptions(timeout: step.time("timeout"), reissue: Reissue(rawValue: step.text("reissue")))
    let name = step.text("name")
    let uri = step.text("uri")
    switch step.text("do") {
    case "list_tools": return try result(await client.listTools(options: options))
    case "list_resources": return try result(await client.listResources(options: options))
    case "list_resource_templates": return try result(await client.listResourceTemplates(options: options))
    case "list_prompts": return try result(await client.listPrompts(options: options))
    case "ping": try await client.ping(options: options)
    case "call_tool":
        let listener = Listener(pause: step.time("listener_pause"))
        let called = try await client.callTool(name, step.members("arguments"), options: options) { _ in
            await listener.called()
        }
        return try await result(called, progress: listener.count)
    case "cancel_tool": return try await cancel(client, step, options)
    case "read_resource": return try result(await client.readResource(uri, options: options))
    case "get_prompt":
        return try result(await client.getPrompt(name, strings(step.members("arguments")), options: options))
    case "complete": return try await complete(client, step.members("params"), options)
    case "subscribe": try await client.subscribe(uri, options: options)
    case "unsubscribe": try await client.unsubscribe(uri, options: options)
    case "set_log_level":
        guard let level = LogLevel(rawValue: step.text("level")) else { throw Unsupported(what: "the level") }
        try await client.setLogLevel(level, options: options)
    case "request":
        let listener = Listener()
        let params = step["params"]?.objectValue
        let answer = try await client.request(step.text("method"), params: params, options: options) { _ in
            await listener.called()
        }
        return try await result(answer, progress: listener.count)
    case "notify": try await client.notify(step.text("method"), params: step["params"]?.objectValue)
    case "await_notifications":
        return ["result": .array(await received.first(step.text("method"), step["count"]?.integerValue ?? 0))]
    case let verb: throw Unsupported(what: "the step \(verb)")
    }
    return ["result": .null]
}

private func result(_ value: some Encodable, progress: Int? = nil) throws -> JSONObject {
    var outcome: JSONObject = ["result": try JSON(encoding: value)]
    outcome["progress"] = progress.map { .integer($0) }
    return outcome
}

/// Cancels a call while it runs.
private func cancel(_ client: Client, _ step: JSONObject, _ options: RequestOptions) async throws -> JSONObject {
    let after = step.time("after")
    let (moments, moment) = AsyncStream.makeStream(of: Void.self)
    let calling = Task {
        defer { moment.finish() }
        return try await client.callTool(step.text("name"), step.members("arguments"), options: options) { _ in
            if after == nil { moment.yield() }
        }
    }
    let timer = after.map { after in
        Task {
            try await Task.sleep(for: after)
            moment.yield()
        }
    }
    defer { timer?.cancel() }
    for await _ in moments {
        calling.cancel()
        _ = await calling.result
        return ["result": "cancelled"]
    }
    return try result(await calling.value)
}

private func complete(_ client: Client, _ params: JSONObject, _ options: RequestOptions) async throws -> JSONObject {
    let reference = params.members("ref")
    let argument = params.members("argument")
    let others = strings(params.members("context").members("arguments"))
    let (name, value) = (argument.text("name"), argument.text("value"))
    if let prompt = reference["name"]?.stringValue {
        return try result(
            await client.completePrompt(prompt, argument: name, value: value, others: others, options: options))
    }
    return try result(
        await client.completeResource(
            reference.text("uri"), variable: name, value: value, others: others, options: options))
}

private actor Output {
    func write(_ report: JSONObject) { FileHandle.standardOutput.write(Data("\(report.text)\n".utf8)) }
}

@main
enum Driver {
    static func main() async {
        let (lines, line) = AsyncStream.makeStream(of: String.self)
        // Reading blocks a thread.
        Thread.detachNewThread {
            while let text = readLine() { line.yield(text) }
            line.finish()
        }
        let output = Output()
        await withDiscardingTaskGroup { group in
            for await text in lines {
                group.addTask {
                    guard let job = try? JSONObject(parsing: text) else { return }
                    await output.write(await run(job))
                }
            }
        }
    }
}
