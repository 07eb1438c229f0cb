package mcpline

import java.util.Base64
import java.util.Collections
import java.util.UUID
import java.util.WeakHashMap
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong
import kotlin.time.Duration
import kotlin.time.DurationUnit
import kotlinx.serialization.Serializable
import kotlinx.serialization.Transient
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonObject

/** Answers a request of the core's authorization; parameters and result are those of `foreign/auth`. */
internal typealias AuthAnswer = suspend (params: JsonObject) -> JsonElement

/** Source of the access tokens of a client over HTTP: a [Bearer] token, [Tokens] of the program, or [OAuth]. */
public sealed class Auth {
    /** The options for the core. */
    internal abstract val options: JsonObject

    /** The functions that answer requests of the core, by method. */
    internal val answers = mutableMapOf<String, AuthAnswer>()

    /** A fixed access token. */
    public class Bearer(token: String) : Auth() {
        override val options: JsonObject = JsonObject(mapOf("bearer" to JsonPrimitive(token)))
    }

    /**
     * A function that returns access tokens. It is called for the first request, when the token expires, and when the server
     * rejects it.
     */
    public class Tokens(source: suspend (TokenRequest) -> Token) : Auth() {
        override val options: JsonObject = JsonObject(mapOf("source" to JsonObject(emptyMap())))

        init {
            answers["auth/token"] = { params ->
                val wanted = TokenRequest(
                    params.text("server"),
                    (params["refused"] as? JsonPrimitive)?.booleanOrNull ?: false,
                    params.text("scopes"),
                )
                val token = source(wanted)
                buildJsonObject {
                    put("token", JsonPrimitive(token.token))
                    token.expiresIn?.let { put("expires_in", JsonPrimitive(it.toDouble(DurationUnit.SECONDS))) }
                }
            }
        }
    }
}

/**
 * An access token.
 *
 * @property token The token.
 * @property expiresIn Remaining lifetime; `null` if unknown.
 */
public class Token(public val token: String, public val expiresIn: Duration? = null)

/**
 * A request for an access token.
 *
 * @property server URL of the server that the token is for.
 * @property refused Whether the server rejected the previous token.
 * @property scopes Scopes that the server requires, separated by spaces; empty if it named none.
 */
public class TokenRequest internal constructor(
    public val server: String,
    public val refused: Boolean,
    public val scopes: String,
)

/** Credentials of a client that is already registered at an authorization server. */
@Serializable
public class Credentials(
    /** Client identifier. */
    public val clientId: String,
    /**
     * The authorization server that issued the credentials; compared character by character. They are sent to no other
     * one. If omitted, they are sent to the first authorization server that the MCP server names.
     */
    public val issuer: String? = null,
    /** Client secret. */
    public val secret: String? = null,
    /** Private key in PEM, instead of a secret. */
    public val privateKey: String? = null,
    /** Signature algorithm of the private key, such as `ES256`. Default: the usual one for the type of key. */
    public val algorithm: String? = null,
    /** Identifier of the key at the authorization server (`kid`), if it knows several. */
    public val keyId: String? = null,
    /**
     * Client authentication method: `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt`. Default: one
     * that the authorization server supports.
     */
    public val auth: String? = null,
)

/** How tokens are requested, if not by a user who signs in. */
public sealed class Grant {
    /** For the client itself, without a user. Needs [OAuth] credentials. */
    public data object ClientCredentials : Grant()

    /**
     * By the identity of a workload.
     *
     * @property assertion Returns a JWT of the platform that the client runs on. Called with the issuer that it is for.
     */
    public class WorkloadIdentity(public val assertion: suspend (audience: String) -> String) : Grant()

    /**
     * Through an enterprise's identity provider.
     *
     * @property tokenEndpoint Token endpoint of the identity provider.
     * @property clientId Client identifier at the identity provider.
     * @property secret Client secret at the identity provider.
     * @property idToken Returns the ID token of the user's single sign-on. Called each time that one is needed.
     */
    public class Enterprise(
        public val tokenEndpoint: String,
        public val clientId: String,
        public val secret: String? = null,
        public val idToken: suspend (audience: String) -> String,
    ) : Grant()
}

