//! The loopback user agent over real sockets.

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

/// A sign-in that waits for its redirect.
struct OpenedSignIn {
    redirect_uri: String,
    authority: String,
    opened: Opened,
}

impl OpenedSignIn {
    async fn start(agent: Loopback) -> Self {
        Self::of(agent.prepare(None).await.expect("prepared"))
    }

    fn of(authorization: Box<dyn SignIn>) -> Self {
        let redirect_uri = authorization.redirect_uri().to_owned();
        let authority = redirect_uri["http://".len()..]
            .split('/')
            .next()
            .expect("an authority")
            .to_owned();
        Self {
            redirect_uri,
            authority,
            opened: tokio::spawn(authorization.open(URL.to_owned())),
        }
    }

    fn port(&self) -> u16 {
        let (_, port) = self.authority.rsplit_once(':').expect("a port");
        port.parse().expect("a number")
    }

    /// Sends `head` and reads the whole response.
    async fn send(&self, head: &str) -> String {
        exchange(("127.0.0.1", self.port()), head)
            .await
            .expect("an answer")
    }

    /// Sends the authorization response, without waiting for the page.
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

    /// Checks that the sign-in is still waiting, and completes it.
    async fn end(self) {
        let page = self.come_back();
        let redirected = self.opened.await.expect("ran").expect("redirected");
        assert_eq!(
            redirected.url,
            format!("http://{}/callback?{ANSWER}", self.authority)
        );
        redirected.outcome.accept();
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
async fn returns_authorization_response_unchanged() {
    let sign_in = OpenedSignIn::start(quiet()).await;
    assert!(sign_in.redirect_uri.starts_with("http://127.0.0.1:"));
    assert!(sign_in.redirect_uri.ends_with("/callback"));
    sign_in.end().await;
}

#[runtimes::test]
async fn page_shows_why_the_client_rejected_the_response() {
    let sign_in = OpenedSignIn::start(quiet().client_name("Ink & Co")).await;
    let page = sign_in.come_back();
    let redirected = sign_in.opened.await.expect("ran").expect("redirected");
    redirected
        .outcome
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
async fn dropping_the_reporter_shows_a_failure_page() {
    let sign_in = OpenedSignIn::start(quiet()).await;
    let page = sign_in.come_back();
    drop(sign_in.opened.await.expect("ran").expect("redirected"));
    assert!(
        page.await
            .expect("a page")
            .contains("You are not signed in")
    );
}

#[runtimes::test]
async fn returns_error_responses_too() {
    let sign_in = OpenedSignIn::start(quiet()).await;
    let target = "/callback?error=access_denied&error_description=No&state=st%2Bate";
    let head = get(target, &sign_in.authority);
    let port = sign_in.port();
    let page = tokio::spawn(async move { exchange(("127.0.0.1", port), &head).await });
    let redirected = sign_in.opened.await.expect("ran").expect("redirected");
    assert!(redirected.url.ends_with(target));
    redirected.outcome.refuse("denied");
    page.await.expect("ran").expect("a page");
}

#[runtimes::test]
async fn ignores_requests_that_are_not_the_response() {
    let sign_in = OpenedSignIn::start(quiet()).await;
    let authority = sign_in.authority.clone();
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
                &format!("localhost:{}", sign_in.port()),
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
        let answer = sign_in.send(&head).await;
        assert_eq!(status(&answer), status_expected, "{head}{answer}");
        assert!(!answer.contains("You are signed in"));
    }
    sign_in.end().await;
}

#[runtimes::test]
async fn accepts_only_the_first_response_and_its_reloads() {
    let sign_in = OpenedSignIn::start(quiet()).await;
    let page = sign_in.come_back();
    let port = sign_in.port();
    let authority = sign_in.authority.clone();
    let redirected = sign_in.opened.await.expect("ran").expect("redirected");
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
    // The second load has been accepted by now: connections are accepted in order.
    redirected.outcome.accept();
    assert!(page.await.expect("a page").contains("You are signed in"));
    let mut shown = String::new();
    again.read_to_string(&mut shown).await.expect("an answer");
    assert!(shown.contains("You are signed in"), "{shown}");
}

#[runtimes::test]
async fn silent_or_endless_clients_do_not_block_others() {
    let sign_in = OpenedSignIn::start(quiet()).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut stream = TcpStream::connect(("127.0.0.1", sign_in.port()))
            .await
            .expect("connected");
        stream.write_all(b"GET /call").await.expect("written");
        silent.push(stream);
    }
    let mut endless = TcpStream::connect(("127.0.0.1", sign_in.port()))
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
    sign_in.end().await;
}

#[runtimes::test]
async fn cancelling_closes_the_port() {
    let agent = quiet();
    let authorization = agent.prepare(None).await.expect("prepared");
    let place = LoopbackUri::read(authorization.redirect_uri()).expect("a place");
    let port = place.port.expect("a port");
    drop(authorization);
    drop(
        TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("free again"),
    );
    let authorization = agent
        .prepare(Some(&format!("http://127.0.0.1:{port}/callback")))
        .await
        .expect("prepared");
    let mut opened = authorization.open(URL.to_owned());
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
    let sign_in = OpenedSignIn::start(quiet()).await;
    let port = sign_in.port();
    sign_in.end().await;
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
    let authorization = agent.prepare(Some(&wanted)).await.expect("prepared");
    assert_eq!(authorization.redirect_uri(), wanted);
    let opened = tokio::spawn(authorization.open(URL.to_owned()));
    let target = format!("/elsewhere?kept=1&{ANSWER}");
    let head = get(&target, &format!("127.0.0.1:{port}"));
    let page = tokio::spawn(async move { exchange(("127.0.0.1", port), &head).await });
    let redirected = opened.await.expect("ran").expect("redirected");
    assert_eq!(redirected.url, format!("http://127.0.0.1:{port}{target}"));
    redirected.outcome.accept();
    page.await.expect("ran").expect("a page");
}

#[runtimes::test]
async fn where_the_registered_port_is_taken_another_is_used() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = taken.local_addr().expect("an address").port();
    let wanted = format!("http://127.0.0.1:{port}/elsewhere");
    let authorization = quiet().prepare(Some(&wanted)).await.expect("prepared");
    assert_ne!(authorization.redirect_uri(), wanted);
    assert!(authorization.redirect_uri().ends_with("/elsewhere"));
    // A redirect URI that can't be listened on is ignored: it doesn't lead to a client on this machine.
    let authorization = quiet()
        .prepare(Some("https://host.example/callback"))
        .await
        .expect("prepared");
    assert!(
        authorization
            .redirect_uri()
            .starts_with("http://127.0.0.1:")
    );
}

