//! Server-sent events: chunking makes no difference, limits hold, and written events are read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpline_fuzz::Cost;
use mcpline_protocol::wire::sse::{self, Event, EventDecoder, EventTooLarge};

const LIMIT: usize = 40;

fuzz_target!(|input: (Vec<u8>, Vec<u8>, String, String, Vec<u8>)| {
    let (stream, cuts, id, kind, data) = input;
    let (whole, state) = decode(&stream, &[]);
    let (again, cost) = Cost::of(|| decode(&stream, &cuts));
    assert_eq!(again, (whole, state));
    let base = Cost {
        steps: 64,
        bytes: 4_096,
    };
    let each = Cost {
        steps: 8,
        bytes: 512,
    };
    cost.is_at_most(base, each, stream.len() + cuts.len());
    survives(&id, &kind, &data);
});

type Decoded = (Vec<Result<Event, EventTooLarge>>, (String, Option<u64>));

fn decode(stream: &[u8], cuts: &[u8]) -> Decoded {
    let mut decoder = EventDecoder::new(LIMIT);
    let mut events = Vec::new();
    let mut rest = stream;
    for cut in cuts
        .iter()
        .map(|cut| usize::from(*cut))
        .chain(std::iter::repeat(usize::MAX))
    {
        let (chunk, behind) = rest.split_at(cut.min(rest.len()));
        rest = behind;
        decoder.push(chunk);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
        if rest.is_empty() {
            break;
        }
    }
    for event in events.iter().flatten() {
        // Replacing invalid UTF-8 may turn one byte into three.
        assert!(event.data.len() <= 3 * LIMIT);
        assert!(std::str::from_utf8(&event.data).is_ok() && !event.data.contains(&b'\r'));
        assert!(!event.event.is_empty());
    }
    (
        events,
        (decoder.last_event_id().to_owned(), decoder.retry()),
    )
}

fn survives(id: &str, kind: &str, data: &[u8]) {
    let mut out = Vec::new();
    sse::retry(&mut out, 7);
    sse::comment(&mut out, kind);
    sse::event(&mut out, Some(id), Some(kind), data);
    let mut decoder = EventDecoder::default();
    decoder.push(&out);
    let event = decoder
        .next_event()
        .expect("an event")
        .expect("within limits");
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.retry(), Some(7));
    let kept = |text: &str| text.replace(['\n', '\r', '\0'], "");
    if kept(id).len() <= 4096 {
        assert_eq!(event.last_event_id, kept(id));
    }
    assert_eq!(
        event.event,
        if kept(kind).is_empty() {
            "message".into()
        } else {
            kept(kind)
        }
    );
    let data = String::from_utf8_lossy(data)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    assert_eq!(event.data, data.as_bytes());
}
