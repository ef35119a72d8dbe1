"""Exhibits about data and losses: probabilities fed to a loss of logits, rows of players who left, stale actions, and
a memory of successes only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from marlab.hunt.data.dataset import Part, load_dataset
from marlab.hunt.data.legacy import global_actions, with_rows_after_exit
from marlab.hunt.game.rules import ABSENT, DOWN, LEFT, RIGHT, STAY, UP
from marlab.hunt.museum.run import Exhibit, Finding, Museum
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.players.published import CONFUSION
from marlab.hunt.players.rollout import OUTCOMES
from marlab.lab.report.figures import Curve, bars, curves, reference_lines
from marlab.lab.report.style import legend, legends, panels, save
from marlab.lab.runs.metrics import read_metrics


def episodes_of(part: Part) -> list[dict[int, int]]:
    """For every episode of a data set, which sequence belongs to which player (from 0)."""
    first = part.offsets[:-1]
    by_episode: dict[int, dict[int, int]] = {}
    for s, (episode, player) in enumerate(zip(part.rows.episode[first].tolist(), part.rows.player[first].tolist())):
        by_episode.setdefault(episode, {})[player] = s
    return list(by_episode.values())


class LegacyMoaBuffer:
    """The original's buffer of one player, faults included: only rewarded trajectories, only player 1 learns.

    Ids of players are 1 to n for `my_id`, 0 to n - 1 for models, as in the original.
    """

    def __init__(self, my_id: int, players: int, capacity: int = 1000, discount: float = 0.995) -> None:
        self.my_id, self.capacity, self.discount = my_id, capacity, discount
        self.model_ids = [j for j in range(players) if j != my_id - 1]
        self.rows: list[list[Tensor]] = [[] for _ in self.model_ids]
        self.labels: list[list[int]] = [[] for _ in self.model_ids]
        self.stag_times = [0.0] * len(self.model_ids)
        self.hare_times = [0.0] * len(self.model_ids)

    def end_episode(self, part: Part, sequences: Mapping[int, int]) -> dict[int, tuple[Tensor, Tensor]]:
        """Take over an episode: `sequences` says which sequence of `part` belongs to which model id.

        Returns, for player 1 only, the rows and labels of every slot that is due for an update; all others forget
        theirs when they are due.
        """
        due = {}
        for slot, model in enumerate(self.model_ids):
            first, end = (int(part.offsets[sequences[model] + k]) for k in (0, 1))
            if not float(part.rows.r[end - 1]) > 0:
                continue
            self.rows[slot].append(torch.arange(first, end))
            self._label(slot, int(part.rows.a[end - 1]), end - first)
            if len(self.labels[slot]) > self.capacity:
                if self.my_id == 1:
                    due[slot] = (torch.cat(self.rows[slot]), torch.tensor(self.labels[slot]))
                self.rows[slot], self.labels[slot] = [], []
        return due

    def _label(self, slot: int, last_action: int, steps: int) -> None:
        if last_action not in (5, 6):
            return  # rows without labels: the original's lists could grow apart
        stag = last_action == 5
        self.labels[slot] += [0 if stag else 1] * steps
        self.stag_times[slot] = self.discount * self.stag_times[slot] + stag
        self.hare_times[slot] = self.discount * self.hare_times[slot] + (not stag)


ACTIONS = 7
TWICE_PERFECT = math.log(math.e + ACTIONS - 1) - 1
"""Least cross-entropy of probabilities taken for logits: 1.165 nats with seven actions."""
TWICE_WRONG = math.log(math.e + ACTIONS - 1)
UNIFORM = math.log(ACTIONS)
LEGACY_CAPACITY, FULL_ROWS = 1000, 12_000
"""Labelled steps that made the original's player 1 learn; smaller museums have a buffer as much smaller."""


# --- double softmax -------------------------------------------------------------------------------------------------


