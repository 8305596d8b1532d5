"""What the drawings of all papers share: two widths, a badge, a caption, alt text."""

from collections.abc import Callable

from relength.report import exhibits
from relength.report.drawing import Sheet
from relength.report.exhibits import Exhibit
from relength.report.style import LIGHT, NARROW, WIDE

WIDTHS = {layout.name: round(96 * layout.width) for layout in (WIDE, NARROW)}
FIRST, SECOND, INK, MUTED, RULE = LIGHT.first, LIGHT.second, LIGHT.ink, LIGHT.muted, LIGHT.rule
GROUND, PAGE, WARNING = LIGHT.surface, LIGHT.page, LIGHT.warning


def exhibit(
    name: str, draw: Callable[[Sheet, bool], None], title: str, caption: str, alt: str
) -> Exhibit:
    """A drawing that explains an idea.

    draw: fills an empty sheet of the given width; its second argument says whether that is narrow.
    """
    drawings = {}
    for layout, width in WIDTHS.items():
        sheet = Sheet(width)
        draw(sheet, layout == "narrow")
        drawings[layout] = sheet.svg()
    badge = '<span class="badge" title="explains an idea; no run stands behind it">schematic</span>'
    made = f"drawn by <code>lib/relength/report/mechanisms/{name.split('-')[0]}.py</code>"
    html = exhibits.figure(drawings, alt, f"<b>{title}</b> {badge} {caption}", name, [made])
    return Exhibit(html, f"{title} {alt}", data=None)
