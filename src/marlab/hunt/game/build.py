"""From a config to its game: which rules play it, and on which obstacle maps."""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.hunt.game.config import DEFAULT_MAPS, GameConfig
from marlab.hunt.game.maps import draw_maps, make_maps
from marlab.hunt.game.rules import STAY, Game, Outcome, Snowdrift, StagHunt, State
from marlab.hunt.game.scalar import PlainState, Step
from marlab.lab.errors import UserError

RULES: dict[str, type[Game]] = {"hunt": StagHunt, "snowdrift": Snowdrift}


def make_game(
    config: GameConfig,
    generator: torch.Generator | None = None,
    *,
    maps: int = DEFAULT_MAPS,
    device: torch.device | str = "cpu",
) -> Game:
    """The game of a config. `generator` (on the CPU) draws its obstacle maps; a game without obstacles needs none."""
    if generator is None:
        if config.max_block_comp:
            raise ValueError("a game with obstacles needs a generator to draw its maps")
        generator = torch.Generator()
    return RULES[config.rules](config, draw_maps(config, maps, generator), device)


def game_with_blocks(config: GameConfig, blocks: Tensor, device: torch.device | str = "cpu") -> Game:
    """The game of a config on given obstacle maps [M, C] (bool)."""
    return RULES[config.rules](config, make_maps(config, blocks.cpu()), device)


def restore(
    config: GameConfig, grid: Tensor, t: Tensor, first_hunt: Tensor | None = None, device: torch.device | str = "cpu"
) -> tuple[Game, State]:
    """Games in the situation that global planes `grid` [B, H, W, channels] show (players in seat order) at time t [B].

    Captured prey leaves no trace in planes: the list holds it as captured, on a cell without meaning.
    """
    n = config.players
    if tuple(grid.shape[1:]) != (config.height, config.width, config.channels):
        raise UserError(
            f"The planes have the shape {tuple(grid.shape[1:])}, "
            f"this game's are {(config.height, config.width, config.channels)}."
        )
    grid = grid.cpu()
    blocks, which = torch.unique(grid[..., n].flatten(1).bool(), dim=0, return_inverse=True)
    state = state_of_planes(config, grid, t.cpu().long(), which)
    if first_hunt is not None:
        state = state._replace(first_hunt=first_hunt.cpu().long())
    return game_with_blocks(config, blocks, device), state.to(device)


def state_of_planes(config: GameConfig, grid: Tensor, t: Tensor, which: Tensor) -> State:
    """The state that planes `grid` [B, H, W, channels] show at time t [B] on maps `which` [B]; nobody hunted yet."""
    n = config.players
    planes = grid.bool().flatten(1, 2).transpose(1, 2)  # [B, channels, C]
    cells, present = zip(*(_listed(planes[:, n + 1 + k], amount) for k, amount in enumerate(config.prey_kinds)))
    cell = planes[:, :n].int().argmax(2)
    return State(
        map=which,
        cell=cell,
        alive=planes[:, :n].any(2),
        prey_cell=torch.cat(cells, 1),
        prey_alive=torch.cat(present, 1),
        t=t,
        first_hunt=torch.full_like(t, -1),
        last_action=torch.full_like(cell, STAY),
    )


def batched(config: GameConfig, situation: PlainState) -> tuple[Game, State]:
    """A situation of the scalar rules as a batch of one."""
    s = situation
    blocks = torch.tensor([[bool(s.blocks >> cell & 1) for cell in range(config.cells)]])
    state = State(
        map=torch.zeros(1, dtype=torch.int64),
        cell=torch.tensor([s.cell]),
        alive=torch.tensor([s.alive]),
        prey_cell=torch.tensor([s.prey_cell]),
        prey_alive=torch.tensor([s.prey_alive]),
        t=torch.tensor([s.t]),
        first_hunt=torch.tensor([s.first_hunt]),
        last_action=torch.tensor([s.last_action]),
    )
    return game_with_blocks(config, blocks), state


def batched_outcome(step: Step) -> Outcome:
    """What a step of the scalar rules did as a batch of one."""
    given = (step.reward, step.done, step.over, step.after.last_action, step.hunters, step.captured)
    return Outcome(*(torch.tensor([x]) for x in given))


def _listed(plane: Tensor, amount: int) -> tuple[Tensor, Tensor]:
    """The set cells of planes [B, C] as a list of `amount` cells [B, amount] and which entries of it are real."""
    order = plane.int().sort(dim=1, descending=True, stable=True)
    return order.indices[:, :amount], order.values[:, :amount].bool()
