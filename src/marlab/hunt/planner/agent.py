"""A planning agent behind the `Policy` interface: plays any seats, keeps beliefs, explains its last decision.

    agent = load_hop(Path("runs/hunt/my_run")).agent(game)     # or .agent(game, seed=3, seats=[0], simulations=200)
    memory = agent.begin(batch, generator)                      # strangers
    actions, memory = agent.act(view, memory, generator)
    memory = agent.observe(view, outcome, memory)               # beliefs move
    memory = agent.reset(memory, over, generator)               # new episode, same players: what they did is kept
    memory = agent.new_team(memory, games)                      # new players: everything about the old ones is gone
    agent.explain()                                             # beliefs, predicted moves, visits, values, plan

It adapts by belief alone: no weight changes while it plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import Game, Outcome
from marlab.hunt.game.views import View
from marlab.hunt.others.codes import Goals
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.planner.config import Engine, MindConfig, PlanConfig
from marlab.hunt.planner.mind import PlannerModels, models_state
from marlab.hunt.planner.plans import JointPlan
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.ppo.network import check_same_size
from marlab.hunt.world_model.model import DenseModel, StructuredModel, WorldModel, make_model
from marlab.lab.config import from_dict, to_dict
from marlab.lab.errors import UserError
from marlab.lab.ppo.choices import sample
from marlab.lab.runs.checkpoint import CheckpointStore, building, check_sizes, load_checkpoint, save_checkpoint

KIND = "hunt/hop"
PATTERN = "model_iter_{step}.pt"
FILE = "agents.pt"
"""Finished agents alone, without what their training would need to go on."""
SHIPPED = Path(__file__).parents[1] / "shipped"
FOLLOWERS = 0.5
"""How probable evaluated agents think it that a stranger who takes hares comes once somebody stands on the stag."""
LOYALTY = 1.0
"""What it costs evaluated agents, in rewards, to take a hare while a single other player is after the stag."""
FEW_SHOT_DISCOUNT = 0.9
"""Beliefs of evaluated agents forget an episode with this factor: half of it is left after 6.6 more."""


class Explanation(NamedTuple):
    """Why the last actions were chosen. Observer i sees in slot k the player who sits k + 1 places after it."""

    decided: Tensor  # [B, n] bool: seats that planned
    belief: Tensor  # [B, n, n - 1, K] over goals
    stag: Tensor  # [B, n, n - 1] the part of the belief that is about the stag
    follows: Tensor  # [B, n, n - 1] the part that says it comes once somebody else stands on the stag
    expected: Tensor  # [B, n, n - 1, A] predicted next moves of the others
    plan: JointPlan  # policy, prior, q, visits, value, guess: [B, n, ...], values in reward units
    line: Tensor  # [B, n, D] most visited line of play of the first tree, -1 after its end
    actions: Tensor  # [B, n] what was chosen


class HopAgent(Policy):
    """A mind at play. With the minds of S seeds, games come in S blocks of one size, a block for each seed."""

    def __init__(
        self, game: Game, mind: PlannerModels, *, seats: Sequence[int] | None = None, greedy: bool = True,
        plan: PlanConfig | None = None, belief: BeliefConfig | None = None,
        followers: float = 0.0, fates: bool = True, loyalty: float = 0.0,
    ) -> None:  # fmt: skip
        """seats: where it plays, everywhere by default; others are given STAY. greedy: the best action of the plan.

        followers: how probable it is of a stranger who takes hares that it comes once somebody stands on a stag. fates:
        its networks are told of hunters for whom nobody came as such.
        """
        chosen = range(game.players) if seats is None else seats
        if not all(0 <= seat < game.players for seat in chosen):
            raise ValueError(f"the seats {list(chosen)} do not fit {game.players} players")
        self.game, self.mind, self.greedy = game, mind, greedy
        plain = followers == 0 and fates and loyalty == 0  # as it was trained
        self.hypotheses = None if plain else mind.hypotheses(followers, fates)
        self.planner = mind.planner(game, plan, hypotheses=self.hypotheses, loyalty=loyalty)
        wanted, on_cpu = self.planner.config.engine, game.device.type == "cpu"
        fits: Engine = "native" if on_cpu else "graph"
        self.planner.engine = fits if wanted in ("auto", fits) else "tensors"
        self.tracker = mind.tracker(game, belief, self.hypotheses)
        self._mine = torch.zeros(game.players, dtype=torch.bool, device=game.device)
        self._mine[list(chosen)] = True
        self._last: tuple[View, Tensor, Tensor | None, JointPlan, Tensor, Tensor] | None = None

    # --- the policy interface -------------------------------------------------------------------------------------

    def begin(self, batch: int, generator: torch.Generator) -> Memory:
        if batch % len(self.mind.seeds):
            raise ValueError(f"{batch} games are not {len(self.mind.seeds)} blocks of one size")
        return self.tracker.begin(batch)

    def reset(self, memory: Memory, games: Tensor, generator: torch.Generator) -> Memory:
        """A new episode with the same players in the marked games [B]."""
        return self.tracker.reset(memory, games)

    def new_team(self, memory: Memory, games: Tensor) -> Memory:
        """A new episode with players never met before in the marked games [B]."""
        return self.tracker.begin_opponents(memory, games, new_team=True)

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        want = view.state.alive & self._mine & ~self.game.over(view.state).unsqueeze(1)
        meant = self.mind.meant(view, memory)
        plan = self.planner.plan(view.state, memory["belief"], want, generator, meant=meant)
        if self.greedy:
            actions = plan.policy.argmax(-1)
        else:
            actions = sample(plan.policy.clamp_min(1e-30).log(), (self.game.actions,), generator)
        self._last = (view, memory["belief"], meant, plan, want, actions)
        return actions, memory

    def observe(self, view: View, outcome: Outcome, memory: Memory) -> Memory:
        return self.tracker.observe(view, outcome, memory)

    # --- understanding it -----------------------------------------------------------------------------------------

    def explain(self) -> Explanation:
        """About the last call of `act`."""
        if self._last is None:
            raise ValueError("there is no decision to explain yet")
        view, belief, meant, plan, want, actions = self._last
        known = self.hypotheses
        stag = (belief * (self.mind.goals if known is None else known).stag.to(belief)).sum(-1)
        follows = torch.zeros_like(stag) if known is None else belief[..., known.follows].sum(-1)
        expected = self.mind.predict(view, belief, meant, known)
        return Explanation(want, belief, stag, follows, expected, plan, plan.line, actions)


# --- trained agents on disk ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HopAgents:
    """The minds of a run, with what is needed to seat them."""

    game: GameConfig  # the game they were trained in
    config: MindConfig
    seeds: tuple[int, ...]
    mind: PlannerModels = field(repr=False)

    def save(
        self, path: str | Path, seeds: Sequence[int] | None = None, *, half: bool = False, trees: int | None = None
    ) -> None:
        """The agents of some seeds (all by default) as a file that `hunt.load` reads.

        half: in numbers of 16 bits. trees: how many they play with from here on; training can often do with fewer.
        """
        mind = self.mind if seeds is None else self.mind.some(seeds)
        config = self.config if trees is None else replace(self.config, plan=self.config.with_trees(trees))
        state = agents_state(self.game, config, mind)
        if half:
            state["weights"] = {k: w.half() if w.is_floating_point() else w for k, w in state["weights"].items()}
        save_checkpoint(Path(path), KIND, 0, {"agents": state})

    def agent(
        self, game: Game, seed: int | Sequence[int] | None = None, *, seats: Sequence[int] | None = None,
        greedy: bool = True, engine: Engine | None = None, simulations: int | None = None, trees: int | None = None,
        discount: float = FEW_SHOT_DISCOUNT, followers: float = FOLLOWERS,
        fates: bool = False, loyalty: float = LOYALTY, lasting: float | None = None,
    ) -> HopAgent:  # fmt: skip
        """A seed's agent (the first by default) for a game of the same size, on the game's device; or those of several
        seeds, for blocks of games.

        simulations, trees, engine: as trained unless given. discount: how much of an episode the beliefs keep from one
        to the next. followers, fates: what is believed of others, and what networks are told (see `CoPlayerTypes`).
        lasting: how probable it is of a stranger that it keeps what it is after, as trained unless given.
        """
        check_same_size(self.game, game.config, "These agents were trained in")
        chosen = self.seeds[:1] if seed is None else (seed,) if isinstance(seed, int) else tuple(seed)
        mind = self.mind.some(chosen).to(game.device)
        if mind.world[0] is not None:
            mind.world[0].to(game.device)
        plan = self.config.plan if trees is None else self.config.with_trees(trees)
        if simulations is not None:
            plan = replace(plan, search=replace(plan.search, simulations=simulations))
        if engine is not None:
            plan = replace(plan, engine=engine)
        belief = replace(self.config.beliefs, discount=discount)
        if lasting is not None:
            belief = replace(belief, lasting=lasting)
        return HopAgent(
            game, mind, seats=seats, greedy=greedy, plan=plan, belief=belief, followers=followers, fates=fates,
            loyalty=loyalty,
        )  # fmt: skip

    policy = agent  # what PPO agents call it


def load_hop(path: Path) -> HopAgents:
    """The agents of a run directory of `hunt train` (the newest while it trains), or those of one file."""
    if (path / FILE).exists():
        path = path / FILE
    if path.is_dir():
        checkpoint, problems = CheckpointStore(path / "checkpoints", KIND, PATTERN).load_latest()
        if checkpoint is None:
            raise UserError(problems[0] if problems else f"There are no trained planning agents in {path}.")
    else:
        checkpoint = load_checkpoint(path, KIND)
    with building(checkpoint.path, "planning agents"):
        return agents_of(checkpoint.state["agents"], f"the checkpoint {checkpoint.path}")


def agents_state(game: GameConfig, config: MindConfig, mind: PlannerModels) -> dict[str, Any]:
    """What `agents_of` reads: a mind with its game, for a checkpoint."""
    return {
        "game": to_dict(game),
        "config": to_dict(config),
        "seeds": list(mind.seeds),
        **models_state(mind),
        "world": _world_state(mind.world[0]),
    }


def _world_state(world: WorldModel | None) -> dict[str, Any] | None:
    if world is None:
        return None
    width = world.first.out_channels if isinstance(world, StructuredModel) else 0
    assert isinstance(world, StructuredModel | DenseModel)
    return {"model": world.kind, "width": width, "weights": world.state_dict()}


def agents_of(stored: dict[str, Any], where: str) -> HopAgents:
    """Agents from what a checkpoint tells about them."""
    game = from_dict(GameConfig, stored["game"], where)
    config = from_dict(MindConfig, stored["config"], where)
    seeds = tuple(stored["seeds"])
    if not seeds or not all(type(seed) is int for seed in seeds):
        raise UserError(f"{where} names no seeds of its agents.")
    check_sizes(Path(where), stored["weights"], (config.hidden, len(seeds)))
    world = _world_of(stored["world"], game)
    goals = Goals(*(stored[name].cpu().float() for name in ("candidates", "evidence", "common", "spread")))
    mind = PlannerModels(game, config, goals, seeds, world, history=stored["history"])
    mind.load_state_dict(stored["weights"])
    mind.eval().requires_grad_(False)
    return HopAgents(game, config, seeds, mind)


def _world_of(stored: dict[str, Any] | None, game: GameConfig) -> WorldModel | None:
    if stored is None:
        return None
    model = make_model(stored["model"], game, width=stored["width"])
    model.load_state_dict(stored["weights"])
    return model.eval().requires_grad_(False)
