"""What models of others answer about offline rows: predictions, codes, prototypes, and goals as they see them.

The stages of a training ("labels", "vae", "history", "prototypes") differ in where a goal comes from.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.others.codes import PROTOTYPES, Codebook, make_codebook, relabel_by_likelihood
from marlab.hunt.others.history import Sequences
from marlab.hunt.others.models import GoalModels
from marlab.hunt.others.vae import Code, active_units, occupied_recall, recon_error
from marlab.hunt.players.rollout import NONE
from marlab.hunt.pretraining.data import GoalData, Turn, all_sequences
from marlab.hunt.pretraining.floor import bayes_beliefs
from marlab.lab.ppo.choices import apply_mask
from marlab.lab.runs.rng import Rngs

Stage = Literal["labels", "vae", "history", "prototypes"]
CHUNK = 4096
"""Rows evaluated at once."""
CAPTURE_TIME_QUANTILE = 0.99
"""When so many of the trajectories with a capture are over, later steps of the others say nothing more of goals."""
LEAST = 1e-3
"""Least chance that an action is given, so that no single one decides what a player was after."""


class Prediction(NamedTuple):
    """The models' answers for all rows of a part."""

    logits: Tensor  # [R, A] given the goal, masked
    free: Tensor  # [R, A] without a goal, masked
    code: Tensor | None  # [R, D] code means


@torch.no_grad()
def predict(models: GoalModels, data: GoalData, stage: Stage) -> Prediction:
    """Masked logits for every row, with the goal that the stage's models use (codes: their means)."""
    models.eval()
    device = data.planes.device
    if stage in ("history", "prototypes"):
        parts = [_predict_history(models, data, order) for order in all_sequences(data, CHUNK)]
        return Prediction(*(torch.cat(field) for field in zip(*parts)))
    chunks = [_predict_rows(models, data, rows, stage) for rows in torch.arange(data.rows, device=device).split(CHUNK)]
    logits, free, code = zip(*chunks)
    return Prediction(torch.cat(logits), torch.cat(free), None if code[0] is None else torch.cat(code))


def read_histories(models: GoalModels, data: GoalData, order: Sequences, turn: Turn | None) -> tuple[Code, Tensor]:
    """Codes [R, D] and memories [R, 96] at all rows of some sequences."""
    assert models.history is not None
    seen, joint = data.seen[order.table], data.joint[order.table]
    if turn is not None:
        seen, joint = seen.index_select(-1, turn.columns), turn.symmetry.actions(joint)
    code, memory = models.history.read(*(x.unsqueeze(0) for x in (seen, data.time[order.table], joint)))
    return Code(*(x[0][order.real] for x in code)), memory[0][order.real]


def _predict_history(models: GoalModels, data: GoalData, order: Sequences) -> tuple[Tensor, Tensor, Tensor]:
    code, _ = read_histories(models, data, order, None)
    given, free = _ask(models, data, order.rows, code.mean.unsqueeze(1))
    return given.squeeze(1), free, code.mean


@torch.no_grad()
def read_codes(models: GoalModels, data: GoalData) -> Tensor:
    """[R, 2, D] mean and log-variance of the code at every row."""
    codes = [read_histories(models, data, order, None)[0] for order in all_sequences(data, CHUNK)]
    return torch.cat([torch.stack(code, 1) for code in codes])


@torch.no_grad()
def codebook_of(models: GoalModels, data: GoalData, code: Tensor, seed: int) -> Codebook:
    """Prototypes of the codes [R, D] at the end of every trajectory, on their device.

    What players without a capture were after is judged by what they did.
    """
    last = data.offsets[1:] - 1
    ends, result = code[last.to(code.device)].cpu(), data.outcome.cpu()[last]
    made = make_codebook(ends, result, PROTOTYPES, Rngs(seed).torch("codebook"))
    judged = relabel_by_likelihood(made, ends, result, _deeds(models, data, made.prototypes.to(code)).cpu())
    return Codebook(*(field.to(code.device) for field in judged))


