use mcpline_protocol::Revision;
use mcpline_protocol::client::CallTimeouts;
use mcpline_protocol::vocabulary::Implementation;

use super::*;
use crate::client::{Address, Reissue};
use crate::error::ErrorKind;

#[test]
fn absent_options_keep_the_defaults() {
    let client: ClientOptions = read("the settings", b"{}").unwrap();
    let settings = client.settings().unwrap();
    assert_eq!(settings.revisions, Revision::ALL);
    assert_eq!(settings.timeouts, CallTimeouts::default());
    let http: HttpServingOptions = read("the options", b"{}").unwrap();
    let options = http.options().unwrap();
    assert_eq!(options.path, "/mcp");
    assert!(options.sse_paths.is_some() && options.health_path.is_some());
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
fn times_are_seconds_and_an_endless_one_is_for_ever() {
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
fn a_longer_wait_without_a_sign_of_life_prolongs_the_wait_in_all() {
    let defaults = CallTimeouts::default();
    let options = CallOptions {
        timeout: Some(2.0 * defaults.total.as_secs_f64()),
        ..CallOptions::default()
    };
    let timeouts = options.options(defaults).unwrap().timeouts.unwrap();
    assert_eq!(timeouts.idle, timeouts.total);
}

#[test]
fn what_cannot_be_is_misuse_and_says_what() {
    let misuse = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Misuse);
        error.to_string()
    };
    let unknown = read::<ClientOptions>("the settings", br#"{"tiemout":1}"#).unwrap_err();
    assert!(misuse(unknown).starts_with("the settings can't be read: unknown field `tiemout`"));
    let negative: ClientOptions = read("the settings", br#"{"timeout":-1}"#).unwrap();
    assert!(misuse(negative.settings().unwrap_err()).starts_with("-1 seconds:"));
    let server: ServerOptions = read("the settings", br#"{"declare":["tolls"]}"#).unwrap();
    let unbuilt = server.builder(Implementation::new("s", "1"), None);
    assert_eq!(misuse(unbuilt.unwrap_err()), "tolls can't be declared");
    let call = CallOptions {
        reissue: Some("often".to_owned()),
        ..CallOptions::default()
    };
    let unsent = call.options(CallTimeouts::default()).unwrap_err();
    assert_eq!(
        misuse(unsent),
        "reissue is if-safe, always or never, not \"often\""
    );
    assert_eq!(
        misuse(log_level("loud").unwrap_err()),
        "\"loud\" is no log level"
    );
}

#[test]
fn a_call_is_told_everything_that_is_given() {
    let json = br#"{"total_timeout":5,"meta":{"a":1},"log_level":"debug","reissue":"never","fresh":true,"by_hand":true}"#;
    let options: CallOptions = read("the options", json).unwrap();
    let options = options.options(CallTimeouts::default()).unwrap();
    assert_eq!(options.timeouts.unwrap().total, Duration::from_secs(5));
    assert_eq!(options.meta.unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(options.reissue, Reissue::Never);
    assert!(options.fresh && options.by_hand && options.log_level.is_some());
}

#[test]
fn capabilities_replace_what_handlers_declare_member_by_member() {
    let json = br#"{"info":{"name":"h","version":"1"},"elicit":true,"sample":true,"roots":false,"notifications":false,
        "logs":false,"stderr":false,"capabilities":{"sampling":{"tools":{}},"elicitation":null}}"#;
    let host: HostOptions = read("the handlers", json).unwrap();
    let settings = ClientOptions::default().settings().unwrap();
    let answerer: crate::client::Answerer =
        std::sync::Arc::new(|_| Box::pin(std::future::pending()));
    let builder = host.builder(settings, |_| answerer.clone()).unwrap();
    let _ = builder.capabilities(|capabilities| {
        assert_eq!(
            serde_json::to_value(capabilities).unwrap(),
            serde_json::json!({"sampling": {"tools": {}}})
        );
    });
}

#[test]
fn what_may_be_secret_is_not_shown() {
    let json = br#"{"headers":[["authorization","Bearer hush"]]}"#;
    let options: HttpClientOptions = read("the settings of HTTP", json).unwrap();
    assert!(!format!("{options:?}").contains("hush"));
    let address = options.address("http://localhost/mcp".to_owned()).unwrap();
    assert!(matches!(address, Address::Url(_, settings) if settings.headers.len() == 1));
}
