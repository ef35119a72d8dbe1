"""Gymnasium adapters: all players of a game as one decision maker, alone or in many games at once.

    import gymnasium
    env = gymnasium.make("marlab.hunt.players.gym:StagHunt-v0", game="msh_8x8_b5")
    envs = gymnasium.make_vec("marlab.hunt.players.gym:StagHunt-v0", num_envs=4096, game="msh_4x4")

An observation has one row per player (see `HuntEnv`), an action one number per player, and the reward is the mean over
all players; `info["rewards"]` holds each player's own. Whoever has left may do anything, it is ignored. The vector
environment plays all games in one batch of tensors, on a GPU too, without processes or copies of environments.
"""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.envs.registration import register, registry
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import DEFAULT_MAPS, GameConfig, game_config
from marlab.hunt.game.rules import State
from marlab.hunt.game.scalar import PlainState, Rules
from marlab.hunt.game.views import View
from marlab.hunt.players.glance import PlainObserver
from marlab.lab.errors import UserError

Observation = dict[str, Any]
NAME = "StagHunt-v0"


def joint_spaces(config: GameConfig) -> tuple[spaces.Dict, spaces.MultiDiscrete]:
    """What all players see, a row each, and what they do."""
    rows = {
        name: batch_space(space, config.players) for name, space in PlainObserver(config).space().items() if name != "t"
    }
    time = spaces.Box(0, config.final_time, (1,), np.int32)
    return spaces.Dict({**rows, "t": time}), spaces.MultiDiscrete([config.actions] * config.players)


def checked(actions: Any, shape: tuple[int, ...], most: int) -> np.ndarray:
    """Actions of the expected shape, or a sentence."""
    given = np.asarray(actions)
    wanted = " x ".join(map(str, shape))
    if given.shape != shape or given.dtype.kind not in "iu":
        raise UserError(
            f"The actions have the shape {list(given.shape)} and the type {given.dtype}; expected {wanted} "
            f"whole numbers from 0 to {most - 1}."
        )
    if given.size and (given.min() < 0 or given.max() >= most):
        raise UserError(
            f"The actions lie between {given.min()} and {given.max()}; expected whole numbers from 0 to {most - 1}."
        )
    return given


class HuntJointEnv(gym.Env[Observation, np.ndarray]):
    """One game; all players act at once."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # the type that Gymnasium declares

    def __init__(self, game: GameConfig | str = "msh_4x4", render_mode: str | None = None) -> None:
        """`game` is a config or the name of a preset."""
        _no_pictures(render_mode)
        self.config = game_config(game) if isinstance(game, str) else game
        self.render_mode = None
        self.rules, self._glance = Rules(self.config), PlainObserver(self.config)
        self.observation_space, self.action_space = joint_spaces(self.config)
        self._rng = random.Random()
        self._situation: PlainState | None = None
        self._names = [str(seat) for seat in range(self.config.players)]
        self._seat = {name: seat for seat, name in enumerate(self._names)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._rng.seed(seed)
        self._situation = self.rules.start(self._rng)
        return self._seen(self._situation), {}

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._situation is None:
            raise UserError("There is no game yet; call reset() first.")
        done = self.rules.step(self._situation, checked(action, (self.config.players,), self.config.actions).tolist())
        self._situation = done.after
        rewards = np.array(done.reward, np.float32)
        info = {"rewards": rewards, "done": np.array(done.done)}
        return self._seen(done.after), float(rewards.mean()), done.over, False, info

    def _seen(self, s: PlainState) -> Observation:
        rows = list(self._glance.all(self.rules, s, self._names, self._seat).values())
        stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0] if name != "t"}
        return {**stacked, "t": rows[0]["t"]}


class HuntVectorEnv(VectorEnv[Observation, np.ndarray, np.ndarray]):
    """Many games in one batch, next-step autoreset; each is like `HuntJointEnv`.

    Starts come from one generator, and obstacles from a set of maps that is drawn once.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        game: GameConfig | str = "msh_4x4",
        device: str = "cpu",
        maps: int = DEFAULT_MAPS,
        render_mode: str | None = None,
    ) -> None:
        _no_pictures(render_mode)
        if num_envs < 1:
            raise UserError(f"num_envs is {num_envs}, expected 1 or more.")
        self.config = game_config(game) if isinstance(game, str) else game
        self.num_envs, self.render_mode, self._maps = num_envs, None, maps
        self.device = torch.device(device)
        self.generator = torch.Generator(device=self.device)
        self.generator.seed()
        self.game = make_game(self.config, torch.Generator().manual_seed(0), maps=maps, device=self.device)
        self.single_observation_space, self.single_action_space = joint_spaces(self.config)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.state: State | None = None
        self._over = torch.zeros(num_envs, dtype=torch.bool, device=self.device)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A seed fixes every start from here on, and the obstacle maps; of a list of seeds the first counts."""
        if seed is not None:
            first = seed[0] if isinstance(seed, list) else seed
            self.generator.manual_seed(first)
            if self.config.max_block_comp:
                drawn = torch.Generator().manual_seed(first)
                self.game = make_game(self.config, drawn, maps=self._maps, device=self.device)
        self.state = self.game.reset(self.num_envs, self.generator)
        self._over = torch.zeros_like(self._over)
        return self._seen(self.state), {}

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step; a game that ended with the last one begins anew instead, and its actions are ignored."""
        if self.state is None:
            raise UserError("There is no game yet; call reset() first.")
        given = checked(actions, (self.num_envs, self.config.players), self.config.actions)
        after, outcome = self.game.step(self.state, torch.as_tensor(given, device=self.device).long())
        new = self._over
        reward = outcome.reward.masked_fill(new.unsqueeze(1), 0.0)
        if bool(new.any()):
            fresh = new.nonzero().squeeze(1)
            after = after.renewed(fresh, self.game.reset(len(fresh), self.generator))
        self._over = outcome.over & ~new
        self.state = after
        everywhere = np.ones(self.num_envs, bool)
        done = (outcome.done & ~new.unsqueeze(1)).cpu().numpy()
        info = {"rewards": reward.cpu().numpy(), "_rewards": everywhere, "done": done, "_done": everywhere}
        ended = self._over.cpu().numpy().copy()
        gain = reward.mean(1).double().cpu().numpy()
        return self._seen(after), gain, ended, np.zeros_like(ended), info

    def _seen(self, state: State) -> Observation:
        view = View(self.game, state)
        fields = {"observation": view.grid, "action_mask": view.mask, "actions": view.actions, "alive": view.alive}
        rows = {name: value.to(torch.int8).cpu().numpy() for name, value in fields.items()}
        return {**rows, "t": state.t.to(torch.int32).unsqueeze(1).cpu().numpy()}


def _no_pictures(render_mode: str | None) -> None:
    if render_mode is not None:
        raise UserError(f"render_mode is {render_mode!r}, expected None; `parallel_env` of marlab.hunt draws pictures.")


if NAME not in registry:
    register(
        NAME,
        entry_point="marlab.hunt.players.gym:HuntJointEnv",
        vector_entry_point="marlab.hunt.players.gym:HuntVectorEnv",
    )
