//! Capabilities that a server has to declare before a client may send a request (`basic/lifecycle`, operation: "only
//! use capabilities that were successfully negotiated"; since 2026-07-28 `server/discover`).

use crate::methods::ServerCapability;
use crate::revision::Revision;
#[cfg(doc)]
use crate::revision::RevisionFeatures;
use crate::vocabulary::ServerCapabilities;
use crate::wire::Method;

/// Returns the capability that a request needs and the server has not declared, as its path in `capabilities`; `None`
/// if the request may be sent.
///
/// `resources/subscribe` stands for every subscription to a resource, and `logging/setLevel` for every request for log
/// messages, also where the revision has other means. `completion/complete` needs nothing in 2024-11-05, which has no
/// capability for it, and only prompts or resources in 2025-03-26 ([`RevisionFeatures::completions_implied`] says why). Methods
/// of extensions need nothing, because their capabilities are unknown here.
pub fn undeclared_capability(
    method: &Method,
    revision: Revision,
    server: &ServerCapabilities,
) -> Option<&'static str> {
    let spec = method.spec()?;
    let capability = spec.capability(revision)?;
    // A method that the revision doesn't have needs nothing, except for those whose capability outlives them.
    let is_optional = matches!(
        capability,
        ServerCapability::Tasks | ServerCapability::TasksList | ServerCapability::TasksCancel
    );
    if is_optional && !spec.is_in(revision) {
        return None;
    }
    let is_implied = capability == ServerCapability::Completions
        && revision.features().completions_implied
        && (server.prompts.is_some() || server.resources.is_some());
    let is_declared = is_implied || server.declares(capability);
    (!is_declared).then_some(capability.path())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn undeclared(method: &str, revision: Revision, server: serde_json::Value) -> Option<&str> {
        let server = serde_json::from_str(&server.to_string()).expect("capabilities");
        undeclared_capability(&Method::parse(method), revision, &server)
    }

    #[test]
    fn each_request_needs_the_capability_of_its_feature() {
        let needs = [
            ("tools/list", "tools", json!({"tools": {}})),
            ("tools/call", "tools", json!({"tools": {}})),
            ("resources/list", "resources", json!({"resources": {}})),
            (
                "resources/templates/list",
                "resources",
                json!({"resources": {}}),
            ),
            ("resources/read", "resources", json!({"resources": {}})),
            (
                "resources/subscribe",
                "resources.subscribe",
                json!({"resources": {"subscribe": true}}),
            ),
            (
                "resources/unsubscribe",
                "resources.subscribe",
                json!({"resources": {"subscribe": true}}),
            ),
            ("prompts/list", "prompts", json!({"prompts": {}})),
            ("prompts/get", "prompts", json!({"prompts": {}})),
            (
                "completion/complete",
                "completions",
                json!({"completions": {}}),
            ),
            ("logging/setLevel", "logging", json!({"logging": {}})),
        ];
        let everything = json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {},
            "logging": {}});
        for revision in Revision::ALL {
            for (method, capability, enough) in &needs {
                let is_free =
                    *method == "completion/complete" && *revision == Revision::V2024_11_05;
                let expected = (!is_free).then_some(*capability);
                assert_eq!(
                    undeclared(method, *revision, json!({})),
                    expected,
                    "{method} {revision}"
                );
                assert_eq!(
                    undeclared(method, *revision, enough.clone()),
                    None,
                    "{method} {revision}"
                );
                // Other capabilities don't make up for it.
                if *method == "completion/complete" && *revision == Revision::V2025_03_26 {
                    continue;
                }
                let mut others = everything.clone();
                let feature = capability.split('.').next().expect("a name");
                others.as_object_mut().expect("an object").remove(feature);
                assert_eq!(
                    undeclared(method, *revision, others),
                    expected,
                    "{method} {revision}"
                );
            }
        }
        for without in [
            json!({"resources": {}}),
            json!({"resources": {"subscribe": false}}),
        ] {
            let missing = undeclared("resources/subscribe", Revision::V2026_07_28, without);
            assert_eq!(missing, Some("resources.subscribe"));
        }
    }

    #[test]
    fn completion_needs_no_capability_of_servers_that_are_older_than_it() {
        let may = |revision, server| undeclared("completion/complete", revision, server).is_none();
        for revision in Revision::ALL {
            let (none, early) = (
                *revision == Revision::V2024_11_05,
                *revision <= Revision::V2025_03_26,
            );
            assert_eq!(may(*revision, json!({"tools": {}})), none, "{revision}");
            assert_eq!(may(*revision, json!({"prompts": {}})), early, "{revision}");
            assert_eq!(
                may(*revision, json!({"resources": {}})),
                early,
                "{revision}"
            );
        }
    }

    #[test]
    fn methods_without_a_capability_may_always_be_sent() {
        for method in [
            "ping",
            "server/discover",
            "subscriptions/listen",
            "acme/anything",
        ] {
            for revision in Revision::ALL {
                assert_eq!(undeclared(method, *revision, json!({})), None, "{method}");
            }
        }
    }

    #[test]
    fn tasks_need_what_their_revision_declares() {
        let with = Revision::V2025_11_25;
        assert_eq!(undeclared("tasks/get", with, json!({})), Some("tasks"));
        assert_eq!(undeclared("tasks/result", with, json!({"tasks": {}})), None);
        assert_eq!(
            undeclared("tasks/list", with, json!({"tasks": {}})),
            Some("tasks.list")
        );
        assert_eq!(
            undeclared("tasks/cancel", with, json!({"tasks": {"cancel": {}}})),
            None
        );
        assert_eq!(
            undeclared("tasks/get", Revision::V2026_07_28, json!({})),
            None
        );
    }
}
