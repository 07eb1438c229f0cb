//! Servers that are mounted in others: what clients of the parent see, and how changes reach them.

use crate::support::{Client, Nothing};
use mcpline::client::{Client as McpClient, RequestOptions};
use mcpline::protocol::vocabulary::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use mcpline::server::{
    CallKind, Completer, Extension, FeatureSelection, MethodOptions, MountOptions, ToolOptions,
};
use mcpline::{Context, Server};
use serde_json::{Value, json};

/// The server that the tests mount: one feature of each kind.
fn notes() -> Server {
    let server = Server::new("notes", "1")
        .tool("search", "Search", |_: Nothing, _: Context| async {
            "found"
        })
        .resource(Resource::new("note://all", "all"), |_: Context| async {
            "all notes"
        })
        .resource_template(
            ResourceTemplate::new("note://by/{id}", "note"),
            |variables: Value, _: Context| async move { format!("note {}", variables["id"]) },
        )
        .prompt(
            Prompt::new("review").with_arguments(vec![PromptArgument::new("id")]),
            |_: Value, _: Context| async { "Review." },
        )
        .on_request("notes/count", |_: Nothing, _: Context| async {
            Ok::<_, mcpline::HandlerError>(json!({"count": 2}))
        });
    let ids = || Completer::Candidates(vec!["1".into(), "2".into()]);
    server.add_completer("review", "id", ids()).expect("has it");
    server
        .add_completer("note://by/{id}", "id", ids())
        .expect("has it");
    server
}

fn prefixed(prefix: &str) -> MountOptions {
    MountOptions::default().with_prefix(prefix)
}

fn add(server: &Server, name: &str) {
    let _ = server
        .clone()
        .tool(name, "A tool", |_: Nothing, _: Context| async { "done" });
}

async fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, Value> {
    let id = client.begin(method, params);
    client.response(&id).await
}

/// Returns the names in a list, or for resources and templates the URIs.
async fn listed(client: &mut Client, method: &str) -> Vec<String> {
    let result = ask(client, method, json!({})).await.expect("a list");
    let list = result
        .as_object()
        .expect("an object")
        .values()
        .find_map(Value::as_array);
    let name = |item: &Value| {
        let name = item
            .get("uri")
            .or(item.get("uriTemplate"))
            .unwrap_or(&item["name"]);
        name.as_str().expect("a text").to_owned()
    };
    list.expect("a list").iter().map(name).collect()
}

#[runtimes::test]
async fn every_kind_of_feature_is_served_under_the_prefix() {
    let server = Server::new("main", "1");
    add(&server, "own");
    server.mount(&notes(), prefixed("work")).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(
        listed(&mut client, "tools/list").await,
        ["own", "work_search"]
    );
    assert_eq!(
        listed(&mut client, "resources/list").await,
        ["note://work/all"]
    );
    assert_eq!(
        listed(&mut client, "resources/templates/list").await,
        ["note://work/by/{id}"]
    );
    assert_eq!(listed(&mut client, "prompts/list").await, ["work_review"]);

    let call = ask(&mut client, "tools/call", json!({"name": "work_search"})).await;
    assert_eq!(call.expect("a result")["content"][0]["text"], "found");
    let unprefixed = ask(&mut client, "tools/call", json!({"name": "search"})).await;
    assert_eq!(unprefixed.expect_err("unknown")["code"], -32602);
    for (uri, text) in [
        ("note://work/all", "all notes"),
        ("note://work/by/7", "note \"7\""),
    ] {
        let read = ask(&mut client, "resources/read", json!({"uri": uri})).await;
        let contents = &read.expect("a resource")["contents"][0];
        assert_eq!(
            (&contents["uri"], &contents["text"]),
            (&json!(uri), &json!(text))
        );
    }
    let prompt = ask(&mut client, "prompts/get", json!({"name": "work_review"})).await;
    assert_eq!(
        prompt.expect("a prompt")["messages"][0]["content"]["text"],
        "Review."
    );
}

