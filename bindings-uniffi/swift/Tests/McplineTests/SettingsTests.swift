import Foundation
import XCTest

@testable import Mcpline

final class SettingsTests: XCTestCase {
    private let rate = Rate(perSecond: 10, burst: 20)
    private let cache = CacheHint(ttlMs: 1000, isPublic: true)

    func testEverySettingOfAServerIsAccepted() throws {
        let settings = ServerSettings(
            revisions: ["2026-07-28"], maxLineBytes: 1000, maxBatchMessages: 10, maxJsonDepth: 20, pageSize: 5, listCache: cache,
            resourceCache: cache, inputRequestIdleTimeout: .seconds(1), inputRequestTimeout: .seconds(2),
            stateKeys: ["MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="], stateLifetime: .seconds(3), maxSuspendedHandlers: 4,
            maxTotalClientBytes: 1_000_000, maxCalls: 6, clientShare: 0.5, maxInputRounds: 7, maxInputRequestsPerCall: 8, maxStateBytes: 9000, checkOutput: false,
            toolRate: rate, completionRate: rate, shutdownTimeout: .milliseconds(1500), startupMessage: false, debug: false,
            trafficFile: "", metrics: true, spanContents: true, maxRequestsInFlight: 10, maxOpenInputRequests: 11, maxSubscriptions: 12,
            maxClientInfoBytes: 1300, maxSubscriptionBytes: 1400, progressRate: rate, logRate: rate, clientLogLevel: .error,
            pingInterval: .seconds(15), maxMissedPings: 16, experimental: ["aB": ["cD": 1]], declare: ["tools"])
        let extensions = [Extension("com.example/a", settings: ["x": 1], resultTypes: ["later"])]
        let server = try Server("settings", version: "1.0.0", settings: settings, extensions: extensions)
        try server.addTool(
            Tool(name: "a", inputSchema: ["type": "object"]),
            options: FeatureOptions(scopes: ["b"], tags: ["c"], timeout: .seconds(1), runOnce: true)
        ) { _, _ in "" }
        XCTAssertFalse(server.stats.isEmpty)
        XCTAssertThrowsError(try Server("settings", version: "1.0.0", settings: ServerSettings(declare: ["none"]))) { error in
            guard case McplineError.usage = error else { return XCTFail("\(error)") }
        }
    }

    func testEverySettingOfHTTPIsAccepted() async throws {
        let introspection = IntrospectionSettings(
            endpoint: "http://127.0.0.1:9/introspect", clientId: "id", clientSecret: "secret", keepFor: .seconds(1),
            knowsAudience: true)
        let auth = ResourceServerSettings(
            resource: "http://127.0.0.1/mcp", issuers: ["http://127.0.0.1:9"], jwksUrl: "http://127.0.0.1:9/jwks",
            introspection: introspection, authorizationServers: ["http://127.0.0.1:9"], audiences: ["a"],
            requiredScopes: ["b"], supportedScopes: ["b"], impliedScopes: ["c": ["b"]], algorithms: ["ES256"],
            clockSkew: .seconds(1), demandProofOfPossession: true,
            metadataUrl: "http://127.0.0.1/.well-known/oauth-protected-resource", name: "d",
            documentation: "http://127.0.0.1/docs", proxy: "direct", onlyTlsRoots: false)
        let settings = HTTPSettings(
            path: "/a", ssePaths: ["/b", "/c"], serveSse: true, healthPath: "/d", serveHealth: true, readyPath: "/g",
            serveReady: true, metricsPath: "/e", proxyPrefix: "/f", allowedHosts: ["example.com"], allowedOrigins: ["https://example.com"], maxBodyBytes: 1000,
            readTimeout: .seconds(1), writeTimeout: .seconds(2), maxConnections: 3, stateless: false, maxSessions: 4,
            sessionIdleTimeout: .seconds(5), streamUpgradeDelay: .seconds(6), keepAliveInterval: .seconds(7), retry: .seconds(8), maxKeptEvents: 9,
            maxKeptBytes: 10_000, maxUnreadBytes: 11_000, clientAddressHeader: "x-forwarded-for", auth: auth)
        let server = try Server(
            "settings", version: "1.0.0", settings: ServerSettings(startupMessage: false, metrics: true))
        let url = Promise<String>()
        let serving = Task { try await server.runHTTP(port: 0, settings: settings) { url.fulfil($0) } }
        let address = await url.value
        XCTAssertTrue(address.hasSuffix("/a"), address)
        let error = await failure {
            try await Client.connect(address) { host in
                var oauth = OAuth(clientName: "settings")
                oauth.userAgent = nil
                host.auth = .oauth(oauth)
            }
        }
        guard case McplineError.authorizationFailed = error else { return XCTFail("\(error)") }
        server.close()
        try await serving.value
    }

    func testEverySettingOfAClientIsAccepted() async throws {
        let all = ClientSettings(
            revisions: ["2026-07-28", "2025-11-25"], era: .modern, probeTimeout: .seconds(1), openTimeout: .seconds(2),
            timeout: .seconds(30), totalTimeout: .seconds(40), pingInterval: .seconds(5), pingTimeout: .seconds(6),
            maxInputRounds: 7, maxListBytes: 8000, maxLineBytes: 9000, checkOutput: true, trustToolAnnotations: true,
            allowUndeclaredCapabilities: true, cache: false, reconnectAttempts: 9, reconnectDelay: .milliseconds(10),
            reconnectMaxDelay: .milliseconds(11), listen: false, metrics: true, spanContents: true, trafficFile: "")
        let server = try Server("settings", version: "1.0.0")
        try server.tool("a") { _ in "" }
        let client = try await Client.memory(server) { $0.settings = all }
        try await client.ping(options: RequestOptions(timeout: .seconds(5), totalTimeout: .seconds(6)))
        let options = RequestOptions(
            meta: ["example.com/a": 1], logLevel: .error, reissue: .never, fresh: true, manualResults: true)
        let tools = try await client.listTools(options: options)
        XCTAssertEqual(tools.count, 1)
        XCTAssertEqual(client.revision, "2026-07-28")
        XCTAssertFalse(try client.metrics().isEmpty)
        XCTAssertFalse(try client.stats().isEmpty)
        await client.close()
        let http = HTTPClientOptions(
            headers: ["x-a": "b"], proxy: "direct", onlyTlsRoots: false, connectTimeout: .seconds(1), maxRedirects: 1,
            resumeAttempts: 2, resumeDelay: .milliseconds(3), resumeMaxDelay: .milliseconds(4), maxBodyBytes: 5000)
        let unreachable = await failure { try await Client.connect("http://127.0.0.1:9/mcp", http: http) }
        guard case McplineError.serverUnreachable = unreachable else { return XCTFail("\(unreachable)") }
        let program = ProgramOptions(
            env: ["A": "b"], inheritEnv: true, cwd: "/", stderr: .ignore, exitTimeout: .milliseconds(100))
        let exited = await failure { try await Client.spawn("sh", "-c", "exit 1", options: program) }
        guard case McplineError.serverExited = exited else { return XCTFail("\(exited)") }
    }
}
