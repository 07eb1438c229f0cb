//! Asks the user before a tool runs, as [tool policies](crate::middleware::ToolPolicy) demand.
//!
//! The elicitation is the first input request of the call. So it is bound to the caller and the arguments like those of handlers,
//! and a call that continues in another process has the answer.

use mcpline_protocol::mrtr::EarlierResponse;
use mcpline_protocol::session::InputRequestError;
use mcpline_protocol::vocabulary::{ElicitAction, ElicitParams, ElicitResult, FormSchema};
use mcpline_protocol::wire::Raw;
use mcpline_protocol::{Printable, VisibleJson};

use crate::sync::Arc;

use super::call::{Call, CallState};
use super::input_requests::{self, InputRequest};
use super::reply::HandlerError;

/// The key of the elicitation. A handler's own key of the same name gets a counter, because it comes later.
const KEY: &str = "tool-approval";

/// Maximum number of characters of the arguments that the user sees; twice as many if there are very many arguments. Clients show
/// the message in a dialog.
const MAX_SHOWN_CHARS: usize = 4_000;

/// Minimum number of characters of each argument that the user sees, with its name.
const MIN_SHARE_CHARS: usize = 100;

/// Asks the user, and runs the handler or ends the call.
pub(super) fn request_approval_then_run(call: &Arc<CallState>) {
    let params = ElicitParams::form(message(call), FormSchema::new());
    let waiting_call = call.clone();
    let callback = Box::new(move |answer: Result<Raw, InputRequestError>| {
        match check_approval(&waiting_call, answer) {
            // Dropped, because nothing else ends the call.
            Ok(()) if waiting_call.is_cancelled() => drop(Call::new(waiting_call)),
            Ok(()) => waiting_call.run(),
            Err(error) => Call::new(waiting_call).reply(Err(error)),
        }
    });
    input_requests::send_input_request(call, InputRequest::elicit(&params).with_key(KEY), callback);
}

fn check_approval(
    call: &CallState,
    answer: Result<Raw, InputRequestError>,
) -> Result<(), HandlerError> {
    let name = call.name();
    let refusal = match answer {
        Ok(answer) => match answer.decode::<ElicitResult>() {
            Ok(result) if result.action == ElicitAction::Accept => return Ok(()),
            _ => format!("The user did not allow the call of the tool {name}."),
        },
        Err(error) => {
            let current = call.current_request();
            match error {
                // An error of its own there.
                InputRequestError::NotSupported(need) if current.peer.revision.features().mrtr => {
                    return Err(HandlerError::Unsupported(need));
                }
                error => format!(
                    "The tool {name} is called only if the user allows it, and the user could not be asked: {error}"
                ),
            }
        }
    };
    Err(HandlerError::Tool(refusal))
}

fn message(call: &CallState) -> String {
    let name = Printable(call.name());
    let arguments = &call.arguments;
    if arguments
        .members()
        .is_none_or(|mut members| members.next().is_none())
    {
        return format!("Allow the call of the tool {name}?");
    }
    let shown = shown_arguments(arguments);
    format!("Allow the call of the tool {name} with these arguments? {shown}")
}

/// Returns arguments as the user sees them. If they are too long, each member is cut, so that none is hidden behind another.
fn shown_arguments(arguments: &Raw) -> String {
    let whole = VisibleJson(arguments.as_str()).to_string();
    let members: Vec<_> = arguments.members().into_iter().flatten().collect();
    if whole.chars().count() <= MAX_SHOWN_CHARS || members.is_empty() {
        return cut(&whole, MAX_SHOWN_CHARS);
    }
    let share = MAX_SHOWN_CHARS / members.len();
    let members = members.iter().map(|(name, value)| {
        let name = Raw::string(name);
        let member = format!("{}: {}", name.as_str(), value.as_str());
        cut(
            &VisibleJson(&member).to_string(),
            share.max(MIN_SHARE_CHARS),
        )
    });
    // With very many members.
    cut(&members.collect::<Vec<_>>().join(", "), 2 * MAX_SHOWN_CHARS)
}

fn cut(text: &str, chars: usize) -> String {
    let shown: String = text.chars().take(chars).collect();
    match text.len() - shown.len() {
        0 => shown,
        missing => format!("{shown}… ({missing} more bytes)"),
    }
}

/// Returns the answer of the user among those of a call, for a later run of its handler.
pub(super) fn approval_answers(answers: &[EarlierResponse]) -> Vec<EarlierResponse> {
    let own = answers.iter().filter(|answer| answer.key == KEY);
    own.cloned().collect()
}
