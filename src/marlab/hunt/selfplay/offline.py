"""Offline data of rule-based players as experience: goals that are known, what a prior should learn, an examination.

Letters: R rows, K goals, A actions, P copies of a network, N rows of a batch, S' = n - 1 slots.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from marlab.hunt.data.dataset import Dataset, Part, SplitName
from marlab.hunt.game.build import restore
from marlab.hunt.game.rows import encode
from marlab.hunt.others.data import goal_data
from marlab.hunt.others.metrics import ActionScores, score_actions
from marlab.hunt.others.models import LoadedModels
from marlab.hunt.others.trainer import predict
from marlab.hunt.planner.config import MindConfig
from marlab.hunt.planner.mind import Goals, Mind
from marlab.hunt.planner.nets import masked_mixture
from marlab.hunt.planner.replay import Experience
from marlab.lab.errors import UserError

CHUNK = 8192
SUBGOAL_HORIZON = 10


def goals_of(config: MindConfig, models: LoadedModels | None) -> Goals:
    """The goals of a variant: fixed ones, or the prototypes of pretrained codes."""
    kind = config.parts.goals
    if kind != "latent":
        return Goals.hunt() if kind == "hunt" else Goals.none()
    if models is None or models.codebook is None:
        raise UserError(
            f"The variant {config.variant} believes in codes; give a run of `marlab hunt pretrain vae` as --load-vae."
        )
    book = models.codebook
    return Goals(book.prototypes.cpu(), book.outcome.cpu(), (book.goal * book.usage).cpu())


def offline_experience(
    dataset: Dataset, split: SplitName, config: MindConfig, goals: Goals, models: LoadedModels | None,
    device: torch.device | str,
) -> Experience:  # fmt: skip
    """All rows of a split [R]; goals [R, 1, K] are those of the players' types, or the prototypes of their codes."""
    part, game = dataset.part(split), dataset.game
    rows = part.rows
    me = torch.zeros(1, dtype=torch.int64)
    seen = encode(*restore(game, rows.obs, rows.t), me, config.paths)[0].squeeze(1)
    last = (part.offsets[1:] - 1).repeat_interleave(part.offsets.diff())  # [R] the last row of each row's sequence
    paid = rows.r[last] * config.reward_scale
    value = paid * config.plan.gamma ** (rows.steps - 1 - rows.t)
    goal = _goal_weights(dataset, part, config, goals, models)
    experience = Experience(
        rows=seen, time=rows.t / game.final_time, action=rows.a,
        policy=one_hot(rows.a, game.actions).float(), value=value, goal=goal.unsqueeze(1),
        believed=_beliefs(part, goal, game.players),
        update=torch.full_like(rows.a, -1),
    )  # fmt: skip
    return Experience(*(field.to(device) for field in experience))


def _goal_weights(
    dataset: Dataset, part: Part, config: MindConfig, goals: Goals, models: LoadedModels | None
) -> Tensor:
    """[R, K] how probable each goal is for each row's player."""
    kind, count = config.parts.goals, goals.candidates.shape[0]
    if kind == "none":
        return torch.ones(part.rows.size, 1)
    data = goal_data(dataset.game, part, "type", SUBGOAL_HORIZON, "cpu")
    if kind == "hunt":
        return data.goal
    assert models is not None and models.codebook is not None
    device = next(models.models.parameters()).device
    on_device = goal_data(dataset.game, part, "history", SUBGOAL_HORIZON, device)
    code = predict(models.models, on_device, "history").code
    assert code is not None
    final = models.codebook.nearest(code[(part.offsets[1:] - 1).to(device)]).cpu()  # [sequences] at each one's end
    return one_hot(final, count).float().repeat_interleave(part.offsets.diff(), 0)


def _beliefs(part: Part, goal: Tensor, players: int) -> Tensor:
    """[R, 2, S', K] what a player would believe of the others: nothing at first, and the truth in the end."""
    rows = part.rows
    episode = torch.unique_consecutive(rows.episode, return_inverse=True)[1]
    by_player = torch.zeros(int(episode[-1]) + 1, players, goal.shape[1])
    by_player[episode, rows.player] = goal  # everybody has a row at the start of an episode
    other = (rows.player.unsqueeze(1) + torch.arange(1, players)) % players
    known = by_player[episode.unsqueeze(1), other]  # [R, S', K]
    return torch.stack([torch.full_like(known, 1.0 / goal.shape[1]), known], 1)


@torch.no_grad()
def with_hindsight(mind: Mind, steps: Experience, imagine: bool) -> Tensor:
    """[P, N, A] what the prior should learn from offline steps [P, N]: what those did who caught something.

    Players who caught nothing are replaced by what the models of others expect of the opposite goal in their place, or
    (without `imagine`) teach nothing: zeros.
    """
    won = (steps.value > 0).unsqueeze(-1)
    nets = mind.others
    if not imagine or nets is None:
        return steps.policy * won
    slot = steps.rows.unsqueeze(2).expand(-1, -1, nets.slots, -1)
    logits = nets(slot, steps.time)[:, :, 0]  # [P, N, K, A] by the model of the next player
    hunter, catcher = (mind.goals.common / mind.goals.common.sum(1, keepdim=True)).to(logits)  # [K] each
    own = (steps.goal[..., 0, :] * mind.goals.stag.to(logits)).sum(-1, keepdim=True)
    legal = steps.rows[..., : mind.game.actions].bool()
    instead = masked_mixture(logits, legal, own * catcher + (1 - own) * hunter).exp()
    return torch.where(won, steps.policy, instead)


@torch.no_grad()
def examine(mind: Mind, rows: Experience) -> ActionScores:
    """How well the first observer's models, given the known goals, predict offline rows [R] of its next player."""
    assert mind.others is not None
    logits, legal = [], rows.rows[:, : mind.game.actions].bool()
    for chunk in range(0, len(rows.time), CHUNK):
        part = rows.select(slice(chunk, chunk + CHUNK))
        wide = part.rows.view(1, -1, 1, part.rows.shape[-1]).expand(mind.others.copies, -1, mind.others.slots, -1)
        time = part.time.unsqueeze(0).expand(mind.others.copies, -1)
        logits.append(mind.others(wide, time)[0, :, 0])  # [N, K, A]
    mixed = masked_mixture(torch.cat(logits), legal, rows.goal.squeeze(1))
    return score_actions(mixed, rows.action)
