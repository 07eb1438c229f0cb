//! The program, as tests in other languages use it.

mod client;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use axum::body::Body;
use axum::http::Request;
use client::{get, post_json, send};
use serde_json::{Value, json};

#[tokio::test]
async fn prints_its_urls_can_be_controlled_and_ends_with_its_input() {
    let mut running = Command::new(env!("CARGO_BIN_EXE_authorization-server"))
        .args([
            "--config",
            r#"{"issuer_path": "/tenant", "documents": ["openid-appended"]}"#,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(running.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let issuer = said["issuer"].as_str().unwrap();
    let control = said["control"].as_str().unwrap();
    let metadata = get(&format!("{issuer}/.well-known/openid-configuration")).await;
    assert_eq!(metadata.json()["issuer"], issuer);
    assert!(metadata.json()["registration_endpoint"].is_string());

    let change = |body: &Value| {
        let request =
            Request::patch(format!("{control}/config")).body(Body::from(body.to_string()));
        send(request.unwrap())
    };
    assert_eq!(change(&json!({"registration": false})).await.status, 204);
    assert_eq!(change(&json!({"regstration": false})).await.status, 400);
    let metadata = get(&format!("{issuer}/.well-known/openid-configuration")).await;
    assert_eq!(metadata.json().get("registration_endpoint"), None);
    let requests = get(&format!("{control}/requests")).await.json();
    assert_eq!(requests["counts"]["metadata"], 2);
    assert_eq!(requests["last"][0]["status"], 200);

    let minted = post_json(
        &format!("{control}/mint"),
        &json!({"header": {}, "claims": {"a": 1}}),
    )
    .await;
    assert_eq!(
        minted.json()["token"].as_str().unwrap().split('.').count(),
        3
    );
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
}