#[runtimes::test]
async fn custom_methods_keep_their_names() {
    let server = Server::new("main", "1");
    let inner = notes();
    server.mount(&inner, prefixed("work")).expect("mounts");
    let client = McpClient::builder("test", "1")
        .connect(&server)
        .await
        .expect("connects");
    let options = RequestOptions::default();
    let count = || client.request("notes/count", None, &options);
    let counted: Value = count().await.expect("a result").decode().expect("JSON");
    assert_eq!(counted["count"], 2);
    assert!(inner.remove_request_handler("notes/count"));
    count().await.expect_err("it was removed");
}

#[runtimes::test]
async fn completions_are_those_of_the_server_that_a_feature_comes_from() {
    let inner = notes();
    let middle = Server::new("middle", "1");
    middle.mount(&inner, prefixed("b")).expect("mounts");
    let server = Server::new("main", "1")
        .prompt(Prompt::new("plain"), |_: Value, _: Context| async { "Hi." });
    server.mount(&middle, prefixed("a")).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    for reference in [
        json!({"type": "ref/prompt", "name": "a_b_review"}),
        json!({"type": "ref/resource", "uri": "note://a/b/by/{id}"}),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
        let completed = ask(&mut client, "completion/complete", params)
            .await
            .expect("values");
        assert_eq!(
            completed["completion"]["values"],
            json!(["1", "2"]),
            "{reference}"
        );
    }
    let handler = Server::new("handler", "1")
        .prompt(
            Prompt::new("p").with_arguments(vec![PromptArgument::new("x")]),
            |_: Value, _: Context| async { "Hi." },
        )
        .completion(|asked: Value, _: Context| async move {
            vec![asked["ref"]["name"].as_str().unwrap_or_default().to_owned()]
        });
    server.mount(&handler, prefixed("h")).expect("mounts");
    let params = json!({"ref": {"type": "ref/prompt", "name": "h_p"}, "argument": {"name": "x", "value": ""}});
    let completed = ask(&mut client, "completion/complete", params)
        .await
        .expect("values");
    assert_eq!(
        completed["completion"]["values"],
        json!(["p"]),
        "the name that the handler knows"
    );
}

#[runtimes::test]
async fn changes_of_a_mounted_server_reach_the_clients_of_the_parent() {
    let inner = notes();
    let server = Server::new("main", "1");
    let middle = Server::new("middle", "1");
    server
        .mount(&middle, MountOptions::default())
        .expect("mounts");
    middle.mount(&inner, prefixed("work")).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let changed = "notifications/tools/list_changed";

    add(&inner, "later");
    assert_eq!(client.next().await["method"], changed);
    assert_eq!(
        listed(&mut client, "tools/list").await,
        ["work_search", "work_later"]
    );

    inner.disable(FeatureSelection::all().with_names(["later"]));
    assert_eq!(client.next().await["method"], changed);
    assert_eq!(listed(&mut client, "tools/list").await, ["work_search"]);
    inner.enable(FeatureSelection::all().with_names(["later"]));
    assert_eq!(client.next().await["method"], changed);

    inner
        .update_tool("search", |tool| tool.description = Some("Changed".into()))
        .expect("updates");
    assert_eq!(client.next().await["method"], changed);
    let tools = ask(&mut client, "tools/list", json!({}))
        .await
        .expect("a list");
    assert!(tools["tools"].to_string().contains("Changed"), "{tools}");

    assert!(inner.remove_tool("search"));
    assert_eq!(client.next().await["method"], changed);
    assert_eq!(listed(&mut client, "tools/list").await, ["work_later"]);
    assert!(client.try_next().is_none());
}

#[runtimes::test]
async fn subscribers_hear_of_the_resources_of_a_mounted_server() {
    let inner = notes();
    let server = Server::new("main", "1");
    server.mount(&inner, prefixed("work")).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let subscribed = ask(
        &mut client,
        "resources/subscribe",
        json!({"uri": "note://work/all"}),
    )
    .await;
    subscribed.expect("subscribed");
    inner.notify_resource_updated("note://all");
    let notification = client.next().await;
    assert_eq!(notification["method"], "notifications/resources/updated");
    assert_eq!(notification["params"]["uri"], "note://work/all");
}

