//! Asking at a terminal, which is a pipe here.

use std::io::{PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use super::*;

const URL: &str = "https://as.example/authorize?state=s";
const ANSWER: &str = "http://127.0.0.1:49371/callback?code=c&state=s";

/// A terminal whose user enters what is written, and what has been shown on it.
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
    let visit = terminal.prepare(None).await.expect("prepared");
    visit.open(URL.to_owned()).await
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
async fn what_is_no_answer_is_asked_for_again_but_not_for_ever() {
    let (terminal, mut user, shown) = terminal();
    user.write_all(b"nonsense\nc s\n").expect("entered");
    let redirected = open(&terminal).await.expect("redirected");
    assert_eq!(redirected.url, ANSWER);
    assert!(
        shown
            .lock()
            .expect("unpoisoned")
            .contains("neither an address nor")
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
    let visit = terminal.prepare(Some(wanted)).await.expect("prepared");
    assert_eq!(visit.redirect_uri(), wanted);
    user.write_all(b"c s\n").expect("entered");
    let redirected = visit.open(URL.to_owned()).await.expect("redirected");
    assert_eq!(redirected.url, "https://host.example/cb?code=c&state=s");
}

#[runtimes::test]
async fn a_process_without_a_terminal_says_so() {
    let terminal = Terminal::new()
        .reading(|| Err(io::ErrorKind::NotFound.into()))
        .write(|_| unreachable!("nobody reads it"));
    let failed = open(&terminal).await.expect_err("unattended");
    assert_eq!(failed.code(), "unattended");
}

#[runtimes::test]
async fn a_user_who_says_nothing_is_not_waited_for_for_ever_and_no_line_is_taken_later() {
    let (terminal, mut user, _) = terminal();
    let impatient = terminal.clone().timeout(Duration::from_millis(1));
    let failed = open(&impatient).await.expect_err("timed out");
    assert_eq!(failed.code(), "timed_out");
    // The thread that read has ended once it has let go of its end.
    drop((terminal, impatient));
    while user.write_all(b"x").is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[runtimes::test]
async fn nothing_but_a_web_page_is_shown() {
    let (terminal, _user, shown) = terminal();
    let visit = terminal.prepare(None).await.expect("prepared");
    let failed = visit.open("file:///etc/passwd".to_owned()).await;
    assert_eq!(failed.expect_err("refused").code(), "url");
    assert!(shown.lock().expect("unpoisoned").is_empty());
}

#[test]
fn a_redirect_uri_that_others_can_read_is_refused() {
    let terminal = Terminal::new().redirect_uri("http://localhost:7/back");
    terminal.expect("a place of this machine");
    let refused = Terminal::new().redirect_uri("http://host.example/back");
    assert_eq!(refused.expect_err("another machine").code(), "redirect_uri");
}
