"""What the notebook shows of the hunt: episodes with beliefs and plans, score cards, cross-play and diagnoses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.notebook.panels import Cell, Contribution, Page, Panel, Table
from marlab.lab.runs.files import read_json, trusting
from marlab.lab.runs.records import RunInfo

CARD, EPISODE, REPORT = "scorecard.json", "episode.json", "report.json"
WATCHED, PLAYED = Path("hunt/watch"), Path("hunt/human")
EPISODE_SCHEMA = 1
MOST_EPISODES = 4
"""Episodes on one page of the notebook."""
STATUS = {"pass": "hunt.diagnosis.pass", "fail": "hunt.diagnosis.fail", "blocked": "hunt.diagnosis.blocked"}


def trained(info: RunInfo) -> Contribution:
    """A training, or what it is made from: its watched episode and its diagnosis."""
    panels = [_episode(read_episode(file)) for file in [info.path / "media" / EPISODE] if file.is_file()]
    return Contribution(panels, _diagnosis(info.path / "diagnose"))


def evaluated(info: RunInfo) -> Contribution:
    """A score card; none while it is being measured."""
    file = info.path / CARD
    return Contribution(card_panels(_read(file))) if file.is_file() else Contribution()


# --- episodes ---------------------------------------------------------------------------------------------------------


def read_episode(file: Path) -> dict[str, Any]:
    """An episode that `hunt watch` wrote."""
    return _checked(_read(file), file)


def _checked(episode: Any, file: Path) -> dict[str, Any]:
    if not isinstance(episode, dict) or episode.get("schema") != EPISODE_SCHEMA or not episode.get("frames"):
        raise UserError(f"{file} does not hold an episode of the hunt.")
    return episode


def _episode(episode: Mapping[str, Any], title: str = "hunt.board.title", caption: str = "") -> Panel:
    who = caption or f"{episode['game']}: {', '.join(episode['players'])}"
    return Panel("hunt.board", title, _rounded(episode), who, place="replay")


def _rounded(value: Any) -> Any:
    """Shares and values with five digits: a page shows no more."""
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return round(value, 5) if isinstance(value, float) else value


def watched(root: Path) -> Page | None:
    """Episodes that belong to no run: those of `hunt watch NAME`, and the last games of humans."""
    files = [file for file in [root / WATCHED / EPISODE] if file.is_file()]
    games = sorted((root / PLAYED).glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    panels = [panel for file in [*files, *games[:MOST_EPISODES]] for panel in _watched(file)]
    return Page("watch", "hunt.board.page", panels[:MOST_EPISODES]) if panels else None


def _watched(file: Path) -> list[Panel]:
    """The episodes of a file; none of one that is damaged: others must not be hidden by it."""
    try:
        with trusting(f"{file} is damaged"):
            stored = _read(file)
            if "episodes" not in stored:
                return [_episode(_checked(stored, file))]
            return [
                _episode(
                    episode, "hunt.board.human", f"{file.name}: {episode['game']}, {', '.join(episode['players'])}"
                )
                for episode in stored["episodes"]
                if len(_checked(episode, file)["frames"]) > 1
            ]
    except UserError:
        return []


# --- the score card ---------------------------------------------------------------------------------------------------


def card_panels(card: Mapping[str, Any]) -> list[Panel]:
    """The card in panels: the first agent's shares, everybody's, cross-play, and self-play."""
    names = [agent["name"] for agent in card["agents"]]
    panels = []
    for block in card["blocks"]:
        rows = [_share_row(line, names[0]) for line in block["scenarios"] if line["agents"][names[0]]["share"]]
        if rows:
            data = {
                "rows": rows,
                "unit": "hunt.card.unit",
                "better": "higher",
                "reference": {"name": "hunt.card.reference", "value": 1.0},
            }
            panels.append(Panel("intervals", f"{names[0]}: {block['title']}", data, "hunt.card.text"))
        shares, rewards = _block_tables(block, names)
        panels.append(Panel("table", block["title"], shares.data(), "hunt.card.table_text"))
        panels.append(Panel("table", block["title"], rewards.data(), "hunt.card.rewards_text", place="details"))
    if card["cross_play"]:
        panels.append(Panel("heat", "hunt.cross.title", cross_play(card, names), "hunt.cross.text"))
    if card["self_play"]:
        panels.append(Panel("table", "hunt.self.title", _self_play(card["self_play"]).data(), "hunt.self.text"))
    return panels


def _share_row(line: Mapping[str, Any], agent: str) -> dict[str, Any]:
    return {"name": line["name"], **line["agents"][agent]["share"], "note": line["description"]}


def _block_tables(block: Mapping[str, Any], names: Sequence[str]) -> tuple[Table, Table]:
    """Everybody's shares, and the rewards behind them."""
    shares: list[list[Cell]] = []
    rewards: list[list[Cell]] = []
    for line in block["scenarios"]:
        shares.append([line["name"], *(_rounded(line["agents"][name]["share"]) for name in names)])
        earned: list[Cell] = [round(line["agents"][name]["score"], 3) for name in names]
        ends: list[Cell] = [round(line["random"]["score"], 3), round(line["reference"]["score"], 3)]
        rewards.append([line["name"], *earned, *ends, line["reference"]["agent"]])
    ends_of_scale = ("hunt.card.random", "hunt.card.best", "hunt.card.who")
    first = Table(["hunt.card.scenario", *names], shares)
    return first, Table(["hunt.card.scenario", *names, *ends_of_scale], rewards)


