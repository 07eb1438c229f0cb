//! The line that says where a server is served, and what it has.

use std::fmt;
use std::io::IsTerminal as _;

use mcpline_protocol::{Printable, Revision};

use super::Server;
use super::feature_entries::FeatureEntry;

impl Server {
    /// Returns the message of a transport that is ready; `None` if the settings turn it off. `url` is that of the
    /// endpoint; `None` for stdio.
    pub(crate) fn startup_message(&self, url: Option<&str>) -> Option<String> {
        let is_wanted = self.settings().startup_message;
        // A host starts a server with a pipe, a person in a terminal.
        let is_wanted =
            is_wanted.unwrap_or_else(|| url.is_some() || std::io::stdin().is_terminal());
        is_wanted.then(|| self.describe(url))
    }

    fn describe(&self, url: Option<&str>) -> String {
        let info = &self.inner().info;
        let registry = self.inner().registry();
        let place = match url {
            Some(url) => format!("at {url}"),
            None => "over stdio".to_owned(),
        };
        let resources = count(&registry.resources) + count(&registry.templates);
        format!(
            "{} {} serves MCP {place} ({}; {}, {}, {})",
            Printable(&info.name),
            Printable(&info.version),
            Revisions(&self.settings().revisions),
            Count(count(&registry.tools), "tool"),
            Count(resources, "resource"),
            Count(count(&registry.prompts), "prompt"),
        )
    }
}

/// Returns the number of features that clients see.
fn count<T: FeatureEntry>(list: &super::item_list::ItemList<T>) -> usize {
    list.iter().count()
}

/// A number of features.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, feature) = self;
        match number {
            0 => write!(f, "no {feature}s"),
            1 => write!(f, "1 {feature}"),
            _ => write!(f, "{number} {feature}s"),
        }
    }
}

/// Revisions as a range, or as a list if some between them are missing.
struct Revisions<'a>(&'a [Revision]);

impl fmt::Display for Revisions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let served: Vec<_> = Revision::ALL
            .iter()
            .filter(|revision| self.0.contains(revision))
            .collect();
        let is_range = Revision::ALL
            .windows(served.len().max(1))
            .any(|range| range.iter().eq(served.iter().copied()));
        match &served[..] {
            [first, .., last] if is_range && served.len() > 2 => write!(f, "{first} to {last}"),
            _ => {
                for (index, revision) in served.iter().enumerate() {
                    let separator = if index > 0 { ", " } else { "" };
                    write!(f, "{separator}{revision}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;
    use mcpline_protocol::vocabulary::Resource;

    fn server(change: impl FnOnce(&mut Settings)) -> Server {
        let mut settings = Settings::default();
        change(&mut settings);
        let server = Server::builder("weather", "1.0.0").settings(settings);
        server.build().expect("valid")
    }

    #[test]
    fn says_what_is_served_where() {
        let server = server(|_| {})
            .tool("a", "A", async || "a")
            .tool("b", "B", async || "b")
            .tool("hidden", "Hidden", async || "c")
            .resource(Resource::new("a://b", "b"), async || "b");
        server.disable(crate::server::FeatureSelection::all().with_names(["hidden".to_owned()]));
        assert_eq!(
            server
                .startup_message(Some("http://127.0.0.1:8000/mcp"))
                .as_deref(),
            Some(
                "weather 1.0.0 serves MCP at http://127.0.0.1:8000/mcp (2024-11-05 to 2026-07-28; 2 tools, 1 resource, \
                 no prompts)"
            )
        );
    }

    #[test]
    fn the_setting_decides_for_every_transport() {
        let silent = server(|settings| settings.startup_message = Some(false));
        assert_eq!(silent.startup_message(Some("http://127.0.0.1:1/mcp")), None);
        assert_eq!(silent.startup_message(None), None);
        let said = server(|settings| settings.startup_message = Some(true));
        let message = said.startup_message(None).expect("a message");
        assert!(
            message.starts_with("weather 1.0.0 serves MCP over stdio ("),
            "{message}"
        );
    }

    #[test]
    fn names_revisions_as_a_range_or_one_by_one() {
        let all = Revision::ALL;
        assert_eq!(Revisions(&all[..1]).to_string(), "2024-11-05");
        assert_eq!(Revisions(&all[..2]).to_string(), "2024-11-05, 2025-03-26");
        assert_eq!(
            Revisions(&all[1..4]).to_string(),
            "2025-03-26 to 2025-11-25"
        );
        assert_eq!(
            Revisions(&[all[4], all[0]]).to_string(),
            "2024-11-05, 2026-07-28"
        );
    }

    #[test]
    fn removes_terminal_escapes_from_names() {
        let server = Server::new("a\u{1b}[2Jb", "1");
        let message = server.startup_message(Some("http://h/mcp")).expect("one");
        assert!(!message.contains('\u{1b}'), "{message:?}");
    }
}
