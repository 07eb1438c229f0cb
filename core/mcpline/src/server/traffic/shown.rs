//! Text of limited length and without control characters.

/// Maximum length of a message in the log in bytes: enough for most messages, and too little for an image to hide the
/// messages around it. With the rest of its line it is less than 4,096 bytes, which Linux writes to a pipe at once.
pub(super) const MAX_SHOWN_BYTES: usize = 3_840;

/// A text of limited length.
pub(super) struct Shown {
    pub(super) text: String,
    /// Whether control characters are escaped and white space between tokens becomes spaces. In a text within a message both
    /// follow when it is written into the message.
    escapes: bool,
    /// Whether a secret was replaced, or would have been if there were room.
    pub(super) has_redacted: bool,
}

impl Shown {
    pub(super) fn new(escapes: bool) -> Self {
        Self {
            text: String::new(),
            escapes,
            has_redacted: false,
        }
    }

    /// Appends a part; `false` if it has no room.
    pub(super) fn push(&mut self, part: &str) -> bool {
        let has_room = self.text.len() + part.len() <= MAX_SHOWN_BYTES;
        if has_room {
            self.text.push_str(part);
        }
        has_room
    }

    /// Appends text of a message with its control characters escaped; `false` if it does not fit.
    pub(super) fn push_escaped(&mut self, text: &[u8]) -> bool {
        // No more than this can fit.
        let text = &text[..text.len().min(MAX_SHOWN_BYTES + 4)];
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
