"""What came out of the quickstart: sentences for the terminal, and one HTML page that opens anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from marlab.lab.progress import duration
from marlab.lab.report import markdown
from marlab.lab.report.page import render_page
from marlab.lab.runs.files import write_text
from marlab.lab.runs.records import RunInfo, read_run
from marlab.lab.stats import written
from marlab.lab.verdict import Sentence, say, side, texts
from marlab.market.arena import figures as arena_figures
from marlab.market.arena import report as arena_report
from marlab.market.arena.plan import Arena, PlayConfig
from marlab.market.arena.play import Tournament, gather
from marlab.market.arena.report import Result, interval, signed, stored
from marlab.market.arena.stats import Comparison, compare, score_interval

STAGES = ("worlds", "online", "arena")
TRAINED, START, RULE, EXPERT = "trained", "start", "rule", "PenguinAgent"
WHO = {
    TRAINED: "LitaAgentHRL with the network that learnt just now, by trial",
    START: "the same network before it learnt: made bad on purpose, it never does as the rule does",
    RULE: "LitaAgentHRL playing by its hand-written rule",
    EXPERT: "the expert whose copy it learnt to sell to",
    "RandomStdAgent": "draws its offers at random",
}
DETAILS = 2
"""The first tables of a tournament are scores and differences, which the report shows in one of its own."""
SCORES = "Scores are final over opening balance; intervals are 95 % over markets."
BIGGER = """\
marlab market clone --name experts
marlab market online --preset full --clones runs/market/experts/clones.npz --name learn
marlab market play --preset seats --agents "learnt=LitaAgentHRL(mode=learned, weights=learn)" --configs 4"""
"""The same loop at full size; the last line judges any agent by its name."""


@dataclass(frozen=True)
class Story:
    """Everything that there is to tell: the records of the stages, and the tournament with names that speak."""

    folder: Path  # run directory of the whole
    stages: dict[str, RunInfo]
    result: Result

    @property
    def name(self) -> str:
        return self.folder.name

    def comparisons(self) -> dict[str, Comparison]:
        """Trained minus every other agent, in the same seats; empty if the trained agent could not play."""
        agents, seats, alpha = self.result.agents, self.result.seats, self.result.config.alpha
        others = [other for other in agents if other != TRAINED] if TRAINED in agents else []
        return {other: compare(seats, [TRAINED, other], other, alpha, True)[0] for other in others}

    def results(self) -> dict[str, Any]:
        """The headline for the record of the run."""
        results: dict[str, Any] = {}
        for agent in self.result.agents:
            results[f"score {agent}"] = stored(*score_interval(self.result.seats, agent))
        for other, c in self.comparisons().items():
            results[f"trained - {other}"] = stored(c.mean, c.student)
        return results


def read_story(folder: Path, config: PlayConfig) -> Story:
    """The finished stages beside `folder`; `config` is the tournament's, whose long agent names become short ones."""
    paths = {stage: folder.with_name(f"{folder.name}-{stage}") for stage in STAGES}
    tournament = Tournament(paths["arena"])
    played = gather(Arena(config, list(tournament.left_out)), tournament)
    names = dict(zip(config.agents, (TRAINED, START, RULE)))
    renamed = replace(config, agents=tuple(names.get(a, a) for a in config.agents), baseline=START)
    result = replace(
        played,
        config=renamed,
        agents=[names.get(agent, agent) for agent in played.agents],
        seats=[{**seat, "agent": names.get(seat["agent"], seat["agent"])} for seat in played.seats],
        left_out={names.get(agent, agent): why for agent, why in played.left_out.items()},
    )
    return Story(folder, {stage: read_run(path) for stage, path in paths.items()}, result)


# --- sentences --------------------------------------------------------------------------------------------------


def stage_time(info: RunInfo) -> str:
    """How long a stage took, over all attempts that ended properly."""
    return duration(info.seconds() or 0.0)


def stage_facts(stage: str, info: RunInfo) -> str:
    """What a finished stage holds, in one line."""
    results = info.results
    if stage == "worlds":
        own, trivial = (results[f"cross-entropy{which}"] for which in (", held out", " of shares alone"))
        decisions = f"{results['decisions']:,} decisions of {EXPERT}"
        told = f"cross-entropy {own:.2f} on unseen worlds, {trivial:.2f} without learning"
        facts = f"{results['worlds']} worlds, {decisions}; its copy: {told}"
    elif stage == "online":
        before, after = (results[f"{name} minus rule"] for name in ("start", "learner"))
        facts = f"in the vector market, beside the rule: {_with_limits(before)} before, {_with_limits(after)} after"
    else:
        facts = f"{results['worlds']} worlds of {results['configs']} markets"
    return facts


def _with_limits(found: dict[str, Any]) -> str:
    return f"{signed(found['value'])} [{signed(found['low'])}, {signed(found['high'])}]"


def verdict(story: Story) -> list[Sentence]:
    """Did training help, and how far is it from where it started to the rule?"""
    comparisons = story.comparisons()
    if not comparisons:
        why = story.result.left_out.get(TRAINED, "it has no complete market")
        return [say("quickstart.no_trained", why=why)]
    found = [say("quickstart.no_start")]
    if START in comparisons:
        c = comparisons[START]
        key = "quickstart.one_market" if c.student is None else f"quickstart.{side(c.student)}"
        found = [say(key, difference=c.mean, interval=c.student)]
    if START in comparisons and RULE in comparisons:
        c = comparisons[RULE]
        limits = c.student or (c.mean, c.mean)
        before = c.mean - comparisons[START].mean
        found.append(say("quickstart.beside_rule", before=before, difference=c.mean, interval=limits))
    return [*found, say("quickstart.next_page")]