def _deeds(models: GoalModels, data: GoalData, goals: Tensor) -> Tensor:
    """[S, K] logarithm of how likely each goal [K, V] makes what was done in each trajectory.

    Steps that hardly anybody who captured something has lived to see are left out: of those the models know only what
    players without a capture do, whatever the goal.
    """
    models.eval()
    lengths = data.offsets.diff()
    steps = torch.arange(data.rows) - data.offsets[:-1].repeat_interleave(lengths)
    lived = lengths[data.outcome.cpu()[data.offsets[1:] - 1] != NONE].double()
    early = steps < (lived.quantile(CAPTURE_TIME_QUANTILE) if len(lived) else lengths.max())
    trajectory = torch.arange(data.sequences).repeat_interleave(lengths).to(goals.device)
    total = torch.zeros(data.sequences, len(goals), device=goals.device)
    for rows in early.nonzero().squeeze(1).to(goals.device).split(CHUNK):
        given, _ = _ask(models, data, rows, goals.expand(len(rows), -1, -1))
        did = data.action[rows].view(-1, 1, 1).expand(-1, len(goals), 1)
        chance = given.softmax(-1).gather(2, did).squeeze(2).clamp_min(LEAST)
        total.index_add_(0, trajectory[rows], chance.log())
    return total


@torch.no_grad()
def soft_labels(models: GoalModels, data: GoalData) -> Tensor:
    """[R, 2] goals of the rows: what was captured; without a capture the models' own belief at the end of the steps.

    Models that know players who captured something recognise those who tried in vain.
    """
    models.eval()
    both, chances = torch.eye(2, device=data.action.device), []
    for rows in torch.arange(data.rows, device=data.action.device).split(CHUNK):
        given, _ = _ask(models, data, rows, both.expand(len(rows), 2, 2))
        chances.append(given.softmax(-1))
    before = bayes_beliefs(torch.cat(chances).cpu(), data.action.cpu(), data.offsets)
    last = (data.offsets[1:] - 1).repeat_interleave(data.offsets.diff())
    belief = before[last].to(data.goal)
    return torch.where((data.outcome == NONE).unsqueeze(1), belief, data.goal)


def _predict_rows(models: GoalModels, data: GoalData, rows: Tensor, stage: Stage) -> tuple[Tensor, Tensor, Any]:
    if stage == "vae":
        assert models.vae is not None
        code = models.vae.encode(data.planes[rows]).mean
        given, free = _ask(models, data, rows, code.unsqueeze(1))
        return given.squeeze(1), free, code
    if models.spec.goal_width == 0:
        given, free = _ask(models, data, rows, torch.zeros(len(rows), 1, 0, device=rows.device))
        return given.squeeze(1), free, None
    given, free = _ask(models, data, rows, torch.eye(2, device=rows.device).expand(len(rows), 2, 2))
    # A goal that is not certain makes a mixture of the predictions under each.
    mixed = (given.log_softmax(-1) + data.goal[rows].log().unsqueeze(2)).logsumexp(1)
    return apply_mask(mixed, data.mask[rows]), free, None


def _ask(models: GoalModels, data: GoalData, rows: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
    given, free = models.moa.rows(data.seen[rows], data.time[rows], goals, data.slot[rows])
    mask = data.mask[rows]
    return apply_mask(given, mask.unsqueeze(1)), apply_mask(free, mask)


@torch.no_grad()
def vae_scores(models: GoalModels, data: GoalData) -> dict[str, Any]:
    """How the autoencoder does on a part: error, KL in all and per dimension, active units, recall of each plane."""
    vae = models.vae
    assert vae is not None
    code = Code(*(torch.cat(x) for x in zip(*(vae.encode(p) for p in data.planes.split(CHUNK)))))
    logits = torch.cat([vae.decode(z) for z in code.mean.split(CHUNK)])
    kl = code.kl_to_standard().mean(0)
    recall = occupied_recall(logits, data.planes).tolist()
    return {
        "recon": recon_error(logits, data.planes, "bce", models.spec.map_plane).item(),
        "recon_mse": recon_error(logits, data.planes, "mse", models.spec.map_plane).item(),
        "kl": kl.sum().item(),
        "kl_per_dimension": kl.tolist(),
        "active_units": active_units(code.mean),
        **{f"recall/{c}": value for c, value in enumerate(recall) if value == value},  # planes that are never empty
    }
