"""Networks that play: the actor-critic of the PPO baseline, and trained ones behind the `Policy` interface.

Letters: B games, n players, L seats, A actions, D width of a flat observation; *S any leading dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import ways, ways_size
from marlab.hunt.game.rules import ABSENT, Game
from marlab.hunt.game.views import View, flat_fields
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.ppo.config import NetworkConfig
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.ppo.choices import apply_mask, best, sample
from marlab.lab.ppo.nets import mlp, orthogonal_linear
from marlab.lab.runs.checkpoint import Checkpoint, CheckpointStore, building, check_sizes, load_checkpoint

KIND = "hunt/ppo"
PATTERN = "model_iter_{step}.pt"


class PlayerNet(nn.Module):
    """An actor and a critic on one body, as `marlab.lab.ppo.ppo` wants them: flat observations -> logits and values."""

    _numbers: Tensor  # [8] the action numbers

    def __init__(self, game: Game, config: NetworkConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.heads, self.paths = (game.actions,), config.paths
        self._fields = flat_fields(game)
        size = self._fields.size + ABSENT * game.players  # an action number becomes ABSENT + 1 places
        size += ways_size(game.config) if config.paths else 0
        width = config.hidden[-1]
        hidden = mlp(size, config.hidden[:-1], width, math.sqrt(2.0), "relu", generator)
        self.body = nn.Sequential(hidden, nn.ReLU())
        self.actor = orthogonal_linear(width, game.actions, 0.01, generator)
        self.critic = orthogonal_linear(width, 1, 1.0, generator)
        self.register_buffer("_numbers", torch.arange(ABSENT + 1.0), persistent=False)
        self._last: tuple[Tensor, Tensor] | None = None

    def features(self, obs: Tensor) -> Tensor:
        """[*S, D] -> [*S, width]"""
        fields = self._fields
        # One-hot by comparison: it needs no look at the values, so it can be recorded in a CUDA graph.
        actions = (obs[..., fields.actions].unsqueeze(-1) == self._numbers).to(obs.dtype).flatten(-2)
        return self.body(torch.cat([obs[..., fields.mask], actions, obs[..., fields.grid.start :]], -1))

    def logits(self, obs: Tensor) -> Tensor:
        """[*S, D] -> [*S, A], before any mask"""
        features = self.features(obs)
        self._last = (obs, features)
        return self.actor(features)

    def value(self, obs: Tensor) -> Tensor:
        """[*S, D] -> [*S]. Right after `logits` of the very same tensor the body's work is not done again."""
        last, self._last = self._last, None
        fresh = last is None or last[0] is not obs or last[1].requires_grad != torch.is_grad_enabled()
        features = self.features(obs) if last is None or fresh else last[1]
        return self.critic(features).squeeze(-1)


class NetworkPolicy(Policy):
    """Trained networks as players: seat s is played by `nets[seats[s]]`."""

    def __init__(
        self, game: Game, nets: Sequence[PlayerNet], seats: Sequence[int] | None = None, *, greedy: bool = False
    ) -> None:
        """`seats` defaults to the first network everywhere. greedy: the most likely action instead of a drawn one."""
        chosen = [0] * game.players if seats is None else list(seats)
        if len(chosen) != game.players or not all(0 <= s < len(nets) for s in chosen):
            raise ValueError(f"the seats {chosen} do not fit {game.players} players and {len(nets)} networks")
        self.nets, self.greedy, self._heads = list(nets), greedy, (game.actions,)
        self._seats_of = [
            torch.tensor([s for s, net in enumerate(chosen) if net == i], device=game.device) for i in range(len(nets))
        ]

    @torch.no_grad()
    def logits(self, view: View) -> Tensor:
        """[B, n, A] with illegal actions at the lowest finite value."""
        out = torch.empty(view.mask.shape, dtype=torch.float32, device=view.mask.device)
        for net, seats in zip(self.nets, self._seats_of):
            if len(seats):
                flat = view.flat(seats)
                seen = torch.cat([flat, ways(view.game, view.state, seats)], 2) if net.paths else flat
                out[:, seats] = net.logits(seen)
        return apply_mask(out, view.mask)

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        logits = self.logits(view)
        return best(logits, self._heads) if self.greedy else sample(logits, self._heads, generator), memory

    def probabilities(self, view: View, memory: Memory) -> Tensor:
        logits = self.logits(view)
        if self.greedy:
            chosen = one_hot(best(logits, self._heads), logits.shape[-1]).to(logits.dtype)
        else:
            chosen = torch.softmax(logits, -1)
        return chosen * view.state.alive.unsqueeze(-1)


