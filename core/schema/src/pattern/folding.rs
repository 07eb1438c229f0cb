//! Which characters are the same where case is ignored: those that ECMA-262's Canonicalize, with the flag `u`, makes one
//! (simple case folding).
//!
//! The standard library knows lower and upper case, but not folding. A character folds to the lower case of its upper case,
//! as far as these are one character each. Where `CaseFolding.txt` (statuses C and S) sees it otherwise, that is written
//! down here: two letters that stay themselves, and three pairs that no case connects. What is left differs from it in
//! nothing but which of the characters that are alike stands for all of them (it is an upper case for the Cherokee). Which
//! version of Unicode holds is up to the standard library.

/// Characters that fold to another one without being its upper case: that one, the first and the last, which fold in a row.
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

/// What a character folds to.
pub(super) fn fold_case(char: u32) -> u32 {
    match char {
        0x41..=0x5A => char + 0x20,
        0..=0x7F => char,
        // Dotted and dotless letters of Turkish stay apart from `i`, and from each other.
        0x130 | 0x131 => char,
        0x1FD3 => 0x390,
        0x1FE3 => 0x3B0,
        0xFB05 => 0xFB06,
        _ => lower(upper(char)),
    }
}

/// All characters that fold to what this one does, itself among them.
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

/// What a character becomes, where that is one character; else it stays what it is, as surrogates do.
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

    /// Also says when the standard library has learned of a character that belongs to the list above.
    #[test]
    fn every_character_is_among_those_like_it() {
        for char in 0..=0x10_FFFF {
            assert!(case_variants(char).any(|other| other == char), "{char:#x}");
            for other in case_variants(char) {
                assert_eq!(fold_case(other), fold_case(char), "{char:#x}, {other:#x}");
            }
        }
    }

    #[test]
    fn letters_are_alike_as_unicode_folds_them_and_not_as_they_are_written_in_a_language() {
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
