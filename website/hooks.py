"""What the site makes of the docs: a first page of the README, the order of docs/index.py, links into the repository.

Called by MkDocs.
"""

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from docs.index import GROUPS  # noqa: E402 - the root was not on the path before
from docs.markdown import anchor as of_heading  # noqa: E402
from massgen_mcp import __version__  # noqa: E402

FIRST = "index.md"


def anchor(heading: str, separator: str) -> str:
    """As on GitHub, so that one link serves both."""
    del separator
    return of_heading(heading)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    groups = [{title: [f"{name}.md" for name in names]} for title, names in GROUPS.items()]
    config.nav = [{f"massgen-mcp {__version__}": FIRST}, *groups]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The list of all pages is the navigation here."""
    for file in list(files):
        if file.src_uri == "README.md":
            files.remove(file)
    files.append(File.generated(config, FIRST, content=first_page((ROOT / "README.md").read_text(encoding="utf-8"))))
    return files


def first_page(readme: str) -> str:
    """Return the README with its links as they are seen from docs/."""
    text = re.sub(r"\]\((?![a-z]+:|docs/)", "](../", readme)
    text = text.replace("](docs/README.md)", "](tutorial.md)").replace("](docs/", "](")
    return text.replace('srcset="docs/', 'srcset="').replace('src="docs/', 'src="')


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    del page, files
    repository = f"{config.repo_url}/blob/v{__version__}/"
    markdown = re.sub(r"\]\(README\.md(#[^)]*)?\)", f"]({FIRST})", markdown)
    return re.sub(r"\]\(\.\./", f"]({repository}", markdown)
