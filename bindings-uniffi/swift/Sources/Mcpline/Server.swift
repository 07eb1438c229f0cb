internal import McplineNative

/// A server.
///
/// ```swift
/// struct Forecast: Codable { var city: String }
///
/// let weather = try Server("weather", version: "1.0.0")
/// try weather.tool("forecast", description: "Forecast for a city") { (forecast: Forecast, _) in
///     "\(forecast.city): sunny"
/// }
/// try await weather.run()
/// ```
///
/// Features can be added and removed while it runs; clients are notified. All functions are safe to call from any task.
public final class Server: Sendable {
    let native: McplineNative.Server
    private let transports = Locked(Transports())
    private let handlers = RunningHandlers()
    private let around = Locked<Lifespan?>(nil)

    /// A function around each transport: see ``lifespan(_:)``.
    public typealias Lifespan = @Sendable (_ serve: @Sendable () async throws -> Void) async throws -> Void

    /// Creates a server.
    ///
    /// - Parameters:
    ///   - name: Name for programs.
    ///   - version: Version of the server.
    ///   - title: Display name.
    ///   - instructions: For the model: how to use the server.
    ///   - settings: Settings; every one has a production-safe default.
    ///   - extensions: Extensions of the protocol to declare.
    /// - Throws: ``McplineError/usage(_:)`` if a setting is invalid.
    public init(
        _ name: String,
        version: String,
        title: String? = nil,
        instructions: String? = nil,
        settings: ServerSettings = ServerSettings(),
        extensions: [Extension] = []
    ) throws {
        Library.load()
        let info = try JSON(encoding: Implementation(name: name, version: version, title: title))
        let options = try optionsObject(settings).merging([
            "extensions": .object(JSONObject(extensions.map { ($0.identifier, .object($0.settings)) })),
            "result_types": .object(
                JSONObject(
                    extensions.flatMap { owner in owner.resultTypes.map { ($0, JSON.string(owner.identifier)) } }
                )
            ),
        ])
        native = try nativeCall {
            try McplineNative.Server(info: info.text, instructions: instructions, settings: options.text)
        }
    }

    // MARK: - Tools

    /// Adds a tool whose arguments are an `Arguments`.
    ///
    /// The schema of the arguments is derived from their type: see ``jsonSchema(of:)``. The handler returns a text, content
    /// blocks, a ``CallToolResult`` or another ``ToolOutput``.
    ///
    /// - Parameters:
    ///   - scopes: Scopes that a caller needs, all of them. Others do not see the tool.
    ///   - timeout: How long the handler may run. The time in which an input request is open does not count.
    ///   - runOnce: Never run the handler again for a retried request.
    /// - Throws: ``McplineError/usage(_:)`` if the name is taken, an option is invalid, or the schema can't be derived.
    public func tool<Arguments: Decodable & Sendable>(
        _ name: String,
        description: String? = nil,
        title: String? = nil,
        annotations: ToolAnnotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil,
        scopes: [String] = [],
        tags: [String] = [],
        timeout: Duration? = nil,
        runOnce: Bool = false,
        handler: @escaping @Sendable (_ arguments: Arguments, _ call: CallContext) async throws -> some ToolOutput
    ) throws {
        let definition = Tool(
            name: name, title: title, description: description, inputSchema: try jsonSchema(of: Arguments.self),
            annotations: annotations, icons: icons, meta: meta)
        let options = FeatureOptions(scopes: scopes, tags: tags, timeout: timeout, runOnce: runOnce)
        try addTool(definition, options: options) { arguments, call in
            try await handler(try decodeArguments(arguments), call)
        }
    }

    /// Adds a tool without arguments.
    public func tool(
        _ name: String,
        description: String? = nil,
        title: String? = nil,
        annotations: ToolAnnotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil,
        scopes: [String] = [],
        tags: [String] = [],
        timeout: Duration? = nil,
        runOnce: Bool = false,
        handler: @escaping @Sendable (_ call: CallContext) async throws -> some ToolOutput
    ) throws {
        let definition = Tool(
            name: name, title: title, description: description, inputSchema: ["type": "object", "properties": [:]],
            annotations: annotations, icons: icons, meta: meta)
        let options = FeatureOptions(scopes: scopes, tags: tags, timeout: timeout, runOnce: runOnce)
        try addTool(definition, options: options) { _, call in try await handler(call) }
    }

