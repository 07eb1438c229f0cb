//! `#[runtimes::test]` runs an async test twice: on a tokio runtime with one thread, and on one with four workers,
//! where spawned tasks run on other threads than the test. A test that pauses the clock uses
//! `#[tokio::test(start_paused = true)]` instead, which requires a runtime with one thread.
//!
//! `#[runtimes::test(one_blocking_thread)]` gives these runtimes a single thread for `spawn_blocking`: a test that
//! occupies it decides when work on that thread begins.

use proc_macro::{TokenStream, TokenTree};

/// Turns `async fn name()` into the tests `name::on_one_thread` and `name::on_four_workers`.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    let limit = match options.to_string().as_str() {
        "" => Some(""),
        "one_blocking_thread" => Some(".max_blocking_threads(1)"),
        _ => None,
    };
    let (Some(limit), Some(name)) = (limit, function_name(&item)) else {
        return "compile_error!(\"#[runtimes::test] takes `one_blocking_thread` or nothing, and stands before an async fn\");"
            .parse()
            .expect("Rust");
    };
    let tests: TokenStream = format!(
        "mod {name} {{
            #[test]
            fn on_one_thread() {{
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime{limit}.enable_all().build();
                runtime.expect(\"a runtime\").block_on(super::{name}())
            }}
            #[test]
            fn on_four_workers() {{
                let mut runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = runtime.worker_threads(4){limit}.enable_all().build();
                runtime.expect(\"a runtime\").block_on(super::{name}())
            }}
        }}"
    )
    .parse()
    .expect("Rust");
    item.into_iter().chain(tests).collect()
}

fn function_name(item: &TokenStream) -> Option<String> {
    let mut tokens = item.clone().into_iter();
    let is_fn =
        |token: &TokenTree| matches!(token, TokenTree::Ident(name) if name.to_string() == "fn");
    tokens.find(is_fn)?;
    Some(tokens.next()?.to_string())
}
