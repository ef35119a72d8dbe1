"""Everything that README and docs tell a reader to type: Python is executed, commands are parsed, links resolve.

A comment above a block says so where it is not simply executed (Python) or parsed (shell):

    <!-- checked: run -->                     shell: every `marlab` line is run, in an empty folder
    <!-- checked: run with THING -->          executed where THING (a function of `tests.docs_stage`) has been set up
    <!-- checked: imports only -->            Python that would take minutes: it compiles, and its imports work
    <!-- checked: by TEST -->                 the named test executes it
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import COMMANDS, Command, main
from marlab.lab.config import leaves
from marlab.lab.errors import UserError
from marlab.lab.flags import describe, spellings
from tests import docs_stage
from tests.test_cli import commands

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "generated"),
]
FENCE = re.compile(r"(?:^<!-- checked: (?P<how>[^\n]*?) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    how: str
    text: str

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, text[: m.start("kind")].count("\n") + 1, m["kind"], m["how"] or "", m["text"])
        for m in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [block for block in BLOCKS if block.kind == "python"]
SHELL = [block for block in BLOCKS if block.kind == "sh"]


def prose_of(page: Path) -> str:
    """The page without its blocks; lines keep their numbers."""
    return FENCE.sub(lambda m: "\n" * m.group(0).count("\n"), page.read_text())


def lines_of(block: Block) -> list[str]:
    """Command lines of a shell block, continued lines joined and comments removed."""
    joined = block.text.replace("\\\n", " ")
    words = (shlex.join(shlex.split(line, comments=True)) for line in joined.splitlines())
    return [line for line in words if line]


# --- Python -----------------------------------------------------------------------------------------------------


def runs_slowly(block: Block) -> bool:
    """Needs the simulator's minutes, or a training."""
    return "marlab.market" in block.text or "collection" in block.how or "codes" in block.how


def as_parameters(blocks: list[Block]) -> list[Any]:
    return [pytest.param(b, id=b.place, marks=[pytest.mark.slow] if runs_slowly(b) else []) for b in blocks]


@pytest.mark.parametrize("block", as_parameters(PYTHON))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a world that a page makes itself
def test_python_blocks_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile(block.text, block.place, "exec")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    if "scml" in block.text or "marlab.market" in block.text:
        pytest.importorskip("scml")
    if block.how.startswith("run with "):
        docs_stage.set_up(block.how.removeprefix("run with "), tmp_path)
    if block.how == "imports only":
        code = compile(ast.Module(_imports(block.text), []), block.place, "exec")
    else:
        assert block.how in ("", "run") or block.how.startswith("run with "), f"{block.place}: {block.how}?"
    if "PYTHONHASHSEED=0" in block.text:  # has to be set before Python starts
        (tmp_path / "block.py").write_text(block.text)
        env = os.environ | {"PYTHONHASHSEED": "0"}
        subprocess.run([sys.executable, "block.py"], env=env, check=True, timeout=300)
    else:
        exec(code, {"__name__": "docs"})


def _imports(text: str) -> list[ast.stmt]:
    return [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]


# --- shell ------------------------------------------------------------------------------------------------------


class Understood(Exception):
    """Raised in place of the work of a command, once its flags have been read."""


