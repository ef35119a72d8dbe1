"""The world model: from what a player sees and everybody's actions to what it sees next, its reward and the end.

Two kinds behind one interface. `structured` predicts what can happen (a body moves by one cell, stays or leaves; a
prey stays or goes; a reward is one of a few) and draws the planes from that, so nobody can teleport. `dense`
regresses every cell, as the original did; it is kept for comparison.

Letters: R rows, n players, C channels, X = H x W cells, A actions, m kinds of prey, F features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot, smooth_l1_loss

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.maps import MOVES
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.others.blocks import JOIN_WIDTH, Trunk, kaiming_conv, kaiming_linear, planes_first
from marlab.hunt.world_model.config import ModelKind
from marlab.hunt.world_model.data import GONE, OUTCOMES, Transitions, reward_values
from marlab.lab.config import from_dict, to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import building, check_sizes, load_checkpoint, save_checkpoint

KIND = "hunt/world-model"
WIDTH = 64
"""Channels of the structured model's convolutions."""


class Prediction(NamedTuple):
    """What the model expects after a step, unrounded."""

    planes: Tensor  # [R, H, W, C] float: probability (structured) or regressed value (dense) of every cell
    reward: Tensor  # [R] expected reward
    done: Tensor | None  # [R, 2] probability that the player is done and that the episode is over; dense has none


class WorldModel(nn.Module, ABC):
    """f(planes, joint action, t) -> next planes, reward, done; all players in ego-first order."""

    kind: ModelKind

    def __init__(self, game: GameConfig) -> None:
        super().__init__()
        self.game = game

    @abstractmethod
    def predict(self, planes: Tensor, joint: Tensor, t: Tensor) -> Prediction:
        """planes [R, H, W, C] (0/1, or values in between when imagined), joint [R, n] (ABSENT = 7), t [R]."""

    @abstractmethod
    def loss(self, row: Transitions) -> Tensor:
        """[R] loss of every row against its true transition."""

    @abstractmethod
    def settle(self, planes: Tensor) -> Tensor:
        """Predicted planes as the input of the next imagined step."""

    @torch.no_grad()
    def imagine(self, planes: Tensor, joint: Tensor, t: Tensor) -> Prediction:
        """One imagined step whose planes can be fed back, to `imagine` again or to any network that reads planes."""
        predicted = self.predict(planes, joint, t)
        return predicted._replace(planes=self.settle(predicted.planes))


# --- structured ---------------------------------------------------------------------------------------------------


class Heads(NamedTuple):
    """Logits of the structured model."""

    move: Tensor  # [R, n, 6] the four moves, stay, leave
    survive: Tensor  # [R, X, m] per cell and kind: a prey here stays
    reward: Tensor  # [R, 2n] classes of `reward_values`
    done: Tensor  # [R, 2]