/** How the user signs in. */
public sealed class UserAgent {
    /**
     * With the system's browser and a redirect to a local port.
     *
     * @property redirectUri Redirect URI, if the authorization server accepts only one: `http://127.0.0.1` or
     *   `http://localhost`, with or without a port.
     * @property timeout Time that the user has to sign in. Default: 5 minutes.
     * @property browser Opens a URL instead of the system's browser.
     */
    public class Loopback(
        public val redirectUri: String? = null,
        public val timeout: Duration? = null,
        public val browser: (suspend (url: String) -> Unit)? = null,
    ) : UserAgent()

    /**
     * At a terminal: prints the URL to stderr and reads the URL that the browser was redirected to.
     *
     * @property redirectUri Redirect URI. Default: a local URL at which nothing listens.
     * @property timeout Time that the user has to sign in. Default: 5 minutes.
     */
    public class Terminal(public val redirectUri: String? = null, public val timeout: Duration? = null) : UserAgent()

    /**
     * By a function of the program.
     *
     * @property redirectUri Redirect URI: `https`, or `http` on the user's machine.
     * @property open Sends the user to a URL, and returns the URL that the user was redirected to, with its query.
     */
    public class Function(public val redirectUri: String, public val open: suspend (url: String) -> String) : UserAgent()
}

/**
 * Storage of tokens and client registrations. Values are secret.
 *
 * Clients that share a store refresh a token only once. Use [OAuth.storeFile] to share them with other processes.
 */
public interface TokenStore {
    /** Returns the value of a key; `null` if there is none. */
    public suspend fun load(key: String): ByteArray?

    /** Sets the value of a key. */
    public suspend fun save(key: String, value: ByteArray)

    /** Deletes a key, if it exists. */
    public suspend fun remove(key: String)
}

/**
 * OAuth authorization (`basic/authorization`): discovery, registration, sign-in, refresh and step-up.
 *
 * Clients that are given the same object share their tokens. The first connection opens the authorization server in the
 * user's browser; after that tokens are refreshed without the user.
 */
