import Foundation

/// Source of the access tokens of a client over HTTP.
public enum Auth: Sendable {
    /// A fixed access token.
    case bearer(String)

    /// A function that returns access tokens. It is called for the first request, when the token expires, and when the server
    /// rejects it.
    case tokens(@Sendable (TokenRequest) async throws -> Token)

    /// OAuth authorization.
    case oauth(OAuth)

    /// The options for the core.
    var options: JSONObject {
        get throws {
            switch self {
            case .bearer(let token): ["bearer": .string(token)]
            case .tokens: ["source": [:]]
            case .oauth(let oauth): ["oauth": .object(try oauth.options)]
            }
        }
    }

    /// The functions that answer requests of the core, by method; parameters and results are those of `foreign/auth`.
    var answers: [String: @Sendable (JSONObject) async throws -> JSON] {
        switch self {
        case .bearer: return [:]
        case .tokens(let source):
            return [
                "auth/token": { params in
                    let token = try await source(
                        TokenRequest(
                            server: params.text("server"), refused: params["refused"]?.boolValue ?? false,
                            scopes: params.text("scopes")))
                    var answer: JSONObject = ["token": .string(token.token)]
                    answer["expires_in"] = token.expiresIn.map { .number($0.seconds) }
                    return .object(answer)
                }
            ]
        case .oauth(let oauth): return oauth.answers
        }
    }
}

/// An access token.
public struct Token: Sendable {
    /// The token.
    public var token: String

    /// Remaining lifetime; `nil` if unknown.
    public var expiresIn: Duration?

    /// Creates a token.
    public init(_ token: String, expiresIn: Duration? = nil) {
        self.token = token
        self.expiresIn = expiresIn
    }
}

/// A request for an access token.
public struct TokenRequest: Sendable {
    /// URL of the server that the token is for.
    public let server: String

    /// Whether the server rejected the previous token.
    public let refused: Bool

    /// Scopes that the server requires, separated by spaces; empty if it named none.
    public let scopes: String
}

/// Credentials of a client that is already registered at an authorization server.
public struct Credentials: Encodable, Hashable, Sendable {
    /// Client identifier.
    public var clientId: String

    /// The authorization server that issued the credentials; compared character by character. They are sent to no other
    /// one. If omitted, they are sent to the first authorization server that the MCP server names.
    public var issuer: String?

    /// Client secret.
    public var secret: String?

    /// Private key in PEM, instead of a secret.
    public var privateKey: String?

    /// Signature algorithm of the private key, such as `ES256`. Default: the usual one for the type of key.
    public var algorithm: String?

    /// Identifier of the key at the authorization server (`kid`), if it knows several.
    public var keyId: String?

    /// Client authentication method: `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt`. Default: one
    /// that the authorization server supports.
    public var auth: String?

    /// Creates a value from its members.
    public init(
        clientId: String,
        issuer: String? = nil,
        secret: String? = nil,
        privateKey: String? = nil,
        algorithm: String? = nil,
        keyId: String? = nil,
        auth: String? = nil
    ) {
        self.clientId = clientId
        self.issuer = issuer
        self.secret = secret
        self.privateKey = privateKey
        self.algorithm = algorithm
        self.keyId = keyId
        self.auth = auth
    }
}

/// How tokens are requested, if not by a user who signs in.
public enum Grant: Sendable {
    /// For the client itself, without a user. Needs ``OAuth/credentials``.
    case clientCredentials

    /// By the identity of a workload. `assertion` returns a JWT of the platform that the client runs on; it is called with the
    /// issuer that it is for.
    case workloadIdentity(assertion: @Sendable (_ audience: String) async throws -> String)

    /// Through an enterprise's identity provider, with its token endpoint, and the client's identifier and secret there.
    /// `idToken` returns the ID token of the user's single sign-on, each time that one is needed.
    case enterprise(
        tokenEndpoint: String, clientId: String, secret: String? = nil,
        idToken: @Sendable (_ audience: String) async throws -> String)
}

/// How the user signs in.
public enum UserAgent: Sendable {
    /// With the system's browser, or a function that opens a URL, and a redirect to a local port. Set `redirectUri` if the
    /// authorization server accepts only one: `http://127.0.0.1` or `http://localhost`, with or without a port. The user has 5
    /// minutes by default.
    case loopback(
        redirectUri: String? = nil, timeout: Duration? = nil,
        browser: (@Sendable (_ url: String) async throws -> Void)? = nil)

