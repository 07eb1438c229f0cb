//! The terminal user agent, with a pipe as its terminal.

use std::io::{PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use super::*;

const URL: &str = "https://as.example/authorize?state=s";
const ANSWER: &str = "http://127.0.0.1:49371/callback?code=c&state=s";

/// A terminal, a writer for the user's input, and the text that was shown.
fn terminal() -> (Terminal, PipeWriter, Arc<Mutex<String>>) {
    let (read, written) = io::pipe().expect("a pipe");
    let read = File::from(OwnedFd::from(read));
    let shown = Arc::new(Mutex::new(String::new()));
    let screen = shown.clone();
    let terminal = Terminal::new()
        .reading(move || read.try_clone())
        .write(move |text| screen.lock().expect("unpoisoned").push_str(text));
    (terminal, written, shown)
}

async fn open(terminal: &Terminal) -> Result<Redirected, UserAgentError> {
    let authorization = terminal.prepare(None).await.expect("prepared");
    authorization.open(URL.to_owned()).await
}

#[runtimes::test]
async fn the_user_is_shown_the_url_and_pastes_the_redirect() {
    let (terminal, mut user, shown) = terminal();
    user.write_all(format!("{ANSWER}\r\n").as_bytes())
        .expect("entered");
    let redirected = open(&terminal).await.expect("redirected");
    assert_eq!(redirected.url, ANSWER);
    assert!(shown.lock().expect("unpoisoned").contains(URL));
}

#[runtimes::test]
async fn asks_again_for_invalid_input_a_limited_number_of_times() {
    let (terminal, mut user, shown) = terminal();
    user.write_all(b"nonsense\nc s\n").expect("entered");
    let redirected = open(&terminal).await.expect("redirected");
    assert_eq!(redirected.url, ANSWER);
    assert!(
        shown
            .lock()
            .expect("unpoisoned")
            .contains("Paste the redirect URL")
    );
    user.write_all(&b"nonsense\n".repeat(TRIES))
        .expect("entered");
    let failed = open(&terminal).await.expect_err("given up");
    assert_eq!(failed.code(), "entered");
}

#[runtimes::test]
async fn an_empty_line_or_the_end_of_input_gives_up() {
    let (terminal, mut user, _) = terminal();
    user.write_all(b"\n").expect("entered");
    let failed = open(&terminal).await.expect_err("given up");
    assert_eq!(failed.code(), "cancelled");
    drop(user);
    let failed = open(&terminal).await.expect_err("given up");
    assert_eq!(failed.code(), "cancelled");
}

#[runtimes::test]
async fn a_registered_redirect_uri_is_used_again() {
    let (terminal, mut user, _) = terminal();
    let wanted = "https://host.example/cb";
    let authorization = terminal.prepare(Some(wanted)).await.expect("prepared");
    assert_eq!(authorization.redirect_uri(), wanted);
    user.write_all(b"c s\n").expect("entered");
    let redirected = authorization
        .open(URL.to_owned())
        .await
        .expect("redirected");
    assert_eq!(redirected.url, "https://host.example/cb?code=c&state=s");
}

#[runtimes::test]
async fn fails_without_a_terminal() {
    let terminal = Terminal::new()
        .reading(|| Err(io::ErrorKind::NotFound.into()))
        .write(|_| unreachable!("nobody reads it"));
    let failed = open(&terminal).await.expect_err("unattended");
    assert_eq!(failed.code(), "unattended");
}

#[runtimes::test]
async fn times_out_and_reads_no_line_later() {
    let (terminal, mut user, _) = terminal();
    let impatient = terminal.clone().timeout(Duration::from_millis(1));
    let failed = open(&impatient).await.expect_err("timed out");
    assert_eq!(failed.code(), "timed_out");
    // The reading thread has ended once the pipe has no reader.
    drop((terminal, impatient));
    while user.write_all(b"x").is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[runtimes::test]
async fn shows_only_web_urls() {
    let (terminal, _user, shown) = terminal();
    let authorization = terminal.prepare(None).await.expect("prepared");
    let failed = authorization.open("file:///etc/passwd".to_owned()).await;
    assert_eq!(failed.expect_err("refused").code(), "url");
    assert!(shown.lock().expect("unpoisoned").is_empty());
}

#[test]
fn rejects_insecure_redirect_uri() {
    let terminal = Terminal::new().redirect_uri("http://localhost:7/back");
    terminal.expect("a place of this machine");
    let refused = Terminal::new().redirect_uri("http://host.example/back");
    assert_eq!(refused.expect_err("another machine").code(), "redirect_uri");
}
