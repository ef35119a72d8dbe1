"""One learner among fixed players for stable-baselines3: many games in one batch behind its `VecEnv`.

    from stable_baselines3 import PPO
    from marlab.hunt.players.sb3 import HuntVecEnv

    PPO("MlpPolicy", HuntVecEnv(256, "msh_4x4", others="NS,NH,NH")).learn(500_000)

The learner sits in seat 1 and sees what `flat_observation` shows, its legal actions first; the others follow rules. An
episode is the learner's own: it ends with its capture, and then the game begins anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import DEFAULT_MAPS, GameConfig, game_config
from marlab.hunt.game.views import View, flat_fields
from marlab.hunt.players.gym import checked
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles
from marlab.lab.sb3 import BatchEnv


class HuntVecEnv(BatchEnv):
    """Games that begin anew at once, as stable-baselines3 expects."""

    def __init__(
        self,
        num_envs: int = 1,
        game: GameConfig | str = "msh_4x4",
        others: str = "NS,NH,NH",
        device: str = "cpu",
        seed: int = 0,
        maps: int = DEFAULT_MAPS,
    ) -> None:
        """others: the rules of the other seats, such as NS,NH,MIX(0.5)."""
        config = game_config(game) if isinstance(game, str) else game
        self.game = make_game(config, torch.Generator().manual_seed(seed), maps=maps, device=device)
        self.generator = torch.Generator(device=self.game.device).manual_seed(seed)
        self.others = RulePlayers(self.game, parse_roles(f"RAND,{others}"))  # nobody asks the first
        size = flat_fields(self.game).size
        highest = max(7, config.final_time)
        super().__init__(num_envs, spaces.Box(0, highest, (size,), np.float32), spaces.Discrete(config.actions))
        self._me = torch.zeros(1, dtype=torch.int64, device=self.game.device)
        self._actions = torch.zeros(num_envs, dtype=torch.int64, device=self.game.device)
        self._begin()

    def _begin(self) -> None:
        self.state = self.game.reset(self.num_envs, self.generator)
        self.memory = self.others.begin(self.num_envs, self.generator)
        self._earned = np.zeros(self.num_envs)

    def reset(self) -> VecEnvObs:
        """Begin all episodes; a seed given before fixes every start from here on."""
        if self._seeds[0] is not None:
            self.generator.manual_seed(self._seeds[0])
        self._reset_seeds()
        self._begin()
        return self._rows()

    def step_async(self, actions: np.ndarray) -> None:
        given = checked(actions, (self.num_envs,), self.game.actions)
        self._actions = torch.as_tensor(given, device=self.game.device).long()

    def step_wait(self) -> VecEnvStepReturn:
        view = View(self.game, self.state)
        joint, memory = self.others.act(view, self.memory, self.generator)
        joint = torch.cat([self._actions.unsqueeze(1), joint[:, 1:]], 1)
        self.state, outcome = self.game.step(self.state, joint)
        self.memory = self.others.observe(view, outcome, memory)
        reward, over = outcome.reward[:, 0].cpu().numpy(), outcome.done[:, 0]
        self._earned += reward
        ended, infos = over.cpu().numpy().copy(), [dict[str, Any]() for _ in range(self.num_envs)]
        if ended.any():
            last, steps = self._rows(), self.state.t.tolist()
            for place in np.flatnonzero(ended):
                told = {"r": float(self._earned[place]), "l": steps[place]}  # what its monitors call return and length
                infos[place] = {"terminal_observation": last[place], "TimeLimit.truncated": False, "episode": told}
            self._earned[ended] = 0.0
            fresh = over.nonzero().squeeze(1)
            self.state = self.state.renewed(fresh, self.game.reset(len(fresh), self.generator))
            self.memory = self.others.reset(self.memory, over, self.generator)
        return self._rows(), reward, ended, infos

    def _rows(self) -> np.ndarray:
        return View(self.game, self.state).flat(self._me).squeeze(1).cpu().numpy()