class StructuredModel(WorldModel):
    """Convolutions over planes and actions at their players' cells; heads that can only say what can happen."""

    kind = "structured"
    values: Tensor  # [2n] what each class of reward pays

    def __init__(self, game: GameConfig, width: int = WIDTH, generator: torch.Generator | None = None) -> None:
        super().__init__(game)
        _check_rewards(game)
        n, actions = game.players, game.actions
        inputs = game.channels + n * actions
        self.first = kaiming_conv(inputs, width, generator)
        self.second = kaiming_conv(width, width, generator)
        self.third = kaiming_conv(width, width, generator)
        # One row of scale and shift per step of the episode: its end is a sharp edge in t.
        self.film = nn.Embedding(game.final_time + 1, 2 * width)
        nn.init.zeros_(self.film.weight)
        seen = actions * (width + 2) + width  # see `_facts`
        self.body = kaiming_linear(seen, 2 * width, generator)
        self.move = kaiming_linear(2 * width, OUTCOMES, generator, gain=0.1)
        self.ego = kaiming_linear(seen, 2 * width, generator)
        self.reward = kaiming_linear(2 * width, 2 * n, generator, gain=0.1)
        self.done = kaiming_linear(2 * width, 2, generator, gain=0.1)
        self.prey = kaiming_linear(width, width, generator)
        self.survive = kaiming_linear(width, len(game.prey_kinds), generator, gain=0.1)
        self.register_buffer("values", reward_values(game), persistent=False)

    def heads(self, planes: Tensor, joint: Tensor, t: Tensor) -> Heads:
        n, actions = self.game.players, self.game.actions
        seen = planes_first(planes)  # [R, C, H, W]
        acts = one_hot(joint, ABSENT + 1)[..., :actions].to(seen.dtype)  # [R, n, A]: a player who left does nothing
        bodies = seen[:, :n]
        doing = (bodies.unsqueeze(2) * acts[..., None, None]).flatten(1, 2)  # [R, n * A, H, W]
        scale, shift = self.film(t).unsqueeze(-1).unsqueeze(-1).chunk(2, 1)  # [R, F, 1, 1]
        low = torch.relu(self.first(torch.cat([seen, doing], 1)) * (1 + scale) + shift)
        high = torch.relu(self.third(torch.relu(self.second(low))) + low)  # [R, F, H, W]
        grid = high.flatten(2).transpose(1, 2)  # [R, X, F]
        known = self._facts(bodies.flatten(2), acts, grid)
        ego = torch.relu(self.ego(known[:, 0]))
        return Heads(
            move=self.move(torch.relu(self.body(known))),
            survive=self.survive(torch.relu(self.prey(grid))),
            reward=self.reward(ego),
            done=self.done(ego),
        )

    def _facts(self, place: Tensor, acts: Tensor, grid: Tensor) -> Tensor:
        """[R, n, A (F + 2) + F] what decides each player's step, from where all stand [R, n, X] and act [R, n, A].

        Every action reads the player's cell with weights of its own: what a hunt comes to says nothing about a move.
        Beside the features of the cell it sees how many do the same there, because some numbers are too rare to be
        learned from pictures.
        """
        company = ((place @ place.mT) * (acts @ acts.mT)).sum(2, keepdim=True)  # [R, n, 1]
        here = torch.cat([place @ grid, company, torch.ones_like(company)], -1)  # [R, n, F + 2]
        by_action = (acts.unsqueeze(-1) * here.unsqueeze(-2)).flatten(2)
        whole = grid.mean(1, keepdim=True).expand(-1, place.shape[1], -1)
        return torch.cat([by_action, whole], -1)

    def predict(self, planes: Tensor, joint: Tensor, t: Tensor) -> Prediction:
        return self._draw(planes.float(), self.heads(planes, joint, t))

    def _draw(self, planes: Tensor, heads: Heads) -> Prediction:
        """Planes as probabilities: every body is shifted, kept or taken away, prey can only go, obstacles stay."""
        n = self.game.players
        chance = heads.move.softmax(-1)  # [R, n, 6]
        free = 1.0 - planes[..., n]  # [R, H, W]
        bodies = _shifted(planes[..., :n], free)  # [R, H, W, n, 5]
        players = (bodies * chance[:, None, None, :, :-1]).sum(-1)
        survive = heads.survive.sigmoid().unflatten(1, planes.shape[1:3])  # [R, H, W, m]
        drawn = torch.cat([players, planes[..., n : n + 1], planes[..., n + 1 :] * survive], -1)
        return Prediction(drawn, heads.reward.softmax(-1) @ self.values, heads.done.sigmoid())

    def loss(self, row: Transitions) -> Tensor:
        heads = self.heads(row.obs.float(), row.joint, row.t)
        predicted = self._draw(row.obs.float(), heads)
        n = self.game.players
        was_there = row.outcome != GONE
        moved = cross_entropy(heads.move.flatten(0, 1), row.outcome.flatten(), ignore_index=GONE, reduction="none")
        moved = moved.view_as(row.outcome).sum(1) / was_there.sum(1).clamp_min(1)
        prey, left = row.obs[..., n + 1 :].flatten(1, 2).float(), row.next_obs[..., n + 1 :].flatten(1, 2).float()
        stayed = binary_cross_entropy_with_logits(heads.survive, left, reduction="none") * prey
        stayed = stayed.sum((1, 2)) / prey.sum((1, 2)).clamp_min(1)
        paid = cross_entropy(heads.reward, row.reward_class, reduction="none")
        paid = paid + smooth_l1_loss(predicted.reward, row.reward, reduction="none")
        ended = binary_cross_entropy_with_logits(heads.done, row.done.float(), reduction="none").mean(1)
        return moved + stayed + paid + ended

    def settle(self, planes: Tensor) -> Tensor:
        """The most likely situation: one cell per present player, a prey where it is more likely than not."""
        n = self.game.players
        flat = planes[..., :n].flatten(1, 2)  # [R, X, n]
        body = one_hot(flat.argmax(1), flat.shape[1]).transpose(1, 2) * (flat.sum(1, keepdim=True) >= 0.5)
        return torch.cat([body.unflatten(1, planes.shape[1:3]), planes[..., n:] >= 0.5], -1).float()


def _shifted(bodies: Tensor, free: Tensor) -> Tensor:
    """[R, H, W, n, 5] from bodies [R, H, W, n]: each after UP, DOWN, LEFT, RIGHT and STAY.

    What would leave the grid or enter an obstacle (`free` [R, H, W] is 0 there) stays where it is, as in the game.
    """
    height, width = bodies.shape[1:3]
    moved = []
    for down, right in MOVES:
        source = bodies[:, max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)]
        pad = (0, 0, max(0, right), max(0, -right), max(0, down), max(0, -down))
        arrived = nn.functional.pad(source, pad) * free.unsqueeze(-1)
        back = arrived[:, max(0, down) : height + min(0, down), max(0, right) : width + min(0, right)]
        away = nn.functional.pad(back, (0, 0, max(0, -right), max(0, right), max(0, -down), max(0, down)))
        moved.append(arrived + bodies - away)
    return torch.stack([*moved, bodies], -1)


def _check_rewards(game: GameConfig) -> None:
    plain = game.rules == "hunt" and not game.prosocial and game.time_reward == 0 and len(set(game.player_strength)) < 2
    if not plain:
        raise UserError(
            "The structured world model knows the stag hunt with equal shares only (no snowdrift, prosocial, "
            "time_reward or player_strength); use --model dense for this game."
        )


