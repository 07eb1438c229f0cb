//! The loopback listener over real sockets.

use std::io;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

type Opened = JoinHandle<Result<Redirected, UserAgentError>>;

const URL: &str = "https://as.example/authorize?client_id=c&state=st%2Bate";
const ANSWER: &str = "code=c&state=st%2bate&iss=https%3A%2F%2Fas.example";

/// A visit that is under way, and what is listening.
struct Under {
    redirect_uri: String,
    authority: String,
    opened: Opened,
}

impl Under {
    async fn way(agent: Loopback) -> Self {
        Self::of(agent.prepare(None).await.expect("prepared"))
    }

    fn of(visit: Box<dyn Visit>) -> Self {
        let redirect_uri = visit.redirect_uri().to_owned();
        let authority = redirect_uri["http://".len()..]
            .split('/')
            .next()
            .expect("an authority")
            .to_owned();
        Self {
            redirect_uri,
            authority,
            opened: tokio::spawn(visit.open(URL.to_owned())),
        }
    }

    fn port(&self) -> u16 {
        let (_, port) = self.authority.rsplit_once(':').expect("a port");
        port.parse().expect("a number")
    }

    /// Sends `head` and reads to the end.
    async fn send(&self, head: &str) -> String {
        exchange(("127.0.0.1", self.port()), head)
            .await
            .expect("an answer")
    }

    /// Sends the answer that is waited for, without waiting for the page.
    fn come_back(&self) -> JoinHandle<String> {
        let (port, head) = (
            self.port(),
            get(&format!("/callback?{ANSWER}"), &self.authority),
        );
        tokio::spawn(async move {
            exchange(("127.0.0.1", port), &head)
                .await
                .expect("an answer")
        })
    }

    /// Checks that the visit is still waiting, and ends it.
    async fn end(self) {
        let page = self.come_back();
        let redirected = self.opened.await.expect("ran").expect("redirected");
        assert_eq!(
            redirected.url,
            format!("http://{}/callback?{ANSWER}", self.authority)
        );
        redirected.verdict.accept();
        assert!(page.await.expect("a page").contains("You are signed in"));
    }
}

fn get(target: &str, authority: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
}

