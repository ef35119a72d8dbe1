"""Offline data of rule-based players as experience: goals by what was captured, and what a prior should learn.

Letters: R rows, K goals, A actions, P copies of a network, N rows of a batch, S' = n - 1 slots.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from marlab.hunt.data.dataset import Dataset, Part, SplitName
from marlab.hunt.game.build import restore
from marlab.hunt.game.config import REWARD_SCALE
from marlab.hunt.game.rows import encode
from marlab.hunt.others.codes import Goals
from marlab.hunt.others.config import GoalSource
from marlab.hunt.others.moa import masked_mixture
from marlab.hunt.others.models import LoadedModels
from marlab.hunt.planner.config import MindConfig
from marlab.hunt.planner.mind import PlannerModels
from marlab.hunt.planner.replay import Experience
from marlab.hunt.pretraining.answers import read_codes, soft_labels
from marlab.hunt.pretraining.data import goal_data
from marlab.lab.errors import UserError

SUBGOAL_HORIZON = 10


SOURCES: dict[str, tuple[GoalSource, ...]] = {"hunt": ("outcome", "type"), "latent": ("history",), "none": ("none",)}
"""Goal sources of pretrained models that fit the goals of a variant; the first is what a training makes itself."""


def goals_of(config: MindConfig, models: LoadedModels | None) -> Goals:
    """The goals of a variant: fixed ones, or the prototypes of pretrained codes; models that do not fit are refused."""
    kind = config.parts.goals
    if models is not None:
        check_models(config, models)
        return models.goals()
    if kind == "latent":
        raise UserError(
            f"The variant {config.variant} believes in codes; give a run of `marlab hunt pretrain vae` as --load-moa."
        )
    return Goals.hunt() if kind == "hunt" else Goals.none()


def check_models(config: MindConfig, models: LoadedModels) -> None:
    """Refuse pretrained models that a variant cannot plan with."""
    spec, fits = models.spec, SOURCES[config.parts.goals]
    if spec.goal_source not in fits:
        raise UserError(
            f"The variant {config.variant} needs models of others with the goal source {' or '.join(fits)}, these have "
            f"'{spec.goal_source}'; pretrain with --goal-source {fits[0]}."
        )
    if (spec.hidden, spec.paths) != (config.hidden, config.paths):
        raise UserError(
            f"These models of others have hidden {spec.hidden} and paths {spec.paths}, the planner hidden "
            f"{config.hidden} and paths {config.paths}; both must be equal."
        )


def offline_experience(
    dataset: Dataset, split: SplitName, config: MindConfig, models: LoadedModels | None, device: torch.device | str
) -> Experience:
    """All rows of a split [R]; goals [R, 1, K] are what the players captured, or the prototypes of their codes.

    Of a player who captured nothing the models of others say what it was after, by what it did.
    """
    part, game = dataset.part(split), dataset.game
    rows = part.rows
    me = torch.zeros(1, dtype=torch.int64)
    seen = encode(*restore(game, rows.obs, rows.t), me, config.paths)[0].squeeze(1)
    last = (part.offsets[1:] - 1).repeat_interleave(part.offsets.diff())  # [R] the last row of each row's sequence
    paid = rows.r[last] * REWARD_SCALE
    value = paid * config.plan.gamma ** (rows.steps - 1 - rows.t)
    goal, code = _goals_and_codes(dataset, part, config, models)
    experience = Experience(
        rows=seen,
        time=rows.t / game.final_time,
        action=rows.a,
        policy=one_hot(rows.a, game.actions).float(),
        value=value,
        goal=goal.unsqueeze(1),
        believed=_beliefs(part, goal, game.players),
        code=code,
        update=torch.full_like(rows.a, -1),
    )
    return Experience(*(field.to(device) for field in experience))


def _goals_and_codes(
    dataset: Dataset, part: Part, config: MindConfig, models: LoadedModels | None
) -> tuple[Tensor, Tensor]:
    """[R, K] how probable each goal is for each row's player, by what it captured, and [R, 2, D] its codes."""
    kind, size = config.parts.goals, part.rows.size
    no_code = torch.zeros(size, 2, 0)
    if kind == "none":
        return torch.ones(size, 1), no_code
    device = "cpu" if models is None else next(models.models.parameters()).device
    data = goal_data(dataset.game, part, "outcome", SUBGOAL_HORIZON, device, paths=config.paths)
    if models is None:
        return data.goal, no_code
    if kind == "hunt":
        return soft_labels(models.models, data).cpu(), no_code
    code = read_codes(models.models, data)  # [R, 2, D]
    book = models.codebook
    assert book is not None
    final = book.nearest(code[(part.offsets[1:] - 1).to(device), 0]).cpu()  # [sequences] at each one's end
    goal = one_hot(final, len(book.usage)).float().repeat_interleave(part.offsets.diff(), 0)
    return goal, code.cpu()


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
def relabel_losers(mind: PlannerModels, steps: Experience, imagine: bool) -> Tensor:
    """[P, N, A] what the prior should learn from offline steps [P, N]: what those did who caught something.

    Players who caught nothing are replaced by what the models of others expect of the opposite goal in their place, or
    (without `imagine`, where the models know nothing yet) teach nothing: zeros.
    """
    won = (steps.value > 0).unsqueeze(-1)
    models = mind.others
    if not imagine or models is None:
        return steps.policy * won
    moa = models.moa
    slot = steps.rows.unsqueeze(2).expand(-1, -1, moa.slots, -1)
    wishes = moa.wishes(models.candidates.expand(moa.copies, 1, 1, -1, -1))
    logits = moa(slot, steps.time, wishes)[:, :, 0]  # [P, N, K, A] by the model of the next player
    hunter, catcher = (mind.goals.common / mind.goals.common.sum(1, keepdim=True)).to(logits)  # [K] each
    own = (steps.goal[..., 0, :] * mind.goals.stag.to(logits)).sum(-1, keepdim=True)
    legal = steps.rows[..., : mind.game.actions].bool()
    instead = masked_mixture(logits, legal, own * catcher + (1 - own) * hunter).exp()
    return torch.where(won, steps.policy, instead)
