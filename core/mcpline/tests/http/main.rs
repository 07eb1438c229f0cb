//! HTTP servers: the service, the standalone server, mounts, and several processes of one service.

#[path = "../support/mod.rs"]
mod support;

mod cors;
mod https;
mod io_threads;
mod listener;
mod mount;
mod mount_paths;
mod mount_shutdown;
mod quotas;
mod routes;
mod service;
mod session_end;
mod session_removal;
mod shared_limits;
mod sharing;
mod shutdown_records;
mod socket_faults;
mod stateless;
