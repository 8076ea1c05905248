"""``python -m tests.browser FOLDER``: pictures of a report, to be looked at."""

from __future__ import annotations

import sys
from pathlib import Path

from kdissect.present.html.report import report_page
from tests.browser import THEMES, WIDTHS, browsing, showing
from tests.present.reports import MADE, report


def main(folder: Path) -> None:
    """Draw a report at each width, in each theme, with and without its script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve() / "report.html"
    path.write_text(report_page(report("incidents/max-poll-exceeded.pcapng.gz"), MADE))
    with browsing() as browser:
        for width in WIDTHS:
            for theme in THEMES:
                for script in (True, False):
                    size = {"width": width, "height": 900}
                    options = {"viewport": size, "color_scheme": theme, "java_script_enabled": script}
                    with showing(browser, path, **options) as (page, _):
                        name = f"{width}-{theme}{'' if script else '-no-script'}.png"
                        page.screenshot(path=folder / name, full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
