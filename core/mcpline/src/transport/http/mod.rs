//! Streamable HTTP of both eras on one endpoint, and HTTP+SSE of 2024-11-05 beside it.
//!
//! Start at `service`, which routes a request by its endpoint (`endpoints`) and method. `post` determines its era;
//! `modern` and `legacy` serve it. The response to a POST is an `exchange`, which becomes a `stream` if one body is not
//! enough. `authorization` decides whether a request is allowed, `caller` identifies its caller, and `replicas` shares
//! sessions with other processes.

#[cfg(feature = "auth")]
mod authorization;
#[cfg(not(feature = "auth"))]
#[path = "no_authorization.rs"]
mod authorization;
mod caller;
mod cors;
mod disconnect_watcher;
mod endpoints;
mod first_requests;
mod head_timeout;
mod heartbeats;
mod http_sse;
mod hyper_buffers;
mod in_flight;
pub(crate) mod io_threads;
mod kept_streams;
mod legacy;
mod listener;
mod metrics;
mod modern;
mod option_checks;
mod options;
mod post;
mod post_response;
mod process_number;
#[cfg(all(test, mcpline_models))]
mod race_models;
mod recorded;
mod replicas;
mod request_body;
mod response_body;
#[cfg(feature = "routes")]
mod route;
mod security;
mod service;
mod session_end_watch;
mod sessionless;
mod sessions;
mod sessions_by_client;
mod shutdown;
mod store_retries;
mod stream;
mod stream_resumption;
mod stream_upgrade_timers;
#[cfg(feature = "tls")]
mod tls;
mod unremoved_sessions;
mod write_backpressure;
mod write_timeout;

pub use crate::server::Principal;
#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use authorization::MetadataEndpoint;
pub use endpoints::MountPrefix;
pub use listener::{Http, http};
pub(crate) use metrics::check as check_metrics;
pub use options::HttpOptions;
pub use response_body::Body;
#[cfg(feature = "routes")]
pub(crate) use route::check as check_routes;
pub use service::{HttpService, RemoteAddress};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use tls::{Https, Tls};
