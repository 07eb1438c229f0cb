internal import McplineNative

/// A client of one server.
///
/// ```swift
/// let client = try await Client.spawn("weather-server")
/// print(try await client.callTool("forecast", Forecast(city: "Oslo")).text)
/// await client.close()
/// ```
///
/// Open it with ``connect(_:http:configure:)``, ``spawn(_:_:options:configure:)``, ``socket(_:configure:)``,
/// ``memory(_:configure:)`` or ``over(_:configure:)``, and ``close()`` it at the end, or ``use(_:)`` it. Requests share the
/// connection. If it is lost, the next request opens a new one. If the task of a request is cancelled, so is the request, also at
/// the server. All functions are safe to call from any task, and throw an ``McplineError``, or a `CancellationError`.
public final class Client: Sendable {
    private let native: McplineNative.Client
    private let host: ClientHost
    private let description: ServerDescription

    private init(_ native: McplineNative.Client, _ host: ClientHost, _ description: ServerDescription) {
        self.native = native
        self.host = host
        self.description = description
    }

    // MARK: - Opening and closing

    /// Connects to an HTTP server: 2026-07-28, an older revision of Streamable HTTP, or HTTP+SSE. Detects which of them the
    /// server speaks.
    ///
    /// - Parameter configure: Sets handlers and settings.
    public static func connect(
        _ url: String,
        http: HTTPClientOptions = HTTPClientOptions(),
        configure: (inout ClientBuilder) throws -> Void = { _ in }
    ) async throws -> Client {
        let builder = try ClientBuilder.configured(configure)
        var options = try optionsObject(http)
        options["headers"] = http.headers.map { headers in
            .array(headers.sorted { $0.key < $1.key }.map { [.string($0.key), .string($0.value)] })
        }
        options["auth"] = try builder.auth.map { .object(try $0.options) }
        return try await open(builder, kind: "url", at: url, options)
    }

    /// Starts a program and connects to it over its standard input and output. It ends when the client ends, together with all
    /// processes that it started.
    ///
    /// - Parameters:
    ///   - program: The program: a path, or a name that is searched for in `PATH`.
    ///   - arguments: Its arguments.
    ///   - configure: Sets handlers and settings.
    public static func spawn(
        _ program: String,
        _ arguments: String...,
        options: ProgramOptions = ProgramOptions(),
        configure: (inout ClientBuilder) throws -> Void = { _ in }
    ) async throws -> Client {
        try await spawn(program, arguments: arguments, options: options, configure: configure)
    }

    /// Starts a program with an array of arguments: see ``spawn(_:_:options:configure:)``.
    public static func spawn(
        _ program: String,
        arguments: [String],
        options: ProgramOptions = ProgramOptions(),
        configure: (inout ClientBuilder) throws -> Void = { _ in }
    ) async throws -> Client {
        let command = try optionsObject(options).merging([
            "program": .string(program), "arguments": .array(arguments.map(JSON.string)),
        ])
        return try await open(try ClientBuilder.configured(configure), kind: "program", at: "", command)
    }

    /// Connects to a server at a Unix socket, with one message per line.
    public static func socket(
        _ path: String, configure: (inout ClientBuilder) throws -> Void = { _ in }
    ) async throws -> Client {
        try await open(try ClientBuilder.configured(configure), kind: "socket", at: path, [:])
    }

    /// Connects to a server in the same process, without sockets: for tests. The whole protocol runs.
    public static func memory(
        _ server: Server, configure: (inout ClientBuilder) throws -> Void = { _ in }
    ) async throws -> Client {
        let builder = try ClientBuilder.configured(configure)
        return try await open(builder) { host in
            try McplineNative.Client.ofServer(
                host: host, offer: builder.offer.text, settings: try optionsObject(builder.settings).text,
                server: server.native, options: "{}")
        }
    }

    /// Connects over a custom transport, which opens a channel for each connection.
    public static func over(
        _ transport: some ClientTransport, configure: (inout ClientBuilder) throws -> Void = { _ in }
    ) async throws -> Client {
        let builder = try ClientBuilder.configured(configure)
        return try await open(builder) { host in
            try McplineNative.Client.ofTransport(
                host: host, offer: builder.offer.text, settings: try optionsObject(builder.settings).text,
                transport: ChannelOpener(transport))
        }
    }

    private static func open(
        _ builder: ClientBuilder, kind: String, at place: String, _ options: JSONObject
    ) async throws -> Client {
        try await open(builder) { host in
            try McplineNative.Client.of(
                host: host, offer: builder.offer.text, settings: try optionsObject(builder.settings).text, kind: kind,
                at: place, options: options.text)
        }
    }

