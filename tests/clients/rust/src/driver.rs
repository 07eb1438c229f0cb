//! The Rust driver: a client that reads one job per line and prints one report per line. `../../README.md` has the
//! format of both.

mod channel;
mod custom;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use channel::ProgramTransport;
use custom::{Declared, Received, Served};
use everything_server::Arguments;
use mcpline::Revision;
use mcpline::client::{
    Address, Client, ClientBuilder, ClientError, Command, HttpSettings, Reissue, RequestOptions,
};
use mcpline::protocol::vocabulary::{
    CompleteParams, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams,
    ElicitResult, LoggingLevel, Role, Root, SamplingContent,
};
use mcpline::protocol::{Era, Raw};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Deserialize)]
struct Job {
    job: u64,
    address: Where,
    #[serde(default)]
    settings: Settings,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default = "once")]
    times: u32,
}

fn once() -> u32 {
    1
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Where {
    Command(Vec<String>),
    Url(String),
    Socket(PathBuf),
    /// A program over a custom transport.
    Channel(Vec<String>),
    /// The everything-server in this process, with or without its extensions.
    Memory(bool),
}

#[derive(Clone, Default, Deserialize)]
struct Settings {
    revisions: Option<Vec<String>>,
    era: Option<String>,
    probe: Option<f64>,
    answer: Option<f64>,
    attempts: Option<u32>,
    #[serde(default)]
    trust_tool_annotations: bool,
    ping_interval: Option<f64>,
    ping_timeout: Option<f64>,
    max_body_bytes: Option<usize>,
    #[serde(default)]
    answers: bool,
    #[serde(default)]
    serves: Served,
    #[serde(default)]
    extensions: BTreeMap<String, Declared>,
    #[serde(default)]
    listens: bool,
}

/// One step of a job, and the timeout of its request in seconds.
#[derive(Clone, Deserialize)]
struct Step {
    #[serde(flatten)]
    verb: Verb,
    timeout: Option<f64>,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Verb {
    ListTools,
    ListResources,
    ListResourceTemplates,
    ListPrompts,
    Ping,
    CallTool(Call),
    CancelTool(Call),
    ReadResource {
        uri: String,
    },
    GetPrompt {
        name: String,
        #[serde(default)]
        arguments: BTreeMap<String, String>,
    },
    Complete {
        params: Box<CompleteParams>,
    },
    Subscribe {
        uri: String,
    },
    Unsubscribe {
        uri: String,
    },
    SetLogLevel {
        level: LoggingLevel,
    },
    Request(Message),
    Notify(Message),
    AwaitNotifications {
        method: String,
        count: usize,
    },
}

/// A custom request or notification.
#[derive(Clone, Deserialize)]
struct Message {
    method: String,
    params: Option<Value>,
}

impl Message {
    fn params(&self) -> Option<Raw> {
        self.params.as_ref().map(custom::raw)
    }
}

#[derive(Clone, Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Value,
    reissue: Option<String>,
    /// When to cancel the call: after so many seconds, or else at the first progress report.
    after: Option<f64>,
}

#[derive(Serialize, Default)]
struct Report {
    job: u64,
    revision: Option<Revision>,
    server: Option<String>,
    error: Option<Value>,
    steps: Vec<Value>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let output = Arc::new(Mutex::new(std::io::stdout()));
    let (jobs, mut received) = tokio::sync::mpsc::unbounded_channel();
    // Reading blocks a thread, which ends with the process.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if jobs.send(line).is_err() {
                return;
            }
        }
    });
    let mut running = tokio::task::JoinSet::new();
    while let Some(line) = received.recv().await {
        let job: Job = serde_json::from_str(&line)?;
        let output = output.clone();
        running.spawn(async move {
            let mut line = serde_json::to_vec(&run(job).await)?;
            line.push(b'\n');
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.write_all(&line)?;
            output.flush()?;
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

/// Runs a job as often as it says, until something fails, and returns the report of the last run.
async fn run(job: Job) -> Report {
    let mut report = Report::default();
    for _ in 0..job.times {
        report = play(&job).await;
        let failed = |step: &Value| step.get("error").is_some();
        if report.error.is_some() || report.steps.iter().any(failed) {
            break;
        }
    }
    report.job = job.job;
    report
}

async fn play(job: &Job) -> Report {
    let mut report = Report::default();
    let received = Arc::new(Received::default());
    let mut builder = host(&job.settings);
    if job.settings.listens {
        let received = received.clone();
        builder = builder.on_notification(move |notification| received.add(notification));
    }
    let client = match builder.connect(address(job)).await {
        Ok(client) => client,
        Err(error) => {
            report.error = Some(error_report(&error));
            return report;
        }
    };
    report.revision = Some(client.revision());
    report.server = client.server_info().map(|info| info.name.clone());
    for step in &job.steps {
        report
            .steps
            .push(match take(&client, step, &received).await {
                Ok(outcome) => outcome,
                Err(error) => json!({"error": error_report(&error)}),
            });
    }
    client.close().await;
    report
}

fn address(job: &Job) -> Address {
    match &job.address {
        Where::Command(words) => {
            let (program, arguments) = words
                .split_first()
                .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
            Command::new(program).args(arguments).into()
        }
        Where::Url(url) => {
            let mut http = HttpSettings::default();
            http.max_body_bytes = job.settings.max_body_bytes.unwrap_or(http.max_body_bytes);
            http.resume_delay = Duration::from_millis(20);
            Address::Url(url.clone(), http)
        }
        Where::Socket(path) => Address::Socket(path.clone()),
        Where::Channel(command) => Address::Custom(Arc::new(ProgramTransport(command.clone()))),
        Where::Memory(has_extensions) => {
            let mut arguments = Arguments::default();
            arguments.has_extensions = *has_extensions;
            everything_server::build(&arguments)
                .expect("a server")
                .into()
        }
    }
}

fn host(wanted: &Settings) -> ClientBuilder {
    let builder = Client::builder("driver", env!("CARGO_PKG_VERSION")).configure(|settings| {
        if let Some(revisions) = &wanted.revisions {
            settings.revisions = revisions
                .iter()
                .filter_map(|revision| Revision::parse(revision))
                .collect();
        }
        settings.era = match wanted.era.as_deref() {
            Some("modern") => Some(Era::Modern),
            Some("legacy") => Some(Era::Legacy),
            _ => None,
        };
        let timeouts = &mut settings.open_timeouts;
        timeouts.probe = wanted.probe.map_or(timeouts.probe, Duration::from_secs_f64);
        timeouts.answer = wanted
            .answer
            .map_or(timeouts.answer, Duration::from_secs_f64);
        let reconnect = &mut settings.reconnect;
        reconnect.attempts = wanted.attempts.unwrap_or(reconnect.attempts);
        reconnect.first_delay = Duration::from_millis(20);
        settings.trust_tool_annotations = wanted.trust_tool_annotations;
        settings.ping_interval = wanted.ping_interval.map(Duration::from_secs_f64);
        let ping = wanted.ping_timeout.map(Duration::from_secs_f64);
        settings.ping_timeout = ping.unwrap_or(settings.ping_timeout);
    });
    let builder = custom::serve(builder, &wanted.serves);
    let builder = custom::declare(builder, &wanted.extensions);
    if !wanted.answers {
        return builder;
    }
    builder
        .roots([Root::new("file:///").expect("a root")])
        .on_elicit(|_: ElicitParams| async { Ok(ElicitResult::new(ElicitAction::Decline)) })
        .on_sample(|_: CreateMessageParams| async {
            Ok(CreateMessageResult::new(
                Role::Assistant,
                SamplingContent::text("sampled"),
                "driver",
            ))
        })
}

async fn take(client: &Client, step: &Step, received: &Received) -> Result<Value, ClientError> {
    let mut options = RequestOptions::new();
    if let Some(seconds) = step.timeout {
        options = options.timeout(Duration::from_secs_f64(seconds));
    }
    Ok(match &step.verb {
        Verb::ListTools => result(client.list_tools_with(&options).await?),
        Verb::ListResources => result(client.list_resources_with(&options).await?),
        Verb::ListResourceTemplates => result(client.list_resource_templates_with(&options).await?),
        Verb::ListPrompts => result(client.list_prompts_with(&options).await?),
        Verb::Ping => result(client.ping_with(&options).await?),
        Verb::CallTool(call) => {
            let (options, progress) = with_progress(with_reissue(options, call));
            let called = client.call_tool_with(&call.name, arguments(call), &options);
            let mut outcome = result(called.await?);
            outcome["progress"] = progress.load(Ordering::Relaxed).into();
            outcome
        }
        Verb::Request(request) => {
            let (options, progress) = with_progress(options);
            let params = request.params();
            let answered = client.request(&request.method, params.as_ref(), &options);
            let mut outcome = result(answered.await?);
            outcome["progress"] = progress.load(Ordering::Relaxed).into();
            outcome
        }
        Verb::Notify(notification) => {
            let params = notification.params();
            result(client.notify(&notification.method, params.as_ref()).await?)
        }
        Verb::AwaitNotifications { method, count } => result(received.first(method, *count).await),
        Verb::CancelTool(call) => cancel(client, call, options).await?,
        Verb::ReadResource { uri } => result(client.read_resource_with(uri, &options).await?),
        Verb::GetPrompt { name, arguments } => {
            result(client.get_prompt_with(name, arguments, &options).await?)
        }
        Verb::Complete { params } => result(client.complete_with(params, &options).await?),
        Verb::Subscribe { uri } => result(client.subscribe_with(uri, &options).await?),
        Verb::Unsubscribe { uri } => result(client.unsubscribe_with(uri, &options).await?),
        Verb::SetLogLevel { level } => result(client.set_log_level_with(*level, &options).await?),
    })
}

/// Cancels a call while it runs.
async fn cancel(
    client: &Client,
    call: &Call,
    options: RequestOptions,
) -> Result<Value, ClientError> {
    let begun = Arc::new(Notify::new());
    let reported = begun.clone();
    let options = with_reissue(options, call).on_progress(move |_| reported.notify_one());
    let late = async {
        match call.after {
            Some(seconds) => tokio::time::sleep(Duration::from_secs_f64(seconds)).await,
            None => begun.notified().await,
        }
    };
    tokio::select! {
        outcome = client.call_tool_with(&call.name, arguments(call), &options) => Ok(result(outcome?)),
        () = late => Ok(result("cancelled")),
    }
}

fn arguments(call: &Call) -> Value {
    match &call.arguments {
        Value::Null => json!({}),
        given => given.clone(),
    }
}

/// Counts the progress reports of a request.
fn with_progress(options: RequestOptions) -> (RequestOptions, Arc<AtomicU32>) {
    let progress = Arc::new(AtomicU32::new(0));
    let counted = progress.clone();
    let options = options.on_progress(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (options, progress)
}

fn with_reissue(mut options: RequestOptions, call: &Call) -> RequestOptions {
    options.reissue = match call.reissue.as_deref() {
        Some("always") => Reissue::Always,
        Some("never") => Reissue::Never,
        _ => Reissue::IfSafe,
    };
    options
}

fn result(value: impl Serialize) -> Value {
    json!({"result": value})
}

fn error_report(error: &ClientError) -> Value {
    let status = match error.cause() {
        ClientError::Http { status, .. } => Some(*status),
        _ => None,
    };
    json!({
        "kind": error.kind().as_str(),
        "text": error.to_string(),
        "status": status,
        "code": error.rpc().map(|error| error.code),
        "retry_safe": error.is_retry_safe(),
        "outcome_unknown": error.is_outcome_unknown(),
    })
}
