//! The scripts that Valkey executes.

use std::borrow::Cow;

use redis::Cmd;

use crate::connection::Connection;
use crate::failure::Failure;

/// Finds positions on the bus.
pub(crate) const POSITION: &str = include_str!("position.lua");

/// Reads a part of a stream.
pub(crate) const READ: &str = include_str!("read.lua");

/// Takes tokens of a bucket, or gives them back.
pub(crate) const TAKE: &str = include_str!("take.lua");

/// The operations, each of which explains its keys and arguments, as functions; and what calls them.
const SOURCE: &str = concat!(
    "local operations = {}\n",
    "operations['append'] = function(KEYS, ARGV)\n",
    include_str!("append.lua"),
    "end\noperations['end'] = function(KEYS, ARGV)\n",
    include_str!("end.lua"),
    "end\noperations['save'] = function(KEYS, ARGV)\n",
    include_str!("save.lua"),
    "end\noperations['remove'] = function(KEYS, ARGV)\n",
    include_str!("remove.lua"),
    "end\noperations['publish'] = function(KEYS, ARGV)\n",
    include_str!("publish.lua"),
    "end\n",
    include_str!("batch.lua"),
);

/// One operation of a batch.
pub(crate) struct ScriptCall<'o> {
    name: &'static str,
    keys: Vec<String>,
    arguments: Vec<Cow<'o, [u8]>>,
}

impl<'o> ScriptCall<'o> {
    pub(crate) fn new(name: &'static str, keys: impl IntoIterator<Item = String>) -> Self {
        Self {
            name,
            keys: keys.into_iter().collect(),
            arguments: Vec::new(),
        }
    }

    pub(crate) fn bytes(mut self, argument: &'o [u8]) -> Self {
        self.arguments.push(Cow::Borrowed(argument));
        self
    }

    pub(crate) fn number(mut self, argument: u64) -> Self {
        let argument = argument.to_string().into_bytes();
        self.arguments.push(Cow::Owned(argument));
        self
    }

    pub(crate) fn limit(self, limit: usize) -> Self {
        self.number(limit as u64)
    }
}

/// The digest of the script at a server that has loaded it.
#[derive(Debug, Clone)]
pub(crate) struct LoadedScript(String);

impl LoadedScript {
    /// Loads the script.
    pub(crate) async fn load(connection: &mut Connection) -> Result<Self, Failure> {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(SOURCE);
        Ok(Self(connection.query(&load).await?))
    }

    /// Returns the command that executes these operations in order, until one fails.
    pub(crate) fn command(&self, calls: &[ScriptCall<'_>]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.0);
        command.arg(calls.iter().map(|call| call.keys.len()).sum::<usize>());
        for key in calls.iter().flat_map(|call| &call.keys) {
            command.arg(key);
        }
        for call in calls {
            command.arg(call.name);
            command.arg(call.keys.len()).arg(call.arguments.len());
            for argument in &call.arguments {
                command.arg(&argument[..]);
            }
        }
        command
    }
}
