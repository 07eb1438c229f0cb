//! Ranks completion candidates by how well they match the typed text: first those that start with it, then those that
//! contain it, then those that contain its letters in order.

use mcpline_schema::StepBudget;

use crate::limits::MAX_TYPED_BYTES;
use crate::vocabulary::Completion;

/// The best candidates, and the number of all matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankedCandidates {
    /// The best candidates, at most [`Completion::MAX_VALUES`].
    pub values: Vec<String>,
    /// The number of matches.
    pub total: usize,
    /// Whether there are more matches than `values` holds.
    pub has_more: bool,
}

/// Ranks the candidates that match `typed`; empty text matches all. Equally good candidates keep their order. `None` if
/// the budget doesn't suffice to compare them all.
pub fn rank<T: AsRef<str>>(
    typed: &str,
    candidates: &[T],
    budget: &mut StepBudget<'_>,
) -> Option<RankedCandidates> {
    if typed.len() > MAX_TYPED_BYTES {
        return Some(RankedCandidates::default());
    }
    let folded = typed.to_lowercase();
    let mut fitting = Vec::new();
    for candidate in candidates {
        let candidate = candidate.as_ref();
        budget.charge(CANDIDATE_STEPS + candidate.len())?;
        if let Some(fit) = fit(typed, &folded, candidate) {
            fitting.push((fit, candidate));
        }
    }
    fitting.sort_by_key(|(fit, _)| *fit);
    let best = fitting.iter().take(Completion::MAX_VALUES);
    Some(RankedCandidates {
        values: best.map(|(_, candidate)| (*candidate).to_owned()).collect(),
        total: fitting.len(),
        has_more: fitting.len() > Completion::MAX_VALUES,
    })
}

/// The steps for a candidate, besides one per byte: it is converted to lower case, and matches are sorted.
const CANDIDATE_STEPS: usize = 16;

/// How well a candidate matches; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Starts with it, including letter case.
    Prefix,
    /// Starts with it, ignoring letter case.
    FoldedPrefix,
    /// A word in it starts with it.
    Word,
    /// Contains it.
    Inside,
    /// Contains its letters in order, over this many letters.
    Scattered(usize),
}

fn fit(typed: &str, folded: &str, candidate: &str) -> Option<Fit> {
    if candidate.starts_with(typed) {
        return Some(Fit::Prefix);
    }
    let candidate = candidate.to_lowercase();
    if folded.len() > candidate.len() {
        // Its letters can't be in order either, and a search would read all of the typed text.
        return None;
    }
    if candidate.starts_with(folded) {
        return Some(Fit::FoldedPrefix);
    }
    let starts_word = |at: usize| !candidate[..at].ends_with(char::is_alphanumeric);
    let mut places = candidate.match_indices(folded).map(|(at, _)| at).peekable();
    if places.peek().is_some() {
        return Some(if places.any(starts_word) {
            Fit::Word
        } else {
            Fit::Inside
        });
    }
    subsequence_length(folded, &candidate).map(Fit::Scattered)
}

/// The number of letters of `candidate` that contain the letters of `typed` in order, from the first place where they
/// do.
fn subsequence_length(typed: &str, candidate: &str) -> Option<usize> {
    let mut wanted = typed.chars().peekable();
    let mut first = None;
    for (at, letter) in candidate.chars().enumerate() {
        if wanted.next_if_eq(&letter).is_some() {
            let first = *first.get_or_insert(at);
            if wanted.peek().is_none() {
                return Some(at - first);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked<T: AsRef<str>>(typed: &str, candidates: &[T]) -> RankedCandidates {
        rank(typed, candidates, &mut StepBudget::new(1_000_000, None)).expect("affordable")
    }

    fn values(typed: &str, candidates: &[&str]) -> Vec<String> {
        ranked(typed, candidates).values
    }

    #[test]
    fn prefixes_come_before_words_before_parts_before_scattered_letters() {
        let candidates = ["xpyx", "p-y", "my-py", "Python", "pytorch", "ruby"];
        assert_eq!(
            values("py", &candidates),
            ["pytorch", "Python", "my-py", "xpyx", "p-y"]
        );
    }

    #[test]
    fn letters_that_stand_closer_together_win() {
        assert_eq!(
            values("ace", &["a--c--e", "abcde", "ac-e"]),
            ["ac-e", "abcde", "a--c--e"]
        );
    }

    #[test]
    fn with_nothing_typed_all_candidates_fit_in_their_order() {
        assert_eq!(values("", &["b", "a", "c"]), ["b", "a", "c"]);
    }

    #[test]
    fn leaves_out_candidates_that_do_not_match() {
        assert_eq!(ranked("z", &["a", "b"]), RankedCandidates::default());
        assert_eq!(values("straße", &["STRASSE", "Straße"]), ["Straße"]);
    }

    #[test]
    fn returns_at_most_a_hundred_and_counts_all() {
        let candidates: Vec<_> = (0..150).map(|number| format!("item{number}")).collect();
        let best = ranked("item", &candidates);
        assert_eq!(
            (best.values.len(), best.total, best.has_more),
            (100, 150, true)
        );
        let best = ranked("item14", &candidates);
        assert_eq!(
            (best.values.len(), best.total, best.has_more),
            (15, 15, false)
        );
    }

    #[test]
    fn ranking_costs_as_much_as_the_candidates_are_long() {
        let cost = |count: usize, length: usize| {
            let candidates = vec!["x".repeat(length); count];
            let mut budget = StepBudget::new(usize::MAX, None);
            let typed = "x".repeat(MAX_TYPED_BYTES);
            rank(&typed, &candidates, &mut budget).expect("affordable");
            budget.spent()
        };
        assert_eq!(cost(1_000, 10), 100 * cost(10, 10));
        assert!(cost(10, 10_000) <= 1_000 * cost(10, 10));
        let candidates = vec!["x".repeat(100); 100];
        assert_eq!(
            rank("x", &candidates, &mut StepBudget::new(5_000, None)),
            None
        );
    }

    #[test]
    fn overlong_input_matches_nothing() {
        let typed = "x".repeat(MAX_TYPED_BYTES + 1);
        assert_eq!(
            ranked(&typed, &[typed.as_str()]),
            RankedCandidates::default()
        );
    }
}
