//! Matches, errors and costs. `tests/patterns` compares the breadth of the syntax with Node's RegExp; here are the
//! tests that it can't cover.

use super::{Pattern, PatternError};
use crate::budget::StepBudget;
use crate::limits::{
    MAX_CLASS_PROPERTIES, MAX_PATTERN_BYTES, MAX_PATTERN_DEPTH, MAX_PATTERN_OPERATIONS,
};

const PLENTY: usize = 1_000_000;

fn budget(steps: usize) -> StepBudget<'static> {
    StepBudget::new(steps, None)
}

fn plenty() -> StepBudget<'static> {
    budget(PLENTY)
}

fn compiled(pattern: &str) -> Pattern {
    Pattern::compile(pattern, &mut plenty()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

fn is_found(pattern: &str, text: &str) -> bool {
    compiled(pattern)
        .is_found(text, &mut plenty())
        .unwrap_or_else(|| panic!("{pattern} took too long"))
}

fn refused(pattern: &str) -> PatternError {
    match Pattern::compile(pattern, &mut plenty()) {
        Ok(_) => panic!("{pattern} was taken"),
        Err(error) => error,
    }
}

/// The number of steps of searching a text.
fn cost(pattern: &str, text: &str) -> usize {
    let mut budget = budget(usize::MAX);
    compiled(pattern).is_found(text, &mut budget);
    budget.spent()
}

#[track_caller]
fn holds(pattern: &str, found: &[&str], not_found: &[&str]) {
    for text in found {
        assert!(
            is_found(pattern, text),
            "{pattern} is not found in {text:?}"
        );
    }
    for text in not_found {
        assert!(!is_found(pattern, text), "{pattern} is found in {text:?}");
    }
}

#[test]
fn an_expression_is_searched_for_anywhere() {
    holds("b+c", &["abbcd", "bc"], &["", "ac", "cb"]);
    holds("", &["", "a"], &[]);
    holds("^abc$", &["abc"], &["abc\n", "xabc", "abcd"]);
    holds("^a|b$", &["ax", "xb"], &["xa", "bx"]);
}

#[test]
fn classes_are_those_of_ecma_262_whatever_a_text_is_written_in() {
    holds(r"^\d$", &["7"], &["٧", "x"]);
    holds(r"^\w$", &["_", "a"], &["é", "-"]);
    holds(
        r"^\s$",
        &[" ", "\u{feff}", "\u{3000}"],
        &["\u{85}", "\u{180e}"],
    );
    holds(
        "^.$",
        &["😀", "é", "\u{85}"],
        &["\n", "\r", "\u{2028}", "\u{2029}"],
    );
    holds("^[^]$", &["\n", "😀"], &[""]);
    holds("[]", &[], &["", "a"]);
    holds("^[^a-c]$", &["d", "é", "\n"], &["b", ""]);
    holds(r"^[\W\d]+$", &["1-é"], &["a"]);
    holds(r"^[\b]$", &["\u{8}"], &["b"]);
}

#[test]
fn properties_are_known_by_all_their_names() {
    for name in [
        "Lu",
        "Uppercase_Letter",
        "gc=Lu",
        "General_Category=Lu",
        "Uppercase",
        "Upper",
        "LC",
        "L",
    ] {
        holds(&format!(r"^\p{{{name}}}$"), &["A", "Ж"], &["1", "-"]);
        holds(&format!(r"^\P{{{name}}}$"), &["1", "-"], &["A", "Ж"]);
    }
    holds(r"^[\p{digit}\p{Sc}]+$", &["1٣€"], &["a"]);
    holds(r"^\p{Any}$", &["\u{e000}"], &[]);
    holds(r"^\p{Assigned}$", &["a"], &["\u{378}"]);
    for name in [
        "Script=Greek",
        "sc=Grek",
        "Script_Extensions=Greek",
        "scx=Grek",
    ] {
        holds(&format!(r"^\p{{{name}}}$"), &["Ω"], &["A"]);
    }
    holds(r"^\p{scx=Hira}$", &["ー"], &["漢", " ", "a"]);
    holds(r"^\p{sc=Hira}$", &["あ"], &["ー"]);
    assert_eq!(
        refused(r"\p{Klingon}").message,
        "a property of characters that is not known"
    );
    refused(r"\p{lu}");
    refused(r"\p{Script=Lu}");
    refused(r"\pL");
}

#[test]
fn number_of_properties_in_a_class_is_limited() {
    let categories = r"\p{Lu}\P{Ll}".repeat(100);
    holds(&format!("^[{categories}]$"), &["A", "1"], &["a", "é"]);
    let alphabetic = r"\p{Alphabetic}".repeat(100);
    holds(&format!("^[{alphabetic}]$"), &["a", "é"], &["1"]);
    let scripts = [
        "Arab", "Armn", "Beng", "Cyrl", "Deva", "Ethi", "Geor", "Grek", "Gujr", "Guru", "Hang",
        "Hani", "Hebr", "Hira", "Kana", "Khmr", "Latn",
    ];
    assert!(scripts.len() > MAX_CLASS_PROPERTIES);
    let class = scripts.map(|script| format!(r"\p{{sc={script}}}")).concat();
    assert_eq!(
        refused(&format!("[{class}]")).message,
        "a class of too many properties"
    );
    let few = MAX_CLASS_PROPERTIES / 2;
    let class = scripts.map(|script| format!(r"\p{{sc={script}}}"));
    compiled(&format!("(?i)[{}]", class[..few].concat()));
    refused(&format!("(?i)[{}]", class[..=few].concat()));
}

#[test]
fn accepts_needless_escapes() {
    holds(r"^[\w\-\.\@]+\:\_\~$", &["a-b.c@d:_~"], &["a"]);
    holds("^a]{x}$", &["a]{x}"], &[]);
    holds(r"^x{,3}$", &["x{,3}"], &["xx"]);
    holds(r"^[\w-.]+$", &["a-."], &["/"]);
    holds(r"^(?=a)*b$", &["b"], &[]);
}

#[test]
fn accepts_unambiguous_syntax_of_other_languages() {
    holds(r"\Aab\z", &["ab"], &["ab\n", "xab"]);
    holds("^(?P<x>a|b)$", &["a", "b"], &["ab"]);
    for pattern in [
        r"a\Z", r"\h", r"\e", r"\Q", r"[\z]", "(?#a)", "(?>a)", r"\01", r"[\1]",
    ] {
        refused(pattern);
    }
}

#[test]
fn flags_at_the_start_hold_for_all_of_an_expression() {
    holds("(?i)^abc$", &["abc", "ABC", "aBc"], &["abd", "abcA"]);
    holds("(?s)^a.b$", &["a\nb", "a\u{2028}b", "axb"], &["A\nb"]);
    holds("^a.b$", &["axb"], &["a\nb"]);
    holds(
        "(?m)^b$",
        &["b", "a\nb\nc", "a\rb", "b\u{2029}"],
        &["ab", "a\u{85}b"],
    );
    holds("(?is)^(?:A|b.)$", &["a", "B\n"], &["\n"]);
    holds("(?i)(?m)^B$", &["a\nb"], &["ab"]);
    holds("(?u)^a$|(?i:b)", &["a", "B"], &["A"]);
    holds("(?mu)^a$", &["b\na"], &["A"]);
    holds(r"(?m)\Ab\z", &["b"], &["a\nb", "b\n"]);
}

#[test]
fn flags_of_a_group_hold_within_it() {
    holds("^(?i:b)a$", &["ba", "Ba"], &["bA"]);
    holds("(?i)^b(?-i:a)b$", &["bab", "BaB"], &["bAb"]);
    holds("^(?s:.)(?i-s:A.)$", &["\nab"], &["\na\n"]);
    holds("^(?s-i:.(?i:a|b)c)$", &["\nBc"], &["\nbC"]);
    holds("^(?m:a$)[^]*^b$", &[], &["a\nb"]);
    holds("^(?m:a$)[^]*(?m:^)b$", &["a\nb", "a\nc\nb"], &["acb"]);
    holds("^(?i:a|b)+c$", &["aBAbc"], &["aC"]);
    holds("(?i:(?=B)).$", &["b", "B"], &["c"]);
    holds("(?i-:a)", &["A"], &["b"]);
}

#[test]
fn case_is_ignored_as_unicode_folds_it() {
    holds(
        "(?i)^[a-z]+$",
        &["aZ", "\u{17f}\u{212a}"],
        &["é", "1", "\u{131}"],
    );
    holds("(?i)^[A-C]{5,6}$", &["abcABC"], &["abcd12"]);
    holds("(?i)^ß$", &["ß", "ẞ"], &["ss", "SS"]);
    holds("(?i)^σ$", &["Σ", "ς", "σ"], &["s"]);
    holds("(?i)^[à-ö]$", &["É", "é"], &["Ÿ", "e"]);
    holds("(?i)^[^a-zé]+$", &["1-"], &["A", "b", "É", "\u{212a}"]);
    holds(r"(?i)^\p{Lu}$", &["a", "A"], &["1", "ª"]);
    holds(r"(?i)^\P{Lu}$", &["a", "A", "1"], &[]);
    holds(r"(?i)^[^\P{Lu}]$", &[], &["a", "A", "1"]);
    holds("(?i)^\\u0041\\x62$", &["ab", "AB"], &["b"]);
    // Without the flag, characters are only equal to themselves.
    holds("^[a-z]$", &["k"], &["K", "\u{212a}"]);
}

#[test]
fn word_characters_include_case_variants_if_case_is_ignored() {
    holds(r"(?i)^\w$", &["s", "\u{17f}", "\u{212a}"], &["é", "-"]);
    holds(r"(?i)^\W$", &["é", "-"], &["s", "S", "\u{17f}", "K"]);
    holds(r"(?i)^[^\w]$", &["é", "-"], &["s", "\u{17f}"]);
    holds(r"(?i)^[^\W]$", &["K", "\u{17f}"], &["-"]);
    holds(r"(?i)-\b.$", &["-\u{17f}", "-s"], &["-é", "--"]);
    holds(r"-\b.$", &["-s"], &["-\u{17f}"]);
    holds(r"^\w$", &["s"], &["\u{17f}"]);
}

#[test]
fn flags_that_mean_something_else_or_stand_elsewhere_are_refused() {
    for (pattern, message) in [
        (
            "a(?i)b",
            "flags of the whole expression stand at its start only, at character 2",
        ),
        (
            "(?i:(?s)b)",
            "flags of the whole expression stand at its start only, at character 5",
        ),
        (
            "(?x)a",
            "a flag that is none of i, m, s and u, at character 2",
        ),
        (
            "(?-u)a",
            "a flag that is none of i, m, s and u, at character 3",
        ),
        ("(?-:a)", "a '-' without a flag, at character 1"),
        ("(?ii:a)", "a flag that is given twice, at character 3"),
        ("(?i-i:a)", "a flag that is given twice, at character 4"),
        ("(?i:a", "a group that is not closed, at character 0"),
    ] {
        assert_eq!(refused(pattern).to_string(), message, "{pattern}");
    }
    for flag in ["a", "L", "U", "R", "x", "ix", "i=", "i--s", "i<"] {
        refused(&format!("(?{flag})a"));
        refused(&format!("b(?{flag}:a)"));
    }
    for flag in ["i", "m", "s", "u", "im"] {
        refused(&format!("(?{flag}"));
        refused(&format!("b(?{flag}"));
    }
}

#[test]
fn an_error_says_what_is_wrong_and_where() {
    for (pattern, message) in [
        ("é(b", "a group that is not closed, at character 1"),
        ("ab)", "a ')' that closes nothing, at character 2"),
        ("[a", "a class that is not closed, at character 0"),
        ("[z-a]", "a range that is out of order, at character 4"),
        ("a**", "a quantifier with nothing to repeat, at character 2"),
        (
            "a{3,2}",
            "the numbers in the braces are out of order, at character 6",
        ),
        ("a\\", "a backslash with nothing to escape, at character 2"),
        (
            "(?<a>b)(?<a>c)",
            "two groups have this name, at character 12",
        ),
        (
            "(?<=a)*b",
            "a quantifier with nothing to repeat, at character 6",
        ),
        (r"\u{110000}", "\\u without a code point, at character 9"),
    ] {
        assert_eq!(refused(pattern).to_string(), message, "{pattern}");
    }
}

#[test]
fn look_arounds_hold_at_each_position_on_their_own() {
    holds(
        "^(?=.*[A-Z])(?=.*[0-9]).{8,}$",
        &["abcdEfg1"],
        &["abcdefg1", "abcEf1"],
    );
    holds("^(?!.*--)[a-z-]+$", &["a-b-c"], &["a--c"]);
    holds("(?<=a+)b(?<!ab)|(?<!a)c", &["c", "bc"], &["ab", "ac"]);
    holds("^(?:(?!ab)[a-z]){3}$", &["acb", "bca"], &["cab", "abc"]);
    holds("(?<=(?<!x)a(?=b))b", &["ab"], &["xab", "b"]);
}

#[test]
fn back_references_are_refused_wherever_they_stand() {
    for (pattern, position) in [
        (r"(a)\1", 4),
        (r"\1(a)", 1),
        (r"(a)\2", 4),
        (r"(?<q>['x])\k<q>", 11),
        (r"(?P<x>a)(?P=x)", 12),
        (r"(?i)(?<=\9(ab))c", 9),
    ] {
        let expected = format!("back references are not supported, at character {position}");
        assert_eq!(refused(pattern).to_string(), expected, "{pattern}");
    }
}

#[test]
fn a_group_repeats_whatever_is_within_it() {
    holds("^(?<n>(?<=a)b)?$|^(?:(?<=a))*c$", &["", "c"], &["b", "ac"]);
    holds("^(?<n>(?=a))*a$", &["a"], &["b"]);
    holds("^((?<!x)|y)+z", &["z", "yz"], &["xz"]);
    holds("^(?<n>(?<=^))*a+?(b??)*c", &["ac", "aabbc"], &["bc"]);
}

#[test]
fn bounds_on_single_characters_cost_nothing() {
    let long = "x".repeat(5_000);
    holds("^.{0,5000}$", &["", &long], &[&format!("{long}x"), "\n"]);
    assert!(cost("^.{0,5000}$", &long) <= 4 * long.len());
    let label = "a".repeat(255);
    let name = [label.as_str(); 11].join(".");
    let pattern = r"^[a-z]{1,255}(\.[a-z]{1,255}){0,10}$";
    holds(
        pattern,
        &["a", "a.b", &name],
        &["", "a.", &format!("{name}.a"), &format!("a{name}")],
    );
    // Runs that begin at different positions are counted separately.
    holds("a.{3,5}b$", &["axaxxxb", "aaaaaaab"], &["axxb", "axxxxxxb"]);
    holds(
        "^(?:ab|a.a)*.{5,6}c$",
        &["ababxxxxxc", "axaxxxxxxc", "xxxxxc"],
        &["xxxxc", "abxxc"],
    );
    holds(
        "(?:a.?b?){2}[a-c]{7,9}d",
        &["aabbbbbbbbbd", "aaccccccccccd"],
        &["aacccccd"],
    );
    holds("^é{6,}$", &["éééééé"], &["ééééé"]);
    holds(
        "(?<=x[^x]{5,7})y",
        &["xaaaaaay", "xaaaaay"],
        &["xaaaay", "xaaaaaaaay"],
    );
}

#[test]
fn time_is_linear_in_the_text() {
    for pattern in [
        "(a*)*b",
        "^(a|aa)+$",
        "(x+x+)+y",
        "^(?=(a+)+b)a",
        "(?<=(a|a?)+)b",
        "a{2,900}b{2,900}c",
        "(?:a?){30}a{30}b",
    ] {
        let [short, long] = [1_000, 2_000].map(|length| cost(pattern, &"a".repeat(length)));
        assert!(long <= short * 21 / 10, "{pattern}: {short}, {long}");
    }
}

#[test]
fn a_search_ends_when_its_steps_are_spent() {
    let text = "a".repeat(40);
    for pattern in ["^(a+)+b", "(a*)*b", "(?=a*b)c", "a{20,30}b"] {
        let mut steps = budget(30);
        assert_eq!(
            compiled(pattern).is_found(&text, &mut steps),
            None,
            "{pattern}"
        );
        assert_eq!(steps.remaining(), 0);
    }
    let mut steps = plenty();
    assert_eq!(compiled("^a").is_found("ba", &mut steps), Some(false));
    assert!(steps.remaining() < PLENTY);
}

#[test]
fn a_class_that_repeats_is_left_where_it_ends() {
    holds("^[a-z]+$", &["abc", "a"], &["abcD", "", "abcé", "ab1c"]);
    holds("^[a-zé]+$", &["aéb", "éa"], &["aèb", "a1"]);
    holds("^[^x]*x?$", &["", "ab", "é漢x", "x"], &["axa"]);
    holds("^[a-z]*^b$|^[0-9]+(?![^])", &["b", "12"], &["ab", "1a"]);
    holds("(?i)^[a-z]+$", &["aBc"], &["a1"]);
    assert_eq!(cost("(?i)^[a-z]+$", "abCd"), cost("^[a-z]+$", "abcd"));
    let mut steps = budget(10);
    assert_eq!(
        compiled("^[a-z]+$").is_found(&"a".repeat(20), &mut steps),
        None
    );
}

#[test]
fn every_visited_position_costs_a_step() {
    let text = "a".repeat(1_000);
    for (pattern, passes) in [("$", 1), ("(?=$)b|(?<=$)c", 3)] {
        assert!(cost(pattern, &text) >= passes * text.len(), "{pattern}");
    }
}

#[test]
fn anchored_expressions_are_not_searched_for_after_the_start() {
    let text = "b".repeat(10_000);
    for pattern in ["^a", "^(?:a|c)", "(?=x)^a", "(^a)+", "(?=^)a"] {
        assert!(cost(pattern, &text) < 20_100, "{pattern}");
    }
    assert!(cost("^a", &text) < 10);
}

#[test]
fn an_expression_may_nest_and_grow_up_to_its_limits() {
    let nested = |depth| format!("{}a{}", "(?:".repeat(depth), ")".repeat(depth));
    assert!(is_found(&nested(MAX_PATTERN_DEPTH), "a"));
    assert_eq!(
        refused(&nested(MAX_PATTERN_DEPTH + 1)).message,
        "groups are nested too deeply"
    );
    refused(&"(".repeat(MAX_PATTERN_BYTES));
    assert_eq!(
        refused(&"a".repeat(MAX_PATTERN_BYTES + 1)).message,
        "the expression is too long"
    );
    holds("^(?:ab){0,2000}$", &["", "abab"], &["aba"]);
    for pattern in [
        format!("(?:ab){{{MAX_PATTERN_OPERATIONS}}}"),
        "(?:a{9}b){4294967296}".to_owned(),
        "(?:(?:(?:){9999}){9999}){9999}".to_owned(),
        "((((a?){99}){99}){99}){99}".to_owned(),
        "(?=a)".repeat(MAX_PATTERN_OPERATIONS / 2),
        "()".repeat(MAX_PATTERN_OPERATIONS + 1),
    ] {
        assert_eq!(
            refused(&pattern).message,
            "the expression is too large, with all that it repeats"
        );
    }
}

#[test]
fn a_machine_of_more_states_than_a_word_has_bits_is_simulated_too() {
    let words: Vec<String> = (0..200).map(|number| format!("word{number}x")).collect();
    let pattern = format!("^(?:{})+$", words.join("|"));
    holds(
        &pattern,
        &["word7x", "word199xword0x"],
        &["word200x", "word7"],
    );
    holds(
        &format!("(?<={pattern})y$", pattern = words.join("|")),
        &["word150xy"],
        &["word150y"],
    );
}

#[test]
fn no_text_makes_a_pattern_panic() {
    let pieces = [
        "(", ")", "[", "]", "{", "}", "?", "*", "|", "\\", "^", "-", "a", "1", ",", "<", "=", "k",
        "u", "p", "é", "P", "!", "(?i", "s:", "m",
    ];
    let mut state: u32 = 7;
    for _ in 0..20_000 {
        let mut pattern = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            pattern.push_str(pieces[(state >> 8) as usize % pieces.len()]);
        }
        if let Ok(pattern) = Pattern::compile(&pattern, &mut plenty()) {
            pattern.is_found("a1é-a=<u", &mut budget(1_000));
        }
    }
}