    /// Adds a tool that returns structured content, whose output schema is derived from its type.
    public func structuredTool<Arguments: Decodable & Sendable, Output: Codable & Sendable>(
        _ name: String,
        description: String? = nil,
        title: String? = nil,
        annotations: ToolAnnotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil,
        scopes: [String] = [],
        tags: [String] = [],
        timeout: Duration? = nil,
        runOnce: Bool = false,
        handler: @escaping @Sendable (_ arguments: Arguments, _ call: CallContext) async throws -> Output
    ) throws {
        let definition = Tool(
            name: name, title: title, description: description, inputSchema: try jsonSchema(of: Arguments.self),
            outputSchema: try jsonSchema(of: Output.self), annotations: annotations, icons: icons, meta: meta)
        let options = FeatureOptions(scopes: scopes, tags: tags, timeout: timeout, runOnce: runOnce)
        try add(.tool, JSONObject(encoding: definition), options) { arguments, call in
            let output = try await handler(try decodeArguments(arguments.objectValue ?? [:]), call)
            return HandlerOutcome(.structured(json: try JSON(encoding: output).text))
        }
    }

    /// Adds a tool with JSON Schemas of your own.
    public func addTool(
        _ definition: Tool,
        options: FeatureOptions = FeatureOptions(),
        handler: @escaping @Sendable (_ arguments: JSONObject, _ call: CallContext) async throws -> some ToolOutput
    ) throws {
        try add(.tool, JSONObject(encoding: definition), options) { arguments, call in
            try await handler(arguments.objectValue ?? [:], call).toolOutcome()
        }
    }

    /// Removes a tool. Returns whether it existed.
    @discardableResult
    public func removeTool(_ name: String) throws -> Bool { try remove(.tool, name) }

    /// Changes members of a tool's definition; `null` removes a member.
    public func updateTool(_ name: String, changes: JSONObject) throws {
        try nativeCall { try native.updateFeature(kind: FeatureKind.tool.rawValue, name: name, changes: changes.text) }
    }

    // MARK: - Resources

    /// Adds a resource, or a template if the URI has variables (RFC 6570).
    ///
    /// The handler gets the variables of the URI, and returns a text, `Data` or another ``ResourceOutput``. It throws a
    /// ``ResourceNotFoundError`` for what does not exist.
    ///
    /// - Parameters:
    ///   - uncheckedVariables: Variables that may have any value. Others may not contain a path out of a directory.
    ///   - cache: How long clients may cache the contents (2026-07-28). Default: ``ServerSettings/resourceCache``.
    ///   - list: Lists resources of a template: returns URIs and ``Resource`` values. They follow the registered resources in
    ///     `resources/list`, on its last page. Those that do not match the template, or that are registered, are left out. It is
    ///     called for each request of a client that may use the template, and its error is the error of the request. Call
    ///     ``notifyResourceListChanged()`` when its result changes.
    /// - Throws: ``McplineError/usage(_:)`` if the URI is taken, or an option is invalid.
    public func resource(
        _ uri: String,
        name: String,
        description: String? = nil,
        mimeType: String? = nil,
        title: String? = nil,
        size: Int? = nil,
        annotations: Annotations? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil,
        scopes: [String] = [],
        tags: [String] = [],
        uncheckedVariables: [String] = [],
        cache: CacheHint? = nil,
        list: (@Sendable (_ call: CallContext) async throws -> [any ResourceListItem])? = nil,
        handler: @escaping @Sendable (_ variables: URIVariables, _ call: CallContext) async throws -> some ResourceOutput
    ) throws {
        let isTemplate = uri.contains("{")
        if list != nil, !isTemplate {
            throw McplineError.usage(ErrorDetails("resource \"\(uri)\": only a resource template lists others"))
        }
        let definition =
            if isTemplate {
                try JSONObject(
                    encoding: ResourceTemplate(
                        uriTemplate: uri, name: name, title: title, description: description, mimeType: mimeType,
                        annotations: annotations, icons: icons, meta: meta))
            } else {
                try JSONObject(
                    encoding: Resource(
                        uri: uri, name: name, title: title, description: description, mimeType: mimeType, size: size,
                        annotations: annotations, icons: icons, meta: meta))
            }
        let options = FeatureOptions(
            scopes: scopes, tags: tags, uncheckedVariables: uncheckedVariables, cache: cache)
        try add(.resource, definition, options) { variables, call in
            try await handler(URIVariables(json: variables.objectValue ?? [:]), call).resourceOutcome()
        }
        guard let list else { return }
        try add(.resourceList, ["uri_template": .string(uri)], FeatureOptions()) { _, call in
            let items = try await list(call).map { try $0.listItem() }
            return HandlerOutcome(.content(json: JSON.array(items).text))
        }
    }

