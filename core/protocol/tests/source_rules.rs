//! Rules for the sources of all core crates.
//!
//! - Public enums, and structs of the vocabulary, are `#[non_exhaustive]`: a new revision adds variants and members
//!   without breaking programs. Types that are closed on purpose are listed with the reason.
//! - Each member of `RevisionFeatures` is read by shipped code.

use std::fs;
use std::path::{Path, PathBuf};

const OUTPUT: &str = "the output of a state machine: its driver must act on every variant";
const JSON_RPC: &str = "JSON-RPC 2.0 defines all of them";

/// Enums that are closed: file below `core`, name, reason.
const CLOSED: &[(&str, &str, &str)] = &[
    ("auth/src/discovery.rs", "DiscoveryStep", OUTPUT),
    (
        "auth/src/fetch.rs",
        "FetchMethod",
        "whoever fetches must be able to send each",
    ),
    (
        "mcpline/src/foreign/client/outcome.rs",
        "Outcome",
        "a binding must convert every one",
    ),
    (
        "mcpline/src/foreign/io_thread_queue.rs",
        "IoAction",
        "bindings construct it; only the kernel reads it",
    ),
    (
        "mcpline/src/foreign/worker_processes/mod.rs",
        "ServingRole",
        "a binding must serve each",
    ),
    (
        "mcpline/src/foreign/workers/mod.rs",
        "Refused",
        "a binding must return every job that was not taken",
    ),
    (
        "mcpline/src/foreign/workers/worker.rs",
        "WorkerStep",
        OUTPUT,
    ),
    (
        "mcpline/src/sharing/buckets.rs",
        "TakeOutcome",
        "a bucket has tokens, or it is empty",
    ),
    (
        "mcpline/src/sharing/request.rs",
        "SharingReply",
        "bindings construct it; only the kernel reads it",
    ),
    (
        "mcpline/src/sharing/request.rs",
        "SharingRequest",
        "a binding must convert every one",
    ),
    (
        "mcpline/src/sharing/store.rs",
        "SaveOutcome",
        "a change is saved, or it is not",
    ),
    (
        "mcpline/src/sharing/store.rs",
        "UseOutcome",
        "a use is the first one or not",
    ),
    (
        "mcpline/src/traffic/mod.rs",
        "Direction",
        "a message has no third direction",
    ),
    (
        "protocol/src/checks/input_requests.rs",
        "UrlSafety",
        "a yes or no with names",
    ),
    (
        "protocol/src/client/negotiation.rs",
        "NegotiationStep",
        OUTPUT,
    ),
    (
        "protocol/src/client/outgoing_requests.rs",
        "OutgoingRequestEvent",
        OUTPUT,
    ),
    ("protocol/src/client/session.rs", "ClientEvent", OUTPUT),
    (
        "protocol/src/input_method.rs",
        "InputMethod",
        "whoever sends or answers input requests must handle every one",
    ),
    (
        "protocol/src/json/scan.rs",
        "JsonKind",
        "RFC 8259 defines all of them",
    ),
    (
        "protocol/src/members.rs",
        "MemberName",
        "for code that `derive(Members)` generates",
    ),
    (
        "protocol/src/list_methods.rs",
        "ListChange",
        "whoever announces or subscribes to changes must handle every one",
    ),
    (
        "protocol/src/list_methods.rs",
        "ListMethod",
        "whoever serves or reads lists must handle every one",
    ),
    ("protocol/src/mrtr/suspended.rs", "Resumption", OUTPUT),
    (
        "protocol/src/session/server.rs",
        "SessionScope",
        "the driver chooses one; only the session reads it",
    ),
    ("protocol/src/session/server.rs", "ReceiveOutcome", OUTPUT),
    ("protocol/src/session/server.rs", "TimeoutEvent", OUTPUT),
    (
        "protocol/src/uri_template.rs",
        "Variable",
        "RFC 6570 defines all of them",
    ),
    (
        "protocol/src/vocabulary/logging.rs",
        "LoggingLevel",
        "RFC 5424 defines all of them",
    ),
    (
        "protocol/src/vocabulary/sampling.rs",
        "SamplingContents",
        "one block or several",
    ),
    (
        "protocol/src/wire/header.rs",
        "HeaderOccurrence",
        "no value, one value or several",
    ),
    ("protocol/src/wire/message.rs", "Incoming", JSON_RPC),
    ("protocol/src/wire/message.rs", "Message", JSON_RPC),
    (
        "protocol/src/wire/message.rs",
        "ApparentMessageKind",
        "decides whether an unreadable message is answered: its reader must act on every variant",
    ),
];

/// Collects all Rust files below a folder, if it is there.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    if !folder.is_dir() {
        return;
    }
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the public enums of a file, and the structs if it belongs to the vocabulary, each with whether it has the
/// attribute.
fn public_types(text: &str, with_structs: bool) -> Vec<(String, bool)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let declaration = match line.strip_prefix("pub struct ") {
            Some(rest) if with_structs => rest,
            _ => match line.strip_prefix("pub enum ") {
                Some(rest) => rest,
                None => continue,
            },
        };
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let name = declaration.split(|c| !is_of_name(c)).next();
        // Attributes may span several lines; the code above them ends with an empty line, a brace or a semicolon.
        let attributes = lines[..number].iter().rev().take_while(|line| {
            let is_other = line.is_empty() || line.ends_with(['{', '}', ';']);
            line.starts_with("///") || !is_other
        });
        let is_open = attributes
            .into_iter()
            .any(|&line| line == "#[non_exhaustive]");
        found.push((name.expect("a name").to_owned(), is_open));
    }
    found
}

