//! The standalone server with TLS: real clients, renewed certificates, and peers that break the rules.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::support::log::Log;
use mcpline::client::{Address, Client, HttpSettings};
use mcpline::server::Settings;
use mcpline::transport::Stop;
use mcpline::transport::http::{HttpOptions, Tls, http};
use mcpline::{ErrorKind, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How long to wait for something that has to happen. Only a failing test waits this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("a certificate")
}

/// Returns a certificate and its key, as PEM.
fn certificate(authority: &Authority) -> (String, String) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("names");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

/// A running server.
struct Running {
    address: SocketAddr,
    url: String,
    stop: Stop,
    serving: JoinHandle<Result<(), mcpline::Error>>,
}

impl Running {
    async fn start(tls: Tls, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let mut options = HttpOptions::default();
        change(&mut options);
        let server = Server::new("secure", "1").tool("hello", "Greets", async || "hello");
        let https = http("127.0.0.1:0", options).await.expect("a port").tls(tls);
        let (address, url, stop) = (https.address(), https.url(), Stop::new());
        let stopping = stop.clone();
        let serving = tokio::spawn(async move { server.serve_until(https, stopping).await });
        Self {
            address,
            url,
            stop,
            serving,
        }
    }

    async fn end(self) {
        self.stop.stop();
        let ended = tokio::time::timeout(TEST_TIMEOUT, self.serving).await;
        ended
            .expect("it ends")
            .expect("no panic")
            .expect("ends well");
    }
}

fn trusting(authority: &Authority) -> HttpSettings {
    let mut settings = HttpSettings::default();
    settings.tls_roots = authority.pem().into_bytes();
    settings.only_tls_roots = true;
    settings
}

async fn client_of(
    url: &str,
    authority: &Authority,
) -> Result<Client, mcpline::client::ClientError> {
    Client::connect(Address::Url(url.to_owned(), trusting(authority))).await
}

#[runtimes::test]
async fn clients_call_tools_over_https() {
    let authority = authority();
    let (certificate, key) = certificate(&authority);
    let tls = Tls::from_pem(certificate, key).expect("valid");
    let running = Running::start(tls, |_| {}).await;
    let port = running.address.port();
    assert_eq!(running.url, format!("https://127.0.0.1:{port}/mcp"));
    let client = client_of(&running.url, &authority)
        .await
        .expect("connected");
    let result = client
        .call_tool("hello", json!({}))
        .await
        .expect("a result");
    assert_eq!(result.text(), "hello");
    client.close().await;
    running.end().await;
}

#[runtimes::test]
async fn clients_that_do_not_trust_the_certificate_refuse_it() {
    let (certificate, key) = certificate(&authority());
    let tls = Tls::from_pem(certificate, key).expect("valid");
    let running = Running::start(tls, |_| {}).await;
    let refused = client_of(&running.url, &authority()).await;
    let error = refused.expect_err("another authority").to_string();
    assert!(error.contains("certificate"), "{error}");
    running.end().await;
}

#[runtimes::test]
async fn an_unencrypted_request_is_told_to_use_https() {
    let (certificate, key) = certificate(&authority());
    let tls = Tls::from_pem(certificate, key).expect("valid");
    let running = Running::start(tls, |_| {}).await;
    let mut stream = TcpStream::connect(running.address).await.expect("listens");
    let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    let mut answer = String::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_string(&mut answer)).await;
    read.expect("it answers").expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a response");
    assert!(head.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{answer}"
    );
    assert!(body.contains("https:"), "{answer}");
    running.end().await;
}

#[runtimes::test]
async fn a_client_that_does_not_complete_its_handshake_is_disconnected() {
    let (certificate, key) = certificate(&authority());
    let tls = Tls::from_pem(certificate, key).expect("valid");
    let change = |options: &mut HttpOptions| options.read_timeout = Duration::from_millis(50);
    let running = Running::start(tls, change).await;
    // Nothing; the beginning of a handshake; and what is none.
    for sent in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00", b"\x80\x00\x00"] {
        let mut stream = TcpStream::connect(running.address).await.expect("listens");
        stream.write_all(sent).await.expect("sent");
        let mut rest = Vec::new();
        let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut rest)).await;
        // The end, or a reset.
        let _ = read.expect("it is disconnected");
    }
    running.end().await;
}

#[runtimes::test]
async fn a_handshake_occupies_a_place_among_the_connections_only_until_its_timeout() {
    let authority = authority();
    let (certificate, key) = certificate(&authority);
    let tls = Tls::from_pem(certificate, key).expect("valid");
    let server = Server::builder("secure", "1").settings({
        let mut settings = Settings::default();
        settings.client_share = 1.0;
        settings
    });
    let server = server
        .build()
        .expect("valid")
        .tool("hello", "Greets", async || "hello");
    let mut options = HttpOptions::default();
    options.max_connections = 1;
    options.read_timeout = Duration::from_millis(200);
    let https = http("127.0.0.1:0", options).await.expect("a port").tls(tls);
    let (address, url, stop) = (https.address(), https.url(), Stop::new());
    let stopping = stop.clone();
    let serving = tokio::spawn(async move { server.serve_until(https, stopping).await });
    let silent = TcpStream::connect(address).await.expect("listens");
    let client = client_of(&url, &authority)
        .await
        .expect("connected, once there is a place");
    let result = client
        .call_tool("hello", json!({}))
        .await
        .expect("a result");
    assert_eq!(result.text(), "hello");
    drop(silent);
    client.close().await;
    stop.stop();
    serving.await.expect("no panic").expect("ends well");
}

