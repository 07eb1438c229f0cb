// The authorization scenarios (`auth/…`).

import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonPrimitive
import mcpline.AuthorizationFailedException
import mcpline.Credentials
import mcpline.Grant
import mcpline.OAuth
import mcpline.UserAgent

/** The client's metadata document, which the suite's authorization server knows. */
private const val DOCUMENT = "https://conformance-test.local/client-metadata.json"

/** Nothing listens at the redirect URI: the user agent reads the parameters from the redirect. */
private val AGENT = UserAgent.Function("http://localhost:3000/callback", ::consent)

/** Requests the URL at the authorization server, which consents immediately, and returns the target of its redirect. */
private suspend fun consent(url: String): String = withContext(Dispatchers.IO) {
    val answer = HttpClient.newHttpClient().send(
        HttpRequest.newBuilder(URI(url)).build(),
        HttpResponse.BodyHandlers.discarding(),
    )
    answer.headers().firstValue("location").orElseThrow { IllegalStateException("there was no redirect") }
}

private fun given(name: String): String? = context[name]?.jsonPrimitive?.contentOrNull

/** The credentials in the scenario's context. */
private fun credentials() = listOf(
    Credentials(
        given("client_id") ?: "",
        given("issuer"),
        given("client_secret"),
        given("private_key_pem"),
        given("signing_algorithm"),
    ),
)

private fun oauth(grant: Grant? = null, credentials: List<Credentials> = emptyList()) =
    OAuth("everything-client", AGENT, grant, credentials = credentials)

private fun enterprise() = Grant.Enterprise(
    given("idp_token_endpoint") ?: "",
    given("idp_client_id") ?: "",
    idToken = { given("idp_id_token") ?: "" },
)

/** The authorization of the scenarios in which everything works. */
private val WORKING: Map<String, () -> OAuth> = listOf(
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "2025-03-26-oauth-metadata-backcompat",
    "2025-03-26-oauth-endpoint-fallback",
).associateWith { { oauth() } } + mapOf(
    "basic-cimd" to { OAuth("everything-client", AGENT, clientIdMetadataUrl = DOCUMENT) },
    "pre-registration" to { oauth(credentials = credentials()) },
    "dpop" to { OAuth("everything-client", AGENT, dpop = true) },
    "dpop-nonce" to { OAuth("everything-client", AGENT, dpop = true) },
    "client-credentials-basic" to { oauth(Grant.ClientCredentials, credentials()) },
    "client-credentials-jwt" to { oauth(Grant.ClientCredentials, credentials()) },
    "enterprise-managed-authorization" to { oauth(enterprise(), credentials()) },
    "wif-jwt-bearer" to { oauth(Grant.WorkloadIdentity { given("valid_jwt") ?: "" }, credentials()) },
)

/** Expected reasons, for the other scenarios. */
private val REFUSED: Map<String, String> = mapOf(
    "scope-retry-limit" to "insufficient_scope",
    "resource-mismatch" to "resource_mismatch",
    "metadata-issuer-mismatch" to "metadata_issuer_mismatch",
) + listOf("iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized")
    .associateWith { "authorization_response_mismatch" }

val AUTHORIZATION: Map<String, suspend (String) -> Unit> = buildMap {
    for ((name, authorization) in WORKING) {
        put("auth/$name") { url ->
            connected(url, { auth = authorization() }) { client ->
                client.listTools()
                client.callTool("test-tool")
            }
        }
    }
    for ((name, reason) in REFUSED) {
        put("auth/$name") { url ->
            try {
                connected(url, { auth = oauth() }) { it.listTools() }
            } catch (error: AuthorizationFailedException) {
                if (error.reason == reason) return@put
                throw error
            }
            error("not refused for $reason")
        }
    }
}
