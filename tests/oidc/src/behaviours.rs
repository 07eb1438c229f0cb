//! Behaviour that must work with a popular authorization server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcpline::auth::{ClientAuth, Credentials, MemoryStore};
use mcpline::client::HttpSettings;
use serde_json::json;

use crate::world::{Outcome, Provider, REDIRECT, World, must_call, same};

type Behaviour = fn(Provider) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Every behaviour, with its name.
pub(crate) fn all() -> Vec<(&'static str, Behaviour)> {
    macro_rules! behaviours {
        ($($name:ident),* $(,)?) => {
            vec![$((stringify!($name), |provider| Box::pin($name(provider)))),*]
        };
    }
    behaviours![
        a_client_registers_itself_and_its_user_consents_once,
        a_client_that_is_a_document_registers_nowhere,
        a_client_with_a_password_proves_itself_as_it_was_registered,
        a_client_asks_for_itself_by_password_or_by_key,
        signed_and_opaque_tokens_both_say_who_calls,
        a_token_that_was_taken_back_is_refreshed_without_the_user,
        a_hundred_requests_with_a_lapsed_token_make_one_refresh,
        a_lapsed_token_in_the_store_asks_the_user_nothing,
        more_is_asked_for_when_a_tool_needs_it,
        a_grant_that_was_revoked_leads_to_the_user_once,
        signing_out_gives_the_tokens_back,
        a_registration_that_was_forgotten_is_made_again,
        a_bound_token_is_shown_with_proofs,
    ]
}

async fn a_client_registers_itself_and_its_user_consents_once(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    let client = world.connect(world.oauth().build()).await?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same("visits", world.sign_ins(), 1)?;
    same("registrations", world.registrations().await?, 1)?;
    same("token requests", world.request_count("/token").await?, 1)?;
    client.close().await;
    Ok(())
}

async fn a_client_that_is_a_document_registers_nowhere(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    let url = "https://client.example.com/about.json";
    let document = json!({
        "client_id": url,
        "client_name": "A test",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    world
        .provider
        .set(json!({"documents": {url: document}}))
        .await?;
    let oauth = world.oauth().client_id_metadata_url(url);
    let oauth = oauth.map_err(|error| error.to_string())?;
    let client = world.connect(oauth.build()).await?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same("registrations", world.request_count("/reg").await?, 0)?;
    client.close().await;
    Ok(())
}

async fn a_client_with_a_password_proves_itself_as_it_was_registered(
    provider: Provider,
) -> Outcome {
    let world = World::start(provider).await?;
    for auth in [ClientAuth::SecretBasic, ClientAuth::SecretPost] {
        let oauth = world.oauth().credentials(known(&world, auth)).build();
        let client = world.connect(oauth).await?;
        same(
            "the caller",
            must_call(&client, "look").await?,
            "alice".into(),
        )?;
        client.close().await;
    }
    same("registrations", world.request_count("/reg").await?, 0)
}

async fn a_client_asks_for_itself_by_password_or_by_key(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    let key = world.provider.key.as_bytes();
    let signer = Credentials::new("signer").issuer(&world.provider.issuer);
    let signer = signer.private_key(key, Some("ES256"), Some("the-key".into()));
    let signer = signer.map_err(|error| error.to_string())?;
    let basic = known(&world, ClientAuth::SecretBasic);
    for (name, credentials) in [
        ("signer", signer),
        (ClientAuth::SecretBasic.as_str(), basic),
    ] {
        let oauth = world
            .oauth()
            .credentials(credentials)
            .client_credentials()
            .build();
        let client = world.connect(oauth).await?;
        same("the caller", must_call(&client, "look").await?, name.into())?;
        client.close().await;
    }
    same("visits", world.sign_ins(), 0)
}

/// The credentials of the client that is registered for a method; its id is the method's name.
fn known(world: &World, auth: ClientAuth) -> Credentials {
    Credentials::new(auth.as_str())
        .issuer(&world.provider.issuer)
        .secret("a secret: 100% & + more, to be encoded")
        .auth(auth)
}

async fn signed_and_opaque_tokens_both_say_who_calls(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    for (format, introspections) in [("jwt", 0), ("opaque", 1)] {
        world.provider.set(json!({"format": format})).await?;
        let before = world.request_count("/token/introspection").await?;
        let client = world.connect(world.oauth().build()).await?;
        same(
            "the caller",
            must_call(&client, "look").await?,
            "alice".into(),
        )?;
        let introspected = world.request_count("/token/introspection").await? - before;
        same(
            "whether it was asked about tokens",
            introspected.min(1),
            introspections,
        )?;
        client.close().await;
    }
    Ok(())
}

async fn a_token_that_was_taken_back_is_refreshed_without_the_user(provider: Provider) -> Outcome {
    let world = World::with_opaque_tokens(provider).await?;
    let client = world.connect(world.oauth().build()).await?;
    for round in 1..=3 {
        must_call(&client, "look").await?;
        same(
            "token requests",
            world.request_count("/token").await?,
            round,
        )?;
        same("visits", world.sign_ins(), 1)?;
        world.provider.forget(&["AccessToken"]).await?;
    }
    same("visits", world.sign_ins(), 1)?;
    client.close().await;
    Ok(())
}

async fn a_hundred_requests_with_a_lapsed_token_make_one_refresh(provider: Provider) -> Outcome {
    let world = World::with_opaque_tokens(provider).await?;
    let client = world.connect(world.oauth().build()).await?;
    must_call(&client, "look").await?;
    let before = world.request_count("/token").await?;
    world.provider.forget(&["AccessToken"]).await?;
    let client = Arc::new(client);
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { must_call(&client, "look").await })
        })
        .collect();
    for call in calls {
        let caller = call.await.map_err(|error| error.to_string())??;
        same("the caller", caller, "alice".into())?;
    }
    same(
        "refreshes",
        world.request_count("/token").await? - before,
        1,
    )?;
    same("visits", world.sign_ins(), 1)?;
    client.close().await;
    Ok(())
}

