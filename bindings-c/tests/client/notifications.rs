//! Notifications and log messages of a server, in order.

use std::ptr::null;

use mcpline_c::*;
use serde_json::json;

use crate::host::{Event, EventReceiver, Host, logged, notified, ok, release};
use crate::service::Service;

#[test]
fn delivers_log_messages_one_at_a_time_in_order() {
    let service = Service::new();
    let (logs, all) = (EventReceiver::new(), EventReceiver::new());
    let host = Host::of(&service);
    host.speak("2025-11-25");
    // SAFETY: the data is released by its finalizer.
    unsafe {
        ok(mcpl_client_on_log(
            host.0,
            Some(logged),
            logs.given(),
            Some(release),
        ));
        ok(mcpl_client_on_notification(
            host.0,
            Some(notified),
            all.given(),
            Some(release),
        ));
    }
    ok(mcpl_client_open(host.0));
    host.call("log", "{}").unwrap();
    ok(mcpl_client_close(host.0));
    let mut events = logs.rest();
    assert_eq!(events.pop(), Some(Event::Released));
    let numbers: Vec<i64> = events
        .into_iter()
        .map(|event| match event {
            Event::Logged(mcpl_log_level::MCPL_LOG_WARNING, Some(logger), number) => {
                assert_eq!(logger, "lumber");
                number.as_i64().unwrap()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers.len(), 20);
    assert!(numbers.is_sorted());
    // The listener for all notifications receives them as well.
    let events = all.rest();
    assert_eq!(events.len(), 21);
    for (event, number) in events.iter().zip(numbers) {
        let params = json!({"level": "warning", "logger": "lumber", "data": number});
        assert_eq!(
            *event,
            Event::Notified("notifications/message".to_owned(), params)
        );
    }
}

#[test]
fn delivers_changes_in_every_era() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let service = Service::new();
        let receiver = EventReceiver::new();
        let host = Host::of(&service);
        host.speak(revision);
        // SAFETY: the data is released by its finalizer.
        ok(unsafe {
            mcpl_client_on_notification(host.0, Some(notified), receiver.given(), Some(release))
        });
        ok(mcpl_client_open(host.0));
        let uri = c"test://text".as_ptr();
        // SAFETY: the text ends with a zero byte.
        unsafe {
            ok(mcpl_client_subscribe(host.0, uri, null()));
            ok(mcpl_server_notify_resource_updated(service.server, uri));
        }
        loop {
            let Event::Notified(method, params) = receiver.next() else {
                panic!("nothing heard");
            };
            if method == "notifications/resources/updated" {
                assert_eq!(params["uri"], "test://text");
                break;
            }
        }
    }
}
