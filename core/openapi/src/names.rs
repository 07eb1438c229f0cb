//! Names of tools and arguments: characters that all hosts accept, and no duplicates.

use std::collections::HashSet;

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

/// Returns `name`, or `name` with the first free number at its end, within `max_chars`.
pub(crate) fn unique(name: String, taken: &mut HashSet<String>, max_chars: usize) -> String {
    let mut candidate = name.clone();
    let mut number = 2_u32;
    while taken.contains(&candidate) {
        let suffix = format!("_{number}");
        let kept: String = name.chars().take(max_chars - suffix.len()).collect();
        candidate = kept + &suffix;
        number += 1;
    }
    taken.insert(candidate.clone());
    candidate
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
        let mut taken = HashSet::new();
        let names: Vec<_> = (0..11)
            .map(|_| unique("abcdef".to_owned(), &mut taken, 6))
            .collect();
        assert_eq!(names[..3], ["abcdef", "abcd_2", "abcd_3"]);
        assert_eq!(names[10], "abc_11");
        assert_eq!(taken.len(), 11);
    }
}