    /// Removes a resource or a template. Returns whether it existed.
    @discardableResult
    public func removeResource(_ uri: String) throws -> Bool { try remove(.resource, uri) }

    /// Notifies clients that what a template lists has changed (`notifications/resources/list_changed`).
    public func notifyResourceListChanged() {
        native.notifyResourceListChanged()
    }

    /// Notifies the subscribers of a resource that it has changed.
    public func notifyResourceUpdated(_ uri: String) {
        native.notifyResourceUpdated(uri: uri)
    }

    // MARK: - Prompts and completion

    /// Adds a prompt whose arguments are an `Arguments`, read from strings: numbers, booleans and enums are converted.
    ///
    /// The handler returns a text, messages or another ``PromptOutput``.
    ///
    /// - Throws: ``McplineError/usage(_:)`` if the name is taken, an option is invalid, or the arguments can't be derived.
    public func prompt<Arguments: Decodable & Sendable>(
        _ name: String,
        description: String? = nil,
        title: String? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil,
        scopes: [String] = [],
        tags: [String] = [],
        handler: @escaping @Sendable (_ arguments: Arguments, _ call: CallContext) async throws -> some PromptOutput
    ) throws {
        let definition = Prompt(
            name: name, title: title, description: description, arguments: try promptArguments(Arguments.self), icons: icons,
            meta: meta)
        try add(.prompt, JSONObject(encoding: definition), FeatureOptions(scopes: scopes, tags: tags)) { given, call in
            let arguments: Arguments
            do {
                arguments = try decodeJSON(Arguments.self, given, fromStrings: true)
            } catch {
                throw RPCError(code: -32602, message: describe(error))
            }
            return try await handler(arguments, call).promptOutcome()
        }
    }

    /// Adds a prompt without arguments.
    public func prompt(
        _ name: String,
        description: String? = nil,
        title: String? = nil,
        icons: [Icon]? = nil,
        meta: JSONObject? = nil,
        scopes: [String] = [],
        tags: [String] = [],
        handler: @escaping @Sendable (_ call: CallContext) async throws -> some PromptOutput
    ) throws {
        let definition = Prompt(name: name, title: title, description: description, icons: icons, meta: meta)
        try addPrompt(definition, options: FeatureOptions(scopes: scopes, tags: tags)) { _, call in try await handler(call) }
    }

    /// Adds a prompt with a definition of your own; its handler gets the arguments as strings.
    public func addPrompt(
        _ definition: Prompt,
        options: FeatureOptions = FeatureOptions(),
        handler: @escaping @Sendable (_ arguments: [String: String], _ call: CallContext) async throws -> some PromptOutput
    ) throws {
        try add(.prompt, JSONObject(encoding: definition), options) { arguments, call in
            try await handler(strings(arguments), call).promptOutcome()
        }
    }

    /// Removes a prompt. Returns whether it existed.
    @discardableResult
    public func removePrompt(_ name: String) throws -> Bool { try remove(.prompt, name) }

    /// Completes an argument of a prompt, or a variable of a template, from candidates, ranked by what the user typed.
    ///
    /// - Parameter reference: Name of the prompt, or the URI template.
    public func completion(_ reference: String, argument: String, candidates: [String]) throws {
        try nativeCall { try native.addCandidates(reference: reference, argument: argument, candidates: candidates) }
    }

    /// Completes an argument of a prompt, or a variable of a template.
    ///
    /// - Parameter complete: Gets what the user typed and the other arguments; returns the candidates, best first.
    public func completion(
        _ reference: String,
        argument: String,
        complete: @escaping @Sendable (_ value: String, _ others: [String: String], _ call: CallContext) async throws -> [String]
    ) throws {
        let definition: JSONObject = ["reference": .string(reference), "argument": .string(argument)]
        try add(.completion, definition, FeatureOptions()) { request, call in
            let value = request["argument"]?["value"]?.stringValue ?? ""
            let others = strings(request["context"]?["arguments"] ?? [:])
            return HandlerOutcome(.values(values: try await complete(value, others, call)))
        }
    }

