use mcpline_protocol::Revision;
use mcpline_protocol::client::RequestTimeouts;
use mcpline_protocol::vocabulary::Implementation;

use super::*;
use crate::client::{Address, Reissue};
use crate::error_kind::ErrorKind;
use crate::sharing::Sharing;

fn refuse(url: &str, server: &str) -> Result<Sharing, String> {
    Err(format!("no {url} for {server}"))
}

#[test]
fn absent_options_keep_the_defaults() {
    let client: ClientOptions = read("the settings", b"{}").unwrap();
    let settings = client.settings().unwrap();
    assert_eq!(settings.revisions, Revision::ALL);
    assert_eq!(settings.timeouts, RequestTimeouts::default());
    let http: HttpServingOptions = read("the options", b"{}").unwrap();
    let options = http.options().unwrap();
    assert_eq!(options.path, "/mcp");
    assert!(options.sse_paths.is_some() && options.health_path.is_some());
    assert_eq!(options.ready_path.as_deref(), Some("/ready"));
}

#[test]
fn checks_can_have_other_paths_or_none() {
    let read_options = |json: &[u8]| {
        let http: HttpServingOptions = read("the options", json).unwrap();
        let options = http.options().unwrap();
        (options.health_path, options.ready_path)
    };
    assert_eq!(
        read_options(br#"{"health_path":"/livez","ready_path":"/readyz"}"#),
        (Some("/livez".to_owned()), Some("/readyz".to_owned()))
    );
    assert_eq!(
        read_options(br#"{"serve_health":false,"serve_ready":false}"#),
        (None, None)
    );
}

#[cfg(unix)]
#[test]
fn a_program_needs_nothing_but_its_name() {
    let program: ProgramOptions = read("the program", br#"{"program":"true"}"#).unwrap();
    let command = format!("{:?}", program.command().unwrap());
    let default = format!("{:?}", crate::client::Command::new("true"));
    assert_eq!(command, default);
    assert!(read::<ProgramOptions>("the program", b"{}").is_err());
}

#[test]
fn times_are_in_seconds_and_infinity_is_the_maximum() {
    let options: ClientOptions = read(
        "the settings",
        br#"{"timeout":0.25,"open_timeout":1e300,"era":"modern"}"#,
    )
    .unwrap();
    let settings = options.settings().unwrap();
    assert_eq!(settings.timeouts.idle, Duration::from_millis(250));
    assert_eq!(settings.open_timeouts.answer, Duration::MAX);
    assert_eq!(seconds(f64::INFINITY).unwrap(), Duration::MAX);
}

#[test]
fn a_longer_idle_timeout_extends_the_total_timeout() {
    let defaults = RequestTimeouts::default();
    let options = CallOptions {
        timeout: Some(2.0 * defaults.total.as_secs_f64()),
        ..CallOptions::default()
    };
    let timeouts = options.options(defaults).unwrap().timeouts.unwrap();
    assert_eq!(timeouts.idle, timeouts.total);
}

#[test]
fn invalid_values_are_usage_errors_that_name_them() {
    let misuse = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    };
    let unknown = read::<ClientOptions>("the settings", br#"{"tiemout":1}"#).unwrap_err();
    assert!(misuse(unknown).starts_with("the settings can't be read: unknown field `tiemout`"));
    for (json, expected) in [
        (
            r#"{"max_input_rounds":"3"}"#,
            "`max_input_rounds`: invalid type: string \"3\", expected a whole number",
        ),
        (
            r#"{"listen":false,"era":"old"}"#,
            "`era`: unknown variant `old`, expected `legacy` or `modern`",
        ),
        (
            r#"{"cache":1,"timeout":"x"}"#,
            "`cache`: invalid type: integer `1`, expected a boolean",
        ),
        ("[1]", "invalid type"),
    ] {
        let text = misuse(read::<ClientOptions>("the settings", json.as_bytes()).unwrap_err());
        assert!(
            text.starts_with(&format!("the settings can't be read: {expected}")),
            "{text}"
        );
    }
    let newer = read::<ClientOptions>("the settings", br#"{"revisions":["2027-01-01"]}"#);
    assert_eq!(
        misuse(newer.unwrap_err()),
        "the settings can't be read: `revisions`: there is no protocol revision \"2027-01-01\"; supported are 2024-11-05, 2025-03-26, \
         2025-06-18, 2025-11-25, 2026-07-28"
    );
    let none: ClientOptions = read("the settings", br#"{"revisions":[]}"#).unwrap();
    assert!(misuse(none.settings().unwrap_err()).starts_with("`revisions` is empty"));
    let none: ServerOptions = read("the settings", br#"{"revisions":[]}"#).unwrap();
    let unbuilt = none.builder(Implementation::new("s", "1"), None, refuse);
    assert!(misuse(unbuilt.unwrap_err()).starts_with("`revisions` is empty"));
    let negative: ClientOptions = read("the settings", br#"{"timeout":-1}"#).unwrap();
    assert!(misuse(negative.settings().unwrap_err()).starts_with("-1 seconds:"));
    let server: ServerOptions = read("the settings", br#"{"declare":["tolls"]}"#).unwrap();
    let unbuilt = server.builder(Implementation::new("s", "1"), None, refuse);
    assert_eq!(misuse(unbuilt.unwrap_err()), "unknown capability tolls");
    let server: ServerOptions = read("the settings", br#"{"sharing":"local"}"#).unwrap();
    let unbuilt = server.builder(Implementation::new("s", "1"), None, refuse);
    assert_eq!(misuse(unbuilt.unwrap_err()), "sharing: no local for s");
    let call = CallOptions {
        reissue: Some("often".to_owned()),
        ..CallOptions::default()
    };
    let unsent = call.options(RequestTimeouts::default()).unwrap_err();
    assert_eq!(
        misuse(unsent),
        "`reissue` must be if-safe, always or never, not \"often\""
    );
    assert_eq!(
        misuse(log_level("loud").unwrap_err()),
        "unknown log level \"loud\""
    );
}

#[test]
fn call_options_reach_the_request() {
    let json = br#"{"total_timeout":5,"meta":{"a":1},"log_level":"debug","reissue":"never","fresh":true,"manual_results":true}"#;
    let options: CallOptions = read("the options", json).unwrap();
    let options = options.options(RequestTimeouts::default()).unwrap();
    assert_eq!(options.timeouts.unwrap().total, Duration::from_secs(5));
    assert_eq!(options.meta.unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(options.reissue, Reissue::Never);
    assert!(options.fresh && options.manual_results && options.log_level.is_some());
}

#[test]
fn capabilities_replace_what_handlers_declare_member_by_member() {
    let json = br#"{"info":{"name":"h","version":"1"},"elicit":true,"sample":true,"roots":false,"notifications":false,
        "logs":false,"stderr":false,"capabilities":{"sampling":{"tools":{}},"elicitation":null}}"#;
    let host: HostOptions = read("the handlers", json).unwrap();
    let settings = ClientOptions::default().settings().unwrap();
    let request_handler: crate::client::HostRequestHandler =
        std::sync::Arc::new(|_| Box::pin(std::future::pending()));
    let builder = host.builder(settings, |_| request_handler.clone()).unwrap();
    let _ = builder.capabilities(|capabilities| {
        assert_eq!(
            serde_json::to_value(capabilities).unwrap(),
            serde_json::json!({"sampling": {"tools": {}}})
        );
    });
}

#[test]
fn debug_output_omits_secrets() {
    let json = br#"{"headers":[["authorization","Bearer hush"]]}"#;
    let options: HttpClientOptions = read("the settings of HTTP", json).unwrap();
    assert!(!format!("{options:?}").contains("hush"));
    let address = options
        .address("http://localhost/mcp".to_owned(), None)
        .unwrap();
    assert!(matches!(address, Address::Url(_, settings) if settings.headers.len() == 1));
}

#[test]
fn resource_server_options_reach_the_builder() {
    let json = br#"{"auth":{"resource":"https://mcp.example.com/mcp","issuers":["https://auth.example.com"],
        "jwks_url":"https://auth.example.com/keys","audiences":["api"],"required_scopes":["mcp"],
        "supported_scopes":["mcp","more"],"implied_scopes":{"all":["mcp"]},"algorithms":["ES256"],"clock_skew":5,
        "introspection":{"endpoint":"https://auth.example.com/ask","client_id":"a","client_secret":"hush","keep_for":1},
        "authorization_servers":["https://other.example.com"],"demand_proof_of_possession":true,"name":"Tools",
        "metadata_url":"https://mcp.example.com/about","documentation":"https://example.com/docs","proxy":"direct"}}"#;
    let options: HttpServingOptions = read("the options", json).unwrap();
    assert!(!format!("{options:?}").contains("hush"));
    let auth = options.options().unwrap().auth.expect("there is one");
    assert_eq!(
        auth.metadata_url().unwrap(),
        "https://mcp.example.com/about"
    );
    assert_eq!(
        serde_json::to_value(auth.metadata().unwrap()).unwrap(),
        serde_json::json!({
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["https://auth.example.com", "https://other.example.com"],
            "scopes_supported": ["mcp", "more"],
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": ["ES256"],
            "dpop_bound_access_tokens_required": true,
            "resource_name": "Tools",
            "resource_documentation": "https://example.com/docs",
        })
    );
}

#[test]
fn invalid_resource_servers_are_usage_errors_that_name_the_problem() {
    let refused = |json: &str| {
        let options = read::<HttpServingOptions>("the options", json.as_bytes());
        let error = options.and_then(HttpServingOptions::options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    };
    let with = |more: &str| {
        refused(&format!(
            r#"{{"auth":{{"resource":"https://a.example/mcp","issuers":["https://b.example"]{more}}}}}"#
        ))
    };
    assert!(refused(r#"{"auth":{}}"#).contains("name the resource"));
    assert!(with(r#","isuers":[]"#).contains("unknown field `isuers`"));
    assert!(with(r#","algorithms":["HS256"]"#).contains("HS256"));
    assert!(with(r#","algorithms":["none"]"#).contains("none"));
    assert!(with(r#","jwks_url":"x","jwks":{"keys":[]}"#).contains("set either"));
    assert!(with(r#","jwks":{}"#).contains("jwks"));
    assert!(
        with(r#","introspection":{"endpoint":"https://b.example","client_id":"x"}"#)
            .contains("client_secret")
    );
    assert!(with(r#","verifies":true"#).contains("no callback that verifies"));
    assert!(with(r#","clock_skew":-1"#).contains("-1 seconds"));
}

#[test]
fn reads_the_result_of_a_verifier() {
    let json = br#"{"subject":"alice","client_id":"c","issuer":"i","audience":["https://a.example","b"],"scopes":["a","b"],"expires_at":5,"claims":{"x":1}}"#;
    let caller = read::<CallerOptions>("the caller", json)
        .unwrap()
        .authorized();
    assert_eq!(
        caller.to_json(),
        serde_json::json!({"issuer": "i", "subject": "alice", "client_id": "c", "audience": ["https://a.example", "b"],
                           "scopes": ["a", "b"], "expires_at": 5, "claims": {"x": 1}})
    );
}
