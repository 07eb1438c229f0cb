//! The replicas: real servers with their HTTP service, without sockets.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use mcpline::protocol::mrtr::KeyRing;
use mcpline::protocol::vocabulary::{
    ElicitAction, ElicitParams, FieldSchema, FormSchema, LoggingLevel, Resource, Tool,
};
use mcpline::server::ToolOptions;
use mcpline::sharing::Sharing;
use mcpline::transport::http::{HttpOptions, HttpService};
use mcpline::{Context, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::shared_state::{Connected, Link};
use crate::system;
use crate::world::World;

/// How long a session may be idle. Clients never are for so long.
pub(crate) const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a handler waits for the response to its input request.
pub(crate) const INPUT_REQUEST_TIMEOUT: Duration = Duration::from_secs(40);

/// How long a client may take to send a retry with the request state.
pub(crate) const STATE_LIFETIME: Duration = Duration::from_secs(300);

/// How long calls may take when a replica shuts down.
const GRACE: Duration = Duration::from_secs(3);

/// How far the clock of a replica may be from the right time.
const MAX_CLOCK_SKEW_MILLISECONDS: u64 = 5_000;

/// Number of resources, each of which one client at a time subscribes to.
pub(crate) const RESOURCES: u64 = 64;

/// The replicas that take requests. The load balancer chooses one of them at random for each request.
#[derive(Default)]
pub(crate) struct Replicas(Mutex<Vec<Arc<Replica>>>);

/// One replica.
pub(crate) struct Replica {
    pub(crate) number: u64,
    server: Server,
    service: HttpService,
    link: Arc<Link>,
    clock_skew: i64,
    state: Mutex<ReplicaState>,
    ended: Notify,
    started: Duration,
    world: Arc<World>,
}

#[derive(Default)]
struct ReplicaState {
    is_dead: bool,
    stopping_since: Option<Duration>,
}

impl Replicas {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Replica>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a replica.
    pub(crate) fn start(&self, world: &Arc<World>) {
        let replica = Replica::start(world);
        world.trace(format_args!("replica {} starts", replica.number));
        self.lock().push(replica);
    }

    /// Returns a replica for a request; `None` if there is none.
    pub(crate) fn choose(&self, world: &World) -> Option<Arc<Replica>> {
        let replicas = self.lock();
        let last = (replicas.len() as u64).checked_sub(1)?;
        let chosen = usize::try_from(world.between(0, last)).ok()?;
        replicas.get(chosen).cloned()
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().len() as u64
    }

    /// Kills a replica: it does nothing any more.
    pub(crate) fn kill(&self, replica: &Arc<Replica>) {
        self.remove(replica);
        replica.kill();
    }

    /// Shuts a replica down.
    pub(crate) fn shut_down(&self, replica: &Arc<Replica>) {
        self.remove(replica);
        let now = replica.world.now();
        replica.lock().stopping_since = Some(now);
        let replica = replica.clone();
        tokio::spawn(async move {
            replica.service.shut_down(GRACE).await;
            // Its last bytes are on their way.
            replica.world.pause(100, 200).await;
            replica.kill();
        });
    }

    fn remove(&self, replica: &Replica) {
        self.lock().retain(|other| other.number != replica.number);
    }

    /// Whether a replica that takes requests was disturbed from then on, or the replicas have changed.
    pub(crate) fn any_disturbed(&self, since: Duration) -> bool {
        self.lock()
            .iter()
            .any(|replica| replica.started >= since || replica.was_disturbed(since))
    }

    /// Checks that no replica holds anything.
    pub(crate) fn check_released(&self, world: &World) {
        for replica in self.lock().iter() {
            let stats = replica.server.stats();
            let used = stats
                .budgets
                .iter()
                .map(|budget| budget.used)
                .sum::<usize>();
            if stats.sessions + stats.streams + stats.requests_in_flight + used > 0 {
                world.violation(format_args!(
                    "replica {} holds something at the end: {stats:?}",
                    replica.number
                ));
            }
        }
    }
}

impl Replica {
    fn start(world: &Arc<World>) -> Arc<Self> {
        let number = world.number();
        let link = Link::new(world, number);
        let mut settings = Settings::default();
        settings.sharing = Some(Sharing {
            sessions: Arc::new(Connected(link.clone())),
            events: Arc::new(Connected(link.clone())),
            bus: Arc::new(Connected(link.clone())),
            buckets: None,
        });
        settings.state_keys = KeyRing::new([[7_u8; 32]]).ok();
        settings.state_lifetime = STATE_LIFETIME;
        settings.input_request_timeouts.idle = INPUT_REQUEST_TIMEOUT;
        settings.input_request_timeouts.total = INPUT_REQUEST_TIMEOUT;
        // All clients come from one address.
        settings.client_share = 1.0;
        settings.max_calls = usize::MAX;
        let server = serve(world, &link, settings);
        let mut options = HttpOptions::default();
        options.session_idle_timeout = SESSION_IDLE_TIMEOUT;
        options.stream_upgrade_delay = Duration::from_millis(500);
        options.max_sessions = 1_000_000;
        let skew = world.between(0, 2 * MAX_CLOCK_SKEW_MILLISECONDS);
        Arc::new(Self {
            number,
            service: server.http_service(options),
            server,
            link,
            clock_skew: skew as i64 - MAX_CLOCK_SKEW_MILLISECONDS as i64,
            state: Mutex::default(),
            ended: Notify::new(),
            started: world.now(),
            world: world.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, ReplicaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        self.world
            .trace(format_args!("replica {} ends", self.number));
        self.lock().is_dead = true;
        self.link.kill();
        self.ended.notify_waiters();
        // Only releases its memory: nothing of it has an effect any more.
        self.service.close();
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn service(&self) -> &HttpService {
        &self.service
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Whether a shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping_since.is_some()
    }

    /// Whether what it did from then on may have failed: it ended or shut down, or the shared state failed.
    pub(crate) fn was_disturbed(&self, since: Duration) -> bool {
        self.is_dead() || self.is_stopping() || self.link.was_disturbed(since, self.world.now())
    }

    /// Runs a future of the replica until the replica ends, with the replica's clock. `None` if it has ended.
    pub(crate) async fn run<F: Future>(self: &Arc<Self>, future: F) -> Option<F::Output> {
        let ended = self.ended.notified();
        let ended = std::pin::pin!(ended);
        if self.is_dead() {
            return None;
        }
        let future = WithClock {
            replica: self,
            future: Box::pin(future),
        };
        tokio::select! {
            biased;
            () = ended => None,
            output = future => Some(output),
        }
    }
}

/// A future that sees the clock of its replica.
struct WithClock<'a, F> {
    replica: &'a Replica,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for WithClock<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let now = self.replica.world.now().as_millis() as i64;
        system::set_date(now + self.replica.clock_skew);
        self.future.as_mut().poll(cx)
    }
}

/// Returns the number that a client gave its call.
fn number(arguments: &Value) -> u64 {
    arguments["call"].as_u64().unwrap_or_default()
}

/// Creates the server, with its tools.
fn serve(world: &Arc<World>, link: &Arc<Link>, settings: Settings) -> Server {
    let mut server = Server::builder("replica", "1")
        .settings(settings)
        .build()
        .expect("the settings are valid");
    for resource in 0..RESOURCES {
        server = server.resource(
            Resource::new(uri(resource), resource.to_string()),
            || async { "content" },
        );
    }
    let add = |name: &str, run: Box<dyn Fn(Value, Context) -> Reply + Send + Sync>| {
        let tool = Tool::new(name, json!({"type": "object"}));
        let added = server.add_tool_fn(tool, ToolOptions::default(), run);
        added.expect("the names are different");
    };
    // What a process does after its end has no effect.
    let counted = {
        let (world, link) = (world.clone(), link.clone());
        move |arguments: &Value| {
            if !link.is_dead() {
                world.note_execution(number(arguments));
            }
        }
    };
    let count = counted.clone();
    add(
        "echo",
        Box::new(move |arguments, _| {
            count(&arguments);
            Box::pin(async move { number(&arguments).to_string() })
        }),
    );
    let (count, world_of_steps) = (counted.clone(), world.clone());
    add(
        "progress",
        Box::new(move |arguments, ctx| {
            count(&arguments);
            let world = world_of_steps.clone();
            Box::pin(async move {
                let steps = arguments["steps"].as_u64().unwrap_or_default();
                for step in 1..=steps {
                    world.pause(100, 800).await;
                    ctx.progress(step as f64, None, None);
                }
                world.pause(0, 800).await;
                number(&arguments).to_string()
            })
        }),
    );
    let count = counted.clone();
    add(
        "ask",
        Box::new(move |arguments, ctx| {
            count(&arguments);
            Box::pin(async move {
                let mut answers = Vec::new();
                for question in 0..arguments["questions"].as_u64().unwrap_or_default() {
                    let form = FormSchema::new().with_required("value", FieldSchema::string());
                    let message = format!("{}/{question}", number(&arguments));
                    match ctx.elicit(&ElicitParams::form(message, form)).await {
                        Ok(answer) if answer.action == ElicitAction::Accept => {
                            let content = answer
                                .content
                                .map(|content| serde_json::to_value(&content).unwrap_or_default());
                            let value = content.unwrap_or_default()["value"].clone();
                            answers.push(value.as_str().unwrap_or("nothing").to_owned());
                        }
                        Ok(_) => answers.push("declined".to_owned()),
                        Err(error) => return format!("error: {error}"),
                    }
                }
                answers.join(",")
            })
        }),
    );
    let count = counted.clone();
    add(
        "log",
        Box::new(move |arguments, ctx| {
            count(&arguments);
            Box::pin(async move {
                ctx.log(LoggingLevel::Info, None, "quiet");
                ctx.log(LoggingLevel::Error, None, "loud");
                number(&arguments).to_string()
            })
        }),
    );
    server
}

type Reply = Pin<Box<dyn Future<Output = String> + Send>>;

/// Notifies the clients of all replicas that a resource was updated.
pub(crate) fn update(replica: &Replica, resource: u64) {
    replica.server().notify_resource_updated(&uri(resource));
}

/// Returns the URI of a resource.
pub(crate) fn uri(resource: u64) -> String {
    format!("file:///{resource}")
}