    /// Completes all arguments and variables that have no completion of their own.
    public func completion(
        _ complete: @escaping @Sendable (_ request: JSONObject, _ call: CallContext) async throws -> CompletionValues
    ) throws {
        try add(.completion, nil, FeatureOptions()) { request, call in
            let values = try await complete(request.objectValue ?? [:], call)
            let result: JSONObject = ["completion": try JSON(encoding: values)]
            return result.requestOutcome()
        }
    }

    // MARK: - Custom methods and events

    /// Handles requests of a method that the protocol does not define.
    ///
    /// - Parameters:
    ///   - scopes: Scopes that a caller needs, all of them.
    ///   - extension: Identifier of the ``Extension`` that the method belongs to.
    /// - Throws: ``McplineError/usage(_:)`` if the protocol defines the method, or it has a handler.
    public func request<Params: Decodable & Sendable>(
        _ method: String,
        scopes: [String] = [],
        extension: String? = nil,
        handler: @escaping @Sendable (_ params: Params, _ call: CallContext) async throws -> some RequestOutput
    ) throws {
        let options = FeatureOptions(scopes: scopes, extension: `extension`)
        try addRequest(method, paramsSchema: try jsonSchema(of: Params.self), options: options) { params, call in
            try await handler(try decodeArguments(params), call)
        }
    }

    /// Handles requests of a method that the protocol does not define, with a JSON Schema of your own, or none.
    public func addRequest(
        _ method: String,
        paramsSchema: JSONObject? = nil,
        options: FeatureOptions = FeatureOptions(),
        handler: @escaping @Sendable (_ params: JSONObject, _ call: CallContext) async throws -> some RequestOutput
    ) throws {
        try add(.request, methodDefinition(method, paramsSchema), options) { params, call in
            try await handler(params.objectValue ?? [:], call).requestOutcome()
        }
    }

    /// Handles notifications of a method that the protocol does not define.
    public func notification<Params: Decodable & Sendable>(
        _ method: String,
        scopes: [String] = [],
        extension: String? = nil,
        handler: @escaping @Sendable (_ params: Params, _ call: CallContext) async throws -> Void
    ) throws {
        let options = FeatureOptions(scopes: scopes, extension: `extension`)
        try addNotification(method, paramsSchema: try jsonSchema(of: Params.self), options: options) { params, call in
            try await handler(try decodeArguments(params), call)
        }
    }

    /// Handles notifications of a method that the protocol does not define, with a JSON Schema of your own, or none.
    public func addNotification(
        _ method: String,
        paramsSchema: JSONObject? = nil,
        options: FeatureOptions = FeatureOptions(),
        handler: @escaping @Sendable (_ params: JSONObject, _ call: CallContext) async throws -> Void
    ) throws {
        try add(.notification, methodDefinition(method, paramsSchema), options) { params, call in
            try await handler(params.objectValue ?? [:], call)
            return .nothing
        }
    }

    /// Called when a client has finished the handshake (revisions up to 2025-11-25). Its context can send input requests.
    public func onInitialized(_ handler: @escaping @Sendable (_ call: CallContext) async throws -> Void) throws {
        try onEvent("notifications/initialized", handler)
    }

    /// Called when a client's roots have changed (revisions up to 2025-11-25). Its context can send input requests.
    public func onRootsChanged(_ handler: @escaping @Sendable (_ call: CallContext) async throws -> Void) throws {
        try onEvent("notifications/roots/list_changed", handler)
    }

    private func onEvent(_ method: String, _ handler: @escaping @Sendable (CallContext) async throws -> Void) throws {
        try add(.event, methodDefinition(method, nil), FeatureOptions()) { _, call in
            try await handler(call)
            return .nothing
        }
    }

    /// Notifies the client that the URL elicitation with this id is complete.
    public func notifyElicitationComplete(_ elicitationId: String) {
        native.notifyElicitationComplete(elicitationId: elicitationId)
    }