#[runtimes::test]
async fn fixed_port_is_used_or_fails() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
    let port = taken.local_addr().expect("an address").port();
    let uri = format!("http://127.0.0.1:{port}/callback");
    let agent = quiet().redirect_uri(&uri).expect("of this machine");
    let failed = agent.prepare(None).await.err().expect("taken");
    assert_eq!(failed.code(), "listen");
    assert!(failed.to_string().contains(&port.to_string()));
    drop(taken);
    let authorization = agent
        .prepare(Some("http://127.0.0.1:1/other"))
        .await
        .expect("prepared");
    assert_eq!(authorization.redirect_uri(), uri);
    let refused = Loopback::new().redirect_uri("https://host.example/callback");
    assert_eq!(
        refused.err().map(|error| error.code()),
        Some("redirect_uri")
    );
}

#[runtimes::test]
async fn listens_on_both_localhost_addresses_only_for_localhost() {
    if TcpListener::bind(("::1", 0)).await.is_err() {
        // A machine without IPv6 has only one of them.
        return;
    }
    let sign_in = OpenedSignIn::start(quiet()).await;
    TcpStream::connect(("::1", sign_in.port()))
        .await
        .expect_err("not listened on");
    sign_in.end().await;

    let agent = quiet()
        .redirect_uri("http://localhost/callback")
        .expect("of this machine");
    let sign_in = OpenedSignIn::start(agent).await;
    assert!(sign_in.redirect_uri.starts_with("http://localhost:"));
    let head = get("/favicon.ico", &sign_in.authority);
    let answer = exchange(("::1", sign_in.port()), &head).await;
    assert_eq!(status(&answer.expect("an answer")), "404");
    sign_in.end().await;

    // A process that listens on `::1` would receive our responses.
    let squatter = TcpListener::bind(("::1", 0)).await.expect("bound");
    let port = squatter.local_addr().expect("an address").port();
    let agent = quiet()
        .redirect_uri(&format!("http://localhost:{port}/callback"))
        .expect("of this machine");
    let failed = agent.prepare(None).await.err().expect("taken");
    assert_eq!(failed.code(), "listen");
}

#[runtimes::test]
async fn reports_the_url_if_no_browser_opens_and_still_accepts_the_response() {
    let (sender, receiver) = oneshot::channel();
    let sender = Mutex::new(Some(sender));
    let agent = Loopback::new()
        .browser(|_| async { Err("no display".to_owned()) })
        .when_unopened(move |url, reason| {
            let sender = sender
                .lock()
                .expect("unpoisoned")
                .take()
                .expect("told once");
            let _ = sender.send((url.to_owned(), reason.to_owned()));
        });
    let sign_in = OpenedSignIn::start(agent).await;
    let (url, reason) = receiver.await.expect("told");
    assert_eq!(url, URL);
    assert_eq!(reason, "no display");
    sign_in.end().await;
}

#[runtimes::test]
async fn the_browser_is_sent_to_the_url() {
    let (opened, receiver) = oneshot::channel();
    let opened = Arc::new(Mutex::new(Some(opened)));
    let agent = quiet().browser(move |url| {
        let opened = opened.lock().expect("unpoisoned").take();
        async move {
            let _ = opened.expect("opened once").send(url);
            Ok(())
        }
    });
    let sign_in = OpenedSignIn::start(agent).await;
    assert_eq!(receiver.await.expect("opened"), URL);
    sign_in.end().await;
}

#[runtimes::test]
async fn opens_only_web_urls() {
    let agent = quiet().browser(|_| async { unreachable!("it is not opened") });
    let authorization = agent.prepare(None).await.expect("prepared");
    let failed = authorization.open("file:///etc/passwd".to_owned()).await;
    assert_eq!(failed.expect_err("refused").code(), "url");
}

#[runtimes::test]
async fn times_out_without_a_redirect() {
    let agent = quiet().timeout(Duration::from_millis(1));
    let authorization = agent.prepare(None).await.expect("prepared");
    let failed = authorization
        .open(URL.to_owned())
        .await
        .expect_err("timed out");
    assert_eq!(failed.code(), "timed_out");
}
