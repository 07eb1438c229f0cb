//! A model of the handoff of a pipe: threads that process its messages, and one that looks for handlers that keep theirs,
//! at any moment. Each message is processed once and in order, and one thread sees the end.

use std::collections::VecDeque;

use crate::race_models::{Record, check};
use crate::server::race_models::Threads;
use crate::sync::{Arc, yield_point};

use super::pipe_handoff::{AnyPipe, PipeHandoff, while_lent};

const MESSAGES: usize = 4;

/// What a thread of the model has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Processed(usize),
    Ended,
}

/// The messages that a pipe still has.
type Pipe = VecDeque<usize>;

fn read(mut pipe: Box<Pipe>, handoff: &Arc<PipeHandoff>, events: &Record<Event>) {
    while let Some(message) = pipe.pop_front() {
        let pipe_or_none = handoff.process(pipe, || {
            events.add(Event::Processed(message));
            while_lent(yield_point);
        });
        match pipe_or_none.map(AnyPipe::downcast) {
            Some(lent) => pipe = lent.expect("a pipe"),
            None => return,
        }
    }
    events.add(Event::Ended);
}

#[test]
fn a_pipe_is_handed_over_at_any_moment() {
    check(|| {
        let (threads, events) = (Arc::new(Threads::default()), Arc::new(Record::default()));
        let (starting, recorded) = (threads.clone(), events.clone());
        let handoff = PipeHandoff::new(move |handoff, pipe| {
            let recorded = recorded.clone();
            let pipe = pipe.downcast().expect("a pipe");
            starting.start(move || read(pipe, &handoff, &recorded));
        });
        handoff.spawn_reader(Box::new((0..MESSAGES).collect::<Pipe>()));
        let looking = handoff.clone();
        threads.start(move || {
            for _ in 0..3 * MESSAGES {
                looking.let_other_task_read();
            }
        });
        events.wait_for(MESSAGES);
        threads.join();
        let expected = (0..MESSAGES).map(Event::Processed).chain([Event::Ended]);
        assert!(events.all().into_iter().eq(expected), "{:?}", events.all());
    });
}
