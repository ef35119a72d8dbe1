"""Moving situations between the scalar rules and the batched game, and building them by hand."""

from __future__ import annotations

import torch

from marlab.hunt.game.build import make_game, restore
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.rules import Game, State
from marlab.hunt.game.scalar import PlainState, Rules
from marlab.hunt.game.views import View

SMALL_MAPS = 32


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_game(config: GameConfig, seed: int = 0) -> Game:
    return make_game(config, seeded(seed), maps=SMALL_MAPS)


def situations(game: Game, state: State) -> list[PlainState]:
    """The batched state as situations of the scalar rules."""
    found = []
    for b in range(state.batch):
        blocks = sum(1 << cell for cell in game.maps.blocks[state.map[b]].nonzero().flatten().tolist())
        found.append(
            PlainState(
                blocks, state.cell[b].tolist(), state.alive[b].tolist(), state.prey_cell[b].tolist(),
                state.prey_alive[b].tolist(), int(state.t[b]), int(state.first_hunt[b]), state.last_action[b].tolist(),
            )
        )  # fmt: skip
    return found


def board(config: GameConfig, s: PlainState) -> torch.Tensor:
    """[H, W, channels] planes in seat order, for `restore`."""
    n, rules = config.players, Rules(config)
    planes = torch.zeros(config.height * config.width, config.channels, dtype=torch.uint8)
    for i, (cell, there) in enumerate(zip(s.cell, s.alive)):
        planes[cell, i] = there
    for cell in range(config.cells):
        planes[cell, n] = s.blocks >> cell & 1
    for cell, left, kind in zip(s.prey_cell, s.prey_alive, rules.kinds):
        planes[cell, n + 1 + kind] |= left
    return planes.view(config.height, config.width, -1)


def placed(config: GameConfig, *, players, stags=(), hares=(), obstacles=(), t: int = 0) -> tuple[Game, State]:
    """One game with everything put by hand; a player given as None has left."""
    planes = torch.zeros(config.height, config.width, config.channels, dtype=torch.uint8)
    n = config.players
    for channel, cells in (
        *((i, [cell]) for i, cell in enumerate(players) if cell is not None),
        (n, obstacles),
        (n + 1, stags),
        (n + 2, hares),
    ):
        for row, column in cells:
            planes[row, column, channel] = 1
    return restore(config, planes[None], torch.tensor([t]))


def act(*actions: int) -> torch.Tensor:
    return torch.tensor([actions])


def random_states(name: str, count: int, seed: int = 0) -> tuple:
    """A game and states met by random play, of mixed times."""
    game = small_game(game_config(name), seed)
    generator = seeded(seed + 1)
    state, kept = game.reset(count // 10, generator), []
    for _ in range(10):
        kept.append(state)
        actions = torch.randint(0, game.actions, state.cell.shape, generator=generator)
        hunt = View(game, state).mask[..., 5:].any(2) & (torch.rand(state.cell.shape, generator=generator) < 0.3)
        actions = torch.where(hunt, 5 + View(game, state).mask[..., 5:].int().argmax(2), actions)
        state = game.step(state, actions)[0]
    return game, State(*(torch.cat(fields) for fields in zip(*kept)))
