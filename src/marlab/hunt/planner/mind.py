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
from marlab.hunt.others.at_play import LearnedLikelihoods, OtherModels
from marlab.hunt.others.belief import BeliefTracker, Likelihoods
from marlab.hunt.others.codes import CoPlayerTypes, Goals, others_at
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.others.copies import copy_generators, fold, unfold
from marlab.hunt.others.moa import masked_mixture, opponent_seats
from marlab.hunt.planner.config import MindConfig, PlanConfig
from marlab.hunt.planner.coplayers import CoPlayers, LearnedCoPlayers, RandomCoPlayers, SelfCoPlayers
from marlab.hunt.planner.dynamics import Dynamics, ImaginedGame, TrueGame
from marlab.hunt.planner.nets import PlayerNets
from marlab.hunt.planner.planner import Planner
from marlab.hunt.players.policy import Memory
from marlab.hunt.players.rules import on_stag
from marlab.hunt.world_model.model import WorldModel
from marlab.lab.errors import UserError
from marlab.lab.ppo.choices import apply_mask


class PlannerModels(nn.Module):
    """Networks of S seeds."""

    def __init__(
        self, game: GameConfig, config: MindConfig, goals: Goals, seeds: Sequence[int], world: WorldModel | None = None,
        *, history: bool | None = None, independent: bool = False, own_moa: bool = True,
    ) -> None:  # fmt: skip
        """history: whether its models of others read histories; by default where goals are codes.

        independent: a network of its own for every seat; otherwise the seats of a seed share one (each sees itself
        first). own_moa: models of others of its own for every seat; otherwise the seats of a seed share theirs.
        """
        super().__init__()
        if history is None:
            history = config.parts.goals == "latent"
        self.game, self.config, self.seeds = game, config, tuple(seeds)
        if config.parts.world_model and not config.exact_step and world is None:
            raise UserError(f"The variant {config.variant} imagines with a world model; give one with --load-wm.")
        self.independent, self.own_moa = independent, own_moa
        generators = copy_generators(seeds, game.players if independent else 1, "players")
        self.players = PlayerNets(game, goals.count, config.hidden, generators, config.paths)
        self.others: OtherModels | None = None
        if config.parts.coplayers == "learned":
            self.others = OtherModels(
                game,
                goals,
                config.hidden,
                seeds,
                observers=game.players if own_moa else 1,
                paths=config.paths,
                history=history,
            )
        self.goals = goals
        self.world = [world]  # shared by all seeds and not trained here: kept out of the parameters

    @property
    def count(self) -> int:
        """K, the number of goals."""
        return self.goals.count

    @property
    def reads_histories(self) -> bool:
        """Whether its models of others have a history encoder."""
        return self.others is not None and self.others.history is not None

    @property
    def layout(self) -> RowLayout:
        """The rows that its networks read."""
        return row_layout(self.game, self.config.paths)

    def some(self, seeds: Sequence[int]) -> PlannerModels:
        """The minds of some seeds."""
        for seed in seeds:
            if seed not in self.seeds:
                raise UserError(f"There is no seed {seed} in this run, only {', '.join(map(str, self.seeds))}.")
        made = PlannerModels(self.game, self.config, self.goals, seeds, self.world[0], history=self.reads_histories,
                    independent=self.independent, own_moa=self.own_moa)  # fmt: skip
        places = [self.seeds.index(seed) for seed in seeds]
        made.load_state_dict({k: _cut(w, places, len(self.seeds)) for k, w in self.state_dict().items()})
        return made

    # --- what plays with it ---------------------------------------------------------------------------------------

    def hypotheses(self, followers: float, fates: bool) -> CoPlayerTypes | None:
        """What is believed of others beyond goals that last, and how it is told; None where no models know goals."""
        if self.others is None or self.count == 1:
            return None
        return CoPlayerTypes(self.goals.to(self.others.candidates.device), followers, fates)

    def planner(
        self,
        game: Game,
        plan: PlanConfig | None = None,
        rollout: float = 0.0,
        hypotheses: CoPlayerTypes | None = None,
        loyalty: float = 0.0,
    ) -> Planner:
        c = self.config
        return Planner(
            game, self.players, self._coplayers(), self._dynamics(game), plan or c.plan,
            seeds=len(self.seeds), one_step=c.parts.one_step, rollout=rollout,
            hypotheses=hypotheses, loyalty=loyalty,
        )  # fmt: skip

    def tracker(
        self, game: Game, belief: BeliefConfig | None = None, hypotheses: CoPlayerTypes | None = None
    ) -> BeliefTracker:
        config = belief or self.config.beliefs
        if self.others is None:
            return BeliefTracker(game, NoGoals(game), config, self.goals.evidence)
        likelihoods = LearnedLikelihoods(game, self.others, hypotheses)
        if hypotheses is None:
            return BeliefTracker(game, likelihoods, config, self.goals.evidence)
        return BeliefTracker(game, likelihoods, config, hypotheses.evidence, hypotheses.prior, hypotheses.aims)

    def _coplayers(self) -> CoPlayers:
        if self.others is not None:
            return LearnedCoPlayers(self.others.moa)
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

    def meant(self, view: View, memory: Memory) -> Tensor | None:
        """[B, n, K, V] what each goal means for each player, by what it did in this episode: for a planner's roots."""
        return None if self.others is None else self.others.meant(self.others.code(view, memory))

    @torch.no_grad()
    def predict(
        self, view: View, belief: Tensor, meant: Tensor | None = None, hypotheses: CoPlayerTypes | None = None
    ) -> Tensor:
        """[B, n, S', A] probabilities of the others' next actions as each observer expects them (0 for absent ones).

        meant: [B, n, K, V] what each goal means for each player; by default the same for everybody. hypotheses: what
        the beliefs are about, where that is more than goals.
        """
        if self.others is not None:
            if hypotheses is not None:
                plain = self.others.candidates.expand(*view.state.cell.shape, -1, -1) if meant is None else meant
                alone, joined = hypotheses.meanings(plain)
                held = others_at(on_stag(view.game, view.state))  # [B, n]
                meant = torch.where(held[..., None, None], joined, alone)  # [B, n, G, V]
            logits, legal = self.others.by_goal(view, meant)
            chances = masked_mixture(logits, legal, belief).exp()
        else:
            rows, mine, time = self.seen(view)
            legal = mine[:, opponent_seats(view.game)]
            flat = apply_mask(torch.zeros(legal.shape, device=legal.device), legal)
            chances = flat.softmax(-1)
            if self.config.parts.coplayers == "self":
                chances = self._by_own_prior(rows, mine, time, view.game)
        return chances * legal.any(-1, keepdim=True)

    def _by_own_prior(self, rows: Tensor, legal: Tensor, time: Tensor, game: Game) -> Tensor:
        """The same by the observer's own prior, asked from the others' seats."""
        pairs = opponent_seats(game)
        seats, slots = pairs.shape
        wide = time.view(-1, 1, 1).expand(-1, seats, slots)
        folded = [fold(x, len(self.seeds), self.players.copies).flatten(1, 2) for x in (rows[:, pairs], wide)]
        logits, _ = self.players(*folded, None)
        logits = unfold(logits.unflatten(1, (-1, slots)), len(self.seeds), seats)
        return apply_mask(logits, legal[:, pairs]).softmax(-1)


class NoGoals(Likelihoods):
    """For players without models of others: there is a single goal, and beliefs never move."""

    goals = 1

    def __init__(self, game: Game) -> None:
        self.about = (game.players, game.players - 1)
        self.players = opponent_seats(game)

    def __call__(self, view: View, actions: Tensor, memory: Memory) -> Tensor:
        return torch.ones(view.state.batch, *self.about, 1, device=actions.device)


def _cut(weights: Tensor, places: list[int], seeds: int) -> Tensor:
    """The copies of the seeds at some places."""
    return weights.unflatten(0, (seeds, -1))[places].flatten(0, 1)


def models_state(mind: PlannerModels) -> dict[str, Any]:
    """Everything needed to build a mind again (apart from its world model), fit for a checkpoint."""
    goals = mind.goals
    return {"candidates": goals.candidates, "evidence": goals.evidence, "common": goals.common,
            "spread": goals.spread, "history": mind.reads_histories, "weights": mind.state_dict()}  # fmt: skip
