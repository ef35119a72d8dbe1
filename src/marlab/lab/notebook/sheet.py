"""One page on its way to the disk: where it lies, what lies beside it, or everything inside of it.

Pages open without a server, where a script may not read files: data beside a page are scripts that call
`notebook.receive(name, value)`. A page that is one file has the same data, all scripts and the style inside.
"""

from __future__ import annotations

import base64
import filecmp
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from marlab.lab.notebook.panels import PLACES, Panel
from marlab.lab.notebook.words import is_word, word
from marlab.lab.runs.files import plain_json, replacing

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

HERE = Path(__file__).parent
ASSETS = HERE / "assets"
FOLDER = "_notebook"
"""Where shared files lie, in the folder of all runs."""
ROOM_FOR_TEXT = 400_000
"""Bytes kept for the words of a page that is one file, and for scripts of worlds."""
SCRIPTS = ("notebook.js", "player.js", "chart.js", "kinds.js")
"""What every page loads, before words and the scripts of worlds."""


def put(path: Path, content: str | bytes) -> None:
    """Write a file that can be made again: whole or not at all, without waiting for the disk."""
    with replacing(path, wait=False) as temporary:
        temporary.write_bytes(content.encode("utf-8", "replace") if isinstance(content, str) else content)


def as_json(value: Any) -> str:
    """JSON that can stand inside a script or a page: no tag begins in it."""
    try:
        told = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # there is no NaN in JSON
        told = json.dumps(plain_json(value), ensure_ascii=False, separators=(",", ":"))
    return told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def as_data(name: str, value: Any) -> str:
    """The same as a file beside a page."""
    return f"notebook.receive({as_json(name)},{as_json(value)});\n"


def href(target: Path, folder: Path) -> str:
    """The address of a file as seen from a folder, for attributes of a page."""
    return quote(Path(os.path.relpath(target.absolute(), folder.absolute())).as_posix())


def data_uri(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


@dataclass
class Sheet:
    """A page that will lie at `file`, with shared files in `assets` and the index in `home` (None: there is none)."""

    file: Path
    assets: Path
    home: Path | None = None
    single: bool = False
    language: str = "en"
    inside: dict[str, str] = field(default_factory=dict)  # data of a page that is one file, as JSON
    written: list[Path] = field(default_factory=list)  # data files beside the page

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def stem(self) -> str:
        return self.file.stem

    def href(self, target: Path) -> str:
        return href(target, self.folder)

    def keep(self, name: str, value: Any) -> None:
        """Data that the page asks for by this name."""
        if self.single:
            self.inside[name] = as_json(value)
        else:
            target = self.folder / "data" / f"{name}.js"
            put(target, as_data(name, value))
            self.written.append(target)

    def weight(self) -> int:
        """Bytes that a page of one file has before its pictures, with room for its text."""
        shared = sum(len(_content(name).encode()) for name in (*SCRIPTS, "words.js", "plotly.min.js", "notebook.css"))
        return shared + sum(len(value.encode()) for value in self.inside.values()) + ROOM_FOR_TEXT

    def panels(self, panels: Sequence[Panel], named: str | None = None) -> list[dict[str, Any]]:
        """What the template needs of panels; their data are kept, of a single one by the name that it is given."""
        shown = []
        for panel in panels:
            name = named or f"{self.stem}-{len(self.written) + len(self.inside)}"
            self.keep(name, panel.data)
            for part, make in panel.parts.items():
                self.keep(f"{name}-{part}", make())
            shown.append({"name": name, "kind": panel.kind, "title": panel.title, "caption": panel.caption})
        return shown

    def render(self, template: str, packages: Iterable[str] = (), scripts: Sequence[str] = (), **values: Any) -> str:
        """The page as text; `packages` are worlds whose scripts draw panels in it, `scripts` more of the lab's own."""
        return _environment().get_template(template).render(
            sheet=self, language=self.language, say=self.say, both=self.both, t=self.text, label=self.attribute,
            head=self._head(sorted(set(packages)), scripts), places=PLACES, **values,
        )  # fmt: skip

    def write(self, template: str, packages: Iterable[str] = (), scripts: Sequence[str] = (), **values: Any) -> Path:
        put(self.file, self.render(template, packages, scripts, **values) + "\n")
        return self.file

    # --- texts ------------------------------------------------------------------------------------------------

    def text(self, key: str, **numbers: Any) -> Markup | str:
        """A word that changes with the language; a text that is no word as it is."""
        from markupsafe import Markup

        if not is_word(key):
            return key
        told = Markup(' data-n="{}"').format(json.dumps(numbers)) if numbers else ""
        return Markup('<span data-t="{}"{}>{}</span>').format(key, told, word(key, self.language, **numbers))

    def attribute(self, name: str, key: str) -> Markup:
        """An attribute whose text changes with the language."""
        from markupsafe import Markup

        return Markup('{}="{}" data-t-{}="{}"').format(name, word(key, self.language), name, key)

    def both(self, texts: dict[str, str]) -> Markup:
        """A sentence that was said in every language, with `code` in it."""
        from markupsafe import Markup

        shown = texts.get(self.language) or texts["en"]
        if len(set(texts.values())) == 1:
            return self.say(shown)
        return Markup('<span data-said="{}">{}</span>').format(json.dumps(texts, ensure_ascii=False), self.say(shown))

    @staticmethod
    def say(text: str) -> Markup:
        """A sentence with `code` in it."""
        from markupsafe import Markup

        parts = [Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(text.split("`"))]
        return Markup("").join(parts)

    # --- what a page stands on ------------------------------------------------------------------------------------

    def _head(self, packages: Sequence[str], scripts: Sequence[str]) -> Markup:
        """Style, scripts and the rule of what the page may load; all of it inside where the page is one file."""
        from markupsafe import Markup

        names = [*SCRIPTS, "words.js", *scripts]
        for package in packages:
            names += [f"{package}/{file.name}" for file in world_assets(package)] + [f"{package}/words.js"]
        styles = ["notebook.css", *(name for name in names if name.endswith(".css"))]
        codes = [name for name in names if name.endswith(".js")]
        if self.single:
            inline = [_content(name) for name in [*codes, "plotly.min.js"]]
            hashes = " ".join(f"'sha256-{_hash(code)}'" for code in inline)
            rule = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"
            rule += "; media-src data:"
            parts = [_policy(rule)]
            parts += [Markup("<style>\n{}\n</style>").format(Markup(_content(name))) for name in styles]
            parts += [Markup("<script>{}</script>").format(Markup(code)) for code in inline]
            for name, value in self.inside.items():
                parts.append(
                    Markup('<script type="application/json" id="data:{}">{}</script>').format(name, Markup(value))
                )
        else:
            rule = (
                "default-src 'none'; script-src 'self' file:; style-src 'self' file: 'unsafe-inline'; connect-src "
                "'self'; img-src 'self' file: data: blob:; media-src 'self' file:"
            )
            to = self.href(self.assets) + "/"
            parts = [_policy(rule)]
            parts += [Markup('<link rel="stylesheet" href="{}{}">').format(to, name) for name in styles]
            parts += [Markup('<script src="{}{}"></script>').format(to, name) for name in codes]
        return Markup("\n").join(parts)


def _policy(rule: str) -> Markup:
    from markupsafe import Markup

    return Markup(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}; base-uri 'none'; form-action 'none'\">"
    ).format(Markup(rule))


