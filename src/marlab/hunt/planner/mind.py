"""The networks of a planning agent together with everything that says how they are used: a mind.

A mind holds the networks of S seeds side by side. It makes the planner and the belief tracker that play with them, and
can be cut down to one seed. Letters as in `hop_planner`; P copies of a network belong to S seeds, P / S each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import RowLayout, encode, row_layout
from marlab.hunt.game.rules import Game
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import BeliefTracker
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.others.moa import others_of
from marlab.hunt.planner.config import MindConfig, PlanConfig
from marlab.hunt.planner.coplayers import CoPlayers, LearnedCoPlayers, RandomCoPlayers, SelfCoPlayers
from marlab.hunt.planner.dynamics import Dynamics, ImaginedGame, TrueGame
from marlab.hunt.planner.nets import OtherNets, PlayerNets, copy_generators, masked_mixture
from marlab.hunt.planner.planner import Planner
from marlab.hunt.world_model.model import WorldModel
from marlab.lab.errors import UserError
from marlab.lab.ppo.choices import apply_mask


class Goals:
    """The goals that co-players may have, and what a capture says about them."""

    def __init__(self, candidates: Tensor, evidence: Tensor, common: Tensor | None = None) -> None:
        """candidates: [K, V]; evidence: [3, K] probability of each outcome (none, stag, hare) under a goal.

        common: [2, K] how common each goal is among players who are after the stag, and after hares. By default that is
        read from captures, which tell nothing about those who wait at the stag in vain.
        """
        if candidates.dim() != 2 or evidence.shape != (3, len(candidates)):
            raise ValueError(f"evidence {tuple(evidence.shape)} does not fit goals {tuple(candidates.shape)}")
        self.candidates, self.evidence = candidates, evidence
        known = evidence[1:] if common is None else common
        self.common = known / known.sum()

    @staticmethod
    def hunt() -> Goals:
        return Goals(torch.eye(2), torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))

    @staticmethod
    def none() -> Goals:
        return Goals(torch.zeros(1, 0), torch.ones(3, 1))

    @property
    def stag(self) -> Tensor:
        """[K] how much of each goal is about the stag: the share of stag hunters among those who have it."""
        return self.common[0] / self.common.sum(0)


class Mind(nn.Module):
    """Networks of S seeds."""

    def __init__(
        self, game: GameConfig, config: MindConfig, goals: Goals, seeds: Sequence[int], world: WorldModel | None = None
    ) -> None:
        super().__init__()
        self.game, self.config, self.seeds = game, config, tuple(seeds)
        if config.parts.world_model and not config.exact_step and world is None:
            raise UserError(f"The variant {config.variant} imagines with a world model; give one with --load-wm.")
        per_seed = game.players if config.independent else 1
        count = goals.candidates.shape[0]
        self.players = PlayerNets(game, count, config.hidden, copy_generators(seeds, per_seed, "players"), config.paths)
        observers = game.players if config.own_moa else 1
        self.others: OtherNets | None = None
        if config.parts.coplayers == "learned":
            generators = copy_generators(seeds, observers, "others")
            self.others = OtherNets(game, goals.candidates, config.hidden, generators, config.paths)
        self.goals = goals
        self.world = [world]  # shared by all seeds and not trained here: kept out of the parameters

    @property
    def count(self) -> int:
        """K, the number of goals."""
        return self.goals.candidates.shape[0]

    @property
    def layout(self) -> RowLayout:
        """The rows that its networks read."""
        return row_layout(self.game, self.config.paths)

    def one(self, seed: int) -> Mind:
        """The mind of one seed."""
        return self.some([seed])

    def some(self, seeds: Sequence[int]) -> Mind:
        """The minds of some seeds."""
        for seed in seeds:
            if seed not in self.seeds:
                raise UserError(f"There is no seed {seed} in this run, only {', '.join(map(str, self.seeds))}.")
        made = Mind(self.game, self.config, self.goals, seeds, self.world[0])
        places = [self.seeds.index(seed) for seed in seeds]
        made.load_state_dict({k: w if k == "others.goals" else _cut(w, places, len(self.seeds))
                              for k, w in self.state_dict().items()})  # fmt: skip
        return made

    # --- what plays with it ---------------------------------------------------------------------------------------

    def planner(self, game: Game, plan: PlanConfig | None = None, rollout: float = 0.0) -> Planner:
        c = self.config
        return Planner(
            game, self.players, self._coplayers(), self._dynamics(game), plan or c.plan,
            seeds=len(self.seeds), reward_scale=c.reward_scale, one_step=c.parts.one_step, rollout=rollout,
        )  # fmt: skip

    def tracker(self, game: Game, belief: BeliefConfig | None = None) -> BeliefTracker:
        evidence = self.goals.evidence
        return BeliefTracker(game, MindLikelihoods(game, self), belief or self.config.beliefs, evidence)

    def _coplayers(self) -> CoPlayers:
        if self.others is not None:
            return LearnedCoPlayers(self.others)
        return SelfCoPlayers(self.players) if self.config.parts.coplayers == "self" else RandomCoPlayers()

    def _dynamics(self, game: Game) -> Dynamics:
        if not self.config.parts.world_model or self.config.exact_step:
            return TrueGame(game, self.config.paths)
        model = self.world[0]
        assert model is not None
        return ImaginedGame(game, model, self.config.paths)

    # --- what it expects of others --------------------------------------------------------------------------------

    def seen(self, view: View) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [B, n, W], legal actions [B, n, A] and times [B] of all seats."""
        seats = torch.arange(view.game.players, device=view.game.device)
        return *encode(view.game, view.state, seats, self.config.paths), view.time

    @torch.no_grad()
    def by_goal(self, view: View) -> tuple[Tensor, Tensor]:
        """Logits [B, n, S', K, A] of the others' next actions under every goal, and what is legal [B, n, S', A]."""
        rows, legal, time = self.seen(view)
        pairs = others_of(view.game)
        assert self.others is not None
        wide = time.unsqueeze(1).expand(rows.shape[:2])
        folded = [fold(x, len(self.seeds), self.others.copies) for x in (rows[:, pairs], wide)]
        logits = self.others(*folded)
        return unfold(logits, len(self.seeds), view.game.players), legal[:, pairs]

    @torch.no_grad()
    def predict(self, view: View, belief: Tensor) -> Tensor:
        """[B, n, S', A] probabilities of the others' next actions as each observer expects them (0 for absent ones)."""
        if self.others is not None:
            logits, legal = self.by_goal(view)
            chances = masked_mixture(logits, legal, belief).exp()
        else:
            rows, mine, time = self.seen(view)
            legal = mine[:, others_of(view.game)]
            flat = apply_mask(torch.zeros(legal.shape, device=legal.device), legal)
            chances = flat.softmax(-1)
            if self.config.parts.coplayers == "self":
                chances = self._by_own_prior(rows, mine, time, view.game)
        return chances * legal.any(-1, keepdim=True)

    def _by_own_prior(self, rows: Tensor, legal: Tensor, time: Tensor, game: Game) -> Tensor:
        """The same by the observer's own prior, asked from the others' seats."""
        pairs = others_of(game)
        seats, slots = pairs.shape
        wide = time.view(-1, 1, 1).expand(-1, seats, slots)
        folded = [fold(x, len(self.seeds), self.players.copies).flatten(1, 2) for x in (rows[:, pairs], wide)]
        logits, _ = self.players(*folded, None)
        logits = unfold(logits.unflatten(1, (-1, slots)), len(self.seeds), seats)
        return apply_mask(logits, legal[:, pairs]).softmax(-1)


