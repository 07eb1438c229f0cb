//! Errors and their sources: each text of a chain appears once, and the system's error can be found.

use std::error::Error;
use std::io;

use mcpline::client::{Address, Client, ClientError, Command, HttpSettings};
use mcpline::foreign::{Failure, FailureCause, client_error_examples};
use mcpline::transport::http::{HttpOptions, http};

/// Returns the texts of an error and its sources.
fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut texts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let source = error.source()?;
    source.downcast_ref().map(io::Error::kind)
}

#[track_caller]
fn check_no_text_is_repeated(error: &(dyn Error + 'static)) {
    let texts = chain(error);
    for (index, text) in texts.iter().enumerate() {
        for source in &texts[index + 1..] {
            assert!(!text.contains(source.as_str()), "{texts:?}");
        }
    }
}

#[tokio::test]
async fn a_failure_to_listen_has_the_systems_error_as_source() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("its address");
    let error = http(address, HttpOptions::default())
        .await
        .expect_err("the address is in use");
    assert_eq!(io_kind(&error), Some(io::ErrorKind::AddrInUse));
    check_no_text_is_repeated(&error);
    assert_eq!(format!("{error:#}"), chain(&error).join(": "));
}

#[tokio::test]
async fn other_languages_get_the_text_of_the_source_in_the_message() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("its address");
    let error = http(address, HttpOptions::default())
        .await
        .expect_err("the address is in use");
    let failure = Failure::of_error(&error);
    let texts = chain(&error);
    assert_eq!(failure.message, texts.join(": "));
    assert_eq!(failure.source, Some(FailureCause::Text(texts[1].clone())));
}

#[track_caller]
fn check_unreachable(error: &ClientError, kind: io::ErrorKind) {
    assert!(
        matches!(error.cause(), ClientError::ServerUnreachable { .. }),
        "{error:?}"
    );
    assert_eq!(io_kind(error), Some(kind), "{error:?}");
    let text = error.source().map(ToString::to_string).unwrap_or_default();
    let full = format!("{error:#}");
    assert!(full.contains(&text), "{full}");
    assert_eq!(Failure::of_client(error).message, full);
}

async fn failed(address: impl Into<Address>) -> ClientError {
    Client::connect(address.into())
        .await
        .expect_err("nothing is at the address")
}

#[tokio::test]
async fn an_unreachable_url_has_the_systems_error_as_source() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        listener.local_addr().expect("its address").port()
    };
    let url = format!("http://127.0.0.1:{port}/mcp");
    let error = failed(Address::Url(url, HttpSettings::default())).await;
    check_unreachable(&error, io::ErrorKind::ConnectionRefused);
}

#[cfg(unix)]
#[tokio::test]
async fn a_missing_program_or_socket_has_the_systems_error_as_source() {
    let error = failed(Command::new("/nonexistent/program")).await;
    check_unreachable(&error, io::ErrorKind::NotFound);
    check_no_text_is_repeated(error.cause());
    let error = failed(Address::Socket("/nonexistent/socket".into())).await;
    check_unreachable(&error, io::ErrorKind::NotFound);
    check_no_text_is_repeated(error.cause());
}

#[test]
fn no_error_of_a_client_repeats_the_text_of_its_source() {
    for error in client_error_examples() {
        check_no_text_is_repeated(&error);
    }
}