    /// At a terminal: prints the URL to stderr and reads the URL that the browser was redirected to.
    case terminal(redirectUri: String? = nil, timeout: Duration? = nil)

    /// By a function of the program, such as one that uses `ASWebAuthenticationSession`: it sends the user to a URL, and returns
    /// the URL that the user was redirected to, with its query. `redirectUri` is `https`, or `http` on the user's machine.
    case own(redirectUri: String, open: @Sendable (_ url: String) async throws -> String)
}

/// Storage of tokens and client registrations, such as one that uses the Keychain. Values are secret.
///
/// Clients that share a store refresh a token only once. Use ``OAuth/storeFile`` to share them with other processes.
public protocol TokenStore: AnyObject, Sendable {
    /// Returns the value of a key; `nil` if there is none.
    func load(_ key: String) async throws -> Data?

    /// Sets the value of a key.
    func save(_ key: String, _ value: Data) async throws

    /// Deletes a key, if it exists.
    func remove(_ key: String) async throws
}

/// A store in memory.
public final class MemoryTokenStore: TokenStore {
    private let values = Locked<[String: Data]>([:])

    /// Creates an empty store.
    public init() {}

    /// Returns the value of a key; `nil` if there is none.
    public func load(_ key: String) -> Data? { values.withLock { $0[key] } }

    /// Sets the value of a key.
    public func save(_ key: String, _ value: Data) { values.withLock { $0[key] = value } }

    /// Deletes a key, if it exists.
    public func remove(_ key: String) { values.withLock { $0[key] = nil } }
}

/// OAuth authorization (`basic/authorization`): discovery, registration, sign-in, refresh and step-up.
///
/// Clients that are given the same ``store`` share their tokens. The first connection opens the authorization server in the
/// user's browser; after that tokens are refreshed without the user.
public struct OAuth: Sendable {
    /// Name of the client, shown to users on the consent page.
    public var clientName: String

    /// How users sign in; `nil` if no user is present.
    public var userAgent: UserAgent? = .loopback()

    /// How tokens are requested, if not by a user.
    public var grant: Grant?

    /// Storage of tokens and registrations. Default: in memory.
    public var store: any TokenStore = MemoryTokenStore()

    /// Directory for tokens and registrations that only its owner can access, in place of ``store``. Processes can share it.
    public var storeFile: String?

    /// Scopes to request in addition to those that the server requires, separated by spaces.
    public var scopes: String?

    /// Credentials for authorization servers at which the client is already registered.
    public var credentials: [Credentials] = []

    /// `https` URL, with a path, of the client's metadata document, used as client identifier where the authorization server
    /// supports it.
    public var clientIdMetadataUrl: String?

    /// Home page of the client, for its registration.
    public var clientUri: String?

    /// Logo of the client, for its registration.
    public var logoUri: String?

    /// Identifier of the software, for its registration (RFC 7591).
    public var softwareId: String?

    /// Version of the software, for its registration.
    public var softwareVersion: String?

    /// Name of the user, if several users share a store.
    public var account: String?

    /// Bind tokens to a key, so that a stolen token is useless (RFC 9449). Default: `false`.
    public var dpop: Bool?

    /// Let servers at public addresses name authorization servers at private addresses. Default: `false`.
    public var allowPrivateAddresses: Bool?

    /// Require that the authorization server advertises PKCE. PKCE is used in any case. Default: `true`.
    public var requirePkce: Bool?

    /// Creates an authorization of a client with this name. Set other members as needed.
    public init(clientName: String) {
        self.clientName = clientName
    }

