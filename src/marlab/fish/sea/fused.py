"""The whole step of a `FishWorld` as two Triton kernels, for CUDA devices; the functions beside it are the reference.

`advance_arena` moves fish and predators, eats, resets, and decides who ended; `perceive_arena` writes observations,
rewards and statistics. One program per arena: what belongs to an arena is a scalar, what belongs to its fish one
vector, and neighbours are read one after the other, so no pair is ever written to memory. Two kernels, because fish
look at where all others have arrived.

Sums are rounded where the eager functions round them (no fused multiply-add, exact division and roots), so that fish
move, meet their neighbours and die alike to the bit under a ballistic predator. What remains is the order of sums over
neighbours, and the turn of a hunter, which is limited here without the angle itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import triton
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea import rewards
from marlab.fish.sea.kernel_motion import AIMS, advance_arena
from marlab.fish.sea.kernel_senses import perceive_arena
from marlab.fish.sea.stats import ENDS
from marlab.lab.errors import UserError

if TYPE_CHECKING:
    from marlab.fish.sea.config import SeaConfig
    from marlab.fish.sea.world import FishWorld, Transition

MODES = {**{aim: number for number, aim in enumerate(AIMS)}, "pack": AIMS.index("intercept")}
MOST_AVERAGED = 8
"""The nearest neighbours that one fish's program can keep apart."""
UNROLL = 8
"""Neighbours that one turn of a program's loops looks at."""
WIDEST_PROGRAM = 8
"""Warps of a program with many fish; one holds 32."""


def misfit(cfg: SeaConfig, fixed_predators: bool = True) -> str | None:
    """Why a sea cannot be played in these kernels, in a sentence; None where it can."""
    if not fixed_predators or cfg.predator_mode not in MODES:
        return "The fused step knows scripted predators only; use compile for a predator that learned."
    if cfg.include_neighbor_features and cfg.neighbor_view != "summary":
        return f"The fused step does not know neighbor_view={cfg.neighbor_view}; use summary, or compile."
    if cfg.neighbor_average_count > MOST_AVERAGED:
        return (
            f"neighbor_average_count is {cfg.neighbor_average_count}; the fused step averages over at most "
            f"{MOST_AVERAGED} neighbours."
        )
    return None


class FusedStep:
    """The step of one world, written into that world's own memory."""

    def __init__(self, world: FishWorld, fixed_predators: bool) -> None:
        cfg = world.cfg
        if (reason := misfit(cfg, fixed_predators)) is not None:
            raise UserError(reason)
        assert len(ENDS) == 15, "the kernel writes the ends row by row"
        self.world = world
        width = max(16, triton.next_power_of_2(world.fish))
        pull = sea.PREDATOR_PULL * cfg.predator_speed_factor**2 * sea.DT
        turn = min(cfg.predator_turn_rate * sea.DT, math.pi)
        self.place, self.pace = torch.empty_like(world.state.x), torch.empty_like(world.state.x)
        self.size = {"FISH": world.fish, "WIDTH": width, "PREDATORS": cfg.predator_count}
        self.moves: dict[str, Any] = {
            "MODE": MODES[cfg.predator_mode], "MEMORY": cfg.predator_memory, "PULL": pull,
            "TOP": cfg.predator_speed * cfg.predator_speed_factor,
            "TURN": turn, "COS_TURN": math.cos(turn), "SIN_TURN": math.sin(turn), "VISION_SQ": cfg.predator_vision**2,
            "CONFUSION": cfg.predator_confusion, "TERMINATES": cfg.episode_end == "terminated",
        }  # fmt: skip
        self.sees: dict[str, Any] = {
            "INPUTS": cfg.observation_size, "SUMMARY": cfg.include_neighbor_features, "VISION": cfg.vision_radius,
            "OUTSIDE": rewards.OUTSIDE_VISION[cfg.vision_reward or "continuous"], "RADIUS": cfg.neighbor_radius,
            "NEAREST": cfg.neighbor_average_count, "DIVERGENCE": cfg.divergence_reward_coef / sea.FISH_MAX_SPEED,
        }  # fmt: skip
        self.unroll = UNROLL
        self.launch: dict[str, Any] = {"num_warps": min(WIDEST_PROGRAM, max(1, width // 32)), "enable_fp_fusion": False}

    def __call__(self, actions: Tensor) -> Transition:
        from marlab.fish.sea.world import Transition  # it stands below this module

        world, state, bank, stats = self.world, self.world.state, self.world.bank, self.world.stats
        order = world.waiting.cumsum(0)
        gain = torch.empty_like(state.x)
        terminated, truncated = torch.empty_like(state.alive), torch.empty_like(state.alive)
        grid = (world.arenas,)
        advance_arena[grid](
            *state, *bank, world.queue.active, world.queue.stage, world.queue.velocity, world.queue.position,
            actions, world.waiting, order, world.starts_used, world.fish_count, world.resets_since_feed, world.stage,
            world.step_limit, terminated, truncated, self.place, self.pace, stats.resets, stats.step_one,
            stats.step_one_bins, stats.stage_deaths, stats.stage_fish,
            world.arenas, world.bank_size, len(world.queue.active), *state.x.stride(), *bank.x.stride(),
            *actions.stride(), **self.size, **self.moves, **self.launch,
        )  # fmt: skip
        world.starts_used += order[-1]
        perceive_arena[grid](
            *state[:-1], self.place, self.pace, world.waiting, world.observe(), gain, world.crowd.coef,
            world.crowd.target, stats.rewards, stats.returns, stats.ends, stats.first_death_steps,
            world.arenas, *state.x.stride(), **self.size, **self.sees, SOCIAL=world.uses_neighbours,
            UNROLL=min(self.unroll, world.fish), **self.launch,
        )  # fmt: skip
        return Transition(gain, terminated, truncated)
