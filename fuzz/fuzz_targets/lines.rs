//! Line framing: compared with a simple implementation, for any division into chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_protocol::wire::LineDecoder;

/// Short, so that over-long lines are common.
const LIMIT: usize = 20;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (data, cuts) = input;
    let mut decoder = LineDecoder::new(LIMIT);
    let mut lines = Vec::new();
    let mut rest = &data[..];
    for cut in cuts.iter().chain(std::iter::repeat(&u8::MAX)) {
        let (chunk, behind) = rest.split_at(usize::from(*cut).min(rest.len()));
        rest = behind;
        if cut % 2 == 0 {
            decoder.push(chunk);
        } else {
            decoder.buffer().extend_from_slice(chunk);
        }
        lines.extend(std::iter::from_fn(|| decoder.next_line()));
        if rest.is_empty() {
            break;
        }
    }
    lines.extend(decoder.finish());
    assert!(decoder.finish().is_none());
    let lines: Vec<_> = lines
        .into_iter()
        .map(|line| line.ok().map(|line| line.to_vec()))
        .collect();
    assert_eq!(lines, expected(&data));
});

/// The expected lines, `None` for one that is too long.
fn expected(data: &[u8]) -> Vec<Option<Vec<u8>>> {
    let lines = data.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LIMIT {
            return Some(None);
        }
        let blank = line.iter().all(|byte| b" \t\r".contains(byte));
        (!blank).then(|| Some(line.to_vec()))
    });
    lines.collect()
}
