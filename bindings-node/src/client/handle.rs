//! One client: what is asked of it is done on the I/O thread, and promises are told the end.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpline::client::{Address, Client as CoreClient, ClientBuilder, ClientError, RequestOptions};
use mcpline::foreign::Backlog;
use mcpline::foreign::channel::ChannelAddress;
use mcpline::foreign::options::{
    CallOptions, ClientOptions, HostOptions, HttpClientOptions, log_level,
};
use mcpline::foreign::{Completion, Deed};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::client::CallTimeouts;
use mcpline::protocol::vocabulary::Progress;
use mcpline::protocol::wire::Raw;
use mcpline::{ErrorKind, RpcError};
use napi::bindgen_prelude::JsValue;
use napi::{Env, JsString, Result};
use napi_derive::napi;
use serde_json::json;
use tokio::task::AbortHandle;

use crate::channel::{Channels, Opener};
use crate::failure::Failure;
use crate::hub::{Event, Settled, Shared, lock};
use crate::server::{Server, read};
use crate::text;

use super::ending::{Clients, Open};
use super::failure::failure;
use super::host::{Questions, answerer, listener};
use super::{About, Outlet};

/// A flag of a request: somebody hears of progress.
const HEARS: u32 = 1;
/// A flag of a request: it may be cancelled.
const MAY_END: u32 = 2;

/// A client. Made unconnected; `open` connects it.
#[napi]
pub struct Client {
    outlet: Outlet,
    open: Arc<Open>,
    connection: Arc<Connection>,
    questions: Arc<Questions>,
    timeouts: CallTimeouts,
    /// Whether all notifications are told, not only log messages.
    all: Arc<AtomicBool>,
    /// Whether the core tells any.
    is_heard: bool,
    /// What is to be handed over at the end of this turn.
    outgoing: Vec<Completion>,
}

/// What the client and its tasks share. With the last of them the connection ends.
pub(super) struct Connection {
    phase: Mutex<Phase>,
    /// What is being done that can be given up, by the numbers of promises.
    running: Mutex<HashMap<u32, AbortHandle>>,
}

/// How far a connection is.
enum Phase {
    /// How it is to be opened.
    Planned(Box<(ClientBuilder, Address)>),
    Opening,
    Open(CoreClient),
    Closed,
}

impl Connection {
    /// Ends the connection; resolves when nothing of it is left.
    pub(super) async fn close(&self) {
        // Let go of at once: JavaScript may hold its handle for long.
        let phase = std::mem::replace(&mut *lock(&self.phase), Phase::Closed);
        match phase {
            Phase::Planned(plan) => drop(plan),
            Phase::Opening => {
                let tasks = std::mem::take(&mut *lock(&self.running));
                for task in tasks.values() {
                    task.abort();
                }
            }
            Phase::Open(core) => core.close().await,
            Phase::Closed => {}
        }
    }

    /// How it is to be opened. What is open already, or closed, stays so.
    fn begin_opening(&self) -> Result<(ClientBuilder, Address)> {
        let mut phase = lock(&self.phase);
        match std::mem::replace(&mut *phase, Phase::Opening) {
            Phase::Planned(plan) => Ok(*plan),
            other => {
                *phase = other;
                Err(Failure::new(ErrorKind::Internal, "a client is opened once").into())
            }
        }
    }

    /// It was opened. Not kept if it is closed already.
    fn opened(&self, core: CoreClient) {
        let mut phase = lock(&self.phase);
        if let Phase::Opening = *phase {
            *phase = Phase::Open(core);
        }
    }

    fn core(&self) -> Result<CoreClient> {
        match &*lock(&self.phase) {
            Phase::Open(core) => Ok(core.clone()),
            Phase::Closed => Err(failure(&ClientError::Closed, "").into()),
            Phase::Planned(_) | Phase::Opening => {
                Err(Failure::usage("the client is not connected").into())
            }
        }
    }
}

/// The promise that is told the end of something. Told by being dropped, too: what was given up has failed.
struct Reply {
    hub: Arc<Shared>,
    promise: Option<u32>,
}

impl Reply {
    fn give(mut self, settled: Settled) {
        self.tell(settled);
    }

