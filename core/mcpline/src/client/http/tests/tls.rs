//! TLS: which certificates are trusted.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::peer::{Peer, answer, json as json_answer};
use super::*;

/// The certificate authority of the test servers.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
        .expect("a certificate")
}

/// Adds TLS to a server, with a certificate for these names.
async fn encrypted(
    plain: SocketAddr,
    authority: &CertifiedIssuer<'_, KeyPair>,
    names: &[&str],
) -> SocketAddr {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(names).expect("names");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut outer = acceptor.accept(stream).await.ok()?;
                let mut inner = TcpStream::connect(plain).await.ok()?;
                tokio::io::copy_bidirectional(&mut outer, &mut inner)
                    .await
                    .ok()
            });
        }
    });
    address
}

fn trusting(root: &str, only: bool) -> HttpSettings {
    let mut settings = settings();
    settings.tls_roots = root.as_bytes().to_vec();
    settings.only_tls_roots = only;
    settings
}

fn untrusted(error: ClientError) {
    match error {
        ClientError::ServerUnreachable { reason, .. } => {
            assert!(reason.contains("certificate"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn trusts_certificates_of_a_given_root_beside_the_systems_and_alone() {
    let peer = Peer::always(json_answer(&result(1))).await;
    let authority = authority();
    let address = encrypted(peer.address, &authority, &["localhost", "127.0.0.1"]).await;
    for host in ["localhost", "127.0.0.1"] {
        for only in [false, true] {
            let url = format!("https://{host}:{}/mcp", address.port());
            let (link, mut receiver) = link_with(&url, trusting(&authority.pem(), only));
            for _ in 0..2 {
                link.send(call(1, MODERN));
                assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
            }
        }
    }
}

#[runtimes::test]
async fn rejects_certificates_of_an_unknown_root_or_for_another_name() {
    let mut peer = Peer::always(json_answer(&result(1))).await;
    let known = authority();
    let address = encrypted(peer.address, &known, &["example.invalid"]).await;
    let url = format!("https://localhost:{}/mcp", address.port());
    let strange = authority().pem();
    for settings in [
        settings(),
        trusting(&strange, false),
        trusting(&strange, true),
        trusting(&known.pem(), true),
    ] {
        let (link, mut receiver) = link_with(&url, settings);
        link.send(call(1, MODERN));
        untrusted(receiver.failure().await);
    }
    assert_eq!(peer.rest(), []);
}

#[runtimes::test]
async fn a_redirect_to_https_on_the_same_host_is_followed_and_one_back_is_not() {
    let authority = authority();
    let inner = Peer::always(json_answer(&result(1))).await;
    let secure = encrypted(inner.address, &authority, &["127.0.0.1"]).await;
    let upgrade = format!("https://{secure}/mcp");
    let redirect = answer("308 Permanent Redirect", &[("location", &upgrade)], "");
    let plain = Peer::always(redirect).await;
    let (link, mut receiver) = link_with(&plain.url(), trusting(&authority.pem(), true));
    link.send(call(1, MODERN));
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));

    let back = answer("308 Permanent Redirect", &[("location", &plain.url())], "");
    let worse = Peer::always(back).await;
    let secure = encrypted(worse.address, &authority, &["127.0.0.1"]).await;
    let url = format!("https://{secure}/mcp");
    let (link, mut receiver) = link_with(&url, trusting(&authority.pem(), true));
    link.send(call(1, MODERN));
    match receiver.failure().await {
        ClientError::Http {
            status: 308, body, ..
        } => assert!(body.contains("https to http"), "{body}"),
        other => panic!("{other:?}"),
    }
}

#[runtimes::test]
async fn https_through_a_tunnel_is_encrypted_to_the_end() {
    let authority = authority();
    let inner = Peer::always(json_answer(&result(1))).await;
    let secure = encrypted(inner.address, &authority, &["server.invalid"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let proxy = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut outer, _) = listener.accept().await.ok()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            outer.read_buf(&mut head).await.ok()?;
        }
        assert!(head.starts_with(b"CONNECT server.invalid:443 HTTP/1.1\r\n"));
        outer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
        let mut inner = TcpStream::connect(secure).await.ok()?;
        tokio::io::copy_bidirectional(&mut outer, &mut inner)
            .await
            .ok()
    });
    let mut settings = trusting(&authority.pem(), true);
    settings.proxy = Proxy::Url(format!("http://{proxy}"));
    let (link, mut receiver) = link_with("https://server.invalid/mcp", settings);
    link.send(call(1, MODERN));
    assert_eq!(receiver.next().await, Report::Message(result(1), Some(1)));
}
