"""Moving situations between the reference and the batched game, and building them by hand."""

from __future__ import annotations

import torch

from marlab.hunt.game.build import make_game, restore
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.rules import Game, State
from marlab.hunt.game.views import View
from tests.hunt.reference import Situation

SMALL_MAPS = 32


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_game(config: GameConfig, seed: int = 0) -> Game:
    return make_game(config, seeded(seed), maps=SMALL_MAPS)


def situations(game: Game, state: State) -> list[Situation]:
    """The batched state as reference situations."""
    c, found = game.config, []
    for b in range(state.batch):
        blocks = game.maps.blocks[state.map[b]].nonzero().flatten().tolist()
        prey = list(zip(state.prey_cell[b].tolist(), state.prey_alive[b].tolist(), game.prey_kind.tolist()))
        where = [divmod(p, c.width) if a else None for p, a in zip(state.cell[b].tolist(), state.alive[b].tolist())]
        first = int(state.first_hunt[b])
        found.append(
            Situation(
                obstacles={divmod(p, c.width) for p in blocks},
                stags={divmod(p, c.width) for p, there, kind in prey if there and kind == 0},
                hares={divmod(p, c.width) for p, there, kind in prey if there and kind == 1},
                where=where,
                t=int(state.t[b]),
                first_hunt=None if first < 0 else first,
                last=state.last_action[b].tolist(),
            )
        )
    return found


def board(config: GameConfig, s: Situation) -> torch.Tensor:
    """[H, W, channels] planes in seat order, for `restore`."""
    n = config.players
    planes = torch.zeros(config.height, config.width, config.channels, dtype=torch.uint8)
    for i, cell in enumerate(s.where):
        if cell is not None:
            planes[cell[0], cell[1], i] = 1
    for channel, cells in ((n, s.obstacles), (n + 1, s.stags), (n + 2, s.hares)):
        for r, k in cells:
            planes[r, k, channel] = 1
    return planes


def placed(config: GameConfig, *, players, stags=(), hares=(), obstacles=(), t: int = 0) -> tuple[Game, State]:
    """One game with everything put by hand; a player given as None has left."""
    s = Situation(set(obstacles), set(stags), set(hares), list(players), t)
    return restore(config, board(config, s)[None], torch.tensor([t]))


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
