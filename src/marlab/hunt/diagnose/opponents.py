"""Diagnosis of opponent models: the goal VAE, the predictor of actions (MOA), and beliefs computed with them.

What the training has measured at its end is read; with other data it is measured again. How far a model carries, from
offline data to players in play, is tried on fresh games: there the players' own randomness is the floor, because who
faces players that act at random looks bad by every score except the excess over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marlab.hunt.data.collect import rows_of
from marlab.hunt.data.dataset import NOT_STAY, Dataset, Part, load_dataset
from marlab.hunt.diagnose.checks import Check, Picture, Section, Table, fitting_weights, run_pictures, save_picture
from marlab.hunt.diagnose.ppo import PPORun
from marlab.hunt.game.rules import ACTION_NAMES, Game
from marlab.hunt.others.config import BeliefConfig, PretrainGoalsConfig
from marlab.hunt.others.models import LoadedModels, load_goal_models
from marlab.hunt.players.policy import Policy
from marlab.hunt.players.published import CONFUSION, ONLINE_BROKEN, TOP1, TOP3, VAE_LOSSES
from marlab.hunt.players.rollout import HARE, STAG, Moment, captures, moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.pretraining.answers import predict
from marlab.hunt.pretraining.belief_report import BeliefSource, belief_figures, exact_source, game_of, learned_source
from marlab.hunt.pretraining.data import goal_data
from marlab.hunt.pretraining.judge import judge, stage_of
from marlab.hunt.pretraining.metrics import class_table, score_actions
from marlab.hunt.pretraining.run import overfit_one_batch
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.figures import bars, label
from marlab.lab.report.style import COLOURS, DASHES, INK, legend, legends, panels, styled
from marlab.lab.runs.files import read_table, trusting
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.rng import Rngs

ORIGINAL = class_table(CONFUSION)
PROBE_TIME = 4
OVERFIT_ROWS, OVERFIT_STEPS = 128, 200
"""One batch by heart where the run has no record of it."""
EXACT = {"known": "type known", "bayes": "Bayes within the episode", "mixture": "type unknown"}
KEYS = ("ratio", "precision", "recall", "f1")
SCORES = ("rows", "top1", "top3", "cross_entropy", "floor", "excess")


@dataclass(frozen=True)
class OpponentRun:
    """A run of `hunt pretrain vae`, opened."""

    name: str
    path: Path
    config: PretrainGoalsConfig
    loaded: LoadedModels
    dataset: Dataset
    record: dict[str, Any]  # eval/final.json, or the same of other data
    own_data: bool

    @property
    def learnt_after_exit(self) -> float:
        """Share of the rows it learnt from whose player had left."""
        return float(self.record["data"]["post_exit_share"])


def open_opponent_run(path: Path, name: str, data: Path | None) -> OpponentRun:
    """Load everything that a diagnosis needs; what is missing or of another game is refused."""
    config = from_dict(PretrainGoalsConfig, read_table(path / "config.json", UserError), f"{path / 'config.json'}")
    dataset = load_dataset(data or config.data)
    with fitting_weights(path):
        loaded = load_goal_models(path, dataset.game)
    record = read_table(path / "eval" / "final.json", UserError)
    if data is not None:
        record |= judge(loaded.models, dataset, config.horizon, config.seed)[0]
        record.pop("belief", None)
    with trusting(f"{path / 'eval' / 'final.json'} does not tell what was measured"):
        for name_of_split in ("train", "validation"):
            class_table(record["splits"][name_of_split]["moa"]["confusion"])
        float(record["data"]["post_exit_share"])
    return OpponentRun(name, path, config, loaded, dataset, record, data is None)


def diagnose_opponents(run: OpponentRun, gates: Gates, belief_games: int) -> Section:
    """Checks and tables of a run."""
    splits, source = run.record["splits"], run.loaded.spec.goal_source
    section = Section(f"Models of others {run.name} (goals from: {source})")
    scores, ceilings = splits["validation"]["moa"], splits["validation"]["ceilings"]
    typed, latent = source == "type", run.loaded.models.vae is not None
    needs = ("data", "goal VAE") if latent else ("data",)
    one, three = (gates.top1_typed, gates.top3_typed) if typed else (gates.top1, gates.top3)
    section.checks = [
        Check("MOA", "top-1", scores["top1"], one, "at least", ORIGINAL.accuracy, needs, run.name),
        Check("MOA", "top-3", scores["top3"], three, "at least", TOP3[-1], needs, run.name),
        Check("MOA", "one batch by heart", _overfit(run), gates.overfit, "at most", None, ("data",), run.name),
    ]
    if run.loaded.spec.goal_width:
        # Neither goals nor codes matter here: what is left is the predictor, its inputs and its labels.
        lost = splits["validation"]["free"]["cross_entropy"] - ceilings["mixture"]["cross_entropy"]
        more = Check("MOA", "excess without goal", lost, gates.free_excess, "at most", None, ("data",), run.name)
        section.checks.append(more)
    if typed:
        found = Check("MOA", "calibration error", scores["ece"], gates.ece, "at most", None, needs, run.name)
        section.checks.append(found)
    if source == "history":
        nats = scores["cross_entropy"]
        section.checks.append(
            Check("MOA", "cross-entropy", nats, gates.cross_entropy, "at most", None, needs, run.name)
        )
    section.tables = [_score_table(splits), _class_scores(scores), _by_type(splits["validation"]["by_type"])]
    section.figures = {key: {name: split[key] for name, split in splits.items()} for key in ("moa", "free")}
    if latent:
        _add_vae(run, gates, section)
    section.tables.append(_loss_table(run))
    if belief_games and run.loaded.has_goals:
        _add_beliefs(run, gates, belief_games, section)
    if ceilings["known"]["top1"] < one:
        section.remarks.append(
            f"On these {scores['rows']} validation rows even the exact rules reach only top-1 "
            f"{ceilings['known']['top1']:.3f}; the gate cannot be met by anybody, collect more rows."
        )
    return section


def _overfit(run: OpponentRun) -> float:
    """Nats above the label noise after learning one batch by heart, as recorded or else tried now."""
    record = run.path / "eval" / "overfit.json"
    if record.exists():
        test = read_table(record, UserError)
        with trusting(f"{record} does not tell a loss"):
            return float(test["loss"] - test["floor"])
    c, part = run.config, run.dataset.part("train")
    data = goal_data(run.dataset.game, part, c.goal_source, c.horizon, "cpu", paths=run.loaded.spec.paths)
    return overfit_one_batch(c, run.loaded.spec, data, OVERFIT_ROWS, OVERFIT_STEPS).excess


def _score_table(splits: Mapping[str, Any]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name in ("train", "validation"):
        split = splits[name]
        shown = {"MOA": split["moa"], "MOA without goal": split["free"]}
        shown |= {f"exact, {label}": split["ceilings"][key] for key, label in EXACT.items()}
        keys = ("top1", "top3", "cross_entropy", "ece", "excess")
        rows += [(name, label, *(s[key] for key in keys)) for label, s in shown.items()]
        rows.append((name, "always the most frequent action", split["moa"]["majority"], *(None,) * 4))
    rows.append(("its training rows", "original, last epoch", TOP1[-1], TOP3[-1], *(None,) * 3))
    header = ("rows", "predictor", "top-1", "top-3", "cross-entropy [nats]", "calibration error", "excess [nats]")
    return Table("Predictions of actions, ceiling and floor", header, rows)


def _class_scores(scores: Mapping[str, Any]) -> Table:
    ours = class_table(scores["confusion"])
    rows: list[tuple[Any, ...]] = [
        (ACTION_NAMES[a], int(ours.count[a]), *(float(getattr(t, k)[a]) for k in KEYS for t in (ours, ORIGINAL)))
        for a in range(len(ours.confusion))
    ]
    rows.append(("macro", ours.rows, *(t.macro(getattr(t, k)) for k in KEYS for t in (ours, ORIGINAL))))
    header = ("action", "rows", *(name for k in KEYS for name in (k, f"{k} (original)")))
    return Table("Per action, validation rows", header, rows)


def _by_type(by_type: Mapping[str, Any]) -> Table:
    """Excess over the players' own randomness, type by type: what self-play with known players may lose at most."""
    rows = [(name, *(s[key] for key in SCORES), 0.15) for name, s in by_type.items()]
    header = ("players", "rows", "top-1", "top-3", "cross-entropy", "floor", "excess", "most for planning")
    return Table("Predictions by type of player, validation rows [nats]", header, rows)


