"""Compares the classes of settings of the packages over uniffi with the options of the core."""

from __future__ import annotations

import re

from .environment import ROOT

OPTIONS = ROOT / "core" / "mcpline" / "src" / "foreign" / "options"

#: For each class of settings: the file and the struct of the core's options, and members that others set. Names are compared
#: without regard to case (`HTTPSettings` in Swift). I/O threads are for languages whose handlers run on them: Rust and C.
SETTINGS = {
    "ServerSettings": ("server", "ServerOptions", {"extensions", "result_types"}),
    "HttpSettings": ("http", "HttpServingOptions", {"io_threads"}),
    "UnixSettings": ("unix", "UnixServingOptions", set()),
    "ResourceServerSettings": ("auth", "ResourceServerOptions", {"verifies"}),
    "IntrospectionSettings": ("auth", "IntrospectionOptions", set()),
    "ClientSettings": ("client", "ClientOptions", set()),
    "HttpClientOptions": ("http_client", "HttpClientOptions", {"auth"}),
    "OAuth": ("client_auth", "OAuthOptions", {"grant", "user_agent", "store"}),
    "Credentials": ("client_auth", "CredentialsOptions", set()),
    "ProgramOptions": ("program", "ProgramOptions", {"program", "arguments"}),
    "RequestOptions": ("call", "CallOptions", set()),
    "FeatureOptions": ("feature", "FeatureOptions", {"decodes_itself", "rate"}),
}
#: The same for the middleware that the library provides.
MIDDLEWARE = {
    "RateLimit": ("built_in_middleware", "RateLimitOptions", set()),
    "ConcurrencyLimit": ("built_in_middleware", "ConcurrencyLimitOptions", set()),
    "ResponseCache": ("built_in_middleware", "ResponseCacheOptions", set()),
    "ResponseSizeLimit": ("built_in_middleware", "ResponseSizeLimitOptions", set()),
    "AuditLog": ("shared_middleware", "AuditLogOptions", set()),
    "Redaction": ("shared_middleware", "RedactionOptions", set()),
    "ToolPolicy": ("built_in_middleware", "ToolPolicyOptions", set()),
    "Retry": ("client_middleware", "RetryOptions", set()),
    "CircuitBreaker": ("client_middleware", "CircuitBreakerOptions", set()),
    "ClientToolPolicy": ("client_middleware", "ToolPolicyOptions", set()),
}


def differences(
    source: str,
    declaration: str,
    member: str,
    added: frozenset[str] = frozenset(),
    classes: dict[str, tuple[str, str, set[str]]] = SETTINGS,
) -> list[str]:
    """Returns settings that the core has and a package lacks, or the other way round.

    `declaration` is the pattern of a class, with `NAME` for its name and a group for its body, and `member` that of a member
    with a group for its name. `added` are members that the package has besides.
    """
    problems = []
    for name, (file, struct, others) in classes.items():
        options = (OPTIONS / f"{file}.rs").read_text()
        body = re.search(rf"struct {struct} \{{(.*?)\n    \}}", options, re.DOTALL)
        own = re.search(declaration.replace("NAME", f"(?i:{name})"), source, re.DOTALL | re.MULTILINE)
        if body is None or own is None:
            problems.append(f"{name}: no such class, or no struct {struct} in {file}.rs")
            continue
        core = set(re.findall(r"^ +(?:pub(?:\(super\))? )?(\w+): ", body[1], re.MULTILINE)) - others
        members = {
            re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", found)
            for found in re.findall(member, own[1], re.MULTILINE)
        }
        members -= others | added
        problems += [f"{name} lacks {missed}" for missed in sorted(core - members)]
        problems += [f"{name} has {extra}, which is not an option of the core" for extra in sorted(members - core)]
    return problems