#[runtimes::test]
async fn changed_copies_keep_their_place_in_lists() {
    let (inner, middle, server) = (
        Server::new("inner", "1"),
        Server::new("middle", "1"),
        Server::new("main", "1"),
    );
    for name in ["a", "b", "c"] {
        add(&inner, name);
    }
    middle.mount(&inner, prefixed("m")).expect("mounts");
    server.mount(&middle, prefixed("s")).expect("mounts");
    add(&server, "own");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    inner
        .update_tool("a", |tool| tool.title = Some("A".into()))
        .expect("changes");
    let order = ["s_m_a", "s_m_b", "s_m_c", "own"];
    assert_eq!(listed(&mut client, "tools/list").await, order);
    let by_name = |name: &str| FeatureSelection::all().with_names([name]);
    assert_eq!(inner.disable(by_name("a")), 1);
    assert_eq!(listed(&mut client, "tools/list").await, order[1..]);
    assert_eq!(server.disable(by_name("s_m_b")), 1);
    assert_eq!(inner.enable(by_name("a")), 1);
    let without_b = ["s_m_a", "s_m_c", "own"];
    assert_eq!(listed(&mut client, "tools/list").await, without_b);
    assert_eq!(server.enable(FeatureSelection::all()), 1);
    inner
        .update_tool("b", |tool| tool.name = "renamed".into())
        .expect("changes");
    assert_eq!(
        listed(&mut client, "tools/list").await,
        ["s_m_a", "s_m_renamed", "s_m_c", "own"]
    );
    let called = ask(&mut client, "tools/call", json!({"name": "s_m_renamed"})).await;
    called.expect("a result");
    let old = ask(&mut client, "tools/call", json!({"name": "s_m_b"})).await;
    old.expect_err("renamed");
}

#[runtimes::test]
async fn a_disabled_feature_of_a_mounted_server_leaves_its_name_to_others() {
    let (inner, server) = (Server::new("inner", "1"), Server::new("main", "1"));
    add(&server, "tool");
    add(&inner, "tool");
    inner.disable(FeatureSelection::all());
    let options = MountOptions::default();
    server.mount(&inner, options).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(listed(&mut client, "tools/list").await, ["tool"]);
    // Its own, not that of the mounted server.
    assert!(server.remove_tool("tool"));
    assert_eq!(listed(&mut client, "tools/list").await, [""; 0]);
    inner.enable(FeatureSelection::all());
    assert_eq!(listed(&mut client, "tools/list").await, ["tool"]);
}

#[runtimes::test]
async fn a_server_declares_what_its_mounts_may_add_and_what_it_ever_had() {
    let (inner, server) = (Server::new("inner", "1"), Server::new("main", "1"));
    server
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    let alone = Server::new("alone", "1");
    add(&alone, "tool");
    assert!(alone.remove_tool("tool"));
    for (server, methods) in [
        (
            &server,
            &["tools/list", "resources/list", "prompts/list"][..],
        ),
        (&alone, &["tools/list"]),
    ] {
        let mut client = Client::legacy(server, "2025-11-25").await;
        for method in methods {
            assert_eq!(listed(&mut client, method).await, [""; 0]);
        }
    }
    let snapshot = Server::new("snapshot", "1");
    let options = MountOptions::default().with_snapshot(true);
    snapshot.mount(&inner, options).expect("mounts");
    let mut client = Client::legacy(&snapshot, "2025-11-25").await;
    let refused = ask(&mut client, "tools/list", json!({})).await;
    assert_eq!(refused.expect_err("none")["code"], -32601);
}

#[runtimes::test]
async fn a_snapshot_does_not_change() {
    let inner = notes();
    let server = Server::new("main", "1");
    server
        .mount(&inner, prefixed("work").with_snapshot(true))
        .expect("mounts");
    add(&inner, "later");
    inner.remove_tool("search");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(listed(&mut client, "tools/list").await, ["work_search"]);
    let params = json!({"ref": {"type": "ref/prompt", "name": "work_review"}, "argument": {"name": "id", "value": "2"}});
    let completed = ask(&mut client, "completion/complete", params)
        .await
        .expect("values");
    assert_eq!(completed["completion"]["values"], json!(["2"]));
}