    fn tell(&mut self, settled: Settled) {
        if let Some(promise) = self.promise.take() {
            self.hub.post(Event::Settled(promise, settled));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.promise.is_some() {
            self.tell(Settled::Failed(failure(&ClientError::Closed, "")));
        }
    }
}

/// What JavaScript wants done.
fn deed_of(verb: &str, argument: String) -> Result<Deed> {
    Ok(match verb {
        "ping" => Deed::Ping,
        "setLogLevel" => {
            let level = log_level(&argument).map_err(|error| Failure::core(&error))?;
            Deed::SetLogLevel(level)
        }
        "subscribe" => Deed::Subscribe(argument),
        "unsubscribe" => Deed::Unsubscribe(argument),
        "rootsChanged" => Deed::RootsChanged,
        other => {
            let text = format!("a client can't {other}");
            return Err(Failure::new(ErrorKind::Internal, text).into());
        }
    })
}

/// What a new client is told: how, and where to.
struct Plan {
    clients: Arc<Open>,
    number: u32,
    offer: HostOptions,
    settings: ClientOptions,
}

impl Plan {
    fn new(clients: &Clients, number: u32, offer: &str, settings: &str) -> Result<Self> {
        Ok(Self {
            clients: clients.open().clone(),
            number,
            offer: read("the handlers", offer)?,
            settings: read("the settings", settings)?,
        })
    }

    #[cfg(unix)]
    fn of_program(self, program: &str) -> Result<Client> {
        let program: mcpline::foreign::options::ProgramOptions = read("the program", program)?;
        let command = program.command().map_err(|error| Failure::core(&error))?;
        let hears = self.offer.stderr;
        self.try_client(|outlet, _| {
            let outlet = outlet.clone();
            Ok(Address::Command(match hears {
                true => command.on_stderr(move |line| {
                    outlet.tell_listener(About::Stderr, 0, Raw::string(line));
                }),
                false => command,
            }))
        })
    }

    #[cfg(not(unix))]
    fn of_program(self, _: &str) -> Result<Client> {
        Err(Failure::usage("programs can't be started on this system yet").into())
    }

    fn client(self, address: Address) -> Result<Client> {
        self.try_client(|_, _| Ok(address))
    }

    fn try_client(
        self,
        address: impl FnOnce(&Outlet, &Arc<Questions>) -> Result<Address>,
    ) -> Result<Client> {
        let outlet = Outlet {
            hub: self.clients.hub().clone(),
            client: self.number,
            backlog: Backlog::default(),
        };
        let questions = Arc::<Questions>::default();
        let settings = self.settings.settings();
        let settings = settings.map_err(|error| Failure::core(&error))?;
        let timeouts = settings.timeouts;
        let all = Arc::new(AtomicBool::new(self.offer.notifications));
        let is_heard = self.offer.notifications || self.offer.logs;
        let builder = self
            .offer
            .builder(settings, |method| answerer(&outlet, &questions, method));
        let mut builder = builder.map_err(|error| Failure::core(&error))?;
        if is_heard {
            builder = builder.on_notification(listener(&outlet, &all));
        }
        let address = address(&outlet, &questions)?;
        let connection = Arc::new(Connection {
            phase: Mutex::new(Phase::Planned(Box::new((builder, address)))),
            running: Mutex::default(),
        });
        self.clients.enter(self.number, &connection);
        Ok(Client {
            outlet,
            open: self.clients,
            connection,
            questions,
            timeouts,
            all,
            is_heard,
            outgoing: Vec::new(),
        })
    }
}

#[napi]
impl Client {
    /// A client of a URL. The events of all of these are told to the listener with this number.
    #[napi(factory, catch_unwind)]
    pub fn of_url(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        url: String,
        http: String,
    ) -> Result<Self> {
        let http: HttpClientOptions = read("the settings of HTTP", &http)?;
        let plan = Plan::new(clients, number, &offer, &settings)?;
        plan.try_client(|outlet, questions| {
            let answerers = |method: &'static str| answerer(outlet, questions, method);
            let address = http.address(url, Some(&answerers));
            address.map_err(|error| Failure::core(&error).into())
        })
    }

    /// A client of a program, which it starts.
    #[napi(factory, catch_unwind)]
    pub fn of_program(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        program: String,
    ) -> Result<Self> {
        let plan = Plan::new(clients, number, &offer, &settings)?;
        plan.of_program(&program)
    }

