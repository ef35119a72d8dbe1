"""Models of others at play: what every player's history says it is up to, and what everybody expects of everybody.

These are the models that `pretrain` makes; planners hold them for S seeds and go on training them. The history encoder
runs once per step of a game. What it says about a player is joined with each goal that the player may have, and stays
as it is in all that is imagined from there.

Letters: S seeds, B games in S blocks, n players, S' = n - 1 others, P = S or S n copies, N rows of a copy,
W row width, K goals, V goal width, D code width, M memory width, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import encode
from marlab.hunt.game.rules import Game
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import Likelihoods
from marlab.hunt.others.codes import CoPlayerTypes, Goals, fuse_prototype_and_history, others_at
from marlab.hunt.others.copies import copy_generators, fold, spread, unfold
from marlab.hunt.others.history import HistoryEncoder
from marlab.hunt.others.moa import Moa, opponent_seats
from marlab.hunt.others.models import GoalModels, LoadedModels
from marlab.hunt.others.vae import Code
from marlab.hunt.players.policy import Memory
from marlab.hunt.players.rules import on_stag
from marlab.lab.ppo.choices import apply_mask


class OtherModels(nn.Module):
    """The models of S seeds: one history encoder a seed, and models of others of each observer (or shared by them)."""

    candidates: Tensor  # [K, V]
    spread: Tensor  # [K, V]

    def __init__(
        self, game: GameConfig, goals: Goals, hidden: int, seeds: Sequence[int], *, observers: int = 1,
        paths: bool = False, history: bool = False,
    ) -> None:  # fmt: skip
        """observers: models of others of each seed, n or 1. history: with an encoder, where goals are codes."""
        super().__init__()
        self.seeds, self.paths = len(seeds), paths
        width = goals.candidates.shape[1]
        self.moa = Moa(game, width, hidden, copy_generators(seeds, observers, "others"), paths=paths)
        self.history: HistoryEncoder | None = None
        if history:
            self.history = HistoryEncoder(game, width, hidden, copy_generators(seeds, 1, "history"), paths)
        self.register_buffer("candidates", goals.candidates, persistent=False)
        self.register_buffer("spread", goals.spread, persistent=False)

    @property
    def code_width(self) -> int:
        """D; 0 where there is no encoder."""
        return 0 if self.history is None else self.history.width

    @torch.no_grad()
    def take(self, models: GoalModels) -> None:
        """Begin with pretrained models: every copy the same."""
        for own, given in ((self.moa, models.moa), (self.history, models.history)):
            if own is not None and given is not None:
                learnt = given.state_dict()
                own.load_state_dict({k: spread(learnt[k], len(w)).to(w) for k, w in own.state_dict().items()})

    # --- codes ----------------------------------------------------------------------------------------------------

    def seen(self, view: View) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [B, n, W], legal actions [B, n, A] and times [B, n] of all seats."""
        seats = torch.arange(view.game.players, device=view.game.device)
        rows, legal = encode(view.game, view.state, seats, self.paths)
        return rows, legal, view.time.unsqueeze(1).expand(rows.shape[:2])

    @torch.no_grad()
    def code(self, view: View, memory: Memory) -> Tensor:
        """[B, n, 2, D] mean and log-variance of the code of every player, by what it did in this episode."""
        if self.history is None:
            return torch.zeros(view.state.batch, view.game.players, 2, 0, device=view.game.device)
        rows, _, time = self.seen(view)
        code = self.history.code(*(fold(x, self.seeds, self.seeds) for x in (memory["history"], rows, time)))
        return torch.stack([unfold(x, self.seeds, view.game.players) for x in code], 2)

    def meant(self, code: Tensor) -> Tensor:
        """[*S, K, V] what each goal means for players with codes [*S, 2, D]."""
        if self.history is None:
            return self.candidates.expand(*code.shape[:-2], -1, -1)
        return fuse_prototype_and_history(Code(*code.unbind(-2)), self.candidates, self.spread)

    @torch.no_grad()
    def advance(self, view: View, executed: Tensor, memory: Memory) -> Memory:
        """What the encoders remember after a step: actions [B, n] that followed `view`."""
        if self.history is None:
            return {}
        rows, _, time = self.seen(view)
        did = executed[:, view.game.ego]  # [B, n, n] as each player sees it
        after = self.history.advance(*(fold(x, self.seeds, self.seeds) for x in (memory["history"], rows, time, did)))
        return {"history": unfold(after, self.seeds, view.game.players)}

    def begin(self, batch: int, players: int) -> Memory:
        return {} if self.history is None else {"history": self.history.begin(batch, players)}

    # --- predictions ----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def by_goal(self, view: View, meant: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits [B, n, S', K, A] of the others' next actions under every goal, and what is legal [B, n, S', A].

        meant: [B, n, K, V] what each goal means for each player; the candidates themselves by default.
        """
        rows, legal, time = self.seen(view)
        pairs, copies = opponent_seats(view.game), self.moa.copies
        if meant is None:
            meant = self.candidates.expand(*rows.shape[:2], -1, -1)
        wishes = self.moa.wishes(fold(meant[:, pairs], self.seeds, copies))
        logits = self.moa(*(fold(x, self.seeds, copies) for x in (rows[:, pairs], time)), wishes)
        return unfold(logits, self.seeds, view.game.players), legal[:, pairs]


def pretrained(loaded: LoadedModels) -> OtherModels:
    """Models of others as `pretrain` left them, ready to be asked in games."""
    spec = loaded.spec
    with_history = loaded.models.history is not None
    models = OtherModels(spec.game, loaded.goals(), spec.hidden, [0], paths=spec.paths, history=with_history)
    models.take(loaded.models)
    return models.to(next(loaded.models.parameters()).device)


class LearnedLikelihoods(Likelihoods):
    """How likely each goal makes what the others did, by every observer's own models; or each of some hypotheses."""

    def __init__(self, game: Game, models: OtherModels, hypotheses: CoPlayerTypes | None = None) -> None:
        self.models, self.hypotheses = models, hypotheses
        self.goals = models.candidates.shape[0] if hypotheses is None else hypotheses.count
        self.about = (game.players, game.players - 1)
        self.players = opponent_seats(game)

    def begin(self, batch: int) -> Memory:
        return self.models.begin(batch, self.about[0])

    def advance(self, view: View, actions: Tensor, memory: Memory) -> Memory:
        return self.models.advance(view, actions, memory)

    def __call__(self, view: View, actions: Tensor, memory: Memory) -> Tensor:
        if self.goals == 1:  # nothing to tell apart
            return torch.ones(view.state.batch, *self.about, 1, device=actions.device)
        # The prototypes themselves: a sure history would make all goals mean the same, and tell none of them apart.
        logits, legal = self.models.by_goal(view)
        chance = apply_mask(logits, legal.unsqueeze(-2)).softmax(-1)
        taken = actions[:, self.players].clamp_max(chance.shape[-1] - 1)[..., None, None]
        by_goal = chance.gather(-1, taken.expand(*chance.shape[:-1], 1)).squeeze(-1)  # [B, n, S', K]
        if self.hypotheses is None:
            return by_goal
        return self.hypotheses.now(by_goal, others_at(on_stag(view.game, view.state))[:, self.players])
