//! Text of limited length and without control characters.

/// A text of limited length.
pub(super) struct LimitedText {
    pub(super) text: String,
    /// Maximum length of the text in bytes.
    limit: usize,
    /// Whether control characters are escaped and white space between tokens becomes spaces. In a text within a message both
    /// follow when it is written into the message.
    escapes: bool,
    /// Whether a secret was replaced, or would have been if there were room.
    pub(super) has_redacted: bool,
}

impl LimitedText {
    pub(super) fn new(escapes: bool, limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            escapes,
            has_redacted: false,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns an empty text with the same limit for what is written into this one as a string.
    pub(super) fn inner(&self) -> Self {
        Self::new(false, self.limit)
    }

    /// Appends a part; `false` if it has no room.
    pub(super) fn push(&mut self, part: &str) -> bool {
        let has_room = self.text.len() + part.len() <= self.limit;
        if has_room {
            self.text.push_str(part);
        }
        has_room
    }

    /// Appends text of a message with its control characters escaped; `false` if it does not fit.
    pub(super) fn push_escaped(&mut self, text: &[u8]) -> bool {
        // No more than this can fit.
        let text = &text[..text.len().min(self.limit + 4)];
        String::from_utf8_lossy(text).chars().all(|char| {
            let mut buffer = [0; 4];
            match self.escapes && needs_escape(char) {
                true => self.push(&escaped(char)),
                false => self.push(char.encode_utf8(&mut buffer)),
            }
        })
    }

    /// Appends white space between tokens; `false` if it does not fit.
    pub(super) fn push_space(&mut self, space: &[u8]) -> bool {
        match self.escapes && !space.is_empty() {
            true => self.push(" "),
            false => self.push_escaped(space),
        }
    }
}

/// Whether a character could control a terminal, end the line, be invisible or change how the text reads.
fn needs_escape(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

fn escaped(char: char) -> String {
    let mut units = [0; 2];
    let units = char.encode_utf16(&mut units);
    units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
}
