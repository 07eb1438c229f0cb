//! Names of tools and arguments: characters that all hosts accept, and no duplicates.

use std::collections::{HashMap, HashSet};

/// Replaces each run of characters other than ASCII letters, digits, `_` and `-` by one `_`, and cuts the name. The result
/// may be empty.
pub(crate) fn sanitized(text: &str, max_chars: usize) -> String {
    let mut name = String::with_capacity(text.len().min(max_chars));
    for character in text.chars() {
        let kept = match character.is_ascii_alphanumeric() || character == '-' {
            true => character,
            false => '_',
        };
        if kept == '_' && (name.is_empty() || name.ends_with('_')) {
            continue;
        }
        if name.len() == max_chars {
            break;
        }
        name.push(kept);
    }
    let trimmed = name.trim_end_matches(['_', '-']).len();
    name.truncate(trimmed);
    name
}

/// Names that are taken, none of them twice.
#[derive(Debug)]
pub(crate) struct UniqueNames {
    max_chars: usize,
    taken: HashSet<String>,
    /// The next number to try, by what is before it and by its number of digits: each number is tried once, so that many
    /// equal names do not take long.
    next: HashMap<(String, u32), u64>,
}

impl UniqueNames {
    /// No names yet. All will have at most `max_chars` characters.
    pub(crate) fn new(max_chars: usize) -> Self {
        Self {
            max_chars,
            taken: HashSet::new(),
            next: HashMap::new(),
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// Takes `name`, or `name` with a free number at its end.
    pub(crate) fn take(&mut self, name: String) -> String {
        let unique = match self.taken.contains(&name) {
            true => self.numbered(&name),
            false => name,
        };
        self.taken.insert(unique.clone());
        unique
    }

    fn numbered(&mut self, name: &str) -> String {
        let mut digits = 1;
        loop {
            let suffix_chars = 1 + usize::try_from(digits).unwrap_or(usize::MAX);
            let kept_chars = self.max_chars.saturating_sub(suffix_chars);
            let kept: String = name.chars().take(kept_chars).collect();
            let first = if digits == 1 {
                2
            } else {
                10_u64.pow(digits - 1)
            };
            let end = 10_u64.pow(digits);
            let next = self.next.entry((kept.clone(), digits)).or_insert(first);
            while *next < end {
                let candidate = format!("{kept}_{next}");
                *next += 1;
                if !self.taken.contains(&candidate) {
                    return candidate;
                }
            }
            digits += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_only_characters_that_hosts_accept() {
        for (text, expected) in [
            ("repos/list-for-org", "repos_list-for-org"),
            ("filter[name]", "filter_name"),
            ("$top", "top"),
            ("get__it", "get_it"),
            ("größe", "gr_e"),
            ("//", ""),
        ] {
            assert_eq!(sanitized(text, 20), expected, "{text}");
        }
        assert_eq!(sanitized("abcdef", 4), "abcd");
        assert_eq!(sanitized("abc_def", 4), "abc");
    }

    #[test]
    fn suffixes_stay_within_the_limit() {
        let mut unique = UniqueNames::new(6);
        let names: Vec<_> = (0..11).map(|_| unique.take("abcdef".to_owned())).collect();
        assert_eq!(names[..3], ["abcdef", "abcd_2", "abcd_3"]);
        assert_eq!(names[10], "abc_11");
        assert_eq!(unique.taken.len(), 11);
    }

    #[test]
    fn many_equal_names_are_numbered_at_once() {
        const COUNT: usize = 50_000;
        let mut unique = UniqueNames::new(8);
        let last = (0..COUNT).map(|_| unique.take("equal".to_owned())).last();
        assert_eq!(last.as_deref(), Some("eq_50000"));
        assert!(unique.next.values().all(|next| *next <= 50_001));
        let others = (0..COUNT).map(|number| unique.take(format!("eq{}", number % 10)));
        assert_eq!(others.collect::<HashSet<_>>().len(), COUNT);
    }
}