    private static func open(
        _ builder: ClientBuilder, _ create: (ClientHost) throws -> McplineNative.Client
    ) async throws -> Client {
        let host = ClientHost(builder)
        let native = try nativeCall { try create(host) }
        do {
            if let listener = builder.requestListener {
                try nativeCall { try native.recordRequests(listener: listener) }
            }
            let opened = try await nativeCall { try await native.open() }
            return Client(native, host, try decodeResult(try JSON(parsing: opened), "the description of the server"))
        } catch {
            await disconnect(native, host)
            throw error
        }
    }

    private static func disconnect(_ native: McplineNative.Client, _ host: ClientHost) async {
        // In a task of its own, which is not cancelled.
        await Task { try? await native.disconnect() }.value
        host.notifications.finish()
    }

    /// Closes the connection: requests in flight fail with ``McplineError/closed(_:)``, and a program that the client started
    /// ends. Returns when nothing of it is left.
    public func close() async {
        await Client.disconnect(native, host)
    }

    /// Runs a function with the client, and closes it.
    public func use<Result: Sendable>(_ body: @Sendable (Client) async throws -> Result) async throws -> Result {
        do {
            let result = try await body(self)
            await close()
            return result
        } catch {
            await close()
            throw error
        }
    }

    // MARK: - The server

    /// The revision of the protocol that both sides speak: `2026-07-28`.
    public var revision: String { description.protocolVersion }

    /// Name and version of the server, if it sent them.
    public var serverInfo: Implementation? { description.serverInfo }

    /// The capabilities that the server declares.
    public var serverCapabilities: JSONObject { description.serverCapabilities }

    /// For the model: how to use the server.
    public var instructions: String? { description.instructions }

    /// The process id of the server, if the client has started it.
    public var pid: Int? { native.pid().map(Int.init) }

    /// Returns what the client holds now.
    public func stats() throws -> JSONObject {
        try nativeCall { try JSONObject(parsing: try native.stats()) }
    }

    /// Returns the metrics in the text format of Prometheus, if ``ClientSettings/metrics`` is on.
    public func metrics() throws -> String {
        try nativeCall { try native.metrics() }
    }

    /// The notifications of the server, those that arrive after an iterator was made. The sequence ends when the client is
    /// closed, or the task that iterates is cancelled.
    ///
    /// An iteration that is slower than the server loses notifications when more than 4,096, or 32 MiB, are waiting; a warning
    /// is logged then.
    public var notifications: Notifications { Notifications(channel: host.notifications, native: native) }

    // MARK: - Requests

    /// Calls a tool. A tool that fails returns a result with ``CallToolResult/isError``.
    ///
    /// - Parameter onProgress: Called with each progress report, in order, before the call returns.
    public func callTool(
        _ name: String,
        _ arguments: JSONObject = [:],
        options: RequestOptions? = nil,
        onProgress: (@Sendable (ProgressReport) async -> Void)? = nil
    ) async throws -> CallToolResult {
        let params: JSONObject = ["name": .string(name), "arguments": .object(arguments)]
        return try await result("tools/call", params, options, onProgress)
    }

    /// Calls a tool with arguments of an encodable type.
    public func callTool(
        _ name: String,
        _ arguments: some Encodable,
        options: RequestOptions? = nil,
        onProgress: (@Sendable (ProgressReport) async -> Void)? = nil
    ) async throws -> CallToolResult {
        try await callTool(name, try JSONObject(encoding: arguments), options: options, onProgress: onProgress)
    }

    /// Returns the tools of all pages.
    public func listTools(options: RequestOptions? = nil) async throws -> [Tool] { try await list("tools/list", options) }

    /// Returns the resources of all pages.
    public func listResources(options: RequestOptions? = nil) async throws -> [Resource] {
        try await list("resources/list", options)
    }

    /// Returns the resource templates of all pages.
    public func listResourceTemplates(options: RequestOptions? = nil) async throws -> [ResourceTemplate] {
        try await list("resources/templates/list", options)
    }

    /// Returns the prompts of all pages.
    public func listPrompts(options: RequestOptions? = nil) async throws -> [Prompt] {
        try await list("prompts/list", options)
    }

    /// Reads a resource.
    public func readResource(_ uri: String, options: RequestOptions? = nil) async throws -> ReadResourceResult {
        try await result("resources/read", ["uri": .string(uri)], options)
    }

    /// Returns a prompt with its arguments filled in.
    public func getPrompt(
        _ name: String, _ arguments: [String: String] = [:], options: RequestOptions? = nil
    ) async throws -> GetPromptResult {
        try await result("prompts/get", ["name": .string(name), "arguments": object(arguments)], options)
    }

