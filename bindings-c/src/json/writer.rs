//! Writes JSON piece by piece, and guarantees that the output is valid JSON.

use base64::Engine as _;
use mcpline::protocol::limits::MAX_DEPTH;
use mcpline::protocol::wire::{Raw, json_string};

/// A writer of one JSON value. It keeps the first error and writes nothing after it.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    /// The objects and arrays that are not ended, outermost first.
    open: Vec<Open>,
    mistake: Option<String>,
}

/// An object or array that is being written.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_object: bool,
    /// Whether it has a member or element.
    is_filled: bool,
    /// Whether a name was written whose value must follow.
    is_named: bool,
}

impl Writer {
    pub(crate) fn begin(&mut self, is_object: bool) {
        if self.open.len() >= MAX_DEPTH {
            self.fail(format!(
                "JSON must not be nested deeper than {MAX_DEPTH} levels"
            ));
        }
        if !self.value() {
            return;
        }
        self.out.push(if is_object { b'{' } else { b'[' });
        self.open.push(Open {
            is_object,
            is_filled: false,
            is_named: false,
        });
    }

    pub(crate) fn end(&mut self, is_object: bool) {
        let what = if is_object { "an object" } else { "an array" };
        match self.open.last() {
            _ if self.mistake.is_some() => {}
            Some(open) if open.is_object == is_object && !open.is_named => {
                self.open.pop();
                self.out.push(if is_object { b'}' } else { b']' });
            }
            Some(open) if open.is_named => {
                self.fail("the last name has no value: write it first".to_owned())
            }
            _ => self.fail(format!(
                "cannot end {what} here: none is open, or another object or array inside it is"
            )),
        }
    }

    pub(crate) fn name(&mut self, name: &str) {
        if self.mistake.is_some() {
            return;
        }
        match self.open.last_mut() {
            Some(open) if open.is_object && !open.is_named => {
                if std::mem::replace(&mut open.is_filled, true) {
                    self.out.push(b',');
                }
                open.is_named = true;
                json_string(&mut self.out, name);
                self.out.push(b':');
            }
            _ => self.fail(format!("the name {name:?} is not allowed here: names are for objects, each followed by its value")),
        }
    }

    pub(crate) fn string(&mut self, text: &str) {
        if self.value() {
            json_string(&mut self.out, text);
        }
    }

    pub(crate) fn int64(&mut self, number: i64) {
        self.plain(&number.to_string());
    }

    pub(crate) fn double(&mut self, number: f64) {
        match serde_json::Number::from_f64(number) {
            Some(number) => self.plain(&number.to_string()),
            None => self.fail(format!(
                "{number} cannot be written as JSON: numbers must be finite"
            )),
        }
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.plain(if value { "true" } else { "false" });
    }

    pub(crate) fn null(&mut self) {
        self.plain("null");
    }

    /// Writes a value that is already JSON.
    pub(crate) fn json(&mut self, json: Raw) {
        self.plain(json.as_str());
    }

    /// Writes bytes as a base64 string.
    pub(crate) fn base64(&mut self, bytes: &[u8]) {
        // The base64 alphabet needs no escapes.
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        if self.value() {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
        }
    }

    /// Records an error, unless there was one before.
    pub(crate) fn fail(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    /// Returns the text if it is one complete value.
    pub(crate) fn text(&self) -> Result<Raw, String> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        if !self.open.is_empty() {
            return Err("the JSON is not complete: an object or array is still open".to_owned());
        }
        if self.out.is_empty() {
            return Err("the JSON is empty: write a value first".to_owned());
        }
        // Also rejects duplicate names.
        Raw::parse(self.out.clone()).map_err(|error| format!("not valid JSON: {error}"))
    }