    /// Calls a function at the end of each request, for a log of requests. Replaces an earlier function. While 4,096 records wait
    /// because the function is slow, further records are dropped.
    public func onRequestEnd(_ listener: @escaping @Sendable (RequestRecord) async -> Void) {
        native.recordRequests(listener: RequestRecords(listener))
    }

    /// What the server holds now.
    public var stats: JSONObject { (try? JSONObject(parsing: native.stats())) ?? [:] }

    /// The metrics in the text format of Prometheus, if ``ServerSettings/metrics`` is on.
    public var metrics: String { native.metrics() }

    // MARK: - Middleware

    /// Puts a function around the requests that the server answers: lists, calls of tools, reads of resources, requests for
    /// prompts, completions and custom requests; and around other messages whose methods the scope names.
    ///
    /// ```swift
    /// try server.middleware { request, next, call in
    ///     let start = ContinuousClock.now
    ///     let result = try await next(request)
    ///     print("\(request.method) \(request.name ?? ""): \(ContinuousClock.now - start)")
    ///     return result
    /// }
    /// ```
    ///
    /// The first middleware is the outermost. One that is added while the server runs applies to later requests.
    ///
    /// - Parameters:
    ///   - scope: The requests that it sees.
    ///   - handler: Gets the request, the rest of the chain and the context of the request. Returns the result of `next`, or
    ///     another ``MiddlewareResult``. What it throws is the error of the request, as in the handler of a feature. Its task is
    ///     cancelled with the request.
    /// - Throws: ``McplineError/usage(_:)`` if the scope is invalid, or the server already has 64 middlewares.
    public func middleware(_ scope: MiddlewareScope = MiddlewareScope(), handler: @escaping Middleware) throws {
        try add(.middleware, try scope.json, FeatureOptions()) { described, call in
            try await runMiddleware(handler, for: described, in: call)
        }
    }

    /// Adds a middleware that the library provides.
    ///
    /// - Parameter scope: The requests that it sees.
    /// - Throws: ``McplineError/usage(_:)`` if an option or the scope is invalid, or a file can't be opened.
    public func addMiddleware(_ middleware: some BuiltInMiddleware, scope: MiddlewareScope = MiddlewareScope()) throws {
        let definition = try middleware.definition().json.text
        let scope = try scope.json.text
        try nativeCall { try native.addBuiltInMiddleware(definition: definition, scope: scope) }
    }

    // MARK: - Serving

    /// Runs a function around each transport that the server serves: it opens what handlers need, calls `serve`, and closes it.
    ///
    /// ```swift
    /// server.lifespan { serve in
    ///     try await database.open()
    ///     defer { database.close() }
    ///     try await serve()
    /// }
    /// ```
    public func lifespan(_ run: @escaping Lifespan) {
        around.withLock { $0 = run }
    }

    /// Serves standard input and output, until standard input ends, the server is closed, or the task is cancelled. Calls in
    /// flight may then finish within ``ServerSettings/shutdownTimeout``.
    ///
    /// What the program prints to standard output meanwhile goes to standard error.
    public func run() async throws {
        try await serve({ [native] in native.serveStdio() }, onReady: { _ in })
    }

    /// Serves HTTP, until the server is closed or the task is cancelled. Calls in flight may then finish within
    /// ``ServerSettings/shutdownTimeout``.
    ///
    /// - Parameters:
    ///   - port: The port; 0 for any that is free.
    ///   - host: The address to listen on. Default: loopback.
    ///   - onReady: Called with the URL of the endpoint when the server listens.
    /// - Throws: ``McplineError/transport(_:)`` if the address can't be listened on.
    public func runHTTP(
        port: UInt16 = 8000,
        host: String = "127.0.0.1",
        settings: HTTPSettings = HTTPSettings(),
        onReady: @escaping @Sendable (_ url: String) async -> Void = { _ in }
    ) async throws {
        let options = try optionsObject(settings).text
        try await serve({ [native] in try await native.listen(host: host, port: port, options: options) }, onReady: onReady)
    }