def _add_vae(run: OpponentRun, gates: Gates, section: Section) -> None:
    scores, probes = run.record["vae"], run.record["probes"]
    late = next((p for p in probes if p["t"] == PROBE_TIME), None)
    gain = None if late is None else late["code"]["balanced"] - late["state"]["balanced"]
    learnt_through = ("data", "MOA/one batch by heart", "MOA/excess without goal")
    units = float(scores["active_units"])
    checks = [
        Check("goal VAE", "type read from code beyond situation, t = 4", gain, gates.probe_gain, "at least", None,
              learnt_through, run.name),
        Check("goal VAE", "units in use", units, gates.active_units, "at least", None, ("data",), run.name),
    ]  # fmt: skip
    if run.config.vae_loss != "moa":
        checks.append(
            Check("goal VAE", "reconstruction error of the mean situation's", scores["recon_share"],
                  gates.reconstruction, "at most", None, ("data",), run.name)
        )  # fmt: skip
    section.checks = checks + section.checks
    section.figures |= {"vae": scores, "probes": probes}
    planes = [*(f"player {k + 1}" for k in range(run.dataset.game.players)), "obstacles", "stags", "hares"]
    recall = [(name, scores.get(f"recall/{c}")) for c, name in enumerate(planes)]
    sources = {"code": "code", "state_code": "code of the situation", "state": "situation"}
    rows = [(p["t"], p["code"]["rows"], *(p[k]["balanced"] for k in sources), p["code"]["majority"]) for p in probes]
    header = ("t", "rows", *sources.values(), "most frequent type (plain accuracy)")
    section.tables += [
        Table("Occupied cells that the reconstruction shows, validation rows", ("plane", "share"), recall),
        Table("Type read by a linear probe, mean of both types' recalls", header, rows),
    ]