    /// Resets the writer.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn plain(&mut self, json: &str) {
        if self.value() {
            self.out.extend_from_slice(json.as_bytes());
        }
    }

    /// Returns whether a value may be written here, after writing a comma where one is needed.
    fn value(&mut self) -> bool {
        if self.mistake.is_some() {
            return false;
        }
        match self.open.last_mut() {
            None if self.out.is_empty() => true,
            None => {
                self.fail("the JSON is complete: no second value can follow".to_owned());
                false
            }
            Some(open) if open.is_object => {
                let named = std::mem::replace(&mut open.is_named, false);
                if !named {
                    self.fail("a value in an object needs a name: write the name first".to_owned());
                }
                named
            }
            Some(open) => {
                if std::mem::replace(&mut open.is_filled, true) {
                    self.out.push(b',');
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer)) -> Result<String, String> {
        let mut writer = Writer::default();
        write(&mut writer);
        writer.text().map(|raw| raw.as_str().to_owned())
    }

    #[test]
    fn writes_valid_json() {
        let json = written(|to| {
            to.begin(true);
            to.name("a \"name\"");
            to.begin(false);
            to.int64(i64::MIN);
            to.double(1.0);
            to.double(-2.5e300);
            to.bool(true);
            to.null();
            to.string("line\nbreak \u{1} \0 é");
            to.base64(&[0, 255, 254]);
            to.begin(false);
            to.end(false);
            to.end(false);
            to.name("raw");
            to.json(Raw::parse("{\"x\": [1]}").unwrap());
            to.name("");
            to.begin(true);
            to.end(true);
            to.end(true);
        });
        assert_eq!(
            json.unwrap(),
            r#"{"a \"name\"":[-9223372036854775808,1.0,-2.5e+300,true,null,"line\nbreak \u0001 \u0000 é","AP/+",[]],"raw":{"x": [1]},"":{}}"#
        );
        assert_eq!(written(|to| to.string("")).unwrap(), "\"\"");
    }

    #[test]
    fn keeps_the_first_error() {
        let mistake = written(|to| {
            to.begin(true);
            to.int64(1);
            to.double(f64::NAN);
            to.end(false);
        });
        assert_eq!(
            mistake.unwrap_err(),
            "a value in an object needs a name: write the name first"
        );
    }

    #[test]
    fn rejects_writes_that_would_not_be_json() {
        type Writing = fn(&mut Writer);
        let mistakes: [(Writing, &str); 12] = [
            (|_| {}, "the JSON is empty: write a value first"),
            (
                |to| to.begin(true),
                "the JSON is not complete: an object or array is still open",
            ),
            (
                |to| (to.null(), to.null()).0,
                "the JSON is complete: no second value can follow",
            ),
            (
                |to| to.end(true),
                "cannot end an object here: none is open, or another object or array inside it is",
            ),
            (
                |to| (to.begin(true), to.end(false)).0,
                "cannot end an array here: none is open, or another object or array inside it is",
            ),
            (
                |to| to.name("a"),
                "the name \"a\" is not allowed here: names are for objects, each followed by its value",
            ),
            (
                |to| (to.begin(false), to.name("a")).0,
                "the name \"a\" is not allowed here: names are for objects, each followed by its value",
            ),
            (
                |to| (to.begin(true), to.name("a"), to.name("b")).0,
                "the name \"b\" is not allowed here: names are for objects, each followed by its value",
            ),
            (
                |to| (to.begin(true), to.name("a"), to.end(true)).0,
                "the last name has no value: write it first",
            ),
            (
                |to| to.double(f64::INFINITY),
                "inf cannot be written as JSON: numbers must be finite",
            ),
            (
                |to| {
                    to.begin(true);
                    to.name("a");
                    to.null();
                    to.name("a");
                    to.null();
                    to.end(true);
                },
                "not valid JSON: duplicate member at byte 11",
            ),
            (
                |to| (0..=MAX_DEPTH).for_each(|_| to.begin(false)),
                "JSON must not be nested deeper than 127 levels",
            ),
        ];
        for (write, mistake) in mistakes {
            assert_eq!(written(write).unwrap_err(), mistake);
        }
    }
}
