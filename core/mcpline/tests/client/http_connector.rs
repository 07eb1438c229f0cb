//! Clients over HTTP whose connections the program opens itself.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpline::client::{
    Address, Client, ClientError, ConnectTarget, HttpConnector, HttpSettings, Proxy,
};
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, Tls, http};
use mcpline::{Context, Server};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

fn greeter() -> Server {
    let greet = |_: Value, ctx: Context| async move {
        ctx.progress(1.0, None, None);
        "hello"
    };
    Server::new("greeter", "1").tool("hello", "Greets", greet)
}

fn with_connector(connector: HttpConnector) -> HttpSettings {
    let mut settings = HttpSettings::default();
    settings.connector = Some(connector);
    settings
}

async fn refused(url: &str, settings: HttpSettings) -> ClientError {
    let connected = Client::connect(Address::Url(url.to_owned(), settings)).await;
    connected.expect_err("no connection")
}

#[cfg(unix)]
#[runtimes::test]
async fn a_client_reaches_a_server_on_a_unix_socket() {
    let folder = std::env::temp_dir().join(format!(
        "mcpline-connector-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("s");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let router =
        axum::Router::new().fallback_service(greeter().http_service(HttpOptions::default()));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    for &revision in mcpline::Revision::ALL {
        let path = path.clone();
        let connector = HttpConnector::new(move |_| tokio::net::UnixStream::connect(path.clone()));
        let mut settings = mcpline::client::ClientSettings::default();
        settings.revisions = vec![revision];
        let address = Address::Url("http://localhost/mcp".to_owned(), with_connector(connector));
        let client = Client::builder("caller", "1")
            .settings(settings)
            .connect(address)
            .await;
        let client = client.expect("connected");
        let result = client.call_tool("hello", json!({})).await;
        assert_eq!(result.expect("a result").text(), "hello", "{revision}");
        client.close().await;
    }
    serving.abort();
    std::fs::remove_dir_all(&folder).expect("the folder");
}

#[runtimes::test]
async fn a_client_encrypts_its_connections_itself() {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["greeter.test".to_owned()]).expect("names");
    let certificate = params.self_signed(&key).expect("a certificate");
    let tls = Tls::from_pem(certificate.pem(), key.serialize_pem()).expect("valid");
    let mut options = HttpOptions::default();
    options.allowed_hosts = vec!["greeter.test".to_owned()];
    let https = http("127.0.0.1:0", options).await.expect("a port").tls(tls);
    let (bound, stop) = (https.address(), Stop::new());
    let stopping = stop.clone();
    let serving = tokio::spawn(async move { greeter().serve_until(https, stopping).await });

    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from(certificate.der().to_vec());
    roots.add(trusted).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = TlsConnector::from(Arc::new(config));
    let targets = Arc::new(Mutex::new(Vec::new()));
    let seen = targets.clone();
    let connector = HttpConnector::new(move |target: ConnectTarget| {
        seen.lock().expect("not poisoned").push(target.clone());
        let tls = tls.clone();
        async move {
            let name = ServerName::try_from(target.host).map_err(io::Error::other)?;
            tls.connect(name, TcpStream::connect(bound).await?).await
        }
    });
    let address = Address::Url(
        "https://greeter.test/mcp".to_owned(),
        with_connector(connector),
    );
    let client = Client::connect(address).await.expect("connected");
    let result = client.call_tool("hello", json!({})).await;
    assert_eq!(result.expect("a result").text(), "hello");
    client.close().await;
    stop.stop();
    serving.await.expect("no panic").expect("ends well");
    let targets = targets.lock().expect("not poisoned");
    assert!(!targets.is_empty());
    for ConnectTarget {
        host,
        port,
        is_https,
        ..
    } in targets.iter()
    {
        assert_eq!(
            (host.as_str(), *port, *is_https),
            ("greeter.test", 443, true)
        );
    }
}

#[runtimes::test]
async fn the_error_of_a_connector_is_the_source_of_unreachable() {
    let connector = HttpConnector::new(|target: ConnectTarget| async move {
        assert_eq!((target.host.as_str(), target.port), ("::1", 81));
        Err::<TcpStream, _>(io::Error::new(
            io::ErrorKind::HostUnreachable,
            "the tunnel is down",
        ))
    });
    let error = refused("http://[::1]:81/mcp", with_connector(connector)).await;
    let ClientError::ServerUnreachable { reason, source } = error else {
        panic!("{error:?}");
    };
    assert_eq!(reason, "no connection to [::1]:81");
    let source = source.expect("the error of the connector");
    assert_eq!(source.kind(), io::ErrorKind::HostUnreachable);
    assert_eq!(source.to_string(), "the tunnel is down");
}

#[runtimes::test]
async fn a_connector_has_as_long_as_any_connection() {
    let connector = HttpConnector::new(|_| std::future::pending::<io::Result<TcpStream>>());
    let mut settings = with_connector(connector);
    settings.connect_timeout = Duration::from_millis(20);
    let error = refused("http://localhost/mcp", settings).await;
    assert_eq!(
        error.to_string(),
        "server unreachable: no connection to localhost within 0.02 s (`connect_timeout`)"
    );
}

#[runtimes::test]
async fn settings_that_a_connector_ignores_are_refused() {
    type Change = fn(&mut HttpSettings);
    let changes: [(&str, Change); 3] = [
        ("proxy", |http| {
            http.proxy = Proxy::Url("http://proxy:1".to_owned())
        }),
        ("tls_roots", |http| http.tls_roots = b"-----BEGIN".to_vec()),
        ("only_tls_roots", |http| http.only_tls_roots = true),
    ];
    for (name, change) in changes {
        let connector = HttpConnector::new(|_| TcpStream::connect("127.0.0.1:1"));
        let mut settings = with_connector(connector);
        change(&mut settings);
        let error = refused("http://localhost/mcp", settings).await;
        let expected = format!("`{name}` has no effect on the connections that `connector` opens");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
