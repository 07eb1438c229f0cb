//! Every transport between our client and our server.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use mcpline::client::{Address, Channel, ClientTransport};
use mcpline::transport::http::HttpOptions;
use mcpline::transport::{self, Stop};
use mcpline::{Revision, Server};
use schema_check::Conversation;
use tokio::sync::mpsc;

use super::tasks::Tasks;

/// A transport to a server, and what keeps it open.
pub(crate) struct ServedTransport {
    pub(crate) name: &'static str,
    pub(crate) address: Box<dyn Fn() -> Address>,
    stop: Stop,
    _tasks: Tasks,
}

impl Drop for ServedTransport {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Returns every transport that this revision supports.
pub(crate) async fn served_transports(server: &Server, revision: Revision) -> Vec<ServedTransport> {
    let mut transports = Vec::new();
    let memory = server.clone();
    transports.push(ServedTransport {
        name: "in memory",
        address: Box::new(move || Address::from(&memory)),
        stop: Stop::new(),
        _tasks: Tasks::default(),
    });
    let http = transport::http::http("127.0.0.1:0", HttpOptions::default());
    let http = http.await.expect("a port");
    let port = http.address().port();
    let stop = Stop::new();
    let (serving, stopped) = (server.clone(), stop.clone());
    let tasks = Tasks::default();
    tasks.spawn(async move { serving.serve_until(http, stopped).await.expect("serves") });
    if revision == Revision::V2024_11_05 {
        transports.push(ServedTransport {
            name: "HTTP+SSE",
            address: Box::new(move || Address::from(format!("http://127.0.0.1:{port}/sse"))),
            // The same server serves the next transport.
            stop: Stop::new(),
            _tasks: Tasks::default(),
        });
    }
    transports.push(ServedTransport {
        name: "Streamable HTTP",
        address: Box::new(move || Address::from(format!("http://127.0.0.1:{port}/mcp"))),
        stop,
        _tasks: tasks,
    });
    #[cfg(unix)]
    transports.push(socket(server, revision).await);
    #[cfg(windows)]
    transports.push(named_pipe(server, revision));
    let tasks = Tasks::default();
    let dialled = Arc::new(Dialled(server.clone(), revision, tasks.clone()));
    transports.push(ServedTransport {
        name: "a channel",
        address: Box::new(move || Address::Custom(dialled.clone())),
        stop: Stop::new(),
        _tasks: tasks,
    });
    transports
}

/// A named pipe.
#[cfg(windows)]
fn named_pipe(server: &Server, revision: Revision) -> ServedTransport {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!(
        r"\\.\pipe\mcpline-transports-{}-{revision}-{number}",
        std::process::id()
    );
    let pipe = transport::named_pipe(&name, transport::NamedPipeOptions::default());
    let pipe = pipe.expect("a pipe");
    let stop = Stop::new();
    let (serving, stopped) = (server.clone(), stop.clone());
    let tasks = Tasks::default();
    tasks.spawn(async move { serving.serve_until(pipe, stopped).await.expect("serves") });
    ServedTransport {
        name: "a named pipe",
        address: Box::new(move || Address::Socket(name.clone().into())),
        stop,
        _tasks: tasks,
    }
}

/// A Unix socket.
#[cfg(unix)]
async fn socket(server: &Server, revision: Revision) -> ServedTransport {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("mcpline-{}-{revision}-{number}.socket", std::process::id());
    let path = std::env::temp_dir().join(name);
    let unix = transport::unix(&path, transport::UnixOptions::default());
    let unix = unix.await.expect("a socket");
    let stop = Stop::new();
    let (serving, stopped) = (server.clone(), stop.clone());
    let tasks = Tasks::default();
    tasks.spawn(async move { serving.serve_until(unix, stopped).await.expect("serves") });
    ServedTransport {
        name: "a Unix socket",
        address: Box::new(move || Address::Socket(path.clone())),
        stop,
        _tasks: tasks,
    }
}

fn read(message: &[u8]) -> serde_json::Value {
    serde_json::from_slice(message).expect("JSON")
}

/// A custom channel of two queues. Its messages are validated against the schema of the revision.
struct Dialled(Server, Revision, Tasks);

impl ClientTransport for Dialled {
    fn dial(&self) -> Pin<Box<dyn Future<Output = std::io::Result<Channel>> + Send + '_>> {
        let memory = Arc::new(self.0.connect());
        let (to_server, mut sent) = mpsc::unbounded_channel::<bytes::Bytes>();
        let (answers, from_server) = mpsc::channel(100);
        let receiving = memory.clone();
        // The client is checked, so the sides are exchanged.
        let talk = Arc::new(Mutex::new(Conversation::of_client(self.1.as_str())));
        let checked = talk.clone();
        self.2.spawn(async move {
            while let Some(message) = receiving.receive().await {
                checked.lock().expect("it fits").client(&read(&message));
                if answers.send(Ok(message)).await.is_err() {
                    break;
                }
            }
        });
        self.2.spawn(async move {
            while let Some(message) = sent.recv().await {
                talk.lock().expect("it fits").server(&read(&message));
                memory.send(message);
            }
            memory.close();
        });
        Box::pin(async {
            Ok(Channel {
                to_server,
                from_server,
            })
        })
    }
}