@pytest.fixture
def parse_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands stop where their flags have become a config, before anything is looked up or written."""

    def stop(config: Any) -> None:
        raise Understood(config)

    monkeypatch.setattr("marlab.lab.flags.check_values", stop)


def understand(line: str, runs: bool = True) -> None:
    """`marlab ...` is a command whose flags, presets and plain words exist."""
    words = shlex.split(line)[1:]
    if not words or words[0].startswith("--"):
        assert not words or main(words) == 0
        return
    entry: Any = COMMANDS
    depth = 0
    while not isinstance(entry, Command):
        if depth == len(words) and not runs:
            return
        assert depth < len(words) and words[depth] in entry, f"`{line}`: no such command"
        entry = entry[words[depth]]
        depth += 1
    module, _, function = entry.target.partition(":")
    if depth == len(words) and not runs:  # only named
        return
    try:
        getattr(importlib.import_module(module), function)(words[depth:])
    except Understood:
        return
    except SystemExit as leaving:
        assert leaving.code in (0, None), line
        return
    except UserError as error:
        raise AssertionError(f"`{line}` is refused: {error}") from None


@pytest.mark.parametrize("block", SHELL, ids=lambda b: b.place)
def test_shell_blocks_are_understood(block: Block, parse_only: None) -> None:
    for line in lines_of(block):
        words = shlex.split(line)
        if words[0] == "marlab" and not block.how.startswith("by "):
            understand(line)
        elif words[0] == "make":
            for target in [w for w in words[1:] if "=" not in w and not w.startswith("-")]:
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), f"no target {target}"
        elif words[0] == "python" and words[1].endswith(".py") and words[1].startswith("benchmarks/"):
            script_has(words[1], words[2:])


def script_has(path: str, flags: list[str]) -> None:
    text = (ROOT / path).read_text()
    for flag in (word.partition("=")[0] for word in flags if word.startswith("--")):
        name = flag[2:].replace("-", "_")
        assert flag in text or re.search(rf"^    {name}: ", text, re.M), f"{path} has no {flag}"


@pytest.mark.slow
@pytest.mark.parametrize("block", [b for b in SHELL if b.how.startswith("run")], ids=lambda b: b.place)
def test_cheap_shell_blocks_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if block.how.startswith("run with "):
        docs_stage.set_up(block.how.removeprefix("run with "), tmp_path)
    for line in lines_of(block):
        if not line.startswith("marlab "):
            continue
        words = [sys.executable, "-m", "marlab", *shlex.split(line)[1:]]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


# --- what prose mentions ----------------------------------------------------------------------------------------


def mentions(page: Path) -> Iterator[tuple[int, str]]:
    """Everything between backticks outside of blocks, also where a line break stands in it."""
    text = prose_of(page)
    for found in INLINE.finditer(text):
        yield text[: found.start()].count("\n") + 1, re.sub(r"\s*\n\s*", " ", found[1]).replace("\\|", "|")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_text_are_understood(page: Path, parse_only: None) -> None:
    wrong = []
    for number, text in mentions(page):
        if not text.startswith("marlab ") or re.search(r"\.\.\.|COMMAND|WORLD|pond|[{}|]", text):
            continue
        try:
            understand(text, runs=False)
        except AssertionError as error:
            wrong.append(f"{name_of(page)}:{number}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def known_flags() -> set[str]:
    """Flags of all commands, those of older programs that are still understood, and of programs of the repository."""
    flags = {"--help", "--help-all", "--preset", "--version", "--completion"}
    for words, command in commands(COMMANDS):
        module, _, name = command.target.partition(":")
        run = getattr(importlib.import_module(module), name)
        flags |= {"--" + word.replace("_", "-") for word in getattr(getattr(run, "old", None), "renamed", ())}
        for more in [[], ["--variant", "hopplus-mcts"]] if words == ("hunt", "train") else [[]]:
            parts = describe(lambda asked, run=run, more=more: run([*more, *asked])).parts
            flags |= {flag for part in parts for leaf in leaves(part.cls, part.default) for flag in spellings(leaf)}
    for path in [p for folder in ("benchmarks", "tests/fuzz", "tests/mutants") for p in (ROOT / folder).glob("*.py")]:
        named = re.findall(r'"--([a-z][\w-]+)"|^    ([a-z]\w*): ', path.read_text(), re.M)
        flags |= {"--" + (a or b).replace("_", "-") for a, b in named}
    return flags


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_flags_in_the_text_exist(page: Path, known_flags: set[str]) -> None:
    foreign_too = page.parent.name == "coming-from" or page.name == "CHANGELOG.md"  # of other programs, and gone ones
    texts = [(number, text) for number, text in mentions(page) if not foreign_too or text.startswith("marlab ")]
    said = [(number, flag) for number, text in texts for flag in re.findall(r"(?<!\S)--[a-z][\w.-]+", text)]
    foreign = {"--no-deps", "--logdir", "--editable", "--workers"}
    wrong = [f"{name_of(page)}:{n}: {f}" for n, f in said if f.replace("_", "-") not in known_flags | foreign]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_and_files_in_the_text_exist(page: Path) -> None:
    wrong = [
        f"{name_of(page)}:{number}: {text}"
        for number, text in mentions(page)
        if (re.fullmatch(r"marlab(\.\w+)+(:\w+)?", text) and not exists(text))
        or (re.match(r"(tests|benchmarks|examples|src|docs)/(?!pond)[\w/.*]*\w", text) and not file_exists(text))
    ]
    assert not wrong, "\n".join(wrong)


def exists(dotted: str) -> bool:
    """A module, or a name in one."""
    parts = re.split(r"[.:]", dotted)
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        try:
            if importlib.util.find_spec(name) is None:
                continue
        except ModuleNotFoundError:
            continue
        thing: Any = importlib.import_module(name)
        for attribute in parts[end:]:
            if not hasattr(thing, attribute):
                return False
            thing = getattr(thing, attribute)
        return True
    return False


def file_exists(text: str) -> bool:
    path = text.split()[0].partition("::")[0]
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()


# --- links and pictures -----------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to, made as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose_of(page), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", t).lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_pictures_resolve(page: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)) + re.findall(r'(?:src|href)="([^"]+)"', prose_of(page)):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong, f"{name_of(page)}: {wrong}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_readers_meet_no_document_that_they_do_not_have(page: Path) -> None:
    unknown = r"\bthe note's\b|\bthe spec\b|\b[cC]hecks? \d+\b|\bD\d{1,2}\b(?!\w)|\bW\d\b|acceptance check"
    found = [
        f"{name_of(page)}:{n}: {m.group(0)}" for n, line in enumerate(prose_of(page).splitlines(), 1)
        for m in re.finditer(unknown, line)
    ]  # fmt: skip
    assert not found, "\n".join(found)


def test_the_readme_claims_only_what_the_results_show() -> None:
    """Every number of its table stands in the research record, and ± is half of the interval that stands there."""
    shown = "".join(page.read_text() for page in sorted((ROOT / "docs" / "record").glob("*.md"))).replace("**", "")
    tables = [
        re.search(
            r"^\|[^\n]*\| marlab \|.*?\n\n.*?\n\n.*?\n\n", (ROOT / name).read_text().replace("\xa0", " "), re.S | re.M
        )
        for name in ("README.md", "README.zh.md")
    ]
    english, chinese = (re.findall(r"\d\.\d+(?: ± \d\.\d+)?", table[0]) for table in tables if table)
    assert len(english) > 15 and english == chinese
    assert [claim for claim in english if not stands(claim, shown)] == []


def stands(claim: str, shown: str) -> bool:
    """`0.970`, or with the half-width of an interval: `0.970 ± 0.013` for .970 [.957, .983]."""
    value, _, half = claim.partition(" ± ")
    at = r"(?<![\d.])" + re.sub("^0", "0?", value).replace(".", r"\.")
    if not half:
        return re.search(at, shown) is not None
    ranges = re.findall(rf"{at}0* \[([+-]?\d?\.\d+), ([+-]?\d?\.\d+)\]", shown)
    least = 0.5001 * 10.0 ** -len(half.partition(".")[2])  # half a unit of the last digit
    return any(abs((float(high) - float(low)) / 2 - float(half)) <= least for low, high in ranges)


def test_the_tree_of_the_architecture_shows_every_package() -> None:
    """Packages, and the modules beside them, stand in the tree of architecture.md, and nothing else does."""
    tree = next(b.text for b in blocks_of(ROOT / "docs" / "architecture.md") if b.kind == "text")
    source = tree[tree.index("src/marlab/") : tree.index("examples/")]
    for world in ("lab", "fish", "hunt", "market"):
        part = re.search(rf"^  {world}/(.*?)(?=^  \w|\Z)", source, re.S | re.M)
        assert part
        shown = set(re.findall(r"(?<=\s)(\w+/|\w+\.py)(?=\s)", re.sub(r"`[^`]*`", "", part[1])))
        folder = ROOT / "src" / "marlab" / world
        packages = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
        modules = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
        assert shown - {"shipped/", "presets/"} == packages | modules, world