#[test]
fn public_enums_and_vocabulary_structs_are_non_exhaustive() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the folder of all crates");
    let mut closed = Vec::new();
    let mut seen = 0;
    for entry in fs::read_dir(core).expect("the crates") {
        let mut files = Vec::new();
        sources(&entry.expect("an entry").path().join("src"), &mut files);
        for path in files {
            let file = path.strip_prefix(core).expect("below core");
            let file = file.to_str().expect("UTF-8").replace('\\', "/");
            let text = fs::read_to_string(&path).expect("a source");
            let is_vocabulary = file.starts_with("protocol/src/vocabulary/");
            for (name, is_open) in public_types(&text, is_vocabulary) {
                seen += 1;
                if !is_open {
                    closed.push((file.clone(), name));
                }
            }
        }
    }
    // Otherwise the test checked nothing.
    assert!(seen > 130, "{seen} types");
    let mut listed: Vec<(String, String)> = CLOSED
        .iter()
        .map(|&(file, name, _)| (file.to_owned(), name.to_owned()))
        .collect();
    closed.sort();
    listed.sort();
    let unlisted: Vec<_> = closed
        .iter()
        .filter(|item| !listed.contains(item))
        .collect();
    assert!(
        unlisted.is_empty(),
        "add `#[non_exhaustive]` to these, or a reason to `CLOSED`: {unlisted:?}"
    );
    let stale: Vec<_> = listed
        .iter()
        .filter(|item| !closed.contains(item))
        .collect();
    assert!(stale.is_empty(), "no such closed enums: {stale:?}");
}

#[test]
fn finds_types_without_the_attribute() {
    let text = "\
/// One; says {
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = \"…\"
)]
#[non_exhaustive]
pub enum One {
    First,
}

/// Another.
#[derive(Debug)]
pub enum Another {}
#[derive(Debug)]
pub struct Third(u8);
macro_rules! words {
    ($name:ident) => {
        #[non_exhaustive]
        pub enum $name {}
    };
}
";
    let named = |with_structs| -> Vec<(String, bool)> { public_types(text, with_structs) };
    let expected = |name: &str, is_open| (name.to_owned(), is_open);
    let enums = [
        expected("One", true),
        expected("Another", false),
        expected("$name", true),
    ];
    assert_eq!(named(false), enums);
    assert_eq!(named(true)[2], expected("Third", false));
}

/// Returns the text of a source without its unit tests.
fn without_tests(text: &str) -> &str {
    match text.find("#[cfg(test)]\nmod tests {") {
        Some(start) => &text[..start],
        None => text,
    }
}

/// Returns whether a source reads a member of `RevisionFeatures`: by `features` or `features()`, or in a row of the table of
/// methods.
fn reads_feature(text: &str, member: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(member).any(|(start, _)| {
        let ends = !text[start + member.len()..].starts_with(is_of_name);
        let before = text[..start].trim_end().strip_suffix('.');
        let before = before.unwrap_or_default().trim_end();
        let is_features = before.ends_with("features") || before.ends_with("features()");
        ends && (is_features || before.ends_with("|revision| revision"))
    })
}

#[test]
fn every_member_of_features_is_read_by_shipped_code() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the folder of all crates");
    let table = fs::read_to_string(core.join("protocol/src/revision.rs")).expect("a source");
    let (_, table) = table
        .split_once("pub struct RevisionFeatures {")
        .expect("the table");
    let (table, _) = table.split_once("\n}").expect("its end");
    let members: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    assert!(members.len() > 40, "{members:?}");
    let mut files = Vec::new();
    for entry in fs::read_dir(core).expect("the crates") {
        sources(&entry.expect("an entry").path().join("src"), &mut files);
    }
    files.retain(|file| !file.components().any(|part| part.as_os_str() == "tests"));
    files.retain(|file| !file.ends_with("tests.rs"));
    let texts: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source"))
        .collect();
    let is_read = |member: &str| {
        let mut texts = texts.iter().map(|text| without_tests(text));
        texts.any(|text| reads_feature(text, member))
    };
    let unread: Vec<_> = members.iter().filter(|member| !is_read(member)).collect();
    assert!(
        unread.is_empty(),
        "let these members of `RevisionFeatures` decide something, or delete them: {unread:?}"
    );
}

#[test]
fn distinguishes_reads_of_features_from_other_members() {
    for text in [
        "session.features().ping;",
        "let a = features\n    .ping && b",
        "is_in: |revision| revision.ping,",
    ] {
        assert!(reads_feature(text, "ping"), "{text}");
    }
    for text in [
        "self.ping",
        "features.pings",
        "features.has_ping",
        "// ping",
        "revision.ping",
    ] {
        assert!(!reads_feature(text, "ping"), "{text}");
    }
    let text = without_tests("a\n#[cfg(test)]\nmod tests {\n    features.ping\n}");
    assert!(!reads_feature(text, "ping"));
}