async fn exchange(address: (&str, u16), head: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn quiet() -> Loopback {
    Loopback::new().without_browser().when_unopened(|_, _| {})
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[runtimes::test]
async fn the_authorization_servers_answer_ends_the_visit_and_is_handed_over_whole() {
    let under = Under::way(quiet()).await;
    assert!(under.redirect_uri.starts_with("http://127.0.0.1:"));
    assert!(under.redirect_uri.ends_with("/callback"));
    under.end().await;
}

#[runtimes::test]
async fn the_page_tells_what_the_client_made_of_the_answer() {
    let under = Under::way(quiet().client_name("Ink & Co")).await;
    let page = under.come_back();
    let redirected = under.opened.await.expect("ran").expect("redirected");
    redirected
        .verdict
        .refuse("The answer came from somebody else.");
    let page = page.await.expect("a page");
    assert_eq!(status(&page), "200");
    assert!(page.contains("You are not signed in"), "{page}");
    assert!(page.contains("Ink &amp; Co"), "{page}");
    assert!(
        page.contains("The answer came from somebody else."),
        "{page}"
    );
    let head = page.to_ascii_lowercase();
    assert!(head.contains("cache-control: no-store"), "{page}");
    assert!(head.contains("referrer-policy: no-referrer"), "{page}");
    assert!(head.contains("connection: close"), "{page}");
}

#[runtimes::test]
async fn an_answer_that_nobody_judges_is_no_success() {
    let under = Under::way(quiet()).await;
    let page = under.come_back();
    drop(under.opened.await.expect("ran").expect("redirected"));
    assert!(
        page.await
            .expect("a page")
            .contains("You are not signed in")
    );
}

#[runtimes::test]
async fn an_error_of_the_authorization_server_is_handed_over_too() {
    let under = Under::way(quiet()).await;
    let target = "/callback?error=access_denied&error_description=No&state=st%2Bate";
    let head = get(target, &under.authority);
    let port = under.port();
    let page = tokio::spawn(async move { exchange(("127.0.0.1", port), &head).await });
    let redirected = under.opened.await.expect("ran").expect("redirected");
    assert!(redirected.url.ends_with(target));
    redirected.verdict.refuse("denied");
    page.await.expect("ran").expect("a page");
}

#[runtimes::test]
async fn what_is_not_the_answer_does_not_end_the_visit() {
    let under = Under::way(quiet()).await;
    let authority = under.authority.clone();
    for (status_expected, head) in [
        ("404", get("/favicon.ico", &authority)),
        ("404", get(&format!("/callback/?{ANSWER}"), &authority)),
        ("404", get(&format!("/?{ANSWER}"), &authority)),
        ("400", get("/callback", &authority)),
        ("400", get("/callback?state=st%2Bate", &authority)),
        ("400", get("/callback?code=c", &authority)),
        ("400", get("/callback?code=c&state=other", &authority)),
        ("400", get("/callback?error=denied", &authority)),
        (
            "421",
            get(&format!("/callback?{ANSWER}"), "attacker.example"),
        ),
        ("421", get(&format!("/callback?{ANSWER}"), "127.0.0.1")),
        (
            "421",
            get(
                &format!("/callback?{ANSWER}"),
                &format!("localhost:{}", under.port()),
            ),
        ),
        ("421", format!("GET /callback?{ANSWER} HTTP/1.0\r\n\r\n")),
        (
            "405",
            format!(
                "POST /callback?{ANSWER} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 0\r\n\r\n"
            ),
        ),
        (
            "405",
            format!("HEAD /callback?{ANSWER} HTTP/1.1\r\nHost: {authority}\r\n\r\n"),
        ),
        ("400", "nonsense\r\n\r\n".to_owned()),
    ] {
        let answer = under.send(&head).await;
        assert_eq!(status(&answer), status_expected, "{head}{answer}");
        assert!(!answer.contains("You are signed in"));
    }
    under.end().await;
}

#[runtimes::test]
async fn of_two_answers_the_first_counts_and_the_same_again_is_the_same() {
    let under = Under::way(quiet()).await;
    let page = under.come_back();
    let port = under.port();
    let authority = under.authority.clone();
    let redirected = under.opened.await.expect("ran").expect("redirected");
    let mut again = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("connected");
    let head = get(&format!("/callback?{ANSWER}"), &authority);
    again.write_all(head.as_bytes()).await.expect("written");
    let other = get("/callback?code=another&state=st%2Bate", &authority);
    let other = exchange(("127.0.0.1", port), &other)
        .await
        .expect("an answer");
    assert_eq!(status(&other), "409");
    // The second load has been accepted by now: connections are taken in order.
    redirected.verdict.accept();
    assert!(page.await.expect("a page").contains("You are signed in"));
    let mut shown = String::new();
    again.read_to_string(&mut shown).await.expect("an answer");
    assert!(shown.contains("You are signed in"), "{shown}");
}

#[runtimes::test]
async fn a_client_that_says_nothing_or_too_much_holds_nobody_up() {
    let under = Under::way(quiet()).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut stream = TcpStream::connect(("127.0.0.1", under.port()))
            .await
            .expect("connected");
        stream.write_all(b"GET /call").await.expect("written");
        silent.push(stream);
    }
    let mut endless = TcpStream::connect(("127.0.0.1", under.port()))
        .await
        .expect("connected");
    let line = format!("X-Line: {}\r\n", "x".repeat(1000));
    let refused = async {
        let mut first = b"GET /callback HTTP/1.1\r\n".to_vec();
        first.extend_from_slice(line.as_bytes());
        while endless.write_all(&first).await.is_ok() {
            first = line.clone().into_bytes();
        }
    };
    refused.await;
    under.end().await;
}

#[runtimes::test]
async fn giving_up_closes_the_port() {
    let agent = quiet();
    let visit = agent.prepare(None).await.expect("prepared");
    let place = LoopbackUri::read(visit.redirect_uri()).expect("a place");
    let port = place.port.expect("a port");
    drop(visit);
    drop(
        TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("free again"),
    );
    let visit = agent
        .prepare(Some(&format!("http://127.0.0.1:{port}/callback")))
        .await
        .expect("prepared");
    let mut opened = visit.open(URL.to_owned());
    let (sent, seen) = oneshot::channel();
    let come = async move {
        let head = get("/favicon.ico", &format!("127.0.0.1:{port}"));
        let _ = sent.send(exchange(("127.0.0.1", port), &head).await);
    };
    tokio::spawn(come);
    tokio::select! {
        _ = &mut opened => unreachable!("nobody has come back"),
        answer = seen => {
            let answer = answer.expect("sent").expect("an answer");
            assert_eq!(status(&answer), "404");
        }
    }
    drop(opened);
    TcpStream::connect(("127.0.0.1", port))
        .await
        .expect_err("closed");
}

#[runtimes::test]
async fn the_port_is_closed_once_the_page_has_been_read() {
    let under = Under::way(quiet()).await;
    let port = under.port();
    under.end().await;
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[runtimes::test]
async fn a_registered_redirect_uri_is_used_again() {
    let agent = quiet();
    let free = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let wanted = format!("http://127.0.0.1:{port}/elsewhere?kept=1");
    let visit = agent.prepare(Some(&wanted)).await.expect("prepared");
    assert_eq!(visit.redirect_uri(), wanted);
    let opened = tokio::spawn(visit.open(URL.to_owned()));
    let target = format!("/elsewhere?kept=1&{ANSWER}");
    let head = get(&target, &format!("127.0.0.1:{port}"));
    let page = tokio::spawn(async move { exchange(("127.0.0.1", port), &head).await });
    let redirected = opened.await.expect("ran").expect("redirected");
    assert_eq!(redirected.url, format!("http://127.0.0.1:{port}{target}"));
    redirected.verdict.accept();
    page.await.expect("ran").expect("a page");
}

#[runtimes::test]
async fn where_the_registered_port_is_taken_another_is_used() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = taken.local_addr().expect("an address").port();
    let wanted = format!("http://127.0.0.1:{port}/elsewhere");
    let visit = quiet().prepare(Some(&wanted)).await.expect("prepared");
    assert_ne!(visit.redirect_uri(), wanted);
    assert!(visit.redirect_uri().ends_with("/elsewhere"));
    // What can't be listened at is not: a client of this machine has nothing there.
    let visit = quiet()
        .prepare(Some("https://host.example/callback"))
        .await
        .expect("prepared");
    assert!(visit.redirect_uri().starts_with("http://127.0.0.1:"));
}

#[runtimes::test]
async fn a_port_that_the_host_insists_on_is_used_or_nothing() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = taken.local_addr().expect("an address").port();
    let uri = format!("http://127.0.0.1:{port}/callback");
    let agent = quiet().redirect_uri(&uri).expect("of this machine");
    let failed = agent.prepare(None).await.err().expect("taken");
    assert_eq!(failed.code(), "listen");
    assert!(failed.to_string().contains(&port.to_string()));
    drop(taken);
    let visit = agent
        .prepare(Some("http://127.0.0.1:1/other"))
        .await
        .expect("prepared");
    assert_eq!(visit.redirect_uri(), uri);
    let refused = Loopback::new().redirect_uri("https://host.example/callback");
    assert_eq!(
        refused.err().map(|error| error.code()),
        Some("redirect_uri")
    );
}

