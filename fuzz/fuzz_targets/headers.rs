//! Header rules: values survive encoding, and a server accepts what a client sends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_protocol::wire::Raw;
use mcpline_protocol::wire::header::{HeaderOccurrence, ParamHeaders, decode_value, encode_value};

fuzz_target!(|data: &[u8]| {
    // An input schema, arguments, and a value, on one line each.
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (schema, arguments, bytes) = (next(), next(), next());
    let text = String::from_utf8_lossy(bytes);

    let encoded = encode_value(&text);
    assert!(
        encoded
            .bytes()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
    );
    assert_eq!(encoded.trim(), encoded);
    assert_eq!(
        decode_value(encoded.as_bytes()).expect("just encoded"),
        text
    );

    if let Ok(decoded) = decode_value(bytes)
        && let Ok(again) = decode_value(encode_value(&decoded).as_bytes())
    {
        assert_eq!(decoded, again);
    }

    let (Ok(schema), Ok(arguments)) = (
        serde_json::from_slice(schema),
        Raw::parse(arguments.to_vec()),
    ) else {
        return;
    };
    let Ok(compiled) = ParamHeaders::compile(&schema) else {
        return;
    };
    let headers = compiled.headers(&arguments);
    let lookup = |name: &str| {
        let named = headers
            .iter()
            .filter(|(header, _)| header.eq_ignore_ascii_case(name));
        HeaderOccurrence::from_values(named.map(|(_, value)| value.as_bytes()))
    };
    compiled
        .check(lookup, &arguments)
        .expect("what a client sends");
    // Any other value is rejected.
    if let Some((header, value)) = headers.first() {
        let other = format!("{value}!");
        let changed = |name: &str| {
            if name == *header {
                HeaderOccurrence::Once(other.as_bytes())
            } else {
                lookup(name)
            }
        };
        assert!(compiled.check(changed, &arguments).is_err());
    }
});