    /// A client of a Unix socket.
    #[napi(factory, catch_unwind)]
    pub fn of_socket(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        path: String,
    ) -> Result<Self> {
        let plan = Plan::new(clients, number, &offer, &settings)?;
        plan.client(Address::Socket(path.into()))
    }

    /// A client of a server in this process.
    #[napi(factory, catch_unwind)]
    pub fn of_server(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        server: &Server,
    ) -> Result<Self> {
        let plan = Plan::new(clients, number, &offer, &settings)?;
        plan.client(Address::Server(server.core().clone()))
    }

    /// A client over channels that JavaScript opens.
    #[napi(factory, catch_unwind)]
    pub fn of_channel(
        clients: &Clients,
        number: u32,
        offer: String,
        settings: String,
        channels: &Channels,
    ) -> Result<Self> {
        let plan = Plan::new(clients, number, &offer, &settings)?;
        plan.client(ChannelAddress::new(Arc::new(Opener(channels.open()))).into())
    }

    /// Connects. The promise is told who the server is.
    #[napi(catch_unwind)]
    pub fn open(&self, promise: u32) -> Result<()> {
        let (builder, address) = self.connection.begin_opening()?;
        let connection = self.connection.clone();
        let opening = self.task(promise, true, async move {
            match builder.connect(address).await {
                Ok(core) => {
                    let opened = json!({
                        "protocolVersion": core.revision().as_str(),
                        "serverInfo": core.server_info(),
                        "serverCapabilities": core.server_capabilities(),
                        "instructions": core.instructions(),
                    });
                    connection.opened(core);
                    Settled::Json(Raw::from_trusted(opened.to_string()))
                }
                Err(error) => Settled::Failed(failure(&error, "connect")),
            }
        });
        self.outlet.hub.push(opening)
    }

    /// Asks, with the next `flush`. `params` are a JSON object, or empty; `options` are `CallOptions` as JSON. Progress is
    /// told under the promise's number.
    #[napi(catch_unwind)]
    pub fn ask(
        &mut self,
        env: Env,
        promise: u32,
        method: String,
        params: JsString<'_>,
        options: Option<String>,
        flags: u32,
    ) -> Result<()> {
        let core = self.core()?;
        let params = text::from_js(env.raw(), params.raw(), parameters)??;
        let mut options = self.options_of(options)?;
        if flags & HEARS != 0 {
            let outlet = self.outlet.clone();
            options.progress = Some(Arc::new(move |progress| {
                outlet.tell_listener(About::Progress, promise, told(&progress));
            }));
        }
        let asking = self.task(promise, flags & MAY_END != 0, async move {
            match core.request(&method, params.as_ref(), &options).await {
                Ok(result) => Settled::Json(result),
                Err(error) => Settled::Failed(failure(&error, &method)),
            }
        });
        self.outgoing.push(asking);
        Ok(())
    }

    /// Does something that has no result, with the next `flush`.
    #[napi(catch_unwind, js_name = "do")]
    pub fn deed(
        &mut self,
        promise: u32,
        verb: String,
        argument: String,
        options: Option<String>,
    ) -> Result<()> {
        let deed = deed_of(&verb, argument)?;
        let options = self.options_of(options)?;
        self.act(promise, deed, options)
    }

    /// Sends a notification, with the next `flush`. `params` are a JSON object, or empty.
    #[napi(catch_unwind)]
    pub fn notify(&mut self, promise: u32, method: String, params: String) -> Result<()> {
        let params = parameters(params.as_bytes())?;
        self.act(promise, Deed::Notify(method, params), RequestOptions::new())
    }

    /// Hands over what was asked for since the last time.
    #[napi(catch_unwind)]
    pub fn flush(&mut self) -> Result<()> {
        self.outlet.hub.push_all(&mut self.outgoing)
    }

    /// Gives up what settles this promise: the server hears of it.
    #[napi(catch_unwind)]
    pub fn cancel(&mut self, promise: u32) -> Result<()> {
        let connection = self.connection.clone();
        // In order: what is cancelled may not have been handed over yet.
        self.outgoing.push(Completion::Run(Box::new(move || {
            let task = lock(&connection.running).remove(&promise);
            if let Some(task) = task {
                task.abort();
            }
        })));
        self.flush()
    }