async fn a_lapsed_token_in_the_store_asks_the_user_nothing(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    // The lifetime is five seconds, and the test waits six: the token has certainly expired, and not before its first
    // use.
    world.provider.set(json!({"lifetime": 5})).await?;
    let store = MemoryStore::default();
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await?;
    client.close().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    world.provider.set(json!({"lifetime": 3600})).await?;
    let before = world.request_count("/token").await?;
    let client = world.connect(world.oauth().store(store).build()).await?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same("visits", world.sign_ins(), 1)?;
    same(
        "refreshes",
        world.request_count("/token").await? - before,
        1,
    )?;
    same("registrations", world.registrations().await?, 1)?;
    client.close().await;
    Ok(())
}

async fn more_is_asked_for_when_a_tool_needs_it(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    let client = world.connect(world.oauth().build()).await?;
    let listed = client
        .list_tools()
        .await
        .map_err(|error| error.to_string())?;
    let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
    same("the tools before", names, vec!["look"])?;
    same(
        "the edit",
        must_call(&client, "edit").await?,
        "edited".into(),
    )?;
    same("visits", world.sign_ins(), 2)?;
    // Scopes that were granted earlier are still granted.
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    let listed = client
        .list_tools()
        .await
        .map_err(|error| error.to_string())?;
    same("the tools after", listed.len(), 2)?;
    same("visits", world.sign_ins(), 2)?;
    client.close().await;
    Ok(())
}

async fn a_grant_that_was_revoked_leads_to_the_user_once(provider: Provider) -> Outcome {
    let world = World::with_opaque_tokens(provider).await?;
    let client = world.connect(world.oauth().build()).await?;
    must_call(&client, "look").await?;
    world
        .provider
        .forget(&["AccessToken", "RefreshToken", "Grant", "Session"])
        .await?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same("visits", world.sign_ins(), 2)?;
    client.close().await;
    Ok(())
}

async fn signing_out_gives_the_tokens_back(provider: Provider) -> Outcome {
    let world = World::with_opaque_tokens(provider).await?;
    let oauth = world.oauth().build();
    let client = world.connect(oauth.clone()).await?;
    must_call(&client, "look").await?;
    let before =
        world.provider.kept("AccessToken").await? + world.provider.kept("RefreshToken").await?;
    oauth
        .sign_out(&world.url, &HttpSettings::default())
        .await
        .map_err(|error| error.to_string())?;
    let after =
        world.provider.kept("AccessToken").await? + world.provider.kept("RefreshToken").await?;
    same("tokens that were given back", before - after, 2)?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same("visits", world.sign_ins(), 2)?;
    client.close().await;
    Ok(())
}

async fn a_registration_that_was_forgotten_is_made_again(provider: Provider) -> Outcome {
    let world = World::with_opaque_tokens(provider).await?;
    let store = MemoryStore::default();
    let client = world
        .connect(world.oauth().store(store.clone()).build())
        .await?;
    must_call(&client, "look").await?;
    client.close().await;
    world
        .provider
        .forget(&["AccessToken", "RefreshToken", "Grant", "Session", "Client"])
        .await?;
    let client = world.connect(world.oauth().store(store).build()).await?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    // The earlier client is among those that the provider forgot.
    same("registrations", world.provider.kept("Client").await?, 1)?;
    client.close().await;
    Ok(())
}

async fn a_bound_token_is_shown_with_proofs(provider: Provider) -> Outcome {
    let world = World::start(provider).await?;
    let client = world.connect(world.oauth().dpop(true).build()).await?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same(
        "the caller",
        must_call(&client, "look").await?,
        "alice".into(),
    )?;
    same("visits", world.sign_ins(), 1)?;
    client.close().await;
    Ok(())
}