#[runtimes::test]
async fn localhost_is_listened_on_at_both_of_its_addresses_and_only_where_asked_for() {
    if TcpListener::bind(("::1", 0)).await.is_err() {
        // A machine without IPv6 has but one.
        return;
    }
    let under = Under::way(quiet()).await;
    TcpStream::connect(("::1", under.port()))
        .await
        .expect_err("not listened on");
    under.end().await;

    let agent = quiet()
        .redirect_uri("http://localhost/callback")
        .expect("of this machine");
    let under = Under::way(agent).await;
    assert!(under.redirect_uri.starts_with("http://localhost:"));
    let head = get("/favicon.ico", &under.authority);
    let answer = exchange(("::1", under.port()), &head).await;
    assert_eq!(status(&answer.expect("an answer")), "404");
    under.end().await;

    // Whoever listens on `::1` would be given what is ours.
    let squatter = TcpListener::bind(("::1", 0)).await.expect("bound");
    let port = squatter.local_addr().expect("an address").port();
    let agent = quiet()
        .redirect_uri(&format!("http://localhost:{port}/callback"))
        .expect("of this machine");
    let failed = agent.prepare(None).await.err().expect("taken");
    assert_eq!(failed.code(), "listen");
}

#[runtimes::test]
async fn the_user_is_told_the_url_where_no_browser_can_be_opened_and_may_still_come_back() {
    let (told, heard) = oneshot::channel();
    let told = Mutex::new(Some(told));
    let agent = Loopback::new()
        .browser(|_| async { Err("no display".to_owned()) })
        .when_unopened(move |url, reason| {
            let told = told.lock().expect("unpoisoned").take().expect("told once");
            let _ = told.send((url.to_owned(), reason.to_owned()));
        });
    let under = Under::way(agent).await;
    let (url, reason) = heard.await.expect("told");
    assert_eq!(url, URL);
    assert_eq!(reason, "no display");
    under.end().await;
}

#[runtimes::test]
async fn the_browser_is_sent_to_the_url() {
    let (opened, heard) = oneshot::channel();
    let opened = Arc::new(Mutex::new(Some(opened)));
    let agent = quiet().browser(move |url| {
        let opened = opened.lock().expect("unpoisoned").take();
        async move {
            let _ = opened.expect("opened once").send(url);
            Ok(())
        }
    });
    let under = Under::way(agent).await;
    assert_eq!(heard.await.expect("opened"), URL);
    under.end().await;
}

#[runtimes::test]
async fn nothing_but_a_web_page_is_opened() {
    let agent = quiet().browser(|_| async { unreachable!("it is not opened") });
    let visit = agent.prepare(None).await.expect("prepared");
    let failed = visit.open("file:///etc/passwd".to_owned()).await;
    assert_eq!(failed.expect_err("refused").code(), "url");
}

#[runtimes::test]
async fn a_user_who_stays_away_is_not_waited_for_for_ever() {
    let agent = quiet().timeout(Duration::from_millis(1));
    let visit = agent.prepare(None).await.expect("prepared");
    let failed = visit.open(URL.to_owned()).await.expect_err("timed out");
    assert_eq!(failed.code(), "timed_out");
}