    /// Hears of every notification from now on.
    #[napi(catch_unwind)]
    pub fn hear(&mut self) -> Result<()> {
        self.all.store(true, Ordering::Relaxed);
        if !self.is_heard {
            self.core()?.hear(listener(&self.outlet, &self.all));
            self.is_heard = true;
        }
        Ok(())
    }

    /// Ends the connection; the promise is told when nothing of it is left.
    #[napi(catch_unwind)]
    pub fn close(&mut self, promise: u32) -> Result<()> {
        self.open.forget(self.outlet.client);
        let connection = self.connection.clone();
        let reply = self.reply(promise);
        self.outgoing.push(Completion::Run(Box::new(move || {
            // Not given up by whoever waits for it: a connection that is closed, is.
            tokio::spawn(async move {
                connection.close().await;
                reply.give(Settled::Done);
            });
        })));
        self.flush()
    }

    /// Answers a question with a result, as JSON.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: u32, result: String) {
        let result = Raw::parse(Bytes::from(result))
            .map_err(|_| RpcError::internal_error("the answer of the host is no JSON"));
        self.questions.answer(question, result);
    }

    /// Answers a question with an error; `data` is JSON.
    #[napi(catch_unwind)]
    pub fn refuse(&self, question: u32, code: i32, message: String, data: Option<String>) {
        let mut error = RpcError::new(ErrorCode(code.into()), message);
        error.data = data.and_then(|data| Raw::parse(Bytes::from(data)).ok());
        self.questions.answer(question, Err(error));
    }
}

impl Client {
    fn core(&self) -> Result<CoreClient> {
        self.connection.core()
    }

    fn reply(&self, promise: u32) -> Reply {
        Reply {
            hub: self.outlet.hub.clone(),
            promise: Some(promise),
        }
    }

    /// `CallOptions` as JSON.
    fn options_of(&self, options: Option<String>) -> Result<RequestOptions> {
        let Some(options) = options else {
            return Ok(RequestOptions::new());
        };
        let options: CallOptions = read("the options", &options)?;
        let options = options.options(self.timeouts);
        Ok(options.map_err(|error| Failure::core(&error))?)
    }

    fn act(&mut self, promise: u32, deed: Deed, options: RequestOptions) -> Result<()> {
        let core = self.core()?;
        let acting = self.task(promise, true, async move {
            let method = deed.method();
            match deed.done(&core, &options).await {
                Ok(()) => Settled::Done,
                Err(error) => Settled::Failed(failure(&error, &method)),
            }
        });
        self.outgoing.push(acting);
        Ok(())
    }

    /// What the I/O thread has to do to run this, which settles the promise.
    fn task(
        &self,
        promise: u32,
        may_end: bool,
        work: impl Future<Output = Settled> + Send + 'static,
    ) -> Completion {
        let reply = self.reply(promise);
        if !may_end {
            return Completion::Run(Box::new(move || {
                tokio::spawn(async move { reply.give(work.await) });
            }));
        }
        let connection = self.connection.clone();
        Completion::Run(Box::new(move || {
            let ended = Ended(connection.clone(), promise);
            // It can't end before it is entered: this thread runs it.
            let task = tokio::spawn(async move {
                let _ended = ended;
                reply.give(work.await);
            });
            lock(&connection.running).insert(promise, task.abort_handle());
        }))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // JavaScript has let go of it: its handlers are gone.
        self.questions.end();
        self.open.forget(self.outlet.client);
    }
}

/// Takes something off the list of what is being done, however it ended.
struct Ended(Arc<Connection>, u32);

impl Drop for Ended {
    fn drop(&mut self) {
        lock(&self.0.running).remove(&self.1);
    }
}

/// The parameters of a request, as `JSON.stringify` wrote them; empty for none.
fn parameters(json: &[u8]) -> Result<Option<Raw>> {
    if json.is_empty() {
        return Ok(None);
    }
    let json = Bytes::copy_from_slice(json);
    if !text::may_be_ill_formed(&json) {
        return Ok(Some(Raw::from_trusted(json)));
    }
    match Raw::parse(json) {
        Ok(params) => Ok(Some(params)),
        Err(error) => Err(Failure::usage(format!("the parameters: {error}")).into()),
    }
}

fn told(progress: &Progress) -> Raw {
    let told = json!([progress.progress, progress.total, progress.message]);
    Raw::from_trusted(told.to_string())
}
