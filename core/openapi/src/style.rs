//! How values are written into paths, queries, headers and cookies (OpenAPI 3.1, style values).

use serde_json::Value;

use crate::limits::MAX_DEEP_OBJECT_DEPTH;
use crate::percent::{self, UnescapedCharacters};

/// A style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

impl Style {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" => Self::Form,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// Returns a value within another as text: values in arrays and objects have no further structure.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn encoded(value: &Value) -> String {
    percent::encoded(&text(value))
}

/// Returns the members of an object as alternating names and values.
fn names_and_values(
    members: &serde_json::Map<String, Value>,
    between: &str,
    write: impl Fn(&str) -> String,
) -> Vec<String> {
    let write_one = |(name, value): (&String, &Value)| {
        format!("{}{between}{}", write(name), write(&text(value)))
    };
    members.iter().map(write_one).collect()
}

/// Returns a value for a path.
pub(crate) fn in_path(name: &str, value: &Value, style: Style, explode: bool) -> String {
    let separator = match (style, explode) {
        (Style::Label, true) => ".",
        (Style::Matrix, true) => ";",
        _ => ",",
    };
    let joined = match value {
        Value::Array(items) if style == Style::Matrix && explode => {
            let items = items
                .iter()
                .map(|item| format!(";{name}={}", encoded(item)));
            return items.collect();
        }
        Value::Array(items) => items
            .iter()
            .map(encoded)
            .collect::<Vec<_>>()
            .join(separator),
        Value::Object(members) => {
            let between = if explode { "=" } else { "," };
            let all = names_and_values(members, between, percent::encoded).join(separator);
            if style == Style::Matrix && explode {
                return format!(";{all}");
            }
            all
        }
        other => encoded(other),
    };
    match style {
        Style::Label => format!(".{joined}"),
        Style::Matrix => format!(";{name}={joined}"),
        _ => joined,
    }
}

/// Appends the pairs of a value to a query.
pub(crate) fn in_query(
    query: &mut Query,
    name: &str,
    value: &Value,
    style: Style,
    explode: bool,
    keep: UnescapedCharacters,
) {
    let delimiter = match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        _ => ",",
    };
    let encode = |text: &str| {
        let mut out = String::with_capacity(text.len());
        percent::encode(&mut out, text, keep);
        out
    };
    match value {
        _ if style == Style::DeepObject => deep_object(query, name, value, keep, 0),
        Value::Array(items) if explode => {
            for item in items {
                query.push(name, &encode(&text(item)));
            }
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| encode(&text(item))).collect();
            query.push(name, &items.join(delimiter));
        }
        Value::Object(members) if explode => {
            for (member, value) in members {
                query.push(member, &encode(&text(value)));
            }
        }
        Value::Object(members) => {
            let all = names_and_values(members, delimiter, encode).join(delimiter);
            query.push(name, &all);
        }
        other => query.push(name, &encode(&text(other))),
    }
}

/// Writes `name[member]=value`, and `name[0]=value` for arrays, at any depth.
fn deep_object(
    query: &mut Query,
    name: &str,
    value: &Value,
    keep: UnescapedCharacters,
    depth: usize,
) {
    match value {
        Value::Object(members) if depth < MAX_DEEP_OBJECT_DEPTH => {
            for (member, value) in members {
                deep_object(query, &format!("{name}[{member}]"), value, keep, depth + 1);
            }
        }
        Value::Array(items) if depth < MAX_DEEP_OBJECT_DEPTH => {
            for (index, value) in items.iter().enumerate() {
                deep_object(query, &format!("{name}[{index}]"), value, keep, depth + 1);
            }
        }
        other => {
            let mut out = String::new();
            percent::encode(&mut out, &text(other), keep);
            query.push(name, &out);
        }
    }
}

/// Returns a value for a header.
pub(crate) fn in_header(value: &Value, explode: bool) -> String {
    match value {
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Object(members) => {
            let between = if explode { "=" } else { "," };
            names_and_values(members, between, str::to_owned).join(",")
        }
        other => text(other),
    }
}

