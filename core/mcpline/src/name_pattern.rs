//! Patterns of tool names.

/// A pattern of names, in which `*` stands for any characters.
#[derive(Debug, Clone)]
pub(crate) struct NamePattern(Box<str>);

impl NamePattern {
    pub(crate) fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// Returns the patterns of a list.
    pub(crate) fn all<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Vec<Self> {
        let patterns = patterns.into_iter();
        patterns
            .map(|pattern| Self::new(pattern.as_ref()))
            .collect()
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else {
            return &*self.0 == name;
        };
        let Some(mut name) = name.strip_prefix(first) else {
            return false;
        };
        let mut parts = rest.split('*');
        // There is at least one, the part after the last `*`.
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            // The first occurrence leaves the most for the others.
            let Some((_, after)) = name.split_once(part) else {
                return false;
            };
            name = after;
        }
        name.ends_with(last)
    }
}

/// Whether one of the patterns matches.
pub(crate) fn matches_any(patterns: &[NamePattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, matching, others) in [
            ("read", &["read"][..], &["reader", "", "Read"][..]),
            ("*", &["", "a", "a*b"], &[]),
            ("get_*", &["get_", "get_a"], &["get", "xget_a"]),
            ("*_file", &["_file", "read_file"], &["file", "read_files"]),
            ("a*b*c", &["abc", "a-b-b-c"], &["ab", "acb", "abcd", "xabc"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("a**b", &["ab", "axb"], &["a"]),
            ("ä*ö", &["äö", "äüö"], &["ä"]),
        ] {
            let compiled = NamePattern::new(pattern);
            for name in matching {
                assert!(compiled.matches(name), "{pattern} {name}");
            }
            for name in others {
                assert!(!compiled.matches(name), "{pattern} {name}");
            }
        }
    }
}