    /// Serves clients on a Unix socket, one message per line, until the server is closed or the task is cancelled.
    ///
    /// - Parameters:
    ///   - path: Path of the socket. A stale one is replaced, and one in use is refused.
    ///   - onReady: Called when the server listens.
    /// - Throws: ``McplineError/transport(_:)`` if the path can't be listened on.
    public func runUnix(
        _ path: String,
        settings: UnixSettings = UnixSettings(),
        onReady: @escaping @Sendable () async -> Void = {}
    ) async throws {
        let options = try optionsObject(settings).text
        try await serve(
            { [native] in try await native.listenUnix(path: path, options: options) }, onReady: { _ in await onReady() })
    }

    /// Serves one client over a custom transport, until either side closes the channel, the server is closed, or the task is
    /// cancelled. Any number of clients can be served at once.
    ///
    /// - Parameters:
    ///   - channel: An open channel, which is closed at the end.
    ///   - principal: The client's identity, as authenticated by the transport. It does not change until the channel closes.
    ///     Handlers read it from ``CallContext/auth``. Scopes of tools, resources, prompts and custom methods apply as over HTTP:
    ///     features that it may not use are hidden from lists, and calls are refused with error -31001. All channels of a
    ///     principal count as one client. Without a principal the client may do everything, which is right if this process started
    ///     the client, or the client started this process.
    /// - Throws: ``McplineError/transport(_:)`` if the channel failed.
    public func serveChannel(_ channel: some Channel, principal: Caller? = nil) async throws {
        let identity = try principal.map { try JSON(encoding: $0).text }
        try await serve(
            { [native] in try native.serveChannel(channel: ChannelAdapter(channel), principal: identity) },
            onReady: { _ in })
    }

    /// Stops serving: calls in flight may finish within ``ServerSettings/shutdownTimeout``. Then ``run()``,
    /// ``runHTTP(port:host:settings:onReady:)``, ``runUnix(_:settings:onReady:)`` and ``serveChannel(_:principal:)`` return, even
    /// if they are still starting.
    public func close() {
        let all = transports.withLock { Array($0.open.values) }
        for transport in all { transport.close() }
    }

    /// Stops serving, and does not serve again.
    func closeForGood() {
        transports.withLock { $0.isClosedForGood = true }
        close()
    }

    private func serve(
        _ start: @escaping @Sendable () async throws -> Serving, onReady: @escaping @Sendable (String) async -> Void
    ) async throws {
        let transport = Transport()
        let id = ObjectIdentifier(transport)
        let isClosedForGood = transports.withLock { transports in
            if !transports.isClosedForGood { transports.open[id] = transport }
            return transports.isClosedForGood
        }
        if isClosedForGood { return }
        defer { transports.withLock { $0.open[id] = nil } }
        let serve: @Sendable () async throws -> Void = { [transports, handlers] in
            do {
                try await transport.serve(start, onReady)
            } catch {
                if transports.withLock({ $0.open.count }) == 1 { await handlers.finish() }
                throw error
            }
            // While there are others, it is not known whose handlers still run.
            if transports.withLock({ $0.open.count }) == 1 { await handlers.finish() }
        }
        if let lifespan = around.withLock({ $0 }) {
            try await lifespan(serve)
        } else {
            try await serve()
        }
    }

    private func add(
        _ kind: FeatureKind,
        _ definition: JSONObject?,
        _ options: FeatureOptions,
        _ handler: @escaping @Sendable (JSON, CallContext) async throws -> HandlerOutcome
    ) throws {
        let encoded = try optionsObject(options).text
        try nativeCall {
            try native.addFeature(
                kind: kind.rawValue, definition: definition?.text ?? "null", options: encoded,
                handler: FeatureHandler(handler, handlers))
        }
    }

    private func remove(_ kind: FeatureKind, _ name: String) throws -> Bool {
        try nativeCall { try native.removeFeature(kind: kind.rawValue, name: name) }
    }
}

/// The handlers that run, so that those that are cancelled can clean up before serving ends.
private final class RunningHandlers: Sendable {
    /// How long the end of serving waits for them.
    private static let cleanupTimeout = Duration.seconds(2)

    private let count = Locked(0)

    func begin() { count.withLock { $0 += 1 } }

    func end() { count.withLock { $0 -= 1 } }

    /// Waits until all have ended, for a limited time.
    func finish() async {
        // In a task of its own, which is not cancelled.
        await Task { [count] in
            let deadline = ContinuousClock.now + Self.cleanupTimeout
            while count.withLock({ $0 }) > 0, ContinuousClock.now < deadline {
                try? await Task.sleep(for: .milliseconds(5))
            }
        }.value
    }
}

