//! Calls over keep-alive connections, each with one call at a time.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::LocalSet;

use crate::connection::{Connection, response_in};
use crate::messages::{FIRST_ID, Template, call_post, check, get, id_of};
use crate::options::Options;
use crate::server::Server;
use crate::statistics::{figures, nanoseconds};

/// A connection with the parts of its calls.
struct Caller {
    connection: Connection,
    template: Template,
    /// An open GET stream, if requested; it is never read.
    _stream: Option<Connection>,
}

impl Caller {
    async fn call(&mut self, id: u64) -> Result<&[u8], Box<dyn Error>> {
        let (head, body) = self.connection.exchange(self.template.with_id(id)).await?;
        let response = response_in(&head, body)?;
        if id_of(response) != Some(id) {
            let shown = String::from_utf8_lossy(&response[..response.len().min(300)]).into_owned();
            return Err(format!("not the answer to {id}: {shown}").into());
        }
        Ok(response)
    }
}

/// Measures one window.
pub async fn run(options: &Options) -> Result<Value, Box<dyn Error>> {
    let server = Server::spawn_http(options).await?;
    let address = server.address.ok_or("no address")?;
    let mut callers = Vec::new();
    for _ in 0..options.width {
        let mut connection = Connection::open(address).await?;
        let session = connection.handshake(options).await?;
        let mut stream = None;
        if let (true, Some(session)) = (options.streams, &session) {
            let mut open = Connection::open(address).await?;
            let request = get(options, &open.host, session);
            open.open_stream(&request).await?;
            stream = Some(open);
        }
        let template = call_post(options, &connection.host, session.as_deref())?;
        callers.push(Caller {
            connection,
            template,
            _stream: stream,
        });
    }
    check(options, callers[0].call(FIRST_ID).await?)?;

    let next = Rc::new(Cell::new(FIRST_ID + 1));
    let warm_up = (options.window / 5).max(Duration::from_millis(200));
    let (callers, _, _) = window(callers, &next, warm_up).await?;
    let before = server.cpu()?;
    let (_, latencies, wall) = window(callers, &next, options.window).await?;
    let figures = figures(latencies, wall, server.cpu()? - before);
    server.end().await?;
    Ok(figures)
}

/// Lets all callers call for a while; returns them with the latencies and the elapsed time.
async fn window(
    callers: Vec<Caller>,
    next: &Rc<Cell<u64>>,
    length: Duration,
) -> Result<(Vec<Caller>, Vec<u32>, Duration), Box<dyn Error>> {
    let begun = Instant::now();
    let local = LocalSet::new();
    let tasks: Vec<_> = callers
        .into_iter()
        .map(|mut caller| {
            let next = Rc::clone(next);
            local.spawn_local(async move {
                let mut latencies = Vec::with_capacity(1 << 14);
                let mut now = Instant::now();
                while begun.elapsed() < length {
                    let id = next.replace(next.get() + 1);
                    if let Err(error) = caller.call(id).await {
                        return Err(error.to_string());
                    }
                    let done = Instant::now();
                    latencies.push(nanoseconds(done - now));
                    now = done;
                }
                Ok((caller, latencies))
            })
        })
        .collect();
    local.await;
    let wall = begun.elapsed();
    let mut returned = Vec::new();
    let mut all = Vec::new();
    for task in tasks {
        let (caller, latencies) = task.await??;
        returned.push(caller);
        all.extend(latencies);
    }
    Ok((returned, all, wall))
}
