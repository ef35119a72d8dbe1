"""Remake the pictures of the notebook in docs/images: python benchmarks/notebook_images.py RUNS [--all FOLDER]

RUNS is a folder with runs; pages are made of a copy of it. Without --all the pictures that the docs show are written;
with it every page at 1400 and 420 pixels, light and dark, in both languages goes to FOLDER, to be looked at.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from marlab.lab.notebook.site import build

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PATIENCE = 60_000


def picture(browser: Any, page: str, width: int, height: int, theme: str, language: str) -> bytes:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    address, hash_mark, rest = page.partition("#")
    tab.goto(f"{address}?lang={language}{hash_mark}{rest}")
    tab.wait_for_function("() => [...document.querySelectorAll('.panel[data-kind]')].every((e) => e.dataset.drawn)")
    for slider in tab.locator(".player input[type=range]").all():  # a moment in the middle of a replay says more
        middle = "(e) => { e.value = 0.4 * e.max; e.dispatchEvent(new Event('input')); }"
        slider.evaluate(middle)
    tab.wait_for_timeout(1500)  # pictures and plots
    shot: bytes = tab.screenshot()
    context.close()
    return shot


def save(shot: bytes, path: Path) -> None:
    with Image.open(io.BytesIO(shot)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--run", default="fish/hunted-shoal", help="the run whose page is shown")
    parser.add_argument("--beside", default="fish/shoal", help="a run to compare it with")
    parser.add_argument("--all", type=lambda text: Path(text).resolve(), default=None)
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as library:
        shutil.copytree(args.runs, Path(folder) / "runs")
        os.chdir(folder)  # sentences on the pages name runs as they lie here
        build(Path("runs"))
        root = Path("runs").resolve()
        browser = library.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        index, run = (root / "index.html").as_uri(), (root / args.run / "report" / "index.html").as_uri()
        beside = f"{(root / '_notebook' / 'compare.html').as_uri()}#{args.run}&{args.beside}"
        if args.all is None:
            save(picture(browser, index, 1400, 900, "light", "en"), IMAGES / "notebook_index.png")
            save(picture(browser, run, 1400, 1300, "dark", "en"), IMAGES / "notebook_run.png")
        else:
            args.all.mkdir(parents=True, exist_ok=True)
            for name, page in {"index": index, "run": run, "compare": beside}.items():
                for width, theme, language in (
                    (1400, "light", "en"),
                    (1400, "dark", "zh"),
                    (420, "light", "zh"),
                    (420, "dark", "en"),
                ):
                    shot = picture(browser, page, width, 1400, theme, language)
                    save(shot, args.all / f"{name}_{width}_{theme}_{language}.png")
        browser.close()


if __name__ == "__main__":
    main()
