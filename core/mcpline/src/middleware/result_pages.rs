//! Large texts that clients read in pages, as resources.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcpline_protocol::wire::{Raw, json_string};
use mcpline_runtime::clock;

use crate::sync::{Mutex, PoisonError};

/// The resource template of the pages.
pub(super) const TEMPLATE: &str = "result://{id}/{page}";

/// Default limit of the texts that are kept, in bytes: as much as the [cache](super::ResponseCache) keeps.
pub(super) const DEFAULT_MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Default time for which a text is kept. A model that reads further does so within minutes.
pub(super) const DEFAULT_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// What the contents of a page have beside its text and its URI.
const PAGE_BYTES: usize = 96;

/// What a text takes beside its bytes, approximately.
const ENTRY_BYTES: usize = 256;

/// The texts that are kept, for all clients together. A text is read by those who know its id, which is not guessable, and only by
/// the authenticated caller that it was made for.
#[derive(Debug)]
pub(super) struct ResultPages {
    max_kept_bytes: usize,
    lifetime: Duration,
    kept: Mutex<KeptTexts>,
}

/// The texts, with their size.
#[derive(Debug, Default)]
struct KeptTexts {
    bytes: usize,
    /// The oldest first.
    texts: VecDeque<PagedText>,
}

/// A text that is read in pages.
#[derive(Debug)]
struct PagedText {
    id: String,
    /// The caller that may read it; empty if there is no authorization.
    principal: String,
    text: Arc<str>,
    /// Where each page ends.
    ends: Arc<[usize]>,
    expires: Duration,
}

/// What a client needs to read a text.
#[derive(Debug)]
pub(super) struct PageLinks {
    /// The URI of the first page.
    pub(super) first: String,
    /// The URI of the last page.
    pub(super) last: String,
}

impl ResultPages {
    pub(super) fn new(max_kept_bytes: usize, lifetime: Duration) -> Self {
        Self {
            max_kept_bytes,
            lifetime,
            kept: Mutex::default(),
        }
    }

    /// Keeps a text in pages of at most `page_bytes`, as JSON. `None` if it is larger than all texts may be.
    pub(super) fn keep(&self, text: &str, principal: &str, page_bytes: usize) -> Option<PageLinks> {
        let id = clock::token();
        let uri = |page: usize| format!("result://{id}/{page}");
        let room = page_bytes.saturating_sub(PAGE_BYTES + uri(usize::MAX).len());
        let ends = page_ends(text, room);
        let links = PageLinks {
            first: uri(1),
            last: uri(ends.len()),
        };
        let pages = PagedText {
            id,
            principal: principal.to_owned(),
            text: text.into(),
            ends: ends.into(),
            expires: clock::now().saturating_add(self.lifetime),
        };
        if pages.bytes() > self.max_kept_bytes {
            return None;
        }
        let mut kept = self.lock();
        kept.drop_expired();
        kept.bytes += pages.bytes();
        kept.texts.push_back(pages);
        while kept.bytes > self.max_kept_bytes {
            kept.drop_oldest();
        }
        Some(links)
    }

