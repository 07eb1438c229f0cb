package mcpline

import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.launch

class SettingsTest {
    private val rate = Rate(10, 20)
    private val cache = CacheHint(1000, isPublic = true)

    @Test
    fun `every setting of a server is accepted`() {
        val settings = ServerSettings(
            revisions = listOf("2026-07-28"),
            maxLineBytes = 1000,
            maxBatchMessages = 10,
            maxJsonDepth = 20,
            pageSize = 5,
            listCache = cache,
            resourceCache = cache,
            inputRequestIdleTimeout = 1.seconds,
            inputRequestTimeout = 2.seconds,
            stateKeys = listOf("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="),
            stateLifetime = 3.seconds,
            maxSuspendedHandlers = 4,
            maxTotalClientBytes = 1_000_000,
            maxCalls = 6,
            clientShare = 0.5,
            maxInputRounds = 7,
            maxInputRequestsPerCall = 8,
            maxStateBytes = 9000,
            checkOutput = false,
            toolRate = rate,
            completionRate = rate,
            shutdownTimeout = 1500.milliseconds,
            startupMessage = false,
            debug = false,
            trafficFile = "",
            metrics = true,
            spanContents = true,
            maxRequestsInFlight = 10,
            maxOpenInputRequests = 11,
            maxSubscriptions = 12,
            maxClientInfoBytes = 1300,
            maxSubscriptionBytes = 1400,
            progressRate = rate,
            logRate = rate,
            clientLogLevel = LogLevel.Error,
            pingInterval = 15.seconds,
            maxMissedPings = 16,
            experimental = mapOf("a" to obj("""{"b": 1}""")),
            declare = listOf("tools"),
        )
        server("settings", "1.0.0", settings = settings)
        assertFailsWith<UsageException> { server("settings", "1.0.0", settings = ServerSettings(declare = listOf("none"))) }
    }

    @Test
    fun `every setting of HTTP is accepted`() = testing {
        val auth = ResourceServerSettings(
            resource = "http://127.0.0.1/mcp",
            issuers = listOf("http://127.0.0.1:9"),
            jwksUrl = "http://127.0.0.1:9/jwks",
            introspection = IntrospectionSettings(
                "http://127.0.0.1:9/introspect",
                "id",
                "secret",
                keepFor = 1.seconds,
                knowsAudience = true,
            ),
            authorizationServers = listOf("http://127.0.0.1:9"),
            audiences = listOf("a"),
            requiredScopes = listOf("b"),
            supportedScopes = listOf("b"),
            impliedScopes = mapOf("c" to listOf("b")),
            algorithms = listOf("ES256"),
            clockSkew = 1.seconds,
            demandProofOfPossession = true,
            metadataUrl = "http://127.0.0.1/.well-known/oauth-protected-resource",
            name = "d",
            documentation = "http://127.0.0.1/docs",
            proxy = "direct",
            onlyTlsRoots = false,
        )
        val settings = HttpSettings(
            path = "/a",
            ssePaths = listOf("/b", "/c"),
            serveSse = true,
            healthPath = "/d",
            serveHealth = true,
            readyPath = "/g",
            serveReady = true,
            metricsPath = "/e",
            proxyPrefix = "/f",
            allowedHosts = listOf("example.com"),
            allowedOrigins = listOf("https://example.com"),
            maxBodyBytes = 1000,
            readTimeout = 1.seconds,
            writeTimeout = 2.seconds,
            maxConnections = 30,
            stateless = false,
            maxSessions = 4,
            sessionIdleTimeout = 5.seconds,
            streamUpgradeDelay = 6.seconds,
            keepAliveInterval = 7.seconds,
            retry = 8.seconds,
            maxKeptEvents = 9,
            maxKeptBytes = 10_000,
            maxUnreadBytes = 11_000,
            clientAddressHeader = "x-forwarded-for",
            auth = auth,
        )
        val server = server("settings", "1.0.0", settings = ServerSettings(startupMessage = false, metrics = true))
        val url = CompletableDeferred<String>()
        val serving = launch { server.runHttp(0, settings = settings) { url.complete(it) } }
        assertEquals("/a", java.net.URI(url.await()).path)
        assertEquals("ready", java.net.URI(url.await()).resolve("/g").toURL().readText().trim())
        assertFailsWith<AuthorizationFailedException> {
            Client.connect(url.await()) { this.auth = OAuth("settings", userAgent = null) }
        }
        server.close()
        serving.join()
    }