#[runtimes::test]
async fn unmounting_removes_every_copy_and_nothing_else() {
    let inner = notes();
    let server = Server::new("main", "1");
    add(&server, "own");
    server.mount(&inner, prefixed("a")).expect("mounts");
    server.mount(&inner, prefixed("b")).expect("mounts");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(
        listed(&mut client, "tools/list").await,
        ["own", "a_search", "b_search"]
    );
    assert!(!server.remove_tool("a_search"), "removed at its own server");
    assert!(server.unmount(&inner));
    assert!(!server.unmount(&inner));
    assert_eq!(listed(&mut client, "tools/list").await, ["own"]);
    let gone = ask(&mut client, "prompts/get", json!({"name": "a_review"})).await;
    gone.expect_err("removed");
    add(&inner, "later");
    assert_eq!(listed(&mut client, "tools/list").await, ["own"]);
}

#[runtimes::test]
async fn a_mount_with_a_name_that_is_taken_adds_nothing() {
    let server = Server::new("main", "1");
    add(&server, "search");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let error = server
        .mount(&notes(), MountOptions::default())
        .expect_err("taken")
        .to_string();
    assert!(error.contains("there is a tool search already"), "{error}");
    assert_eq!(listed(&mut client, "tools/list").await, ["search"]);
    let absent = ask(&mut client, "prompts/get", json!({"name": "review"})).await;
    absent.expect_err("not mounted");
    let unknown = ask(&mut client, "notes/count", json!({}))
        .await
        .expect_err("unknown");
    assert_eq!(unknown["code"], -32601);
}

#[runtimes::test]
async fn a_feature_whose_name_is_taken_later_is_left_out() {
    let inner = notes();
    let server = Server::new("main", "1");
    server.mount(&inner, prefixed("work")).expect("mounts");
    add(&server, "work_x");
    add(&inner, "x");
    add(&inner, "y");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(
        listed(&mut client, "tools/list").await,
        ["work_search", "work_x", "work_y"]
    );
}

#[test]
fn servers_cannot_contain_each_other() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Server::new(name, "1"));
    a.mount(&a, prefixed("x")).expect_err("itself");
    a.mount(&b, prefixed("b")).expect("mounts");
    b.mount(&c, prefixed("c")).expect("mounts");
    let error = c.mount(&a, prefixed("a")).expect_err("a cycle").to_string();
    assert!(error.contains("which it contains"), "{error}");
    assert!(b.unmount(&c));
    c.mount(&a, prefixed("a")).expect("mounts");
}

#[test]
fn prefixes_and_extensions_are_checked() {
    let server = Server::new("main", "1");
    for prefix in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
        let error = server
            .mount(&notes(), prefixed(prefix))
            .expect_err(prefix)
            .to_string();
        assert!(error.contains("is not 1 to 64 of"), "{error}");
    }
    let extended = Server::builder("extended", "1")
        .extension(Extension::new("com.example/a"))
        .build()
        .expect("builds");
    let options = MethodOptions::default().with_extension("com.example/a");
    let run = |_: Value, _: Context| async { Ok::<_, mcpline::HandlerError>(json!({})) };
    extended.add_request_fn("a/b", options, run).expect("adds");
    let error = server
        .mount(&extended, MountOptions::default())
        .expect_err("undeclared")
        .to_string();
    assert!(error.contains("com.example/a"), "{error}");
}

#[test]
fn a_dropped_parent_leaves_its_mounted_servers_alone() {
    let inner = notes();
    drop({
        let server = Server::new("main", "1");
        server.mount(&inner, prefixed("x")).expect("mounts");
        server
    });
    add(&inner, "later");
    assert!(inner.remove_tool("later"));
}

#[runtimes::test]
async fn rules_of_the_parent_hold_for_mounted_features() {
    let inner = Server::new("inner", "1");
    let tool = |name: &str| Tool::new(name, json!({"type": "object"}));
    let run = |_: Value, _: Context| async { "done" };
    let options = || ToolOptions::default().with_tags(["admin"]);
    inner.add_tool_fn(tool("a"), options(), run).expect("adds");
    let server = Server::new("main", "1");
    server.mount(&inner, prefixed("x")).expect("mounts");
    let tools = FeatureSelection::all().with_kinds([CallKind::Tool]);
    assert_eq!(server.disable(tools.with_tags(["admin"])), 1);
    inner.add_tool_fn(tool("b"), options(), run).expect("adds");
    inner
        .add_tool_fn(tool("c"), ToolOptions::default(), run)
        .expect("adds");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert_eq!(listed(&mut client, "tools/list").await, ["x_c"]);
}