# --- trained agents on disk ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agents:
    """The networks of a PPO run, with what is needed to seat them."""

    game: GameConfig  # the game they were trained in
    network: NetworkConfig
    seeds: tuple[int, ...]
    seats: tuple[int, ...]  # the seats that learned
    shared: bool  # one network for all of a seed's seats, instead of one each
    weights: dict[str, dict[str, Tensor]] = field(repr=False)  # by `weight_key`

    def nets(self, game: Game, seed: int | None = None) -> list[PlayerNet]:
        """The networks of a seed (the first by default) for a game of the same size, on the game's device."""
        chosen = self.seeds[0] if seed is None else seed
        if chosen not in self.seeds:
            raise UserError(f"There is no seed {chosen} in this run, only {', '.join(map(str, self.seeds))}.")
        check_same_size(self.game, game.config, "These agents were trained in")
        keys = [weight_key(chosen, None)] if self.shared else [weight_key(chosen, seat) for seat in self.seats]
        nets = []
        for key in keys:
            net = PlayerNet(game, self.network).to(game.device)
            net.load_state_dict(self.weights[key])
            nets.append(net)
        return nets

    def policy(self, game: Game, seed: int | None = None, *, greedy: bool = False) -> NetworkPolicy:
        """All seats played as in training; a seat that did not learn is played by the network of the first that did."""
        nets = self.nets(game, seed)
        net_of = {seat: 0 if self.shared else i for i, seat in enumerate(self.seats)}
        return NetworkPolicy(game, nets, [net_of.get(seat, 0) for seat in range(game.players)], greedy=greedy)


def weight_key(seed: int, seat: int | None) -> str:
    """Name of a network in a checkpoint: of a seed and, unless the seats share one, of a seat."""
    return f"seed_{seed}" if seat is None else f"seed_{seed}/player_{seat + 1}"


def load_agents(path: Path) -> Agents:
    """The newest agents of a PPO run directory, or those of one checkpoint file."""
    checkpoint = _newest(path) if path.is_dir() else load_checkpoint(path, KIND)
    where = f"the checkpoint {checkpoint.path}"
    with building(checkpoint.path, "PPO agents"):
        stored: dict[str, Any] = checkpoint.state["agents"]
        agents = Agents(
            game=from_dict(GameConfig, stored["game"], where),
            network=from_dict(NetworkConfig, stored["network"], where),
            seeds=tuple(stored["seeds"]),
            seats=tuple(stored["seats"]),
            shared=bool(stored["shared"]),
            weights=stored["weights"],
        )
        check_sizes(checkpoint.path, agents.weights, agents.network.hidden)
        _check_nets(agents)
    return agents


def _check_nets(agents: Agents) -> None:
    """Seat every seed once: weights that do not fit are noticed now, not in the middle of a tournament."""
    if not agents.seeds or not all(type(seat) is int and 0 <= seat < agents.game.players for seat in agents.seats):
        raise ValueError(f"seeds {agents.seeds} and seats {agents.seats} of {agents.game.players} players")
    game = make_game(agents.game, torch.Generator().manual_seed(0), maps=1)
    for seed in agents.seeds:
        agents.policy(game, seed)


def _newest(run: Path) -> Checkpoint:
    checkpoint, problems = CheckpointStore(run / "checkpoints", KIND, PATTERN).load_latest()
    if checkpoint is None:
        raise UserError(problems[0] if problems else f"There are no trained PPO agents in {run}.")
    return checkpoint


def check_same_size(trained: GameConfig, wanted: GameConfig, lead: str) -> None:
    """Refuse weights of a game whose observations or actions have another shape."""
    if _size(trained) != _size(wanted):
        raise UserError(f"{lead} {_describe(trained)}, but this game has {_describe(wanted)}.")


def _size(game: GameConfig) -> tuple[int, ...]:
    return game.height, game.width, game.players, game.channels, game.actions


def _describe(game: GameConfig) -> str:
    return f"a {game.height}x{game.width} grid, {game.players} players and {game.actions} actions"
