"""Remake the pictures of replays in docs/images: python benchmarks/replay_images.py RUNS --market NAME --fish NAME

RUNS is a folder with runs and their pages (`marlab report`): a tournament with --keep-logs, an evaluation of fish, and
`runs/hunt/watch` from `marlab hunt watch`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from benchmarks.notebook_images import FLAGS, IMAGES, PATIENCE, save


def picture(browser: Any, page: Path, panel: str, frame: int, theme: str, height: int) -> bytes:
    """A panel from its top, with its player at a frame."""
    context = browser.new_context(viewport={"width": 1400, "height": 1400}, color_scheme=theme)
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_selector(f".panel[data-kind='{panel}'][data-drawn]")
    tab.wait_for_timeout(1000)  # parts of the data
    tab.locator(f".panel[data-kind='{panel}'] .player input[type=range]").first.fill(str(frame))
    tab.wait_for_timeout(800)
    host = tab.locator(f".panel[data-kind='{panel}']").first
    host.scroll_into_view_if_needed()
    box = host.bounding_box()
    edge = 12
    shot: bytes = tab.screenshot(
        full_page=True,
        clip={
            "x": box["x"] - edge,
            "y": box["y"] + tab.evaluate("scrollY"),
            "width": box["width"] + 2 * edge,
            "height": min(height, box["height"] + edge),
        },
    )
    context.close()
    return shot


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--market", default="market/cup")
    parser.add_argument("--fish", default="fish/eval")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    world = sorted((args.runs / args.market / "report").glob("world-*.html"))[0]
    tank = args.runs / args.fish / "report" / "index.html"
    hunt = args.runs / "_notebook" / "hunt" / "watch.html"
    with sync_playwright() as library:
        browser = library.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        save(picture(browser, world.absolute(), "market.world", 12, "light", 1500), IMAGES / "replay_market.png")
        save(picture(browser, tank.absolute(), "fish.tank", 60, "dark", 1000), IMAGES / "replay_fish.png")
        save(picture(browser, hunt.absolute(), "hunt.board", 0, "light", 900), IMAGES / "replay_hunt.png")
        browser.close()


if __name__ == "__main__":
    main()
