//! URI templates: no template or URI is slow, and what a match found expands to a URI that matches.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_protocol::uri_template::{UriTemplate, Variables};

fuzz_target!(|data: &[u8]| {
    // A template, a URI, and two values, each on a line.
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (source, uri, first, second) = (next(), next(), next(), next());
    let Ok(template) = UriTemplate::parse(source) else {
        return;
    };
    assert_eq!(template.as_str(), source);
    if let Some(variables) = template.matches(uri) {
        for (name, _) in variables.iter() {
            assert!(template.names().any(|known| known == name));
        }
        drop(template.expand(&variables));
    }
    let names: Vec<_> = template.names().map(str::to_owned).collect();
    let mut variables = Variables::new();
    for (name, value) in names.into_iter().zip([first, second].into_iter().cycle()) {
        variables.set(name, value.into());
    }
    let expanded = template.expand(&variables);
    assert!(expanded.is_ascii());
    drop(template.matches(&expanded));
});