def _train(museum: Museum, part: str, **switches: Any) -> Path:
    config = PretrainGoalsConfig(
        data=museum.data(), goal_source="type", epochs=museum.config.epochs, batch_size=128, belief_games=0,
        overfit_check=False, seed=museum.config.seed, device=museum.config.device,
    )  # fmt: skip
    return museum.pretrained(part, replace(config, **switches))


def _healthy(museum: Museum) -> Path:
    """The training without a fault, made once for all exhibits."""
    if museum.healthy is None:
        museum.healthy = _train(museum, "healthy")
    return museum.healthy


def _loss_curve(run: Path) -> tuple[list[float], list[float]]:
    """(updates, cross-entropy as the training loss reports it)."""
    rows = read_metrics(run / "metrics.jsonl")
    return [s for row in rows for s in row["curve"]["step"]], [v for row in rows for v in row["curve"]["policy"]]


def _double_softmax(museum: Museum) -> Finding:
    runs = {"logits once": _healthy(museum), "softmax twice": _train(museum, "twice", legacy_double_softmax=True)}
    figure, [loss, top] = panels(1, 2, size=(7.0, 4.6))
    curves(
        loss, {name: Curve(*_loss_curve(run)) for name, run in runs.items()}, xlabel="updates",
        ylabel="training cross-entropy [nats]", title="The loss has a floor", smooth=9,
    )  # fmt: skip
    loss.set_ylim(0, 2.3)
    reference_lines(loss, {"wrong, twice": TWICE_WRONG, "uniform": UNIFORM, "perfect, twice": TWICE_PERFECT})
    last = {name: read_metrics(run / "metrics.jsonl")[-1] for name, run in runs.items()}
    keys = {"top-1": "top1", "top-3": "top3", "calibration error": "ece"}
    shown = {name: [row[f"moa/validation/{key}"] for key in keys.values()] for name, row in last.items()}
    bars(top, list(keys), shown, ylabel="share of held-out rows", title="What it predicts in the end")
    legends(loss, top)
    save(figure, museum.picture)
    ends = {name: float(np.mean(_loss_curve(run)[1][-20:])) for name, run in runs.items()}
    once, twice = ends["logits once"], ends["softmax twice"]
    summary = (
        f"Fed with probabilities, the training loss ends at {twice:.2f} nats and can never fall below "
        f"{TWICE_PERFECT:.3f}; fed with logits it ends at {once:.2f}. The original's loss stayed at 1.5 to 1.75 and "
        "was taken for one of another scale."
    )
    figures = {"loss": ends, "floor": TWICE_PERFECT, "validation": shown}
    return Finding(summary, twice >= TWICE_PERFECT and once < TWICE_PERFECT, figures)


DOUBLE_SOFTMAX = Exhibit(
    "Softmax twice",
    "a training loss that stays above 1.165 nats however good the predictor is, and low confidence everywhere",
    "marlab hunt pretrain vae --data DATA --goal-source type --legacy-double-softmax", _double_softmax,
)  # fmt: skip


# --- rows after exit ------------------------------------------------------------------------------------------------


def _shares(part: Part) -> Tensor:
    return torch.bincount(part.rows.a, minlength=ACTIONS)[:ACTIONS] / part.rows.size


def _predicted_stay(run: Path) -> dict[str, float]:
    """Recall of the moves and share of predictions that are "stay", on clean held-out rows."""
    last = sorted((run / "eval").glob("moa_eval_epoch*.npz"), key=lambda p: int(p.stem.removeprefix("moa_eval_epoch")))
    with np.load(last[-1], allow_pickle=False) as stored:
        matrix = stored["confusion"]
    return {
        "predicted stay": float(matrix[:, 4].sum() / matrix.sum()),
        "true stay": float(matrix[4].sum() / matrix.sum()),
        "recall of moves": float(np.trace(matrix[:4, :4]) / matrix[:4].sum()),
    }


