//! Which input requests a server may send, by the capabilities that the host declared.

use crate::error::RpcError;
use crate::input_method::InputMethod;
use crate::vocabulary::ClientCapabilities;
use crate::wire::Raw;

/// Rejects an input request that needs a capability that the host did not declare: tools in sampling without
/// `sampling.tools`, forms or URLs without `elicitation.form` or `elicitation.url`. Also rejects URLs that are not
/// `http` or `https`, because a host might pass them to another program of the user (`client/elicitation`, safe URL
/// handling).
///
/// # Errors
/// -32602, as `client/elicitation` and `schema` (`CreateMessageRequest`) require.
pub fn check_input_request(
    method: &str,
    params: Option<&Raw>,
    declared: &ClientCapabilities,
) -> Result<(), RpcError> {
    let member = |name| {
        let value = params.and_then(|params| params.member(name));
        value.filter(|value| !value.is_null())
    };
    match InputMethod::parse(method) {
        Some(InputMethod::Sample) if !declared.has_sampling_tools() => {
            let asked = ["tools", "toolChoice"].into_iter();
            match asked.into_iter().find(|name| member(name).is_some()) {
                Some(name) => Err(undeclared_capability_error(
                    &format!("`{name}`"),
                    "sampling.tools",
                )),
                None => Ok(()),
            }
        }
        Some(InputMethod::Elicit) => {
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
                    Err(undeclared_capability_error("mode `url`", "elicitation.url"))
                }
                Some(Some(mode)) if mode != "form" => Err(RpcError::invalid_params(
                    "the client does not know this `mode`",
                )),
                Some(None) => Err(RpcError::invalid_params("`mode` must be a string")),
                _ => Err(undeclared_capability_error(
                    "mode `form`",
                    "elicitation.form",
                )),
            }
        }
        Some(InputMethod::Sample | InputMethod::ListRoots) | None => Ok(()),
    }
}

/// The id of the URL elicitation that an input request starts.
pub(super) fn url_elicitation_id(method: &str, params: &Raw) -> Option<String> {
    let text = |name| {
        let member = params.member(name)?;
        member.string_value().map(std::borrow::Cow::into_owned)
    };
    let is_url = InputMethod::parse(method) == Some(InputMethod::Elicit) && text("mode")? == "url";
    is_url.then(|| text("elicitationId")).flatten()
}

fn undeclared_capability_error(what: &str, capability: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "{what}: the client does not declare the capability `{capability}`"
    ))
}

/// Whether the text looks like a web URL, so that no program takes it for a URL of another scheme.
pub(super) fn is_web_address(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let is_web = ["https", "http"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web));
    let has_host = rest.starts_with(|first: char| !matches!(first, '/' | '?' | '#' | '\\'));
    is_web && has_host && !url.contains(|c: char| c.is_control() || c.is_whitespace())
}