    @Test
    fun `every setting of a client is accepted`() = testing {
        val all = ClientSettings(
            revisions = listOf("2026-07-28", "2025-11-25"),
            era = Era.Modern,
            probeTimeout = 1.seconds,
            openTimeout = 2.seconds,
            timeout = 30.seconds,
            totalTimeout = 40.seconds,
            pingInterval = 5.seconds,
            pingTimeout = 6.seconds,
            maxInputRounds = 7,
            maxListBytes = 8000,
            maxLineBytes = 9000,
            checkOutput = true,
            trustToolAnnotations = true,
            allowUndeclaredCapabilities = true,
            cache = false,
            reconnectAttempts = 9,
            reconnectDelay = 10.milliseconds,
            reconnectMaxDelay = 11.milliseconds,
            listen = false,
            metrics = true,
            spanContents = true,
            trafficFile = "",
        )
        Client.memory(server("settings", "1.0.0") { tool("a") { } }) { settings = all }.use { client ->
            client.ping(RequestOptions(timeout = 5.seconds, totalTimeout = 6.seconds))
            val options = RequestOptions(
                meta = obj("""{"example.com/a": 1}"""),
                logLevel = LogLevel.Error,
                reissue = Reissue.Never,
                fresh = true,
                manualResults = true,
            )
            assertEquals(1, client.listTools(options).size)
            assertEquals("2026-07-28", client.revision)
        }
        val http = HttpClientOptions(
            headers = mapOf("x-a" to "b"),
            proxy = "direct",
            onlyTlsRoots = false,
            connectTimeout = 1.seconds,
            maxRedirects = 1,
            resumeAttempts = 2,
            resumeDelay = 3.milliseconds,
            resumeMaxDelay = 4.milliseconds,
            maxBodyBytes = 5000,
        )
        assertFailsWith<ServerUnreachableException> { Client.connect("http://127.0.0.1:9/mcp", http) }
        val program = ProgramOptions(mapOf("A" to "b"), true, "/", StderrMode.Ignore, 100.milliseconds)
        assertFailsWith<ServerExitedException> { Client.spawn("sh", "-c", "exit 1", options = program) }
    }

    @Test
    fun `a handler requires scopes`() = testing {
        val server = server("scopes", "1.0.0", settings = ServerSettings(startupMessage = false)) {
            tool("open") {
                requireScopes("archive:2024", "archive:read")
                "opened"
            }
        }
        // Every caller in memory has all scopes.
        Client.memory(server).use { client -> assertEquals("opened", client.callTool("open").text) }
        val url = CompletableDeferred<String>()
        val serving = launch { server.runHttp(0) { url.complete(it) } }
        Client.connect(url.await()).use { client ->
            val error = assertFailsWith<McplineException> { client.callTool("open") }
            assertContains(error.message ?: "", "scope")
        }
        server.close()
        serving.join()
    }

    @Test
    fun `tokens of the program are asked for and sent`() = testing {
        val asked = CompletableDeferred<TokenRequest>()
        val server = server("tokens", "1.0.0", settings = ServerSettings(startupMessage = false)) {
            tool("token") { headers?.get("authorization").toString() }
        }
        val url = CompletableDeferred<String>()
        val serving = launch { server.runHttp(0) { url.complete(it) } }
        Client.connect(url.await()) {
            auth = Auth.Tokens {
                asked.complete(it)
                Token("t-1", expiresIn = 60.seconds)
            }
        }.use { client -> assertEquals("[Bearer t-1]", client.callTool("token").text) }
        assertEquals(url.await(), asked.await().server)
        Client.connect(url.await()) { auth = Auth.Bearer("t-2") }.use { client ->
            assertEquals("[Bearer t-2]", client.callTool("token").text)
        }
        server.close()
        serving.join()
    }
}
