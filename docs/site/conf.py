"""The documentation as a site: `tools/site` builds it. Pages are Markdown; `docs/index.md` lists them."""

import os
import posixpath
import re

project = "mcpline"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["site"]

# Headings are link targets, as on a code host.
myst_heading_anchors = 4
# The snippets of Next.js and nginx are fragments, and a language that Pygments does not know is not a problem of a page.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
html_title = "mcpline"
html_copy_source = False
html_show_copyright = False

# URL of the repository's files, for example "https://example.com/mcpline/blob/main". Without it, links to files that are
# not pages of the site become text.
REPOSITORY = os.environ.get("MCPLINE_REPOSITORY")
LINK = re.compile(r"\[([^\]\n]+)\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)")


def resolve_links_out_of_the_site(app, docname, source):
    def replaced(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(docname), match[2]))
        if path.startswith("docs/"):
            return match[0]
        return f"[{match[1]}]({REPOSITORY}/{path}{match[3] or ''})" if REPOSITORY else match[1]

    source[0] = LINK.sub(replaced, source[0])


def setup(app):
    app.connect("source-read", resolve_links_out_of_the_site)