def _post_exit_rows(museum: Museum) -> Finding:
    dataset = load_dataset(museum.data())
    clean = dataset.part("train")
    spoilt = with_rows_after_exit(clean, dataset.game.players)
    runs = {
        "steps only": _healthy(museum),
        "with rows after exit": _train(museum, "spoilt", legacy_post_exit_rows=True),
    }
    figure, [classes, learnt] = panels(1, 2, size=(7.4, 4.6))
    original = torch.tensor(CONFUSION).sum(1)
    series = {
        "steps only": _shares(clean),
        "with rows after exit": _shares(spoilt),
        "original": original / original.sum(),
    }
    short = ["up", "down", "left", "right", "stay", "stag", "hare"]
    bars(classes, short, {name: v.tolist() for name, v in series.items()}, ylabel="share of training rows",
         title="What the model is taught")  # fmt: skip
    judged = {name: _predicted_stay(run) for name, run in runs.items()}
    keys = list(next(iter(judged.values())))
    bars(learnt, [k.replace(" of ", "\nof ").replace(" stay", "\nstay") for k in keys],
         {name: [v[k] for k in keys] for name, v in judged.items()}, ylabel="share of held-out real steps",
         title="What it learns")  # fmt: skip
    legend(figure)
    save(figure, museum.picture)
    extra = 1 - clean.rows.size / spoilt.rows.size
    stay = float(series["steps only"][4]), float(series["with rows after exit"][4])
    summary = (
        f"{extra:.0%} of the training rows would belong to players who had left, all of them stay: its share rises "
        f"from {stay[0]:.2f} to {stay[1]:.2f}. On real steps the model says stay in "
        f"{judged['with rows after exit']['predicted stay']:.0%} of the cases (without the fault "
        f"{judged['steps only']['predicted stay']:.0%}): it sees that nobody is there, so it is the shares, the class "
        "weights and every score over all rows that the fault spoils."
    )
    figures = {"rows_after_exit": extra, "stay_share": {"clean": stay[0], "spoilt": stay[1]}, "held_out": judged}
    return Finding(summary, stay[1] > stay[0] + 0.1, figures)


POST_EXIT_ROWS = Exhibit(
    "Rows of players who left",
    "staying is far more frequent in the training rows than in play, and part of it has no player on the board",
    "marlab hunt pretrain vae --data DATA --goal-source type --legacy-post-exit-rows", _post_exit_rows,
)  # fmt: skip


# --- stale action order ---------------------------------------------------------------------------------------------


def moved(obs: Tensor, after: Tensor) -> Tensor:
    """[R, n] the move that every player of the planes made from `obs` to `after` [R, H, W, C], -1 where none or gone.

    Only the planes are looked at, so this is what an eye would see.
    """
    n = obs.shape[-1] - 3
    width = obs.shape[2]
    here, there = (planes[..., :n].flatten(1, 2).int() for planes in (obs, after))  # [R, C, n]
    both = (here.sum(1) > 0) & (there.sum(1) > 0)
    step = there.argmax(1) - here.argmax(1)  # [R, n]
    moves = torch.full_like(step, -1)
    for action, shift in ((UP, -width), (DOWN, width), (LEFT, -1), (RIGHT, 1)):
        moves[step == shift] = action
    return moves.masked_fill(~both, -1)


