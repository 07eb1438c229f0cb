//! HTTP settings: their effects, and invalid values.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::peer::{Peer, Seen, Step, answer, json as json_answer};
use super::*;

fn misuse(settings: HttpSettings) -> String {
    match HttpClient::new(settings, Handle::current()).map(drop) {
        Err(ClientError::Usage(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn rejects_invalid_and_reserved_headers() {
    for name in [
        "",
        "a b",
        "Accept",
        "content-type",
        "Host",
        "Mcp-Session-Id",
        "mcp-name",
    ] {
        let mut settings = settings();
        settings.headers = vec![(name.into(), "secret".into())];
        let text = misuse(settings);
        assert!(text.contains(name) && !text.contains("secret"), "{text}");
    }
    let mut settings = settings();
    settings.headers = vec![("x".into(), "secret\r\nHost: a".into())];
    assert!(!misuse(settings).contains("secret"));
}

#[runtimes::test]
async fn rejects_invalid_certificates_and_proxies() {
    let mut roots = settings();
    roots.tls_roots = b"no PEM".to_vec();
    assert!(misuse(roots).contains("tls_roots"));
    let mut only = settings();
    only.only_tls_roots = true;
    assert!(misuse(only).contains("tls_roots"));
    for url in [
        "",
        "ftp://127.0.0.1",
        "http://[",
        "::",
        "http://127.0.0.1:99999",
        "http://user:pass@localhost:0",
        "socks5://[::1]:70000",
    ] {
        let mut proxied = settings();
        proxied.proxy = Proxy::Url(url.into());
        assert!(misuse(proxied).contains("proxy"), "{url}");
    }
}

#[runtimes::test]
async fn rejects_invalid_urls_without_repeating_a_password() {
    let client = http_client(settings());
    for url in [
        "",
        "/mcp",
        "localhost:8000",
        "ftp://localhost/",
        "http:///mcp",
        "http://user:secret@[/",
        "http://exa mple/",
    ] {
        let (recorder, _receiver) = ReportReceiver::new();
        match HttpLink::open(url, &client, recorder).map(drop) {
            Err(ClientError::Usage(text)) => assert!(!text.contains("secret"), "{text}"),
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[runtimes::test]
async fn credentials_in_the_url_become_basic_authorization() {
    let mut peer = Peer::always(json_answer(&result(1))).await;
    let (link, mut receiver) = link(&format!("http://us%40er:pass@{}/mcp#x", peer.address));
    link.send(call(1, MODERN));
    receiver.message().await;
    let seen = peer.seen().await;
    assert_eq!(seen.header("authorization"), Some("Basic dXNAZXI6cGFzcw=="));
    assert_eq!(seen.header("host"), Some(peer.address.to_string().as_str()));
    assert_eq!(seen.path, "/mcp");
}

#[runtimes::test]
async fn a_proxy_gets_the_whole_url_and_its_own_credentials() {
    let mut peer = Peer::always(json_answer(&result(1))).await;
    let mut settings = settings();
    settings.proxy = Proxy::Url(format!("http://user:pass@{}", peer.address));
    let (link, mut receiver) = link_with("http://server.invalid:8000/mcp", settings);
    for connection in [0, 0] {
        link.send(call(1, MODERN));
        receiver.message().await;
        let seen = peer.seen().await;
        assert_eq!(seen.path, "http://server.invalid:8000/mcp");
        assert_eq!(seen.header("host"), Some("server.invalid:8000"));
        assert_eq!(
            seen.header("proxy-authorization"),
            Some("Basic dXNlcjpwYXNz")
        );
        assert_eq!(seen.connection, connection);
    }
}

#[runtimes::test]
async fn https_goes_through_a_tunnel_and_a_refused_tunnel_is_unreachable() {
    let mut peer = Peer::always(answer("407 Proxy Authentication Required", &[], "")).await;
    let mut settings = settings();
    settings.proxy = Proxy::Url(format!("http://{}", peer.address));
    let (link, mut receiver) = link_with("https://server.invalid/mcp", settings);
    link.send(call(1, MODERN));
    let error = receiver.failure().await;
    assert!(
        matches!(error, ClientError::ServerUnreachable { .. }),
        "{error:?}"
    );
    let seen = peer.seen().await;
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("CONNECT", "server.invalid:443")
    );
}

#[runtimes::test]
async fn a_server_that_never_ends_the_tls_handshake_is_unreachable_in_time() {
    let peer = Peer::new(|_, _: &Seen| vec![Step::Close]).await;
    let mut settings = settings();
    settings.connect_timeout = Duration::from_millis(50);
    let (link, mut receiver) = link_with(&format!("https://{}/mcp", peer.address), settings);
    link.send(call(1, MODERN));
    match receiver.failure().await {
        ClientError::ServerUnreachable { reason, .. } => {
            assert!(reason.contains("0.05 s"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn a_socks_proxy_resolves_the_name_of_the_server() {
    let peer = Peer::always(json_answer(&result(1))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let proxy = listener.local_addr().expect("an address");
    let address = peer.address;
    tokio::spawn(async move {
        let (mut outer, _) = listener.accept().await.ok()?;
        let mut greeting = [0; 3];
        outer.read_exact(&mut greeting).await.ok()?;
        assert_eq!(greeting, [5, 1, 0]);
        outer.write_all(&[5, 0]).await.ok()?;
        let mut request = [0; 5 + 14 + 2];
        outer.read_exact(&mut request).await.ok()?;
        assert_eq!(&request[..5], [5, 1, 0, 3, 14]);
        assert_eq!(&request[5..], b"server.invalid\x00\x50");
        outer
            .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            .await
            .ok()?;
        let mut inner = TcpStream::connect(address).await.ok()?;
        tokio::io::copy_bidirectional(&mut outer, &mut inner)
            .await
            .ok()
    });
    let mut settings = settings();
    settings.proxy = Proxy::Url(format!("socks5h://{proxy}"));
    let (link, mut receiver) = link_with("http://server.invalid/mcp", settings);
    link.send(call(1, MODERN));
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
}

#[test]
fn settings_are_shown_without_secrets() {
    let settings = HttpSettings {
        headers: vec![("authorization".into(), "secret".into())],
        proxy: Proxy::Url("http://user:secret@proxy.invalid:1".into()),
        ..HttpSettings::default()
    };
    let shown = format!("{settings:?}");
    assert!(
        shown.contains("authorization") && shown.contains("proxy.invalid"),
        "{shown}"
    );
    assert!(!shown.contains("secret"), "{shown}");
}