@Serializable
public class OAuth(
    /** Name of the client, shown to users on the consent page. */
    public val clientName: String,
    /** How users sign in; `null` if no user is present. */
    @Transient public val userAgent: UserAgent? = UserAgent.Loopback(),
    /** How tokens are requested, if not by a user. */
    @Transient public val grant: Grant? = null,
    /** Storage of tokens and registrations. Default: in memory, in this object. */
    @Transient public val store: TokenStore = MemoryStore(),
    /** Directory for tokens and registrations that only its owner can access, in place of [store]. Processes can share it. */
    @Transient public val storeFile: String? = null,
    /** Scopes to request in addition to those that the server requires, separated by spaces. */
    public val scopes: String? = null,
    /** Credentials for authorization servers at which the client is already registered. */
    public val credentials: List<Credentials> = emptyList(),
    /**
     * `https` URL, with a path, of the client's metadata document, used as client identifier where the authorization
     * server supports it.
     */
    public val clientIdMetadataUrl: String? = null,
    /** Home page of the client, for its registration. */
    public val clientUri: String? = null,
    /** Logo of the client, for its registration. */
    public val logoUri: String? = null,
    /** Identifier of the software, for its registration (RFC 7591). */
    public val softwareId: String? = null,
    /** Version of the software, for its registration. */
    public val softwareVersion: String? = null,
    /** Name of the user, if several users share a store. */
    public val account: String? = null,
    /** Bind tokens to a key, so that a stolen token is useless (RFC 9449). Default: `false`. */
    public val dpop: Boolean? = null,
    /** Let servers at public addresses name authorization servers at private addresses. Default: `false`. */
    public val allowPrivateAddresses: Boolean? = null,
    /** Require that the authorization server advertises PKCE. PKCE is used in any case. Default: `true`. */
    public val requirePkce: Boolean? = null,
) : Auth() {
    override val options: JsonObject by lazy {
        val plain = optionsJson.encodeToJsonElement(serializer(), this).jsonObject
        val members = buildJsonObject {
            plain.forEach { (name, value) -> put(name, value) }
            grantOptions()?.let { put("grant", it) }
            agentOptions()?.let { put("user_agent", it) }
            put("store", storeOptions())
        }
        JsonObject(mapOf("oauth" to members))
    }

    private fun grantOptions(): JsonElement? = when (val grant = grant) {
        null -> null
        Grant.ClientCredentials -> JsonPrimitive("client_credentials")
        is Grant.WorkloadIdentity -> {
            answer("auth/assertion", "assertion") { grant.assertion(it.text("audience")) }
            JsonPrimitive("workload_identity")
        }
        is Grant.Enterprise -> {
            answer("auth/id_token", "id_token") { grant.idToken(it.text("audience")) }
            val provider = buildJsonObject {
                put("token_endpoint", JsonPrimitive(grant.tokenEndpoint))
                put("client_id", JsonPrimitive(grant.clientId))
                grant.secret?.let { put("secret", JsonPrimitive(it)) }
            }
            JsonObject(mapOf("enterprise" to provider))
        }
    }

    private fun agentOptions(): JsonElement? = when (val agent = userAgent) {
        null -> null
        is UserAgent.Function -> {
            answer("auth/open", "url") { agent.open(it.text("url")) }
            JsonObject(mapOf("host" to JsonObject(mapOf("redirect_uri" to JsonPrimitive(agent.redirectUri)))))
        }
        is UserAgent.Terminal -> JsonObject(mapOf("terminal" to local(agent.redirectUri, agent.timeout)))
        is UserAgent.Loopback -> {
            agent.browser?.let { browser ->
                answers["auth/browser"] = { params ->
                    browser(params.text("url"))
                    JsonObject(emptyMap())
                }
            }
            val kind = JsonPrimitive(if (agent.browser == null) "system" else "host")
            JsonObject(mapOf("loopback" to JsonObject(local(agent.redirectUri, agent.timeout) + ("browser" to kind))))
        }
    }

    private fun storeOptions(): JsonElement {
        if (storeFile != null) return JsonObject(mapOf("file" to JsonPrimitive(storeFile)))
        answers["auth/store/load"] = { params ->
            val value = store.load(params.text("key"))
            val encoded = value?.let { JsonPrimitive(Base64.getEncoder().encodeToString(it)) } ?: JsonNull
            JsonObject(mapOf("value" to encoded))
        }
        answers["auth/store/save"] = { params ->
            store.save(params.text("key"), Base64.getDecoder().decode(params.text("value")))
            JsonObject(emptyMap())
        }
        answers["auth/store/remove"] = { params ->
            store.remove(params.text("key"))
            JsonObject(emptyMap())
        }
        val group = JsonPrimitive(groups.computeIfAbsent(store) { "jvm-$process-${lastGroup.incrementAndGet()}" })
        return JsonObject(mapOf("host" to JsonObject(mapOf("locks" to JsonPrimitive(false), "group" to group))))
    }

    private fun answer(method: String, member: String, give: suspend (JsonObject) -> String) {
        answers[method] = { params -> JsonObject(mapOf(member to JsonPrimitive(give(params)))) }
    }

    private companion object {
        /** Identifies stores: clients with the same store share its refreshes. */
        private val groups = Collections.synchronizedMap(WeakHashMap<TokenStore, String>())
        private val lastGroup = AtomicLong()
        private val process = UUID.randomUUID().toString()
    }
}

private fun local(redirectUri: String?, timeout: Duration?): JsonObject = buildJsonObject {
    redirectUri?.let { put("redirect_uri", JsonPrimitive(it)) }
    timeout?.let { put("timeout", JsonPrimitive(it.toDouble(DurationUnit.SECONDS))) }
}

private fun JsonObject.text(name: String): String = (this[name] as? JsonPrimitive)?.contentOrNull ?: ""

/** The default store. */
internal class MemoryStore : TokenStore {
    private val values = ConcurrentHashMap<String, ByteArray>()

    override suspend fun load(key: String): ByteArray? = values[key]

    override suspend fun save(key: String, value: ByteArray) {
        values[key] = value
    }

    override suspend fun remove(key: String) {
        values.remove(key)
    }
}
