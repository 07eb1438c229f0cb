//! Models of the timers: threads that schedule, reschedule and drop values with deadlines race the task that handles
//! them, and the end of the server. A due value is called at its earliest deadline; nothing of dropped values is kept;
//! the task ends with the timers.
//!
//! Time does not pass in a model: a deadline is over, or an hour away.

use shuttle::thread;

use crate::race_models::{Record, check, settle};

use super::*;

/// Numbers of the called values.
type Fired = Arc<Record<usize>>;

struct Numbered {
    alarm: Alarm,
    number: usize,
    fired: Fired,
}

impl Timed for Numbered {
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    fn fire(self: Arc<Self>) {
        self.fired.add(self.number);
    }
}

fn numbered(number: usize, fired: &Fired) -> Arc<Numbered> {
    Arc::new(Numbered {
        alarm: Alarm::default(),
        number,
        fired: fired.clone(),
    })
}

fn timers() -> Arc<Timers> {
    let timers = Arc::new(Timers::new());
    timers.start(&tokio::runtime::Handle::current());
    timers
}

/// Past deadlines, the earlier one first.
const OVER: [Duration; 2] = [Duration::ZERO, Duration::from_nanos(1)];

fn later() -> Duration {
    clock::now() + Duration::from_secs(3_600)
}

/// The task goes to sleep until a distant deadline while earlier ones are set.
#[test]
fn earlier_deadline_races_the_task_that_goes_to_sleep() {
    check(|| {
        let (timers, fired) = (timers(), Fired::default());
        let far = numbered(9, &fired);
        timers.schedule(later(), &far);
        let scheduling = [0, 1].map(|number| {
            let (timers, timed) = (timers.clone(), numbered(number, &fired));
            thread::spawn(move || {
                timers.schedule(later(), &timed);
                timers.schedule(OVER[number], &timed);
                timed
            })
        });
        // Waits forever if the task misses a deadline.
        fired.wait_for(1);
        let timed = scheduling.map(|thread| thread.join().expect("no panic"));
        let mut numbers = fired.all();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1], "each is called once");
        drop((timed, far));
        assert_eq!(timers.len(), 0);
        drop(timers);
        settle();
    });
}

/// Other threads reschedule a value while it is called.
#[test]
fn rescheduling_races_the_call() {
    check(|| {
        let (timers, fired) = (timers(), Fired::default());
        let timed = numbered(0, &fired);
        let scheduling = OVER.map(|over| {
            let (timers, timed) = (timers.clone(), timed.clone());
            thread::spawn(move || timers.schedule(over, &timed))
        });
        for thread in scheduling {
            thread.join().expect("no panic");
        }
        fired.wait_for(0);
        timers.schedule(OVER[0], &timed);
        // One call for the earlier deadlines and another one, unless the first was still to come.
        fired.wait_for(1);
        drop((timed, timers));
        settle();
    });
}

/// The last reference to a value is dropped while its deadline is set or handled.
#[test]
fn drop_races_deadlines() {
    check(|| {
        let (timers, fired) = (timers(), Fired::default());
        let shared = timers.shared.clone();
        let timed = numbered(0, &fired);
        let kept = Arc::downgrade(&timed);
        let [over, before, after] = [OVER[1], OVER[0], later()].map(|at| {
            let (timers, timed) = (timers.clone(), timed.clone());
            thread::spawn(move || timers.schedule(at, &timed))
        });
        drop(timed);
        for thread in [over, before, after] {
            thread.join().expect("no panic");
        }
        // The task may not have reached what is due by then.
        drop(timers);
        settle();
        assert_eq!(kept.strong_count(), 0);
        assert_eq!(shared.lock().len(), 0, "its entry went with it");
    });
}

/// One thread drops the timers while another one still schedules, and the task goes to sleep.
#[test]
fn end_of_timers_races_scheduling() {
    check(|| {
        let (timers, fired) = (timers(), Fired::default());
        let (scheduling, timed) = (timers.clone(), numbered(0, &fired));
        let threads = [
            thread::spawn(move || {
                scheduling.schedule(later(), &timed);
                drop(scheduling);
            }),
            thread::spawn(move || drop(timers)),
        ];
        for thread in threads {
            thread.join().expect("no panic");
        }
        settle();
        assert!(fired.all().is_empty());
    });
}