# --- dense --------------------------------------------------------------------------------------------------------


class DenseModel(WorldModel):
    """A regression of every cell and of the reward, without any notion of bodies: the original's way."""

    kind = "dense"
    weights: Tensor  # [C] channel weights of mean 1

    def __init__(
        self, game: GameConfig, channel_weights: tuple[float, ...] = (), generator: torch.Generator | None = None
    ) -> None:
        """channel_weights: one per channel, equal if empty; they are normalised, so they never change the scale."""
        super().__init__(game)
        shape = (game.height, game.width, game.channels)
        self.trunk = Trunk(shape, generator)
        known = self.trunk.size + game.players * (ABSENT + 1) + 1
        self.join = kaiming_linear(known, JOIN_WIDTH, generator)
        self.planes = kaiming_linear(JOIN_WIDTH, game.cells * game.channels, generator, gain=1.0)
        self.reward = kaiming_linear(JOIN_WIDTH, 1, generator, gain=1.0)
        self.register_buffer("weights", channel_factors(game, channel_weights), persistent=False)

    def predict(self, planes: Tensor, joint: Tensor, t: Tensor) -> Prediction:
        acts = one_hot(joint, ABSENT + 1).flatten(1).float()
        time = (t / self.game.final_time).unsqueeze(1)
        joined = torch.relu(self.join(torch.cat([self.trunk(planes), acts, time], 1)))
        return Prediction(self.planes(joined).view(planes.shape), self.reward(joined).squeeze(1), None)

    def loss(self, row: Transitions) -> Tensor:
        return dense_loss(self.predict(row.obs.float(), row.joint, row.t), row, self.weights)

    def settle(self, planes: Tensor) -> Tensor:
        """As they are: a regression does not know what its values stand for."""
        return planes


def channel_factors(game: GameConfig, weights: tuple[float, ...]) -> Tensor:
    """[C] factors with mean 1 from relative channel weights (empty: all 1)."""
    if not weights:
        return torch.ones(game.channels)
    if len(weights) != game.channels or min(weights) < 0 or sum(weights) == 0:
        raise UserError(
            f"channel_weights has {len(weights)} values ({', '.join(map(str, weights))}); "
            f"expected {game.channels} of 0 or more that are not all 0, one per channel."
        )
    factors = torch.tensor(weights, dtype=torch.float32)
    return factors / factors.mean()


def dense_loss(predicted: Prediction, row: Transitions, factors: Tensor) -> Tensor:
    """[R] sum_c w_c MSE_c / sum_c w_c + squared reward error, with `factors` [C] of mean 1."""
    errors = (predicted.planes - row.next_obs.float()).square().mean((1, 2))  # [R, C]
    return (errors * factors).mean(1) + (predicted.reward - row.reward).square()


# --- files --------------------------------------------------------------------------------------------------------


def make_model(
    kind: ModelKind,
    game: GameConfig,
    *,
    width: int = WIDTH,
    channel_weights: tuple[float, ...] = (),
    generator: torch.Generator | None = None,
) -> WorldModel:
    """A fresh model; `width` is the structured one's, `channel_weights` are the dense one's."""
    if kind == "structured":
        return StructuredModel(game, width, generator)
    return DenseModel(game, channel_weights, generator)


def save_world_model(path: Path, model: WorldModel, *, step: int) -> None:
    """Write a model with what is needed to build it again."""
    width = model.first.out_channels if isinstance(model, StructuredModel) else WIDTH
    contents = {"model": model.kind, "width": width, "game": to_dict(model.game), "weights": model.state_dict()}
    save_checkpoint(path, KIND, step, contents)


def load_world_model(
    path: Path, game: GameConfig | None = None, device: torch.device | str = "cpu"
) -> StructuredModel | DenseModel:
    """The model of a run directory of `hunt pretrain world`, or of its file; with `game`, one of another is refused."""
    file = path / "world_model.pt" if path.is_dir() else path
    state = load_checkpoint(file, KIND).state
    with building(file, "a world model"):
        stored = from_dict(GameConfig, state["game"], f"the world model {file}")
    if game is not None and _shape(stored) != _shape(game):
        raise UserError(
            f"The world model {file} is of {_describe_game(stored)}, this game has {_describe_game(game)}; pretrain "
            "one for this game."
        )
    with building(file, "a world model"):
        if state["model"] not in get_args(ModelKind):
            raise ValueError(f"the kind {str(state['model'])[:40]!r}")
        if state["model"] == "structured":
            check_sizes(file, state["weights"], (state["width"],))
        model = make_model(state["model"], stored, width=state["width"])
        model.load_state_dict(state["weights"])
    assert isinstance(model, StructuredModel | DenseModel)
    return model.to(device).eval()


def _shape(game: GameConfig) -> tuple[int | str, ...]:
    return game.rules, game.height, game.width, game.players, game.final_time


def _describe_game(game: GameConfig) -> str:
    return f"a {game.height}x{game.width} grid with {game.players} players and {game.final_time} steps"