/// Returns the pairs of a value for the header `Cookie`. Names and values are encoded, because `;` would begin another one.
pub(crate) fn in_cookie(name: &str, value: &Value, explode: bool) -> Vec<(String, String)> {
    let mut query = Query::default();
    in_query(
        &mut query,
        name,
        value,
        Style::Form,
        explode,
        UnescapedCharacters::Nothing,
    );
    query.pairs
}

/// The pairs of a query or a form, encoded.
#[derive(Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Adds a pair. The value is encoded already.
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.pairs.push((percent::encoded(name), value.to_owned()));
    }

    /// Adds the pairs of another query.
    pub(crate) fn append(&mut self, other: Self) {
        self.pairs.extend(other.pairs);
    }

    /// Returns the names, encoded.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| &**name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(crate) fn write(&self) -> String {
        let pairs = self
            .pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("&")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_in_paths_have_the_forms_of_the_specification() {
        let (one, list, object) = (
            json!("blue"),
            json!(["a", "b/c"]),
            json!({"R": 100, "G": 2}),
        );
        for (style, explode, expected) in [
            (Style::Simple, false, ["blue", "a,b%2Fc", "R,100,G,2"]),
            (Style::Simple, true, ["blue", "a,b%2Fc", "R=100,G=2"]),
            (Style::Label, false, [".blue", ".a,b%2Fc", ".R,100,G,2"]),
            (Style::Label, true, [".blue", ".a.b%2Fc", ".R=100.G=2"]),
            (
                Style::Matrix,
                false,
                [";c=blue", ";c=a,b%2Fc", ";c=R,100,G,2"],
            ),
            (
                Style::Matrix,
                true,
                [";c=blue", ";c=a;c=b%2Fc", ";R=100;G=2"],
            ),
        ] {
            let written = [&one, &list, &object].map(|value| in_path("c", value, style, explode));
            assert_eq!(written, expected, "{style:?} {explode}");
        }
    }

    #[test]
    fn values_in_queries_have_the_forms_of_the_specification() {
        let (one, list, object) = (json!("b&e"), json!(["a", "b,c"]), json!({"R": 100, "G": 2}));
        for (style, explode, expected) in [
            (Style::Form, true, ["c=b%26e", "c=a&c=b%2Cc", "R=100&G=2"]),
            (Style::Form, false, ["c=b%26e", "c=a,b%2Cc", "c=R,100,G,2"]),
            (
                Style::SpaceDelimited,
                false,
                ["c=b%26e", "c=a%20b%2Cc", "c=R%20100%20G%202"],
            ),
            (
                Style::PipeDelimited,
                false,
                ["c=b%26e", "c=a%7Cb%2Cc", "c=R%7C100%7CG%7C2"],
            ),
            (
                Style::DeepObject,
                true,
                [
                    "c=b%26e",
                    "c%5B0%5D=a&c%5B1%5D=b%2Cc",
                    "c%5BR%5D=100&c%5BG%5D=2",
                ],
            ),
        ] {
            let written = [&one, &list, &object].map(|value| {
                let mut query = Query::default();
                in_query(
                    &mut query,
                    "c",
                    value,
                    style,
                    explode,
                    UnescapedCharacters::Nothing,
                );
                query.write()
            });
            assert_eq!(written, expected, "{style:?} {explode}");
        }
    }

    #[test]
    fn values_in_headers_and_cookies_have_the_forms_of_the_specification() {
        let object = json!({"R": 100, "G": true});
        assert_eq!(in_header(&object, false), "R,100,G,true");
        assert_eq!(in_header(&object, true), "R=100,G=true");
        assert_eq!(in_header(&json!([1, "b"]), false), "1,b");
        let cookie = in_cookie("a b", &json!("c;d"), true);
        assert_eq!(cookie, [("a%20b".to_owned(), "c%3Bd".to_owned())]);
    }
}
