use super::*;

fn problem(text: impl AsRef<[u8]>) -> Option<Problem> {
    check(text.as_ref()).err().map(|error| error.problem)
}

#[test]
fn accepts_every_form_of_json() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "12",
        "-1.5",
        "1e5",
        "1E-5",
        "0.0e+1",
        r#""""#,
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "{\n\"a\" : {\"a\": []}\t}\r",
        r#""\"\\\/\b\f\n\r\té\ud83d\ude00""#,
        "\"é😀\u{7f}\"",
        "[[[]],{}]",
    ] {
        assert_eq!(problem(text), None, "{text}");
        serde_json::from_str::<serde_json::Value>(text).expect("serde_json agrees");
    }
}

#[test]
fn refuses_what_is_not_json() {
    for text in [
        "",
        " ",
        "nul",
        "tru",
        "True",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{",
        "{}}",
        "{a:1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "'a'",
        "\"a",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "1 2",
        "[] []",
        "\u{feff}1",
        "{\"a\":1 \"b\":2}",
        "[1 2]",
        "\"\t\"",
        "\"\n\"",
        "\u{a0}1",
        "{1:2}",
        "]",
        "}",
    ] {
        assert!(problem(text).is_some(), "{text}");
    }
}

#[test]
fn refuses_bad_utf8_only_inside_strings_as_such() {
    for bad in [
        &b"\xff"[..],
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc3",
    ] {
        let text = [b"\"abcdefghijkl", bad, b"\""].concat();
        assert_eq!(problem(&text), Some(Problem::Utf8));
        assert_eq!(problem(bad), Some(Problem::Unexpected));
    }
}

#[test]
fn refuses_half_a_surrogate_pair() {
    for half in [
        r"\ud800",
        r"\udc00",
        r"\ud800\ud800",
        r"\ud800x",
        r"\ud800\n",
        r"\ud83dA",
    ] {
        assert_eq!(
            problem(format!("\"{half}\"")),
            Some(Problem::Escape),
            "{half}"
        );
    }
}

#[test]
fn finds_a_special_byte_at_every_place_of_a_string() {
    for length in 0..200 {
        let plain = "x".repeat(length);
        for rest in [
            "",
            "y",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0",
        ] {
            assert_eq!(problem(format!("\"{plain}\\n{rest}\"")), None);
            assert_eq!(problem(format!("\"{plain}é{rest}\"")), None);
            assert_eq!(problem(format!("\"{plain}\"")), None);
            for control in ["\u{0}", "\u{1f}", "\n"] {
                let text = format!("\"{plain}{control}{rest}\"");
                let error = check(text.as_bytes()).expect_err("control character");
                assert_eq!(
                    error,
                    ScanError {
                        problem: Problem::Control,
                        at: length + 1
                    }
                );
            }
            let text = [b"\"", plain.as_bytes(), b"\xff", rest.as_bytes(), b"\""].concat();
            let error = check(&text).expect_err("bad UTF-8");
            assert_eq!(
                error,
                ScanError {
                    problem: Problem::Utf8,
                    at: length + 1
                }
            );
        }
    }
}

#[test]
fn nesting_is_allowed_up_to_the_limit() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(problem(nested(MAX_DEPTH)), None);
    assert_eq!(problem(nested(MAX_DEPTH + 1)), Some(Problem::Depth));
    let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    assert_eq!(problem(objects(MAX_DEPTH)), None);
    assert_eq!(problem(objects(MAX_DEPTH + 1)), Some(Problem::Depth));
    assert_eq!(problem("[".repeat(1_000_000)), Some(Problem::Depth));
}

#[test]
fn refuses_duplicate_members_at_any_level() {
    for text in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"c":{"x":1,"y":2,"x":3}}"#,
        r#"[[{"a":1,"a":2}]]"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"b":2,"a":2}"#,
        r#"{"":1,"":2}"#,
        r#"{"é":1,"\u00e9":2}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
    ] {
        assert_eq!(problem(text), Some(Problem::Duplicate), "{text}");
    }
    for text in [
        r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#,
        r#"{"a":1,"A":2,"aa":3,"\u0062":4}"#,
    ] {
        assert_eq!(problem(text), None, "{text}");
    }
}

#[test]
fn refuses_duplicates_in_objects_of_every_size() {
    for count in 2..100 {
        let members = |last: usize| {
            let keys = (0..count - 1).chain([last]);
            let members: Vec<_> = keys.map(|key| format!("\"k{key}\":{key}")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(problem(members(count)), None);
        assert_eq!(
            problem(members(count / 2)),
            if count > 2 {
                Some(Problem::Duplicate)
            } else {
                None
            }
        );
    }
}

#[test]
fn refuses_the_names_by_which_serde_json_marks_values() {
    for text in [
        r#"{"$serde_json::private::RawValue":"{\"path\":\"/etc\"}"}"#,
        r#"{"a":[{"$serde_json::private::Number":"1"}]}"#,
        r#"{"\u0024serde_json::private::RawValue":"1"}"#,
    ] {
        assert_eq!(problem(text), Some(Problem::Reserved), "{text}");
    }
    for text in [
        r#"{"$serde_json":1,"$serde_json::public":2}"#,
        r#"{"a":"$serde_json::private::RawValue"}"#,
        r#"["$serde_json::private::RawValue"]"#,
    ] {
        assert_eq!(problem(text), None, "{text}");
    }
}

#[test]
fn the_number_of_members_is_limited() {
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|key| format!("\"{key}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(problem(object(MAX_MEMBERS)), None);
    assert_eq!(problem(object(MAX_MEMBERS + 1)), Some(Problem::Members));
}

#[test]
fn error_has_the_position() {
    assert_eq!(
        check(b"[1, x]"),
        Err(ScanError {
            problem: Problem::Unexpected,
            at: 4
        })
    );
    assert_eq!(
        check(br#"{"a":1,"a":2}"#),
        Err(ScanError {
            problem: Problem::Duplicate,
            at: 8
        })
    );
}
