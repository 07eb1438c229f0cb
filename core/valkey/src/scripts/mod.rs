//! The scripts that Valkey executes.

use redis::Cmd;

use crate::connection::Connection;
use crate::failure::Failure;

/// A script. Its source explains its keys and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Append,
    End,
    Save,
    Remove,
    Publish,
}

const ALL: [Script; 5] = [
    Script::Append,
    Script::End,
    Script::Save,
    Script::Remove,
    Script::Publish,
];

impl Script {
    fn source(self) -> &'static str {
        match self {
            Self::Append => include_str!("append.lua"),
            Self::End => include_str!("end.lua"),
            Self::Save => include_str!("save.lua"),
            Self::Remove => include_str!("remove.lua"),
            Self::Publish => include_str!("publish.lua"),
        }
    }
}

/// The digests of the scripts that a server has loaded.
#[derive(Debug, Clone)]
pub(crate) struct LoadedScripts(Vec<String>);

impl LoadedScripts {
    /// Loads all scripts.
    pub(crate) async fn load(connection: &mut Connection) -> Result<Self, Failure> {
        let mut digests = Vec::with_capacity(ALL.len());
        for script in ALL {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(script.source());
            digests.push(connection.query(&load).await?);
        }
        Ok(Self(digests))
    }

    /// Begins the command that executes a script with these keys.
    pub(crate) fn call(&self, script: Script, keys: &[&str]) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        // The order of `ALL`, which is that of the variants.
        let digest = self.0.get(script as usize).map_or("", String::as_str);
        call.arg(digest).arg(keys.len());
        for key in keys {
            call.arg(*key);
        }
        call
    }
}