def _loss_table(run: OpponentRun) -> Table:
    last = (read_metrics(run.path / "metrics.jsonl") or [{}])[-1]
    ours = (
        f"ours ({run.config.vae_loss}), {last.get('stage', '')} stage",
        *(last.get(f"loss/{key}") for key in ("recon", "policy", "total", "kl")),
        last.get("kl_factor"),
        last.get("updates"),
    )
    titles = {"recon": "original", "moa": "original, actions only", "restored": "original, reconstruction put back"}
    rows = [ours, *((titles[key], *losses) for key, losses in VAE_LOSSES.items())]
    header = ("training", "reconstruction", "policy", "total", "KL [nats]", "KL factor", "optimiser steps")
    return Table("Losses at the end of training", header, rows)


def belief_bar(exact: float, share: float) -> float:
    """What a learned belief in the true type must reach where the exact rules reach `exact`.

    Four steps tell less on a large grid with obstacles than on a small one, and no model can know more than they tell:
    it is asked for a share of the exact belief's distance from an even guess.
    """
    return 0.5 + share * (exact - 0.5)


def _add_beliefs(run: OpponentRun, gates: Gates, games: int, section: Section) -> None:
    beliefs = run.record.get("belief") or belief_figures(run.loaded, run.dataset, games, run.config.seed)
    exact, learned = beliefs["exact"], beliefs["learned"]
    first, second = (found["true_type_by_step"] for found in (exact, learned))
    bar, prior = belief_bar(first[4], gates.belief_learned), exact["prior_by_episode"][-1]
    section.checks += [
        Check("belief", "true type at t = 4, exact rules", first[4], gates.belief_step, "at least", run=run.name),
        Check("belief", "prior after 10 episodes, exact rules", prior, gates.belief_prior, "at least", run=run.name),
        Check("belief", "true type at t = 4, learned MOA", second[4], bar, "at least", None,
              ("data", "goal VAE", "MOA"), run.name),
    ]  # fmt: skip
    section.figures["belief"] = beliefs
    rows: list[tuple[Any, ...]] = [(t, *pair) for t, pair in enumerate(zip(first, second))]
    more = [
        (
            name,
            v["prior_by_episode"][-1],
            v["prior_by_episode_slow"][-1],
            v["switch"]["share"],
            v["switch"]["mean_steps"],
        )
        for name, v in (("exact rules", exact), ("learned MOA", learned))
    ]
    header = ("likelihoods", "prior, 10 episodes, discount 0.9", "discount 0.995", "turned after a switch", "in steps")
    section.tables += [
        Table("Belief in the true type, by step", ("t", "exact rules", "learned MOA"), rows),
        Table("Belief across episodes and after a change of goal", header, more),
    ]


# --- from offline data to play ----------------------------------------------------------------------------------------