def told(story: Story) -> list[str]:
    """The verdict in words."""
    return texts(verdict(story), str(story.folder))


def summary(story: Story) -> str:
    """The tournament for the terminal."""
    header, rows = _headline(story)
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in [header, *rows]]
    notes = [f"{name} was left out: {why}" for name, why in story.result.left_out.items()]
    return "\n".join([_setting(story), SCORES, "", *lines, "", *notes, *told(story)]).rstrip()


def next_steps(name: str) -> str:
    """What to look at and to do now."""
    steps = {
        f"marlab note market/{name}-online": "how it learnt",
        "marlab runs": "all runs, also these",
        "marlab market play --help": "judge any agent, also your own, in the same way",
        "marlab fish train --preset quickstart": "another world: a shoal learns to escape",
    }
    width = max(map(len, steps))
    return "try next   " + "\n           ".join(f"{words:<{width}}   {why}" for words, why in steps.items())


def _setting(story: Story) -> str:
    result = story.result
    seats = {(seat["config"], seat["turn"]) for seat in result.seats}
    days = " to ".join(dict.fromkeys(map(str, result.config.days)))
    return (
        f"Tournament: {result.worlds} worlds of {days} days in {len(result.configs)} markets that nobody learnt from; "
        f"every agent played the same {len(seats)} seats."
    )


def _headline(story: Story) -> tuple[list[str], list[list[str]]]:
    """One row per agent, best first."""
    comparisons, seats = story.comparisons(), story.result.seats
    rows = []
    for agent in sorted(story.result.agents, key=lambda agent: -score_interval(seats, agent)[0]):
        mean, limits = score_interval(seats, agent)
        between = "" if limits is None else f"[{written(limits[0], 3)}, {written(limits[1], 3)}]"
        row = [agent, written(mean, 3), between, "", "", ""]
        if agent in comparisons:
            c = comparisons[agent]
            row[3:] = [signed(c.mean), interval(c.student), f"{100 * (c.pair_wins or 0):.0f} % of {c.pairs}"]
        rows.append(row)
    return ["agent", "score", "bootstrap", "trained minus it", "Student", "seats won by trained"], rows


# --- the page -------------------------------------------------------------------------------------------------------


def write_report(story: Story) -> Path:
    """Figures and the page `report/quickstart.html`; the same story gives the same page."""
    figures = story.folder / "figures"
    arena_figures.draw(story.result, figures / "scores.png", figures / "parts.png")
    target = story.folder / "report" / "quickstart.html"
    # Links start at the folder of all runs, so that pictures of the stages may be embedded.
    page = render_page(as_markdown(story), story.folder.parent, target.parent, "Quickstart")
    write_text(target, page)
    return target


def as_markdown(story: Story) -> str:
    """The page as Markdown with links from the folder of all runs."""
    parts = ["# Quickstart: a market agent learns by trial", *map(markdown.spans, told(story)[:-1])]
    parts += [*_arena_part(story), *_stage_part(story), *_learnt_part(story)]
    parts += [arena_report.table_as_markdown(table) for table in arena_report.tables(story.result)[DETAILS:]]
    parts += [
        "## Try next",
        "This was the smallest experiment that shows every step. The same loop at full size, from the rule upwards, "
        "wants an hour of CPU for the worlds and a GPU:",
        markdown.fence(BIGGER, "sh"),
        "Every stage is an ordinary run: `marlab runs` lists it, `marlab note` explains it, and its folder says with "
        "which settings it was made.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _stage_part(story: Story) -> list[str]:
    rows = []
    for stage, info in story.stages.items():
        facts = markdown.plain(stage_facts(stage, info))
        rows.append([stage, facts, stage_time(info), markdown.link(info.id, f"{info.name}/run.json")])
    return ["## What was done", markdown.table(["stage", "what", "time", "run"], rows)]


def _learnt_part(story: Story) -> list[str]:
    info = story.stages["online"]
    explained = (
        "The learner sits in selling seats of many worlds at once in the vector market and may, in every thread of a "
        "round, do as the rule or choose another operator, lot, price or day. Its start makes the rule's own "
        "choices the least likely ones. What a choice earns makes it likelier or less likely. The first panel compares "
        "its greedy play with the rule's in the same seats of worlds that it does not learn from."
    )
    picture = f"{info.name}/figures/online_learning.png"
    there = (info.path / "figures" / "online_learning.png").exists()
    return ["## How it learnt", explained, markdown.image("Learning around the rule", picture) if there else ""]


def _arena_part(story: Story) -> list[str]:
    header, rows = _headline(story)
    who = [f"**{markdown.plain(name)}**: {WHO[name]}" for name in story.result.agents if name in WHO]
    notes = [markdown.plain(line) for line in arena_report.preface(story.result)]
    figures = f"{story.name}/figures"
    return [
        "## Who plays better",
        markdown.plain(f"{_setting(story)} {SCORES}"),
        markdown.table(header, [[markdown.plain(cell) for cell in row] for row in rows]),
        markdown.bullets(who),
        markdown.image("Differences to the start, and scores by level", f"{figures}/scores.png"),
        markdown.image("Where the scores come from, and how much of what was possible", f"{figures}/parts.png"),
        markdown.bullets(notes),
    ]
