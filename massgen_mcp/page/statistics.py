"""What many runs come to, as one page that needs nothing else: see `report`."""

from massgen_mcp.page.document import document, with_data
from massgen_mcp.statistics.sums import Statistics
from massgen_mcp.statistics.words import as_worded

DRAWING = ("dom.js", "statistics.js")


def statistics_page(statistics: Statistics) -> bytes:
    """The statistics as HTML, with their data in it."""
    html = document("saved.js", styles_too=("statistics.css",), drawing=DRAWING)
    return with_data(html, as_worded(statistics))
