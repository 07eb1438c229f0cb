//! The authorization scenarios (`auth/…`).

use std::error::Error;

use mcpline::auth::{
    Auth, AuthError, Credentials, Enterprise, FunctionUserAgent, OAuth, OAuthBuilder,
    UserAgentError,
};
use mcpline::client::{Address, Client, ClientError, HttpSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Outcome, host};

/// The redirect URI. Nothing listens there: the user agent reads the parameters from the redirect.
const REDIRECT: &str = "http://localhost:3000/callback";
/// The client's metadata document, which the suite's authorization server knows.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Runs the scenario with this name, without the `auth/`.
pub(crate) async fn play(scenario: &str, url: &str) -> Outcome {
    let user_agent = FunctionUserAgent::new(REDIRECT, consent)?;
    let user = || OAuth::builder("everything-client").user_agent(user_agent.clone());
    match scenario {
        "metadata-default"
        | "metadata-var1"
        | "metadata-var2"
        | "metadata-var3"
        | "scope-from-www-authenticate"
        | "scope-from-scopes-supported"
        | "scope-omitted-when-undefined"
        | "scope-step-up"
        | "token-endpoint-auth-basic"
        | "token-endpoint-auth-post"
        | "token-endpoint-auth-none"
        | "offline-access-scope"
        | "offline-access-not-supported"
        | "authorization-server-migration"
        | "iss-supported"
        | "iss-not-advertised"
        | "2025-03-26-oauth-metadata-backcompat"
        | "2025-03-26-oauth-endpoint-fallback" => uses(url, user()).await,
        "basic-cimd" => uses(url, user().client_id_metadata_url(DOCUMENT)?).await,
        "pre-registration" => uses(url, user().credentials(credentials()?)).await,
        "dpop" | "dpop-nonce" => uses(url, user().dpop(true)).await,
        "client-credentials-basic" | "client-credentials-jwt" => {
            uses(url, user().credentials(credentials()?).client_credentials()).await
        }
        "enterprise-managed-authorization" => {
            uses(
                url,
                user().credentials(credentials()?).enterprise(enterprise()?),
            )
            .await
        }
        "wif-jwt-bearer" => {
            let word = said(&context()?, "valid_jwt")?;
            let word = move |_issuer| {
                let word = word.clone();
                async move { Ok(word) }
            };
            uses(
                url,
                user().credentials(credentials()?).workload_identity(word),
            )
            .await
        }
        "scope-retry-limit" => refused(url, user(), "insufficient_scope").await,
        "resource-mismatch" => refused(url, user(), "resource_mismatch").await,
        "metadata-issuer-mismatch" => refused(url, user(), "metadata_issuer_mismatch").await,
        "iss-supported-missing" | "iss-wrong-issuer" | "iss-unexpected" | "iss-normalized" => {
            refused(url, user(), "authorization_response_mismatch").await
        }
        other => Err(format!("no scenario is named {other:?}").into()),
    }
}

/// Expects that everything works, with whatever authorization it requires.
async fn uses(url: &str, oauth: OAuthBuilder) -> Outcome {
    let client = connect(url, oauth).await?;
    client.list_tools().await?;
    client.call_tool("test-tool", json!({})).await?;
    client.close().await;
    Ok(())
}

/// Expects that authorization fails with this code.
async fn refused(url: &str, oauth: OAuthBuilder, code: &str) -> Outcome {
    let outcome = async {
        let client = connect(url, oauth).await?;
        client.list_tools().await
    };
    match outcome.await {
        Err(ClientError::AuthorizationFailed(error)) if error.code() == code => Ok(()),
        Err(other) => Err(format!("refused, but not for {code}: {other}").into()),
        Ok(_) => Err(format!("not refused for {code}").into()),
    }
}

async fn connect(url: &str, oauth: OAuthBuilder) -> Result<Client, ClientError> {
    let mut settings = HttpSettings::default();
    settings.auth = Some(Auth::oauth(oauth.build()));
    host().connect(Address::Url(url.to_owned(), settings)).await
}

/// Requests the URL at the authorization server, which consents immediately, and returns the target of its redirect.
async fn consent(url: String) -> Result<String, UserAgentError> {
    let answer = get(&url).await.map_err(UserAgentError::other)?;
    let mut lines = answer.lines().take_while(|line| !line.is_empty());
    let location = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    location.ok_or_else(|| UserAgentError::other("nobody was redirected"))
}

async fn get(url: &str) -> std::io::Result<String> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(place).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The credentials in the scenario's context.
fn credentials() -> Result<Credentials, Box<dyn Error>> {
    let context = context()?;
    let mut credentials = Credentials::new(said(&context, "client_id")?);
    if let Some(issuer) = context["issuer"].as_str() {
        credentials = credentials.issuer(issuer);
    }
    if let Some(secret) = context["client_secret"].as_str() {
        credentials = credentials.secret(secret);
    }
    if let Some(key) = context["private_key_pem"].as_str() {
        credentials =
            credentials.private_key(key.as_bytes(), context["signing_algorithm"].as_str(), None)?;
    }
    Ok(credentials)
}

/// The scenario's identity provider.
fn enterprise() -> Result<Enterprise, Box<dyn Error>> {
    let context = context()?;
    let id_token = said(&context, "idp_id_token")?;
    Ok(Enterprise::new(
        said(&context, "idp_token_endpoint")?,
        said(&context, "idp_client_id")?,
        move |_issuer| {
            let id_token = id_token.clone();
            async move { Ok::<_, AuthError>(id_token) }
        },
    ))
}

fn context() -> Result<Value, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::env::var(
        "MCP_CONFORMANCE_CONTEXT",
    )?)?)
}

fn said(context: &Value, name: &str) -> Result<String, String> {
    let said = context[name].as_str().map(str::to_owned);
    said.ok_or_else(|| format!("the context has no {name}"))
}
