//! An HTTP/1.1 keep-alive connection that parses only what it must of responses.

use std::error::Error;
use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::messages;
use crate::options::{Era, Options};

/// The longest response head that is accepted.
const HEAD_LIMIT: usize = 16 * 1024;

/// An open connection and what was read from it.
pub struct Connection {
    stream: TcpStream,
    /// The `Host` of requests: some servers reject one without a port.
    pub host: String,
    buffer: Vec<u8>,
    body: Vec<u8>,
}

/// The head of a response.
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The session that the server opened.
    pub session: Option<String>,
    /// Whether the body is an event stream.
    pub events: bool,
    length: Option<usize>,
    chunked: bool,
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        Self::of(TcpStream::connect(address).await?, address)
    }

    /// Connects to a server on loopback as a client with an address of its own, 127.0.1.`client`: servers limit what they keep
    /// for one address.
    pub async fn open_as(client: u8, address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 1, client], 0)))?;
        Self::of(socket.connect(address).await?, address)
    }

    fn of(stream: TcpStream, address: SocketAddr) -> Result<Self, Box<dyn Error>> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            host: address.to_string(),
            buffer: Vec::with_capacity(1 << 12),
            body: Vec::new(),
        })
    }

    /// Sends a request and reads the whole response; the body stays in the connection's buffer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<(Head, &[u8]), Box<dyn Error>> {
        self.stream.write_all(request).await?;
        let head = self.read_head().await?;
        self.body.clear();
        if head.chunked {
            self.read_chunks().await?;
        } else {
            let length = head.length.unwrap_or(0);
            while self.buffer.len() < length {
                self.fill().await?;
            }
            self.body.extend(self.buffer.drain(..length));
        }
        Ok((head, &self.body))
    }

    /// Sends a GET for an event stream and reads only its head.
    pub async fn open_stream(&mut self, request: &[u8]) -> Result<(), Box<dyn Error>> {
        self.stream.write_all(request).await?;
        let head = self.read_head().await?;
        if head.status != 200 || !head.events {
            return Err(format!("the GET stream was answered with {}", head.status).into());
        }
        Ok(())
    }

    /// Opens a session, if the era has them, and returns its id.
    pub async fn handshake(&mut self, options: &Options) -> Result<Option<String>, Box<dyn Error>> {
        if options.era != Era::Legacy {
            return Ok(None);
        }
        let request = messages::post(options, &self.host, None, &messages::initialize());
        let (head, body) = self.exchange(&request).await?;
        if head.status != 200 {
            let shown = String::from_utf8_lossy(body).into_owned();
            return Err(format!("initialize was answered with {}: {shown}", head.status).into());
        }
        let session = head.session;
        let notice = messages::post(
            options,
            &self.host,
            session.as_deref(),
            &messages::initialized(),
        );
        let (head, _) = self.exchange(&notice).await?;
        if head.status != 202 {
            return Err(format!("initialized was answered with {}", head.status).into());
        }
        Ok(session)
    }

    async fn fill(&mut self) -> Result<(), Box<dyn Error>> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(())
    }

    async fn read_head(&mut self) -> Result<Head, Box<dyn Error>> {
        let end = loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err("the head of an answer is too long".into());
            }
            self.fill().await?;
        };
        let head = std::str::from_utf8(&self.buffer[..end])?;
        let status = head.get(9..12).ok_or("no status line")?.parse()?;
        let mut found = Head {
            status,
            session: None,
            events: false,
            length: None,
            chunked: false,
        };
        for line in head.lines().skip(1) {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                found.length = Some(value.parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                found.chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                found.session = Some(value.to_owned());
            } else if name.eq_ignore_ascii_case("content-type") {
                found.events = value.starts_with("text/event-stream");
            }
        }
        self.buffer.drain(..end);
        Ok(found)
    }

    async fn read_chunks(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let end = loop {
                match memmem::find(&self.buffer, b"\r\n") {
                    Some(end) => break end,
                    None => self.fill().await?,
                }
            };
            let size = std::str::from_utf8(&self.buffer[..end])?
                .split(';')
                .next()
                .unwrap_or("");
            let size = usize::from_str_radix(size.trim(), 16)?;
            let whole = end + 2 + size + 2;
            while self.buffer.len() < whole {
                self.fill().await?;
            }
            self.body
                .extend_from_slice(&self.buffer[end + 2..end + 2 + size]);
            self.buffer.drain(..whole);
            if size == 0 {
                return Ok(());
            }
        }
    }
}

/// The JSON-RPC response in a body: the body itself, or the data of its last event.
pub fn response_in<'a>(head: &Head, body: &'a [u8]) -> Result<&'a [u8], Box<dyn Error>> {
    if head.status != 200 {
        let shown = String::from_utf8_lossy(&body[..body.len().min(400)]).into_owned();
        return Err(format!("answered with {}: {shown}", head.status).into());
    }
    if !head.events {
        return Ok(body);
    }
    let at = memmem::rfind(body, b"data:").ok_or("an event stream without data")? + 5;
    let rest = &body[at..];
    let end = rest
        .iter()
        .position(|&byte| byte == b'\n' || byte == b'\r')
        .unwrap_or(rest.len());
    Ok(rest[..end].trim_ascii_start())
}