def _stale_actions(museum: Museum) -> Finding:
    dataset = load_dataset(museum.data())
    part, n = dataset.part("train"), dataset.game.players
    rows = part.rows
    motion = moved(rows.obs, rows.next_obs)  # [R, n] ego-first, as the planes are
    shown = {"ego-first, as the planes": rows.joint_a, "global order, as the original": global_actions(part, n)}
    agreement, stale = {}, {}
    for name, joint in shown.items():
        same = (joint == motion) & (motion >= 0)
        agreement[name] = [
            float(same[rows.player == seat].sum() / (motion[rows.player == seat] >= 0).sum()) for seat in range(n)
        ]
        gone = rows.obs[..., :n].flatten(1, 2).sum(1) == 0  # [R, n] not on the board
        stale[name] = float(((joint != ABSENT) & gone).sum() / gone.sum().clamp_min(1))
    figure, [by_seat, ghosts] = panels(1, 2, size=(7.0, 4.6))
    seats = [f"player {seat + 1}" for seat in range(n)]
    bars(by_seat, seats, agreement, ylabel="agreeing moves [share]",
         title="Does the action fit the motion?")  # fmt: skip
    bars(ghosts, ["absent players shown with an action"], {k: [v] for k, v in stale.items()}, ylabel="share",
         title="Actions without a body")  # fmt: skip
    legend(figure)
    save(figure, museum.picture)
    wrong = agreement["global order, as the original"]
    summary = (
        f"Beside ego-first planes, actions in global order fit the motion in {wrong[0]:.0%} of the moves that player 1 "
        f"sees and in {np.mean(wrong[1:]):.0%} of those the others see; "
        f"{stale['global order, as the original']:.0%} of the absent players still show an action."
    )
    right = min(agreement["ego-first, as the planes"])
    appeared = right > 0.999 and wrong[0] > 0.999 and max(wrong[1:]) < 0.9
    return Finding(summary, appeared, {"agreement": agreement, "stale": stale})


STALE_ACTIONS = Exhibit(
    "Actions in another order than the planes",
    "logged actions disagree with the motion for everyone but player 1, and players who left still hunt",
    "marlab hunt pretrain vae --data DATA --legacy-global-prev-actions", _stale_actions,
)  # fmt: skip


# --- successes only -------------------------------------------------------------------------------------------------


def _successes_only(museum: Museum) -> Finding:
    dataset = load_dataset(museum.data())
    part, n = dataset.part("train"), dataset.game.players
    rows = part.rows
    kept = torch.zeros(rows.size, dtype=torch.bool)
    updates = []
    for player in range(1, n + 1):
        keeps_all = LegacyMoaBuffer(player, n, capacity=rows.size)
        learns = LegacyMoaBuffer(player, n, capacity=LEGACY_CAPACITY * rows.size // FULL_ROWS)
        done = 0
        for sequences in episodes_of(part):
            keeps_all.end_episode(part, sequences)
            done += len(learns.end_episode(part, sequences))
        updates.append(done)
        kept[torch.cat([part_of for slot in keeps_all.rows for part_of in slot])] = True
    left_with = [rows.outcome == k for k in range(len(OUTCOMES))]
    shown = {
        "all steps": [float(which.float().mean()) for which in left_with],
        "steps that the original kept": [float(which[kept].float().mean()) for which in left_with],
    }
    figure, [data, learners] = panels(1, 2, size=(7.4, 4.8))
    bars(data, ["nothing", "the stag", "a hare"], shown, ylabel="share of steps", title="What players left with")
    bars(learners, [f"player {k + 1}" for k in range(n)], {"the original": updates}, digits=0,
         ylabel="updates of its models of others", title="Who learns in the original")  # fmt: skip
    learners.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure)
    save(figure, museum.picture)
    lost, waits = shown["all steps"][0], float(rows.a[left_with[0]].eq(STAY).float().mean())
    summary = (
        f"{lost:.0%} of all steps belong to players who caught nothing, {waits:.0%} of them waiting; the original's "
        f"buffer holds {shown['steps that the original kept'][0]:.0%} of such steps, so its models never see a hunt "
        f"fail. Updates of players 1 to {n}: {', '.join(map(str, updates))}."
    )
    appeared = lost > 0.05 and not kept[left_with[0]].any() and updates[0] > 0 and not any(updates[1:])
    return Finding(summary, bool(appeared), {"left_with": shown, "updates": updates})


SUCCESSES_ONLY = Exhibit(
    "A memory of successes, for player 1 alone",
    "hunts that failed, the informative ones, are missing from what is learnt, and only player 1's models change",
    "marlab.hunt.museum.data.LegacyMoaBuffer", _successes_only,
)  # fmt: skip
