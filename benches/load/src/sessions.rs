//! Memory of idle sessions, with and without an open GET stream.

use std::error::Error;

use serde_json::{Value, json};

use crate::connection::Connection;
use crate::messages::{FIRST_ID, call_post, get};
use crate::options::Options;
use crate::server::Server;

/// Sessions that are opened first and not counted, so that pools and arenas are allocated.
const WARM_UP: usize = 200;

/// Number of clients, with addresses of their own, that share the sessions.
const CLIENTS: u8 = 10;

/// Opens `count` sessions over a few connections and compares the server's memory before and after.
pub async fn run(options: &Options) -> Result<Value, Box<dyn Error>> {
    let server = Server::spawn_http(options).await?;
    let address = server.address.ok_or("no address")?;
    let mut clients = Vec::new();
    for client in 1..=CLIENTS {
        clients.push((client, Connection::open_as(client, address).await?));
    }
    for at in 0..WARM_UP {
        let (_, connection) = &mut clients[at % usize::from(CLIENTS)];
        session(connection, options).await?;
    }
    let before = server.resident()?;
    let mut ids = Vec::with_capacity(options.count);
    for at in 0..options.count {
        let (client, connection) = &mut clients[at % usize::from(CLIENTS)];
        ids.push((*client, session(connection, options).await?));
    }
    let idle = server.resident()?;
    let per_session = |after: u64| after.saturating_sub(before) as f64 / options.count as f64;
    let mut figures = json!({"sessions": options.count, "idle_kib": per_session(idle)});
    if options.streams {
        let mut open = Vec::with_capacity(ids.len());
        for (client, id) in &ids {
            let mut stream = Connection::open_as(*client, address).await?;
            let request = get(options, &stream.host, id);
            stream.open_stream(&request).await?;
            open.push(stream);
        }
        figures["streaming_kib"] = json!(per_session(server.resident()?));
    }
    server.end().await?;
    Ok(figures)
}

/// Opens a session that makes one call and then stays idle.
async fn session(connection: &mut Connection, options: &Options) -> Result<String, Box<dyn Error>> {
    let id = connection
        .handshake(options)
        .await?
        .ok_or("the server has no sessions")?;
    let mut call = call_post(options, &connection.host, Some(&id))?;
    let (head, _) = connection.exchange(call.with_id(FIRST_ID)).await?;
    if head.status != 200 {
        return Err(format!("a call was answered with {}", head.status).into());
    }
    Ok(id)
}