def _hash(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


# --- shared files -------------------------------------------------------------------------------------------------


def world_assets(package: str) -> list[Path]:
    """Scripts and styles of a world, in the order in which pages load them."""
    import marlab

    folder = Path(marlab.__file__).parent / package / "assets"
    return sorted(file for file in folder.glob("*") if file.suffix in (".js", ".css"))


@cache
def _content(name: str) -> str:
    """A shared file as text; inside a page no line of it may look like the end of a script."""
    package, slash, file = name.rpartition("/")
    if file == "words.js":
        return words_script(package or None)
    if file == "plotly.min.js":
        return plotly_script().read_text(encoding="utf-8").replace("</script", "<\\/script")
    path = next(f for f in world_assets(package) if f.name == file) if slash else ASSETS / file
    return path.read_text(encoding="utf-8")


def words_script(package: str | None) -> str:
    from marlab.lab.notebook.words import words_of

    return f"notebook.learn({as_json(words_of(package))});\n"


def plotly_script() -> Path:
    """plotly.js, as the installed library brings it."""
    import plotly

    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def write_assets(folder: Path, packages: Iterable[str]) -> set[Path]:
    """Write the shared files of the lab and of the worlds named, where they are missing or differ; their paths."""
    wanted: dict[Path, bytes] = {folder / "words.js": words_script(None).encode()}
    for file in ASSETS.iterdir():
        wanted[folder / file.name] = file.read_bytes()
    for package in packages:
        wanted[folder / package / "words.js"] = words_script(package).encode()
        for file in world_assets(package):
            wanted[folder / package / file.name] = file.read_bytes()
    for path, content in wanted.items():
        if not path.exists() or path.read_bytes() != content:
            put(path, content)
    plotly = folder / "plotly.min.js"
    if not plotly.exists() or not filecmp.cmp(plotly, plotly_script(), shallow=False):  # large: compared once per state
        put(plotly, plotly_script().read_bytes())
    return {*wanted, plotly}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )  # fmt: skip
