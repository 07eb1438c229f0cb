//! URI templates: no template or URI is slow, and the variables of a match expand to a URI that matches.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_fuzz::Cost;
use mcpline_protocol::schema::StepBudget;
use mcpline_protocol::uri_template::{UriTemplate, Variables};

fuzz_target!(|data: &[u8]| {
    // A template, a URI, and two values, on one line each.
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (source, uri, first, second) = (next(), next(), next(), next());
    let Ok(template) = UriTemplate::parse(source) else {
        return;
    };
    assert_eq!(template.as_str(), source);
    costs_what_it_may(&template, uri);
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

/// Checks the cost of matching: per variable, as many steps as the URI has bytes. Variables that are exploded, or read
/// by name, may be read once for each position where they may begin.
fn costs_what_it_may(template: &UriTemplate, uri: &str) {
    let variables = 1 + template.names().count();
    let mut budget = StepBudget::new(usize::MAX, None);
    let (_, cost) = Cost::of(|| template.matches_within(uri, &mut budget).is_ok());
    let bytes = uri.len() + template.as_str().len();
    let is_linear = !template.as_str().contains(['*', '?', '&', ';', ':']);
    let each = if is_linear { 64 } else { 64 * (1 + bytes) };
    let units = variables * bytes;
    assert!(
        budget.spent() <= 1_000 + each * units,
        "{} steps for {variables} variables and {bytes} bytes",
        budget.spent()
    );
    let (base, each) = (64 * 1024, 64 * each);
    cost.is_at_most(
        Cost {
            steps: 0,
            bytes: base,
        },
        Cost {
            steps: 0,
            bytes: each,
        },
        units,
    );
}
