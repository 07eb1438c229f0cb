use std::sync::Barrier;

use mcpline_protocol::{ListMethod, Revision};

use super::test_sink::FnHandler;
use super::*;

#[test]
fn concurrent_registrations_are_both_declared() {
    for round in 0..2_000 {
        let server = Server::new("test", "1");
        let handler = Arc::new(FnHandler(drop));
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let tool = Tool::new("tool", serde_json::json!({"type": "object"}));
                server
                    .add_tool(tool, ToolOptions::default(), handler.clone())
                    .expect("a tool");
            });
            start.wait();
            server
                .add_prompt(Prompt::new("prompt"), handler.clone())
                .expect("a prompt");
        });
        let capabilities = &server.inner().profile().capabilities;
        assert!(capabilities.tools.is_some(), "round {round}");
        assert!(capabilities.prompts.is_some(), "round {round}");
    }
}

#[test]
fn every_list_is_rendered_for_every_revision() {
    let server = Server::new("test", "1");
    let registry = server.inner().registry();
    for kind in ListMethod::ALL {
        for revision in Revision::ALL {
            assert!(registry.list(*kind, *revision).items.is_empty());
        }
    }
}
