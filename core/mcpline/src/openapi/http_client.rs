//! HTTP clients of a program's own, in place of the built-in one.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The response to a request, once its head has arrived.
pub type HttpResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, BoxError>> + Send + 'a>>;

/// Sends the requests of an imported API, in place of the built-in HTTP client: with client certificates, signatures, traces or
/// retries of the program's own, or without a network in tests.
///
/// Async functions and closures over the request implement it. Set it with
/// [`OpenApi::with_http_client`](super::OpenApi::with_http_client).
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use mcpline::openapi::{BoxError, OpenApi, ResponseBody};
///
/// # fn import(document: &[u8]) -> Result<OpenApi, mcpline::Error> {
/// let api = OpenApi::from_json(document)?
///     .with_base_url("https://api.example.com/v1")
///     .with_http_client(|request: Request<Bytes>| async move {
///         let answer = format!("{} {}", request.method(), request.uri());
///         Ok::<_, BoxError>(Response::new(ResponseBody::from(answer)))
///     });
/// # Ok(api)
/// # }
/// ```
pub trait ApiHttpClient: Send + Sync + 'static {
    /// Sends a request, and returns the response once its head has arrived.
    ///
    /// The URI is absolute. The headers are those of the operation, with credentials and those of the settings; not `Host`,
    /// `User-Agent`, `Accept-Encoding` and `Content-Length`. The extensions contain the [`Context`](crate::Context) of the
    /// call. Redirects are followed or returned, as the client likes.
    ///
    /// The library reads the body, up to its limit, and drops this future, or the body, when the call is cancelled or takes
    /// longer than its timeout. The body has to be decoded: a response with another `Content-Encoding` than `identity` is
    /// refused.
    ///
    /// # Errors
    ///
    /// The call fails with a message that does not contain the error, which is logged, and sent in debug mode only. A
    /// [`HandlerError`](crate::HandlerError) is the outcome of the call instead.
    fn send(&self, request: Request<Bytes>) -> HttpResponseFuture<'_>;

    /// Returns the names of headers that the client adds to every request. Parameters with these names are no arguments of
    /// tools. Default: none.
    fn header_names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<F, Fut> ApiHttpClient for F
where
    F: Fn(Request<Bytes>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<ResponseBody>, BoxError>> + Send + 'static,
{
    fn send(&self, request: Request<Bytes>) -> HttpResponseFuture<'_> {
        Box::pin(self(request))
    }
}

/// The body of a response: bytes that have arrived already, or a stream that is read up to a limit.
pub struct ResponseBody(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>);

/// Why the body of a response cannot be used.
#[derive(Debug)]
pub(super) enum ResponseBodyError {
    TooLong,
    Broken(BoxError),
}

impl ResponseBody {
    /// Creates a body that is read as it arrives, such as `reqwest::Body`.
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Box::pin(body.map_err(Into::into)))
    }

    /// Reads the whole body.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Bytes, ResponseBodyError> {
        let mut all = Bytes::new();
        while let Some(piece) = self.piece().await {
            let piece = piece.map_err(ResponseBodyError::Broken)?;
            if all.len() + piece.len() > limit {
                return Err(ResponseBodyError::TooLong);
            }
            all = joined(all, piece);
        }
        Ok(all)
    }

    /// Reads the beginning of the body, as far as it arrives: for errors.
    pub(super) async fn read_beginning(mut self, limit: usize) -> Bytes {
        let mut all = Bytes::new();
        while all.len() < limit
            && let Some(Ok(piece)) = self.piece().await
        {
            all = joined(all, piece);
        }
        all.truncate(limit);
        all
    }

    /// Returns the next piece; `None` at the end.
    async fn piece(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            match self.0.frame().await?.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                // Trailers.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Appends a piece. The first one, which is often the only one, is not copied.
fn joined(all: Bytes, piece: Bytes) -> Bytes {
    if all.is_empty() {
        return piece;
    }
    let mut all = all
        .try_into_mut()
        .unwrap_or_else(|all| BytesMut::from(&all[..]));
    all.extend_from_slice(&piece);
    all.freeze()
}

impl From<Bytes> for ResponseBody {
    fn from(body: Bytes) -> Self {
        Self::new(Full::new(body))
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(body: Vec<u8>) -> Self {
        Bytes::from(body).into()
    }
}

impl From<String> for ResponseBody {
    fn from(body: String) -> Self {
        Bytes::from(body).into()
    }
}

impl From<&'static str> for ResponseBody {
    fn from(body: &'static str) -> Self {
        Bytes::from(body).into()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}