def cross_play(card: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Reward of the row's agent among copies of the column's."""
    z = [[card["cross_play"][a][b]["score"] for b in names] for a in names]
    text = [[f"{value:.2f}" for value in row] for row in z]
    return {"x": list(names), "y": list(names), "z": z, "text": text, "unit": "hunt.cross.unit"}


def _self_play(reports: Mapping[str, Any]) -> Table:
    rows: list[list[Cell]] = []
    for agent, report in reports.items():
        told, shares = report["over_seeds"], report["over_seeds"]["outcomes"]
        stag = sum(share for name, share in shares.items() if name.startswith("stag"))
        mean: Cell = _rounded({name: told["reward"][name] for name in ("value", "low", "high")})
        ends: list[Cell] = [round(stag, 3), round(shares["hare"], 3), round(shares["none"], 3)]
        rows.append([agent, mean, *ends, round(told["length"], 2), told["seeds"]])
    columns = ("agent", "reward", "stag", "hare", "nothing", "length", "seeds")
    return Table([f"hunt.self.{name}" for name in columns], rows)


# --- the diagnosis ----------------------------------------------------------------------------------------------------


def _diagnosis(folder: Path) -> list[Page]:
    """What `hunt diagnose` found, on a page of its own."""
    file = folder / REPORT
    if not file.is_file():
        return []
    report = _read(file)
    panels = [Panel("table", "hunt.diagnosis.verdicts", _verdicts(report["verdicts"]).data(), "hunt.diagnosis.text")]
    for section in report["sections"]:
        told = " ".join(section["remarks"])
        for number, table in enumerate(section["tables"]):
            rows = [[_cell(value) for value in row] for row in table["rows"]]
            title = f"{section['title']}: {table['title']}"
            data = Table([str(name) for name in table["header"]], rows).data()
            panels.append(Panel("table", title, data, told if number == 0 else "", place="details"))
        for picture in section["pictures"]:
            source = {"src": f"../{folder.name}/{picture['file']}", "alt": picture["caption"]}
            panels.append(Panel("figure", picture["caption"], source, place="details"))
    return [Page("diagnosis", "hunt.diagnosis.title", panels, "hunt.diagnosis.lead")]


def _verdicts(verdicts: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[list[Cell]] = []
    for v in verdicts:
        limit = "" if v["gate"] is None else f"{v['sense']} {v['gate']:.4g}"
        because = "; ".join(map(str, v["because"])) if isinstance(v["because"], list) else str(v["because"] or "")
        rows.append([
            v["module"], STATUS.get(v["status"], v["status"]), v["decided_by"], _cell(v["value"]), limit,
            _cell(v["original"]), because, v["run"],
        ])  # fmt: skip
    columns = ("module", "verdict", "decided_by", "value", "gate", "original", "because", "run")
    return Table([f"hunt.diagnosis.{name}" for name in columns], rows)


def _cell(value: Any) -> Cell:
    if isinstance(value, float):
        return round(value, 5)
    return value if value is None or isinstance(value, str | int) else str(value)


def _read(file: Path) -> Any:
    return read_json(file, lambda why: UserError(f"{why}."))
