//! Makes a peer's text safe for an error message or a log.

use std::fmt;
use std::fmt::Write as _;

/// Writes a peer's text without anything that could control a terminal or forge log lines: escape sequences are left
/// out, line breaks and tabs become spaces, and other characters that control or reorder text become U+FFFD.
#[derive(Debug, Clone, Copy)]
pub struct Printable<T>(pub T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Writer {
            out: f,
            state: TerminalSequenceState::Text,
        };
        write!(writer, "{}", self.0)
    }
}

/// Writes a peer's text in quotation marks, as [`Printable`] and limited to [`MAX_QUOTED`] characters.
#[derive(Debug, Clone, Copy)]
pub struct Quoted<T>(pub T);

/// The longest part of a peer's text that a message repeats: enough for a sentence or two, not for a page of HTML.
pub const MAX_QUOTED: usize = 300;

impl<T: fmt::Display> fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Printable(&self.0).to_string();
        f.write_char('"')?;
        let mut chars = text.trim().chars();
        for char in chars.by_ref().take(MAX_QUOTED) {
            // Otherwise the text could end the quotation and continue as if it were ours.
            if char == '"' {
                f.write_char('\\')?;
            }
            f.write_char(char)?;
        }
        if chars.next().is_some() {
            f.write_char('…')?;
        }
        f.write_char('"')
    }
}

/// Writes JSON so that all of it can be seen, and is still the same JSON: characters that control or reorder text, or show nothing,
/// are escaped, and line breaks between values are spaces.
///
/// Unlike [`Printable`], nothing is left out: for texts that people decide by.
#[derive(Debug, Clone, Copy)]
pub struct VisibleJson<'a>(pub &'a str);

impl fmt::Display for VisibleJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                // Between values, because strings have none.
                '\n' | '\r' | '\t' => f.write_char(' ')?,
                char if shown(char) != char || is_invisible(char) => {
                    let mut units = [0; 2];
                    for unit in char.encode_utf16(&mut units) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// Whether a character has no shape of its own: a soft hyphen, a space or joiner without width, a tag, a filler or a variation selector.
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

struct Writer<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    state: TerminalSequenceState,
}

/// The position within an ECMA-48 escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalSequenceState {
    Text,
    Escape,
    /// Parameters of a control sequence, up to its final byte.
    Control,
    /// A string for the terminal itself, such as a title.
    String,
    /// Within such a string, after an escape character.
    StringEscape,
}

impl fmt::Write for Writer<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Nearly all texts are plain.
        if self.state == TerminalSequenceState::Text
            && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        {
            return self.out.write_str(text);
        }
        for char in text.chars() {
            self.state = match (self.state, char) {
                (TerminalSequenceState::Text, '\u{1b}') => TerminalSequenceState::Escape,
                (TerminalSequenceState::Text, '\u{9b}') => TerminalSequenceState::Control,
                (
                    TerminalSequenceState::Text,
                    '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}',
                ) => TerminalSequenceState::String,
                (TerminalSequenceState::Text, char) => {
                    self.out.write_char(shown(char))?;
                    TerminalSequenceState::Text
                }
                (TerminalSequenceState::Escape, '[') => TerminalSequenceState::Control,
                (TerminalSequenceState::Escape, ']' | 'P' | 'X' | '^' | '_') => {
                    TerminalSequenceState::String
                }
                // Intermediate characters of a longer sequence.
                (TerminalSequenceState::Escape, ' '..='/') => TerminalSequenceState::Escape,
                (TerminalSequenceState::Escape, _) => TerminalSequenceState::Text,
                (TerminalSequenceState::Control, ' '..='?') => TerminalSequenceState::Control,
                (TerminalSequenceState::Control, '@'..='~') => TerminalSequenceState::Text,
                // Not a control sequence after all.
                (TerminalSequenceState::Control, char) => {
                    self.out.write_char(shown(char))?;
                    TerminalSequenceState::Text
                }
                (TerminalSequenceState::String, '\u{7}' | '\u{9c}' | '\n' | '\r') => {
                    TerminalSequenceState::Text
                }
                (TerminalSequenceState::String, '\u{1b}') => TerminalSequenceState::StringEscape,
                (TerminalSequenceState::String, _) => TerminalSequenceState::String,
                (TerminalSequenceState::StringEscape, '\\') => TerminalSequenceState::Text,
                (TerminalSequenceState::StringEscape, _) => TerminalSequenceState::String,
            };
        }
        Ok(())
    }
}

fn shown(char: char) -> char {
    match char {
        '\n' | '\r' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        // Direction marks and overrides, which change how text reads.
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        char if char.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in ["", "plain text.", "Grüße, 世界 🎉", "50 % [of] {it}"] {
            assert_eq!(Printable(text).to_string(), text);
        }
    }

    #[test]
    fn leaves_out_terminal_escapes() {
        for (text, expected) in [
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("\u{1b}[2J\u{1b}[1;1Htop", "top"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            (
                "a\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\b",
                "alinkb",
            ),
            ("a\u{9b}31mb", "ab"),
            ("a\u{1b}(0b", "ab"),
            ("a\u{1b}Pq\u{1b}\\b", "ab"),
            ("a\u{1b}", "a"),
        ] {
            assert_eq!(Printable(text).to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn control_characters_cannot_forge_lines_or_directions() {
        let text = "ok\r\n2026-01-01 ERROR forged\u{0}\u{8}\u{7f}\u{202e}";
        let shown = Printable(text).to_string();
        assert_eq!(
            shown,
            "ok  2026-01-01 ERROR forged\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn quotations_are_bounded_and_end_where_the_text_does() {
        assert_eq!(Quoted(" no\n").to_string(), r#""no""#);
        assert_eq!(Quoted(r#"no" (-1)"#).to_string(), r#""no\" (-1)""#);
        let long = Quoted("é".repeat(MAX_QUOTED + 1)).to_string();
        assert_eq!(long, format!("\"{}…\"", "é".repeat(MAX_QUOTED)));
        let whole = Quoted("é".repeat(MAX_QUOTED)).to_string();
        assert_eq!(whole, format!("\"{}\"", "é".repeat(MAX_QUOTED)));
    }

    #[test]
    fn visible_json_leaves_nothing_out() {
        for text in [r#"{"a":"plain \\ \" text, 世界"}"#, "{\"a\": [1,\n2]}"] {
            let visible = VisibleJson(text).to_string();
            assert_eq!(visible, text.replace('\n', " "));
        }
        let hidden =
            "\u{1b}[2J\u{9d}\u{90}\u{9b}1\u{7f}\u{202e}\u{200b}\u{feff}\u{2028}\u{e0041}\u{fe0f}x";
        let visible = VisibleJson(hidden).to_string();
        assert_eq!(
            visible,
            r"\u001b[2J\u009d\u0090\u009b1\u007f\u202e\u200b\ufeff\u2028\udb40\udc41\ufe0fx"
        );
    }

    #[test]
    fn an_unfinished_string_ends_with_its_line() {
        assert_eq!(Printable("a\u{1b}]0;x\nb").to_string(), "ab");
    }
}