    var options: JSONObject {
        get throws {
            var members = try optionsObject(self)
            switch grant {
            case nil: break
            case .clientCredentials: members["grant"] = "client_credentials"
            case .workloadIdentity: members["grant"] = "workload_identity"
            case .enterprise(let tokenEndpoint, let clientId, let secret, _):
                var provider: JSONObject = ["token_endpoint": .string(tokenEndpoint), "client_id": .string(clientId)]
                provider["secret"] = secret.map(JSON.string)
                members["grant"] = ["enterprise": .object(provider)]
            }
            switch userAgent {
            case nil: break
            case .loopback(let redirectUri, let timeout, let browser):
                let kind: JSON = browser == nil ? "system" : "host"
                members["user_agent"] = ["loopback": .object(local(redirectUri, timeout).merging(["browser": kind]))]
            case .terminal(let redirectUri, let timeout):
                members["user_agent"] = ["terminal": .object(local(redirectUri, timeout))]
            case .own(let redirectUri, _): members["user_agent"] = ["host": ["redirect_uri": .string(redirectUri)]]
            }
            if let storeFile {
                members["store"] = ["file": .string(storeFile)]
            } else {
                members["store"] = ["host": ["locks": false, "group": .string(storeGroup(store))]]
            }
            return members
        }
    }

    var answers: [String: @Sendable (JSONObject) async throws -> JSON] {
        var answers: [String: @Sendable (JSONObject) async throws -> JSON] = [:]
        switch grant {
        case .workloadIdentity(let assertion):
            answers["auth/assertion"] = { ["assertion": .string(try await assertion($0.text("audience")))] }
        case .enterprise(_, _, _, let idToken):
            answers["auth/id_token"] = { ["id_token": .string(try await idToken($0.text("audience")))] }
        case nil, .clientCredentials: break
        }
        switch userAgent {
        case .own(_, let open): answers["auth/open"] = { ["url": .string(try await open($0.text("url")))] }
        case .loopback(_, _, let browser?):
            answers["auth/browser"] = { params in
                try await browser(params.text("url"))
                return [:]
            }
        case nil, .loopback, .terminal: break
        }
        let store = store
        answers["auth/store/load"] = { params in
            let value = try await store.load(params.text("key"))
            return ["value": value.map { .string($0.base64EncodedString()) } ?? .null]
        }
        answers["auth/store/save"] = { params in
            try await store.save(params.text("key"), Data(base64Encoded: params.text("value")) ?? Data())
            return [:]
        }
        answers["auth/store/remove"] = { params in
            try await store.remove(params.text("key"))
            return [:]
        }
        return answers
    }
}

extension OAuth: Encodable {
    private enum CodingKeys: String, CodingKey {
        case clientName, scopes, credentials, clientIdMetadataUrl, clientUri, logoUri, softwareId, softwareVersion, account
        case dpop, allowPrivateAddresses, requirePkce
    }

    /// Encodes the members that the core reads as they are.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(clientName, forKey: .clientName)
        try members.encodeIfPresent(scopes, forKey: .scopes)
        if !credentials.isEmpty { try members.encode(credentials, forKey: .credentials) }
        try members.encodeIfPresent(clientIdMetadataUrl, forKey: .clientIdMetadataUrl)
        try members.encodeIfPresent(clientUri, forKey: .clientUri)
        try members.encodeIfPresent(logoUri, forKey: .logoUri)
        try members.encodeIfPresent(softwareId, forKey: .softwareId)
        try members.encodeIfPresent(softwareVersion, forKey: .softwareVersion)
        try members.encodeIfPresent(account, forKey: .account)
        try members.encodeIfPresent(dpop, forKey: .dpop)
        try members.encodeIfPresent(allowPrivateAddresses, forKey: .allowPrivateAddresses)
        try members.encodeIfPresent(requirePkce, forKey: .requirePkce)
    }
}

private func local(_ redirectUri: String?, _ timeout: Duration?) -> JSONObject {
    var options: JSONObject = [:]
    options["redirect_uri"] = redirectUri.map(JSON.string)
    options["timeout"] = timeout.map { .number($0.seconds) }
    return options
}

private struct StoreGroup {
    weak var store: (any TokenStore)?
    let id: String
}

private let storeGroups = Locked<[ObjectIdentifier: StoreGroup]>([:])

/// Identifies a store: clients with the same store share its refreshes.
private func storeGroup(_ store: any TokenStore) -> String {
    storeGroups.withLock { groups in
        groups = groups.filter { $0.value.store != nil }
        let key = ObjectIdentifier(store)
        if let group = groups[key] { return group.id }
        let id = "swift-\(UUID().uuidString)"
        groups[key] = StoreGroup(store: store, id: id)
        return id
    }
}

extension JSONObject {
    fileprivate func text(_ name: String) -> String { self[name]?.stringValue ?? "" }
}