def diagnose_transfer(run: OpponentRun, ppo: Sequence[PPORun], games: int, section: Section) -> None:
    """Score the model on fresh games of several populations, and add the tables to the section."""
    game = game_of(run.dataset)
    populations: dict[str, Policy] = {
        "NS and NH, fresh games": RulePlayers(game, [Role(Kind.MIX, 0.5)] * game.players),
        "WAIT, who give up": RulePlayers(game, [Kind.WAIT] * game.players),
        "RAND": RulePlayers(game, [Kind.RAND] * game.players),
    }
    grid = ("rules", "height", "width", "players", "final_time")
    for trained in ppo:
        if all(getattr(trained.config.game, name) == getattr(game.config, name) for name in grid):
            populations[f"PPO {trained.name}"] = trained.policy(game, trained.agents.seeds[0])
    offline = run.record["splits"]["validation"]
    by_players = {"offline validation": {"given": offline["moa"], "free": offline["free"]}}
    for name, policy in populations.items():
        part, truth = play_rows(game, policy, games, Rngs(run.config.seed).torch(f"transfer {name}"))
        data = goal_data(game.config, part, "type", run.config.horizon, "cpu", paths=run.loaded.spec.paths)
        answer = predict(run.loaded.models, data, stage_of(run.loaded.spec))
        logits = {"given": answer.logits, "free": answer.free}
        by_players[name] = {k: score_actions(x, data.action, truth).to_dict() for k, x in logits.items()}
    rows: list[tuple[Any, ...]] = [
        (
            name,
            *(found["given"][key] for key in SCORES),
            found["free"]["excess"],
            offline["moa"]["top1"] - found["given"]["top1"],
        )
        for name, found in by_players.items()
    ]
    published = (f"{low:g} to {high:g}" for low, high in ONLINE_BROKEN.values())
    rows.append(("original, online before its buffer was mended", None, *published, *(None,) * 4))
    header = ("players", "rows", "top-1", "top-3", "cross-entropy", "floor", "excess", "excess without goal",
              "top-1 lost to offline")  # fmt: skip
    classes = [(name, *found["given"]["per_class"]["recall"]) for name, found in by_players.items()]
    section.tables += [
        Table("From offline data to players in play [nats]", header, rows),
        Table("Recall of every action", ("players", *ACTION_NAMES[: game.actions]), classes),
    ]
    section.figures["transfer"] = by_players


def play_rows(game: Game, policy: Policy, games: int, generator: torch.Generator) -> tuple[Part, Tensor | None]:
    """Whole episodes of `games` games as rows of living players, and [R, A] what these would do at each, where that is
    known.

    NS and NH players keep their type; a player of whom no type is known counts as RAND, so its goal is even.
    """
    start = game.reset(games, generator)
    memory = policy.begin(games, generator)
    played: list[Moment] = []
    chances: list[Tensor] = []
    for moment in moments(game, policy, start, memory, generator):
        played.append(moment)
        chance = policy.probabilities(moment.view, moment.memory)
        chances += [] if chance is None else [chance]
    kinds = memory.get("type", torch.full((games, game.players), int(Kind.RAND)))
    types = torch.where((kinds == Kind.NS) | (kinds == Kind.NH), kinds, int(Kind.RAND))
    rows, steps, there = rows_of(game, types, played, [torch.full_like(types, NOT_STAY)] * len(played))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), steps.flatten().cumsum(0)])
    return Part(rows, offsets), torch.stack(chances, 2)[there] if len(chances) == len(played) else None


# --- pictures ---------------------------------------------------------------------------------------------------------


def draw_opponents(run: OpponentRun, section: Section, out: Path) -> None:
    """What the run drew of its training, and pictures of what was measured here."""
    own = {"losses": "Losses, KL divergence and its weight", "epochs": "Top-1, top-3 and cross-entropy per epoch"}
    if run.own_data:
        own |= {
            "predictions": "Confusion of actions and calibration, validation rows",
            "codes": "Goal codes along their two main directions",
            "belief": "Belief in the true type by step and by episode",
        }
    section.pictures += run_pictures(run.path, out, run.name, own)
    section.pictures.append(_recall(run, out))
    if "transfer" in section.figures:
        section.pictures.append(_transfer(run, section.figures["transfer"], out))
    if "belief" in section.figures:
        section.pictures.append(_belief_episodes(run, out))


def _recall(run: OpponentRun, out: Path) -> Picture:
    ours = class_table(run.record["splits"]["validation"]["moa"]["confusion"])
    figure, axes = panels(3, 1, size=(11.0, 3.2), title="Per action")
    size = len(ours.confusion)
    for ax, key in zip(axes, ("recall", "precision", "f1")):
        series = {
            f"ours, {ours.rows:,} validation rows": getattr(ours, key).tolist(),
            "original, its training rows": getattr(ORIGINAL, key)[:size].tolist(),
        }
        bars(ax, ACTION_NAMES[:size], series, ylabel=f"{key.upper() if key == 'f1' else key} [share]")
        ax.set_ylim(0, 1.15)
    legend(figure)
    return save_picture(figure, out, f"per-action-{run.name}.png", "Recall, precision and F1 of every action")