    /// Completes an argument of a prompt.
    ///
    /// - Parameters:
    ///   - value: What the user typed.
    ///   - others: The other arguments given so far.
    public func completePrompt(
        _ name: String, argument: String, value: String, others: [String: String] = [:], options: RequestOptions? = nil
    ) async throws -> CompletionValues {
        try await complete(["type": "ref/prompt", "name": .string(name)], argument, value, others, options)
    }

    /// Completes a variable of a resource template.
    public func completeResource(
        _ uriTemplate: String, variable: String, value: String, others: [String: String] = [:], options: RequestOptions? = nil
    ) async throws -> CompletionValues {
        try await complete(["type": "ref/resource", "uri": .string(uriTemplate)], variable, value, others, options)
    }

    /// Subscribes to updates to a resource: `notifications/resources/updated` among the ``notifications``.
    public func subscribe(_ uri: String, options: RequestOptions? = nil) async throws {
        try await perform("resources/subscribe", uri, options)
    }

    /// Unsubscribes from updates to a resource.
    public func unsubscribe(_ uri: String, options: RequestOptions? = nil) async throws {
        try await perform("resources/unsubscribe", uri, options)
    }

    /// Sets the least severe level of log messages that the server sends.
    public func setLogLevel(_ level: LogLevel, options: RequestOptions? = nil) async throws {
        try await perform("logging/setLevel", level.rawValue, options)
    }

    /// Checks that the server answers.
    public func ping(options: RequestOptions? = nil) async throws { try await perform("ping", "", options) }

    /// Notifies the server that the client's roots have changed.
    public func notifyRootsChanged() async throws { try await perform("notifications/roots/list_changed", "", nil) }

    /// Sends any other request, and returns its result.
    public func request(
        _ method: String,
        params: JSONObject? = nil,
        options: RequestOptions? = nil,
        onProgress: (@Sendable (ProgressReport) async -> Void)? = nil
    ) async throws -> JSONObject {
        try JSONObject(parsing: try await send(method, params, options, onProgress))
    }

    /// Sends a notification.
    public func notify(_ method: String, params: JSONObject? = nil) async throws {
        try await nativeCall { try await native.notify(method: method, params: params?.text) }
    }

    private func complete(
        _ ref: JSONObject, _ argument: String, _ value: String, _ others: [String: String], _ options: RequestOptions?
    ) async throws -> CompletionValues {
        var params: JSONObject = ["ref": .object(ref), "argument": ["name": .string(argument), "value": .string(value)]]
        if !others.isEmpty { params["context"] = ["arguments": object(others)] }
        let result: CompleteResult = try await result("completion/complete", params, options)
        return result.completion
    }

    private func result<T: Decodable>(
        _ method: String,
        _ params: JSONObject?,
        _ options: RequestOptions?,
        _ onProgress: (@Sendable (ProgressReport) async -> Void)? = nil
    ) async throws -> T {
        try decodeResult(try JSON(parsing: try await send(method, params, options, onProgress)), "the result of \(method)")
    }

    private func send(
        _ method: String,
        _ params: JSONObject?,
        _ options: RequestOptions?,
        _ onProgress: (@Sendable (ProgressReport) async -> Void)?
    ) async throws -> String {
        let encoded = try encoded(options)
        let listener = onProgress.map { ProgressHandler($0) }
        return try await nativeCall {
            try await native.request(method: method, params: params?.text, options: encoded, listener: listener)
        }
    }

    private func list<T: Decodable>(_ method: String, _ options: RequestOptions?) async throws -> [T] {
        let encoded = try encoded(options)
        let items = try await nativeCall { try await native.list(method: method, options: encoded) }
        return try decodeResult(try JSON(parsing: items), "the result of \(method)")
    }

    private func perform(_ method: String, _ argument: String, _ options: RequestOptions?) async throws {
        let encoded = try encoded(options)
        try await nativeCall { try await native.perform(method: method, argument: argument, options: encoded) }
    }

    private func encoded(_ options: RequestOptions?) throws -> String? { try options.map { try optionsObject($0).text } }
}

private struct ServerDescription: Decodable, Sendable {
    let protocolVersion: String
    let serverInfo: Implementation?
    let serverCapabilities: JSONObject
    let instructions: String?
}

private struct CompleteResult: Decodable {
    let completion: CompletionValues
}

private func object(_ strings: [String: String]) -> JSON {
    .object(JSONObject(strings.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }))
}

/// Passes the progress reports of a request on. The library waits while one is handled, and holds the next ones.
private final class ProgressHandler: ProgressListener {
    private let handle: @Sendable (ProgressReport) async -> Void

    init(_ handle: @escaping @Sendable (ProgressReport) async -> Void) {
        self.handle = handle
    }

    func progress(progress: Double, total: Double?, message: String?) async {
        await handle(ProgressReport(progress, total: total, message: message))
    }
}
