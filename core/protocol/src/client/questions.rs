//! What a server may ask a host, by what the host declared.

use crate::error::RpcError;
use crate::vocabulary::ClientCapabilities;
use crate::wire::Raw;

/// Refuses a question that the host can't answer by what it declared: tools in sampling without `sampling.tools`, forms or
/// visits without `elicitation.form` or `elicitation.url`; and visits to what is no address on the web, which a host may be
/// led to hand to a program of the user's (`client/elicitation`, safe URL handling).
///
/// # Errors
/// -32602, which is what `client/elicitation` and `schema` (`CreateMessageRequest`) demand.
pub fn check_question(
    method: &str,
    params: Option<&Raw>,
    declared: &ClientCapabilities,
) -> Result<(), RpcError> {
    let member = |name| {
        let value = params.and_then(|params| params.member(name));
        value.filter(|value| !value.is_null())
    };
    if method == "sampling/createMessage" {
        check_roles(member("messages").as_ref())?;
    }
    match method {
        "sampling/createMessage" if !declared.has_sampling_tools() => {
            let asked = ["tools", "toolChoice"].into_iter();
            match asked.into_iter().find(|name| member(name).is_some()) {
                Some(name) => Err(undeclared(&format!("`{name}`"), "sampling.tools")),
                None => Ok(()),
            }
        }
        "elicitation/create" => {
            let mode = member("mode");
            match mode.as_ref().map(Raw::string_value) {
                None if declared.has_form_elicitation() => Ok(()),
                Some(Some(mode)) if mode == "form" && declared.has_form_elicitation() => Ok(()),
                Some(Some(mode)) if mode == "url" && declared.has_url_elicitation() => {
                    let url = member("url");
                    let url = url.as_ref().and_then(Raw::string_value);
                    match url.is_some_and(|url| is_web_address(&url)) {
                        true => Ok(()),
                        false => Err(RpcError::invalid_params(
                            "`url` must be a valid URL with the scheme `https` or `http`",
                        )),
                    }
                }
                Some(Some(mode)) if mode == "url" => {
                    Err(undeclared("mode `url`", "elicitation.url"))
                }
                Some(Some(mode)) if mode != "form" => Err(RpcError::invalid_params(
                    "the client does not know this `mode`",
                )),
                Some(None) => Err(RpcError::invalid_params("`mode` must be a string")),
                _ => Err(undeclared("mode `form`", "elicitation.form")),
            }
        }
        _ => Ok(()),
    }
}

/// Checks that messages are the user's or the assistant's.
fn check_roles(messages: Option<&Raw>) -> Result<(), RpcError> {
    for message in messages.and_then(Raw::elements).into_iter().flatten() {
        let role = message.member("role");
        let role = role.as_ref().and_then(Raw::string_value);
        if !matches!(role.as_deref(), Some("user" | "assistant")) {
            return Err(RpcError::invalid_params(
                "`messages`: `role` must be `user` or `assistant`",
            ));
        }
    }
    Ok(())
}

/// The id of the URL elicitation that a question asks for.
pub(super) fn url_elicitation_id(method: &str, params: &Raw) -> Option<String> {
    let text = |name| {
        let member = params.member(name)?;
        member.string_value().map(std::borrow::Cow::into_owned)
    };
    let is_url = method == "elicitation/create" && text("mode")? == "url";
    is_url.then(|| text("elicitationId")).flatten()
}

fn undeclared(what: &str, capability: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "{what}: the client does not declare the capability `{capability}`"
    ))
}

/// Whether the text is a URL of the web as far as a look tells: no program takes it for one of another scheme.
pub(super) fn is_web_address(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let is_web = ["https", "http"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web));
    let has_host = rest.starts_with(|first: char| !matches!(first, '/' | '?' | '#' | '\\'));
    is_web && has_host && !url.contains(|c: char| c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_users_or_the_assistants() {
        let check = |messages: &'static str| {
            let params = Raw::from_trusted(messages);
            let declared = ClientCapabilities::default();
            check_question("sampling/createMessage", Some(&params), &declared)
        };
        for fine in [
            r#"{"messages":[{"role":"user"},{"role":"assistant"}]}"#,
            r#"{"messages":[]}"#,
            "{}",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for wrong in [
            r#"{"messages":[{"role":"user"},{"role":"system"}]}"#,
            r#"{"messages":[{"role":1}]}"#,
            r#"{"messages":[{}]}"#,
        ] {
            let error = check(wrong).expect_err(wrong);
            assert_eq!(error.code, crate::ErrorCode::INVALID_PARAMS, "{wrong}");
        }
    }
}