def _transfer(run: OpponentRun, transfer: Mapping[str, Any], out: Path) -> Picture:
    names = [name.replace(", ", ",\n").replace("PPO ", "PPO\n") for name in transfer]
    figure, (left, right) = panels(2, 1, size=(1.9 * len(transfer) + 1.5, 4.2), title="From offline data to play")
    given = [v["given"] for v in transfer.values()]
    shares = {"top-1": [g["top1"] for g in given], "top-3": [g["top3"] for g in given]}
    bars(left, names, shares, ylabel="share of rows", title="accuracy")
    left.set_ylim(0, 1.12)
    parts = {
        "the players' own randomness (floor)": [g["floor"] for g in given],
        "cross-entropy of the model": [g["cross_entropy"] for g in given],
    }
    bars(right, names, parts, ylabel="nats", title="what cannot be known, and what the model pays")
    legends(left, right)
    return save_picture(figure, out, f"transfer-{run.name}.png", "Accuracy, and cross-entropy over its floor")


def _belief_episodes(run: OpponentRun, out: Path, episodes: int = 3) -> Picture:
    """What player 1 believes about the others over some episodes in a row, exact and learned."""
    game = game_of(run.dataset)
    sources = {"exact rules": exact_source(game), "learned MOA": learned_source(run.loaded, game)}
    figure, axes = panels(
        game.players - 1, 1, size=(12.0, 2.5), title="What player 1 believes over three episodes", share_x=True
    )
    for i, (name, source) in enumerate(sources.items()):
        _draw_beliefs(axes, game, source, name, i, episodes)
    axes[-1].set_xlabel("step over all episodes (dotted: a new episode; mark: a capture)")
    legend(figure)
    caption = "Belief over steps and episodes, captures marked"
    return save_picture(figure, out, f"belief-episodes-{run.name}.png", caption)


@styled
def _draw_beliefs(axes: list[Any], game: Game, source: BeliefSource, name: str, index: int, episodes: int) -> None:
    """One line per other player; the same games for every source, because play does not depend on beliefs."""
    kinds = [Kind.NS, Kind.NS, Kind.NH, Kind.NS][: game.players]
    kinds += [Kind.NH] * (game.players - len(kinds))
    generator = Rngs(4).torch("shown beliefs")
    players, tracker = RulePlayers(game, kinds), source.tracker(game, BeliefConfig())
    belief = tracker.begin(1)
    lines: list[list[tuple[int, float]]] = [[] for _ in axes]
    marks: list[list[tuple[int, float, int]]] = [[] for _ in axes]
    starts, at = [], 0
    for _ in range(episodes):
        starts.append(at)
        start, memory = game.reset(1, generator), players.begin(1, generator)
        for moment in moments(game, players, start, memory, generator):
            got = captures(game, moment.outcome, torch.zeros_like(moment.outcome.hunters))[0].tolist()
            read = source.read(belief["belief"])[0, ..., 0]  # [*P] belief in the stag, everybody's or player 1's own
            for i, j in enumerate(range(1, game.players)):
                stag = float(read[j] if read.dim() == 1 else read[0, i])
                if bool(moment.view.state.alive[0, j]):
                    lines[i].append((at, stag))
                    marks[i] += [(at, stag, got[j])] if got[j] in (STAG, HARE) else []
            belief = tracker.observe(moment.view, moment.outcome, belief)
            at += 1
        belief = tracker.reset(belief, torch.ones(1, dtype=torch.bool))
        for line in lines:
            line.append((at, float("nan")))  # a gap between episodes
    for i, ax in enumerate(axes):
        xs, ys = zip(*lines[i])
        ax.plot(xs, ys, color=COLOURS[index], linestyle=DASHES[index], label=name, marker="o", markersize=4)
        for x, y, kind in marks[i]:
            mark, meaning = ("*", "captures the stag") if kind == STAG else ("p", "captures a hare")
            ax.plot([x], [y], linestyle="none", marker=mark, markersize=15, color=COLOURS[index], markeredgecolor=INK,
                    label=meaning)  # fmt: skip
        for x in starts[1:] if index == 0 else ():
            ax.axvline(x - 0.5, color="#999999", linestyle=":", linewidth=1.2)
        label(ax, "", "belief in stag", f"about player {i + 2} ({kinds[i + 1].name})")
        ax.set_ylim(-0.14, 1.14)
