"""PPO learns from offline data before the first game."""

from __future__ import annotations

import torch

from marlab.hunt.data.collect import in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.game.build import make_game, restore
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rows import ways
from marlab.hunt.game.views import View
from marlab.hunt.ppo.config import NetworkConfig
from marlab.hunt.ppo.network import PlayerNet
from marlab.hunt.ppo.warm import lessons, warm_start
from tests.hunt.helpers import seeded


def test_lessons_are_what_the_networks_see_in_the_game() -> None:
    data = in_memory(HuntCollectConfig(rows=600))
    taught = lessons(data, 0.9, True, torch.device("cpu"))
    rows = data.part("train").rows
    game, state = restore(data.game, rows.obs, rows.t)
    me = torch.zeros(1, dtype=torch.int64)
    state = state._replace(last_action=torch.where(state.alive, rows.actions_prev, 4))
    seen = torch.cat([View(game, state).flat(me), ways(game, state, me)], 2).squeeze(1)
    assert torch.allclose(seen, taught.obs)
    assert torch.equal(taught.won, rows.outcome > 0)
    last = rows.done_i & (rows.r > 0)
    assert torch.allclose(taught.value[last], rows.r[last] * 0.2)


def test_a_network_learns_what_winners_do() -> None:
    game = make_game(game_config("msh_4x4"))
    taught = lessons(in_memory(HuntCollectConfig(rows=3000)), 0.99, True, torch.device("cpu"))
    net = PlayerNet(game, NetworkConfig(hidden=(64,), paths=True), seeded(0))
    before = net.value(taught.obs)
    assert warm_start(net, taught, 60, seeded(1)) < 1.35  # 1.5 by chance among the legal ones
    assert (net.value(taught.obs) - taught.value).square().mean() < (before - taught.value).square().mean()