#[runtimes::test]
async fn a_name_that_becomes_free_is_taken() {
    let server = Server::new("main", "1");
    let inner = Server::new("inner", "1");
    server
        .mount(&inner, MountOptions::default())
        .expect("mounts");
    for server in [&server, &inner] {
        for name in ["a", "b"] {
            add(server, name);
        }
    }
    let mut client = Client::legacy(&server, "2025-11-25").await;
    assert!(server.remove_tool("a"));
    server
        .update_tool("b", |tool| tool.name = "c".into())
        .expect("updates");
    assert_eq!(listed(&mut client, "tools/list").await, ["c", "a", "b"]);
}

#[runtimes::test]
async fn completions_follow_a_new_name_and_check_the_reference_that_they_use() {
    let inner = notes();
    let server = Server::new("main", "1");
    server.mount(&inner, prefixed("x")).expect("mounts");
    inner
        .update_prompt("review", |prompt| prompt.name = "check".into())
        .expect("updates");
    let mut client = Client::legacy(&server, "2025-11-25").await;
    let argument = json!({"name": "id", "value": ""});
    let renamed = json!({"ref": {"type": "ref/prompt", "name": "x_check"}, "argument": argument});
    let completed = ask(&mut client, "completion/complete", renamed)
        .await
        .expect("values");
    assert_eq!(completed["completion"]["values"], json!(["1", "2"]));

    let secret = Server::new("secret", "1")
        .prompt(
            Prompt::new("secret").with_arguments(vec![PromptArgument::new("id")]),
            |_: Value, _: Context| async { "Hi." },
        )
        .resource_template(
            ResourceTemplate::new("public://{id}", "public"),
            |_: Value, _: Context| async { "x" },
        );
    let values = Completer::Candidates(vec!["hidden".into()]);
    secret
        .add_completer("secret", "id", values)
        .expect("has it");
    secret.disable(FeatureSelection::all().with_names(["secret"]));
    let mut client = Client::legacy(&secret, "2025-11-25").await;
    let reference = json!({"type": "ref/resource", "uri": "public://{id}", "name": "secret"});
    let params = json!({"ref": reference, "argument": argument});
    let completed = ask(&mut client, "completion/complete", params)
        .await
        .expect("no values");
    assert_eq!(completed["completion"]["values"], json!([]));
}

#[test]
fn uris_get_the_prefix_of_their_template() {
    let server = Server::new("main", "1");
    let inner = Server::new("inner", "1")
        .resource(Resource::new("note:///a", "a"), |_: Context| async { "a" })
        .resource(Resource::new("note://a", "a"), |_: Context| async { "a" });
    server.mount(&inner, prefixed("w")).expect("mounts");
}

/// Mounts, unmounts and changes at the same time leave what a mount at the end would give.
#[test]
fn concurrent_changes_leave_no_copies_behind() {
    for _ in 0..200 {
        let server = Server::new("main", "1");
        let inner = Server::new("inner", "1");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for name in ["a", "b", "c"] {
                    add(&inner, name);
                }
                assert!(inner.remove_tool("b"));
            });
            scope.spawn(|| {
                for _ in 0..5 {
                    server
                        .mount(&inner, MountOptions::default())
                        .expect("mounts");
                    assert!(server.unmount(&inner));
                }
                server
                    .mount(&inner, MountOptions::default())
                    .expect("mounts");
            });
        });
        let has = |name: &str| {
            server
                .update_tool(name, |_| ())
                .expect_err("not its own")
                .to_string()
        };
        for name in ["a", "c"] {
            assert!(has(name).contains("one of a mounted server"), "{name}");
        }
        assert!(has("b").contains("there is no tool"), "{}", has("b"));
        assert!(server.unmount(&inner));
        assert!(has("a").contains("there is no tool"), "{}", has("a"));
    }
}
