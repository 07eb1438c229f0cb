//! Case folding: which characters are equal if case is ignored, according to ECMA-262's Canonicalize with the flag `u`
//! (simple case folding).
//!
//! The standard library has lower and upper case, but not folding. A character folds to the lower case of its upper
//! case, if each of these is a single character. The differences to `CaseFolding.txt` (statuses C and S) are listed
//! here: two letters that fold to themselves, and three pairs that no case mapping connects. The only remaining
//! difference is which of the equal characters represents all of them (an upper case letter for Cherokee). The version
//! of Unicode is that of the standard library.

/// Characters that fold to another one without being its upper case: the target, and the first and the last of a range
/// that folds to consecutive targets.
const EXTRA_FOLDINGS: &[(u32, u32, u32)] = &[
    (0x6B, 0x212A, 0x212A),
    (0x73, 0x17F, 0x17F),
    (0xDF, 0x1E9E, 0x1E9E),
    (0xE5, 0x212B, 0x212B),
    (0x1C6, 0x1C5, 0x1C5),
    (0x1C9, 0x1C8, 0x1C8),
    (0x1CC, 0x1CB, 0x1CB),
    (0x1F3, 0x1F2, 0x1F2),
    (0x390, 0x1FD3, 0x1FD3),
    (0x3B0, 0x1FE3, 0x1FE3),
    (0x3B2, 0x3D0, 0x3D0),
    (0x3B5, 0x3F5, 0x3F5),
    (0x3B8, 0x3D1, 0x3D1),
    (0x3B8, 0x3F4, 0x3F4),
    (0x3B9, 0x345, 0x345),
    (0x3B9, 0x1FBE, 0x1FBE),
    (0x3BA, 0x3F0, 0x3F0),
    (0x3BC, 0xB5, 0xB5),
    (0x3C0, 0x3D6, 0x3D6),
    (0x3C1, 0x3F1, 0x3F1),
    (0x3C3, 0x3C2, 0x3C2),
    (0x3C6, 0x3D5, 0x3D5),
    (0x3C9, 0x2126, 0x2126),
    (0x432, 0x1C80, 0x1C80),
    (0x434, 0x1C81, 0x1C81),
    (0x43E, 0x1C82, 0x1C82),
    (0x441, 0x1C83, 0x1C83),
    (0x442, 0x1C84, 0x1C84),
    (0x442, 0x1C85, 0x1C85),
    (0x44A, 0x1C86, 0x1C86),
    (0x463, 0x1C87, 0x1C87),
    (0x1E61, 0x1E9B, 0x1E9B),
    (0x1F80, 0x1F88, 0x1F8F),
    (0x1F90, 0x1F98, 0x1F9F),
    (0x1FA0, 0x1FA8, 0x1FAF),
    (0x1FB3, 0x1FBC, 0x1FBC),
    (0x1FC3, 0x1FCC, 0x1FCC),
    (0x1FF3, 0x1FFC, 0x1FFC),
    (0xA64B, 0x1C88, 0x1C88),
    (0xFB06, 0xFB05, 0xFB05),
];

/// Returns the folding of a character.
pub(super) fn fold_case(char: u32) -> u32 {
    match char {
        0x41..=0x5A => char + 0x20,
        0..=0x7F => char,
        // The dotted and dotless letters of Turkish differ from `i`, and from each other.
        0x130 | 0x131 => char,
        0x1FD3 => 0x390,
        0x1FE3 => 0x3B0,
        0xFB05 => 0xFB06,
        _ => lower(upper(char)),
    }
}

/// All characters with the same folding as this one, including itself.
pub(super) fn case_variants(char: u32) -> impl Iterator<Item = u32> {
    let fold_case = fold_case(char);
    let upper = Some(upper(fold_case))
        .filter(|&upper| upper != fold_case && self::fold_case(upper) == fold_case);
    let strays = EXTRA_FOLDINGS.iter().filter_map(move |&(to, first, last)| {
        let stray = first + fold_case.checked_sub(to)?;
        (stray <= last).then_some(stray)
    });
    std::iter::once(fold_case).chain(upper).chain(strays)
}

fn lower(char: u32) -> u32 {
    single_char(char, char::to_lowercase)
}

fn upper(char: u32) -> u32 {
    single_char(char, char::to_uppercase)
}

/// Applies a case mapping if its result is a single character; otherwise returns the character, as for surrogates.
fn single_char<I: Iterator<Item = char>>(char: u32, changed: fn(char) -> I) -> u32 {
    let Some(mut changed) = char::from_u32(char).map(changed) else {
        return char;
    };
    match (changed.next(), changed.next()) {
        (Some(changed), None) => u32::from(changed),
        _ => char,
    }
}

#[cfg(test)]
mod tests {
    use super::{case_variants, fold_case};

    /// Fails when the standard library gains a character that belongs in the list above.
    #[test]
    fn case_variants_include_the_character_itself() {
        for char in 0..=0x10_FFFF {
            assert!(case_variants(char).any(|other| other == char), "{char:#x}");
            for other in case_variants(char) {
                assert_eq!(fold_case(other), fold_case(char), "{char:#x}, {other:#x}");
            }
        }
    }

    #[test]
    fn folding_follows_unicode_and_not_languages() {
        let all_alike = |char: char| {
            let mut all: Vec<_> = case_variants(u32::from(char))
                .filter_map(char::from_u32)
                .collect();
            all.sort_unstable();
            String::from_iter(all)
        };
        for group in [
            "1",
            "Aa",
            "Kk\u{212a}",
            "Ss\u{17f}",
            "Ii",
            "\u{130}",
            "\u{131}",
            "\u{df}\u{1e9e}",
            "Σςσ",
            "\u{1c4}\u{1c5}\u{1c6}",
            "\u{345}Ιι\u{1fbe}",
            "\u{1f85}\u{1f8d}",
            "\u{13a0}\u{ab70}",
            "漢",
            "Жж",
        ] {
            for char in group.chars() {
                assert_eq!(all_alike(char), group);
            }
        }
        assert!(case_variants(0xD800).eq([0xD800]));
    }
}