    /// Returns the contents of a page: a JSON array. `None` if it is unknown or no longer kept.
    pub(super) fn read(&self, uri: &str, principal: &str) -> Option<Raw> {
        let (id, page) = uri.strip_prefix("result://")?.split_once('/')?;
        let index = page.parse::<usize>().ok()?.checked_sub(1)?;
        let (text, ends) = {
            let mut kept = self.lock();
            kept.drop_expired();
            let mut texts = kept.texts.iter();
            let found = texts.find(|pages| pages.id == id && pages.principal == principal)?;
            (found.text.clone(), found.ends.clone())
        };
        let end = *ends.get(index)?;
        let begin = index.checked_sub(1).map_or(0, |before| ends[before]);
        let mut contents = br#"[{"uri":"#.to_vec();
        json_string(&mut contents, uri);
        contents.extend_from_slice(br#","mimeType":"text/plain","text":"#);
        json_string(&mut contents, &text[begin..end]);
        contents.extend_from_slice(b"}]");
        Some(Raw::from_trusted(contents))
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, KeptTexts> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptTexts {
    fn drop_expired(&mut self) {
        let now = clock::now();
        // All are kept for the same time, so the oldest expire first.
        while self
            .texts
            .front()
            .is_some_and(|oldest| oldest.expires <= now)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.texts.pop_front() {
            self.bytes -= oldest.bytes();
        }
    }
}

impl PagedText {
    fn bytes(&self) -> usize {
        self.text.len() + self.principal.len() + self.ends.len() * size_of::<usize>() + ENTRY_BYTES
    }
}

/// Returns where each page ends, so that the text of each has at most `room` bytes as JSON, and at least one character.
fn page_ends(text: &str, room: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut encoded = 2;
    let mut begin = 0;
    for (at, character) in text.char_indices() {
        let bytes = encoded_len(character);
        if encoded + bytes > room && at > begin {
            ends.push(at);
            (begin, encoded) = (at, 2);
        }
        encoded += bytes;
    }
    ends.push(text.len());
    ends
}

/// Returns how many bytes a character has within a JSON string.
fn encoded_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> ResultPages {
        ResultPages::new(DEFAULT_MAX_KEPT_BYTES, DEFAULT_LIFETIME)
    }

    fn text_of(pages: &ResultPages, links: &PageLinks, principal: &str) -> Option<String> {
        let (start, last) = links.last.rsplit_once('/')?;
        let last: usize = last.parse().ok()?;
        let mut text = String::new();
        for page in 1..=last {
            let contents = pages.read(&format!("{start}/{page}"), principal)?;
            let contents: serde_json::Value = contents.decode().ok()?;
            text.push_str(contents[0]["text"].as_str()?);
        }
        Some(text)
    }

    #[test]
    fn pages_have_the_whole_text_and_no_more_bytes_than_they_may() {
        for character in ["a", "é", "\u{1}", "\"", "😀", "\n"] {
            let text = character.repeat(10_000);
            let pages = new();
            let links = pages.keep(&text, "", 1_000).expect("it is kept");
            assert_eq!(text_of(&pages, &links, "").as_deref(), Some(&*text));
            for uri in [&links.first, &links.last] {
                let contents = pages.read(uri, "").expect("a page");
                assert!(contents.as_bytes().len() <= 1_000);
            }
            let first = pages.read(&links.first, "").expect("a page");
            assert!(first.as_bytes().len() > 900);
        }
    }

    #[test]
    fn a_text_is_read_by_its_caller_only() {
        let pages = new();
        let links = pages.keep("secret", "ann", 1_000).expect("it is kept");
        assert!(pages.read(&links.first, "ann").is_some());
        assert!(pages.read(&links.first, "bob").is_none());
        assert!(pages.read(&links.first, "").is_none());
        for uri in ["result://", "result://a/1", "result:///1", "other://a/1"] {
            assert!(pages.read(uri, "ann").is_none());
        }
        let (start, _) = links.first.rsplit_once('/').expect("a page");
        for page in ["0", "2", "-1", "", "1/1", "99999999999999999999"] {
            assert!(pages.read(&format!("{start}/{page}"), "ann").is_none());
        }
    }

    #[test]
    fn the_oldest_texts_make_room() {
        let pages = ResultPages::new(10_000, DEFAULT_LIFETIME);
        let text = "x".repeat(4_000);
        let links: Vec<_> = (0..3)
            .map(|_| pages.keep(&text, "", 1_000).expect("it is kept"))
            .collect();
        let is_kept = |links: &PageLinks| pages.read(&links.first, "").is_some();
        let kept: Vec<_> = links.iter().map(is_kept).collect();
        assert_eq!(kept, [false, true, true]);
        assert!(pages.keep(&"x".repeat(10_000), "", 1_000).is_none());
        assert!(is_kept(&links[2]), "what is too large makes no room");
        assert!(pages.lock().bytes <= 10_000);
    }

    #[tokio::test(start_paused = true)]
    async fn texts_are_kept_for_a_time() {
        let pages = new();
        let links = pages.keep("text", "", 1_000).expect("it is kept");
        tokio::time::advance(DEFAULT_LIFETIME - Duration::from_secs(1)).await;
        assert!(pages.read(&links.first, "").is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pages.read(&links.first, "").is_none());
        assert_eq!(pages.lock().bytes, 0);
    }
}
