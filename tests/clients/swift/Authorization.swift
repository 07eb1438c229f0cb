// The authorization scenarios (`auth/…`).

import Foundation
import Mcpline

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The client's metadata document, which the suite's authorization server knows.
private let document = "https://conformance-test.local/client-metadata.json"

/// Takes redirects as responses.
private final class Unredirected: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}

private struct NoRedirect: Error {}

/// Requests the URL at the authorization server, which consents immediately, and returns the target of its redirect.
private let consent: @Sendable (_ url: String) async throws -> String = { url in
    guard let place = URL(string: url) else { throw URLError(.badURL) }
    let session = URLSession(configuration: .ephemeral, delegate: Unredirected(), delegateQueue: nil)
    defer { session.finishTasksAndInvalidate() }
    let (_, response) = try await session.data(from: place)
    guard let target = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "location") else { throw NoRedirect() }
    return target
}

private func given(_ name: String) -> String? { context[name]?.stringValue }

/// The credentials in the scenario's context.
private func credentials() -> [Credentials] {
    [
        Credentials(
            clientId: given("client_id") ?? "",
            issuer: given("issuer"),
            secret: given("client_secret"),
            privateKey: given("private_key_pem"),
            algorithm: given("signing_algorithm")
        )
    ]
}

/// Returns the authorization of the client. Nothing listens at the redirect URI: the user agent reads the parameters from the
/// redirect.
private func oauth(_ configure: (inout OAuth) -> Void = { _ in }) -> OAuth {
    var oauth = OAuth(clientName: "everything-client")
    oauth.userAgent = .own(redirectUri: "http://localhost:3000/callback", open: consent)
    configure(&oauth)
    return oauth
}

private func forClient(_ grant: Grant) -> OAuth {
    oauth { oauth in
        oauth.grant = grant
        oauth.credentials = credentials()
    }
}

private func enterprise() -> Grant {
    .enterprise(
        tokenEndpoint: given("idp_token_endpoint") ?? "",
        clientId: given("idp_client_id") ?? "",
        idToken: { _ in given("idp_id_token") ?? "" }
    )
}

/// Scenarios in which everything works without further settings.
private let plain = [
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
]

/// The authorization of the other scenarios in which everything works.
private let configured: [String: @Sendable () -> OAuth] = [
    "basic-cimd": { oauth { $0.clientIdMetadataUrl = document } },
    "pre-registration": { oauth { $0.credentials = credentials() } },
    "dpop": { oauth { $0.dpop = true } },
    "dpop-nonce": { oauth { $0.dpop = true } },
    "client-credentials-basic": { forClient(.clientCredentials) },
    "client-credentials-jwt": { forClient(.clientCredentials) },
    "enterprise-managed-authorization": { forClient(enterprise()) },
    "wif-jwt-bearer": { forClient(.workloadIdentity(assertion: { _ in given("valid_jwt") ?? "" })) },
]

/// Expected reasons, for the scenarios in which the client must be refused.
private let refused = [
    "scope-retry-limit": "insufficient_scope",
    "resource-mismatch": "resource_mismatch",
    "metadata-issuer-mismatch": "metadata_issuer_mismatch",
    "iss-supported-missing": "authorization_response_mismatch",
    "iss-wrong-issuer": "authorization_response_mismatch",
    "iss-unexpected": "authorization_response_mismatch",
    "iss-normalized": "authorization_response_mismatch",
]

private func works(_ authorization: @escaping @Sendable () -> OAuth) -> Scenario {
    { url in
        try await connected(url, configure: { $0.auth = .oauth(authorization()) }) { client in
            _ = try await client.listTools()
            _ = try await client.callTool("test-tool")
        }
    }
}

private struct NotRefused: Error {
    let expected: String
}

private func isRefused(for expected: String) -> Scenario {
    { url in
        do {
            try await connected(url, configure: { $0.auth = .oauth(oauth()) }) { client in
                _ = try await client.listTools()
            }
        } catch McplineError.authorizationFailed(reason: expected, _) {
            return
        }
        throw NotRefused(expected: expected)
    }
}

let authorization: [String: Scenario] = {
    var scenarios: [String: Scenario] = [:]
    for name in plain { scenarios["auth/\(name)"] = works { oauth() } }
    for (name, authorization) in configured { scenarios["auth/\(name)"] = works(authorization) }
    for (name, reason) in refused { scenarios["auth/\(name)"] = isRefused(for: reason) }
    return scenarios
}()