def fold(x: Tensor, seeds: int, copies: int) -> Tensor:
    """[P, N, ...] rows of each copy from [B, n, ...]: copies belong to (seed, seat), or to seeds alone."""
    by_group = x.unflatten(0, (seeds, -1)).transpose(1, 2)  # [S, n, E, ...]
    return by_group.reshape(copies, -1, *x.shape[2:])


def unfold(x: Tensor, seeds: int, players: int) -> Tensor:
    """[B, n, ...] from [P, N, ...], the inverse of `fold`."""
    by_group = x.reshape(seeds, players, -1, *x.shape[2:])
    return by_group.transpose(1, 2).flatten(0, 1)


class MindLikelihoods:
    """How likely each goal makes what the others did, by every observer's own models."""

    def __init__(self, game: Game, mind: Mind) -> None:
        self.mind, self.goals = mind, mind.count
        self.about: tuple[int, ...] = (game.players, game.players - 1)
        self.players = others_of(game)

    def __call__(self, view: View, actions: Tensor) -> Tensor:
        if self.goals == 1:  # nothing to tell apart
            return torch.ones(view.state.batch, *self.about, 1, device=actions.device)
        logits, legal = self.mind.by_goal(view)
        chance = apply_mask(logits, legal.unsqueeze(-2)).softmax(-1)
        taken = actions[:, self.players].clamp_max(chance.shape[-1] - 1)[..., None, None]
        return chance.gather(-1, taken.expand(*chance.shape[:-1], 1)).squeeze(-1)


def _cut(weights: Tensor, places: list[int], seeds: int) -> Tensor:
    """The copies of the seeds at some places."""
    return weights.unflatten(0, (seeds, -1))[places].flatten(0, 1)


def mind_state(mind: Mind) -> dict[str, Any]:
    """Everything needed to build a mind again (apart from its world model), fit for a checkpoint."""
    goals = mind.goals
    return {"candidates": goals.candidates, "evidence": goals.evidence, "common": goals.common,
            "weights": mind.state_dict()}  # fmt: skip