/// What a server serves.
private struct Transports {
    var open: [ObjectIdentifier: Transport] = [:]
    /// Whether a signal has closed the server.
    var isClosedForGood = false
}

/// What one call serves, from its start: it can be closed before it listens.
private final class Transport: Sendable {
    private let state = Locked<(serving: Serving?, isClosed: Bool)>((nil, false))

    func close() {
        let serving = state.withLock { state in
            state.isClosed = true
            return state.serving
        }
        serving?.stop()
    }

    /// Serves until it is closed, or the task is cancelled.
    func serve(
        _ start: @Sendable () async throws -> Serving, _ onReady: @Sendable (String) async -> Void
    ) async throws {
        if state.withLock({ $0.isClosed }) { return }
        let serving = try await nativeCall { try await start() }
        let isClosed = state.withLock { state in
            state.serving = serving
            return state.isClosed
        }
        if isClosed {
            serving.stop()
        } else {
            if let message = serving.startupMessage() { writeToStandardError(message) }
            if let url = serving.url() { await onReady(url) }
        }
        do {
            try await nativeCall { try await serving.ended() }
        } catch is CancellationError {
            serving.stop()
            // In a task of its own, which is not cancelled: calls in flight may finish.
            try? await Task { try await serving.ended() }.value
            throw CancellationError()
        }
    }
}

/// Kinds of features, by the names of the core.
private enum FeatureKind: String {
    case tool, resource, prompt, completion, request, notification, event, middleware
    case resourceList = "resource_list"
}

/// Runs the handler of a feature, in a task that ends with the request.
private final class FeatureHandler: Handler {
    private let handler: @Sendable (JSON, CallContext) async throws -> HandlerOutcome
    private let running: RunningHandlers

    init(
        _ handler: @escaping @Sendable (JSON, CallContext) async throws -> HandlerOutcome, _ running: RunningHandlers
    ) {
        self.handler = handler
        self.running = running
    }

    func call(arguments: String, call: Call) async throws -> Outcome {
        running.begin()
        defer { running.end() }
        let context = CallContext(call)
        defer { context.end() }
        do {
            return try await handler(JSON(parsing: arguments), context).native
        } catch {
            return outcome(error)
        }
    }
}

/// The variables of a URI.
public struct URIVariables: Sendable {
    /// All variables: strings, and arrays for `{name*}`.
    public let json: JSONObject

    /// A variable.
    public subscript(name: String) -> String? { json[name]?.stringValue }

    /// Returns the values of a variable that is a list.
    public func list(_ name: String) -> [String] {
        switch json[name] {
        case .array(let values): values.compactMap(\.stringValue)
        case .string(let value): [value]
        default: []
        }
    }
}

extension HandlerOutcome {
    /// That of events and notifications.
    static var nothing: HandlerOutcome { HandlerOutcome(.text(text: "")) }
}

/// Encodes options as the core reads them: names in snake case, and only what is set.
func optionsObject(_ options: some Encodable) throws -> JSONObject {
    try encodeJSON(options, snakeCase: true).objectValue ?? [:]
}

private func decodeArguments<A: Decodable>(_ arguments: JSONObject) throws -> A {
    do {
        return try decodeJSON(A.self, .object(arguments))
    } catch {
        // They match the schema, but not the type: a number beyond its range, or a check in `init`.
        throw ToolError(describe(error))
    }
}

private func promptArguments<A: Decodable>(_ type: A.Type) throws -> [PromptArgument] {
    let schema = try jsonSchema(of: type)
    let required = schema["required"]?.arrayValue ?? []
    return (schema["properties"]?.objectValue ?? [:]).map { name, property in
        PromptArgument(
            name: name, description: property["description"]?.stringValue, required: required.contains(.string(name)))
    }
}

private func strings(_ arguments: JSON) -> [String: String] {
    var strings: [String: String] = [:]
    for (name, value) in arguments.objectValue ?? [:] { strings[name] = value.stringValue }
    return strings
}

private func methodDefinition(_ method: String, _ paramsSchema: JSONObject?) -> JSONObject {
    var definition: JSONObject = ["method": .string(method)]
    definition["params_schema"] = paramsSchema.map(JSON.object)
    return definition
}