#[runtimes::test]
async fn a_server_that_stops_does_not_wait_for_handshakes() {
    let (certificate, key) = certificate(&authority());
    let tls = Tls::from_pem(certificate, key).expect("valid");
    let running = Running::start(tls, |options| options.read_timeout = TEST_TIMEOUT * 10).await;
    let mut stream = TcpStream::connect(running.address).await.expect("listens");
    stream.write_all(b"\x16").await.expect("sent");
    running.end().await;
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let own = std::thread::current()
            .name()
            .unwrap_or_default()
            .replace("::", "-");
        let path =
            std::env::temp_dir().join(format!("mcpline-{name}-{own}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_used_by_new_connections_without_a_restart() {
    let log = Log::all();
    let _guard = tracing::subscriber::set_default(log.clone());
    let folder = Folder::new("renewed");
    let (first, second) = (authority(), authority());
    let (certificate_pem, key_pem) = certificate(&first);
    let certificate_path = folder.write("cert.pem", certificate_pem);
    let key_path = folder.write("key.pem", key_pem);
    let tls = Tls::from_files(&certificate_path, &key_path).expect("valid");
    let running = Running::start(tls, |_| {}).await;
    let open = client_of(&running.url, &first).await.expect("connected");
    let (renewed, renewed_key) = certificate(&second);
    // Incomplete: the old certificate stays.
    folder.write("cert.pem", renewed);
    let interval = Duration::from_secs(11);
    tokio::time::pause();
    tokio::time::advance(interval).await;
    tokio::time::resume();
    let again = client_of(&running.url, &first).await;
    drop(again.expect("the old certificate"));
    assert!(
        log.has("the certificate was not renewed"),
        "{:?}",
        log.lines()
    );
    assert!(
        log.has("is not the private key of the certificate"),
        "{:?}",
        log.lines()
    );
    folder.write("key.pem", renewed_key);
    tokio::time::pause();
    tokio::time::advance(interval).await;
    tokio::time::resume();
    let client = client_of(&running.url, &second)
        .await
        .expect("the new certificate");
    for client in [&client, &open] {
        let result = client
            .call_tool("hello", json!({}))
            .await
            .expect("a result");
        assert_eq!(result.text(), "hello");
    }
    client.close().await;
    open.close().await;
    running.end().await;
}

/// Asserts that this is a usage error with the message.
#[track_caller]
fn assert_refused(refused: Result<Tls, mcpline::Error>, message: &str) {
    let error = refused.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn unusable_certificates_and_keys_are_named() {
    let authority = authority();
    let (certificate_pem, key_pem) = certificate(&authority);
    let (_, other_key) = certificate(&authority);
    let pem = |certificate: &str, key: &str| Tls::from_pem(certificate, key);
    assert_refused(
        pem("nothing", &key_pem),
        "`certificate`: the value contains no PEM certificate (`-----BEGIN CERTIFICATE-----`)",
    );
    assert_refused(
        pem(&key_pem, &key_pem),
        "`certificate`: the value contains no PEM",
    );
    assert_refused(
        pem("-----BEGIN CERTIFICATE-----\nAAAA", &key_pem),
        "`certificate`: the value is not valid PEM",
    );
    assert_refused(
        pem(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &key_pem,
        ),
        "`certificate`: the first certificate of the value is not valid",
    );
    assert_refused(
        pem(&certificate_pem, &certificate_pem),
        "`key`: the value contains no PEM private key (`-----BEGIN PRIVATE KEY-----`)",
    );
    assert_refused(
        pem(
            &certificate_pem,
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        ),
        "`key`: the value is encrypted: decrypt it",
    );
    assert_refused(
        pem(&certificate_pem, &other_key),
        "`key`: the value is not the private key of the certificate",
    );
}

#[test]
fn files_are_named_in_errors() {
    let folder = Folder::new("named");
    let (certificate_pem, key_pem) = certificate(&authority());
    let certificate_path = folder.write("cert.pem", certificate_pem);
    let key_path = folder.write("key.pem", key_pem);
    let missing = folder.0.join("missing.pem");
    let named = |option: &str| format!("`{option}`: cannot read {}: ", missing.display());
    assert_refused(Tls::from_files(&missing, &key_path), &named("certificate"));
    assert_refused(Tls::from_files(&certificate_path, &missing), &named("key"));
    assert_refused(
        Tls::from_files(&key_path, &key_path),
        &format!("`certificate`: {} contains no PEM", key_path.display()),
    );
    let tls = Tls::from_files(&certificate_path, &key_path).expect("valid");
    let shown = format!("{tls:?}");
    assert!(
        shown.contains("cert.pem") && !shown.contains("BEGIN"),
        "{shown}"
    );
    let _ = Arc::new(tls);
}
