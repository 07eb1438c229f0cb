//! Servers with TLS, on Unix sockets, in clusters and behind sentinels.

use bytes::Bytes;
use mcpline::sharing::{SaveOutcome, Sharing};
use mcpline_valkey::{TlsIdentity, Valkey, ValkeyError};

use crate::server::{
    LIFETIME, Server, Subscriber, connect, options, until, until_loaded, until_read, write,
};

async fn save(sharing: &Sharing, id: &str, value: &'static str) -> Result<(), String> {
    let value = Bytes::from_static(value.as_bytes());
    let stored = sharing.sessions.load(id).await;
    let replaces = stored.ok().flatten().unwrap_or_default();
    let saved = sharing.sessions.save(id, value, replaces, LIFETIME).await;
    let saved = saved.map_err(|error| error.to_string())?;
    assert_eq!(saved, SaveOutcome::Saved);
    Ok(())
}

/// Uses all three parts between two processes.
async fn works(a: &Sharing, b: &Sharing) {
    save(a, "one", "first").await.expect("saves");
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    for session in ["one", "two", "three"] {
        save(a, session, "value").await.expect("saves");
        until_loaded(b, session, Some("value")).await;
        let stream = format!("{session}/1");
        a.events.append(&stream, 0, Bytes::from_static(b"zero"));
        a.events.append(&stream, 1, Bytes::from_static(b"one"));
        until_read(b, &stream, 0, &["one"]).await;
    }
    a.bus.publish(Bytes::from_static(b"message"));
    at_b.until("message").await;
    a.sessions.remove("one").await.expect("removes");
    until_loaded(b, "one", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket() {
    let server = Server::start_with(&["--unixsocket", "%/socket"]);
    let url = format!("valkey+unix://{}/socket", server.folder.display());
    works(&connect(&url), &connect(&url)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_a_certificate_of_ones_own() {
    let authority = rcgen::KeyPair::generate().expect("a key");
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters
        .distinguished_name
        .push(rcgen::DnType::CommonName, "authority");
    let root = parameters.self_signed(&authority).expect("a certificate");
    let issuer = rcgen::Issuer::new(parameters, authority);
    let signed = |name: &str| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut parameters =
            rcgen::CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        parameters
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    };
    let mut server = Server::prepare(&[
        "--tls-port",
        "0",
        "--tls-cert-file",
        "%/cert",
        "--tls-key-file",
        "%/key",
        "--tls-ca-cert-file",
        "%/ca",
    ]);
    let (certificate, key) = signed("localhost");
    write(&server.folder, "cert", &certificate);
    write(&server.folder, "key", &key);
    write(&server.folder, "ca", &root.pem());
    server.run();
    let tls_port = server.port + 1;
    let _: String = server
        .command(&format!("CONFIG SET tls-port {tls_port}"))
        .await;
    let url = format!("valkeys://localhost:{tls_port}");
    let (certificate, key) = signed("client");
    let mut trusting = options();
    trusting.tls_roots = Some(root.pem().into_bytes());
    trusting.tls_identity = Some(TlsIdentity {
        certificate: certificate.into_bytes(),
        key: key.into_bytes(),
    });
    let trusted = || Valkey::connect(&url, trusting.clone()).expect("valid");
    works(&trusted(), &trusted()).await;
    // A server whose authority is unknown, and one without the client's certificate.
    let error = save(&connect(&url), "one", "value")
        .await
        .expect_err("unknown authority");
    assert!(error.contains("cannot be reached"), "{error}");
    let mut anonymous = trusting.clone();
    anonymous.tls_identity = None;
    let anonymous = Valkey::connect(&url, anonymous).expect("valid");
    save(&anonymous, "one", "value")
        .await
        .expect_err("no certificate");
}

#[tokio::test]
async fn certificates_that_are_not_pem_are_refused() {
    let mut invalid = options();
    invalid.tls_identity = Some(TlsIdentity {
        certificate: b"certificate".to_vec(),
        key: b"key".to_vec(),
    });
    let error = Valkey::connect("valkeys://localhost", invalid).expect_err("not PEM");
    assert!(
        matches!(error, ValkeyError::InvalidOption { .. }),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster() {
    let one = Server::start_with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-config-file",
        "nodes-one",
    ]);
    let two = Server::start_with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-config-file",
        "nodes-two",
    ]);
    // `one` is in slot 9084 and `three` in 13861; `two` is in 2127 and the bus in 3155.
    let _: String = one.command("CLUSTER ADDSLOTSRANGE 0 7000").await;
    let _: String = two.command("CLUSTER ADDSLOTSRANGE 7001 16383").await;
    let _: String = one
        .command(&format!("CLUSTER MEET 127.0.0.1 {}", two.port))
        .await;
    for node in [&one, &two] {
        until("the cluster is complete", || async {
            let info: String = node.command("CLUSTER INFO").await;
            info.contains("cluster_state:ok").then_some(())
        })
        .await;
    }
    let url = format!(
        "valkey-cluster://127.0.0.1:{},127.0.0.1:{}",
        one.port, two.port
    );
    let (a, b) = (connect(&url), connect(&url));
    works(&a, &b).await;
    let mut sizes = Vec::new();
    for node in [&one, &two] {
        sizes.push(node.command::<u64>("DBSIZE").await);
    }
    assert!(
        sizes.iter().all(|size| *size > 0),
        "both are used: {sizes:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_sentinels_name_and_the_replica_that_is_promoted() {
    let mut primary = Server::start();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    until("it replicates", || async {
        let info: String = replica.command("INFO replication").await;
        info.contains("master_link_status:up").then_some(())
    })
    .await;
    let mut sentinel = Server::prepare(&["%/sentinel.conf", "--sentinel"]);
    let settings = format!(
        "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 500\n",
        primary.port
    );
    write(&sentinel.folder, "sentinel.conf", &settings);
    sentinel.run();
    until("the sentinel knows the replica", || async {
        let info: String = sentinel.command("INFO sentinel").await;
        info.contains("slaves=1").then_some(())
    })
    .await;
    let url = format!("valkey-sentinel://127.0.0.1:{}?service=main", sentinel.port);
    let (a, b) = (connect(&url), connect(&url));
    works(&a, &b).await;
    let at_b = Subscriber::join(&b.bus, &a.bus).await;
    until("it has replicated", || async {
        let found: u64 = replica.command("EXISTS mcpline:1:{two}").await;
        (found == 1).then_some(())
    })
    .await;
    primary.kill();
    let _ = save(&a, "during", "value").await;
    a.bus.publish(Bytes::from_static(b"during"));
    until_loaded(&b, "during", Some("value")).await;
    assert_eq!(at_b.until("during").await, ["during"]);
    until_loaded(&b, "two", Some("value")).await;
    let role: Vec<redis::Value> = replica.command("ROLE").await;
    assert_eq!(role[0], redis::Value::BulkString(b"master".to_vec()));
}
