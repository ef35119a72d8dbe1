"""An exhibit about acting: players with exact values who choose by softmax(beta * Q) without scaling.

Letters: B games, n players, A actions, m prey.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.maps import UNREACHABLE
from marlab.hunt.game.rules import STAY, Game, State
from marlab.hunt.game.views import View
from marlab.hunt.museum.run import Exhibit, Finding, Museum
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.players.rollout import moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.ppo.choices import apply_mask, sample
from marlab.lab.report.figures import Curve, curves, reference_lines
from marlab.lab.report.style import INK, legend, panels, save
from marlab.lab.runs.rng import Rngs

GAMMA = 0.95
BETAS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
Hopes = Literal["hare", "stag"]
ENTROPIES = (1.447, 1.448, 1.452, 1.447, 1.412, 1.247, 0.624)
"""Behaviour entropy for the values of hares alone at `BETAS`, in nats: what a right simulation gives."""
ENTROPY_TOLERANCE = 0.03
LEGACY_BETA = 2.0


class ValuePlayers(Policy):
    """Players who know the value of every action exactly, and draw from softmax(beta * Q) over the legal ones.

    hopes: with "hare" a situation is worth what its nearest hare is; with "stag" also what the stag would be, if
    somebody came. scaled: Q is first stretched to 0 ... 1 over the legal actions of each decision.
    """

    def __init__(self, game: Game, beta: float, hopes: Hopes, *, scaled: bool = False) -> None:
        self.game, self.beta, self.hopes, self.scaled = game, beta, hopes, scaled
        self._rules = RulePlayers(game, [Kind.NS] * game.players)

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        return sample(self._logits(view), (self.game.actions,), generator), memory

    def probabilities(self, view: View, memory: Memory) -> Tensor:
        return self._logits(view).softmax(-1) * view.state.alive.unsqueeze(-1)

    def values(self, view: View) -> Tensor:
        """[B, n, A] exact values; those of illegal actions mean nothing."""
        moves = [GAMMA * self._worth(self._after(view.state, a)) for a in range(STAY + 1)]
        together = self._rules.company(view) & self._rules.on_stag(view)
        stays = moves[STAY]
        stag = torch.where(together, self.game.config.stag_reward / 2, stays) if self.hopes == "stag" else stays
        return torch.stack([*moves, stag, torch.full_like(stays, self.game.config.hare_reward)], 2)

    def _after(self, state: State, action: int) -> State:
        """Everybody moved by one action, as far as walls let them."""
        return state._replace(cell=self.game.maps.move[state.map.unsqueeze(1), state.cell, action].long())

    def _worth(self, state: State) -> Tensor:
        """[B, n] value of standing where the players stand."""
        distance = torch.where(state.prey_alive.unsqueeze(1), self.game.paths(state) >> 4, UNREACHABLE)  # [B, n, m]
        stags = self.game.prey_kind == 0
        hare = _discounted(distance[..., ~stags]) * self.game.config.hare_reward
        if self.hopes == "hare":
            return hare
        return torch.maximum(hare, _discounted(distance[..., stags]) * self.game.config.stag_reward / 2)

    def _logits(self, view: View) -> Tensor:
        q = self.values(view)
        if self.scaled:
            low = q.masked_fill(~view.mask, torch.inf).amin(-1, keepdim=True)
            high = q.masked_fill(~view.mask, -torch.inf).amax(-1, keepdim=True)
            wide = high - low
            q = torch.where(wide > 1e-9, (q - low) / wide.clamp_min(1e-9), torch.zeros_like(q))
        return apply_mask(self.beta * q, view.mask)


def _discounted(distance: Tensor) -> Tensor:
    """[B, n] value 1 of the nearest prey, discounted by the steps to it; 0 without prey."""
    nearest = distance.amin(-1)
    return torch.where(nearest < UNREACHABLE, GAMMA ** nearest.float(), 0.0)


class Behaviour(NamedTuple):
    """How a population acts, over all decisions of living players."""

    reward: float  # mean per player
    entropy: float  # nats
    top1: float  # share of actions that the best possible predictor gets right
    spread: float  # largest minus smallest value of the legal actions


def behaviour(game: Game, players: ValuePlayers, games: int, generator: torch.Generator) -> Behaviour:
    """Play `games` episodes with the players in all seats."""
    total = torch.zeros(5, dtype=torch.float64)
    for moment in moments(game, players, game.reset(games, generator), {}, generator):
        view, acts = moment.view, moment.view.state.alive & moment.running.unsqueeze(1)  # [B, n]
        chance = players.probabilities(view, {})
        entropy = -(chance * chance.clamp_min(1e-30).log()).sum(-1)
        q = players.values(view)
        spread = q.masked_fill(~view.mask, -torch.inf).amax(-1) - q.masked_fill(~view.mask, torch.inf).amin(-1)
        paid = (moment.outcome.reward * acts).sum()
        columns = [paid, entropy[acts].sum(), chance.amax(-1)[acts].sum(), spread[acts].sum(), acts.sum()]
        total += torch.stack([c.double().cpu() for c in columns])
    paid, *sums, decisions = total.tolist()
    return Behaviour(paid / (games * game.players), *(s / decisions for s in sums))


def _unscaled_beta(museum: Museum) -> Finding:
    game = make_game(game_config("msh_4x4"))
    generator = Rngs(museum.config.seed).torch("museum beta")
    cases: dict[str, tuple[Hopes, bool]] = {
        "raw, values of hares": ("hare", False),
        "raw, hoping for the stag": ("stag", False),
        "scaled, values of hares": ("hare", True),
        "scaled, hoping for the stag": ("stag", True),
    }
    by_case: dict[str, list[Behaviour]] = {name: [] for name in cases}
    for name, (hopes, stretched) in cases.items():
        for beta in BETAS:
            players = ValuePlayers(game, beta, hopes, scaled=stretched)
            by_case[name].append(behaviour(game, players, museum.config.games, generator))
            museum.pause()
    figure, [reward, entropy] = panels(1, 2, size=(7.0, 4.8))
    x = [max(beta, 0.5) for beta in BETAS]  # on a logarithmic axis 0 is drawn at 0.5
    curves(reward, {k: Curve(x, [b.reward for b in v]) for k, v in by_case.items()}, xlabel="β",
           ylabel="mean reward per player", title="What they earn")  # fmt: skip
    curves(entropy, {k: Curve(x, [b.entropy for b in v]) for k, v in by_case.items()}, xlabel="β",
           ylabel="entropy of behaviour [nats]", title="How random they are")  # fmt: skip
    for ax in (reward, entropy):
        ax.set_xscale("log")
        ax.set_xticks(x, ["0", *(f"{beta:g}" for beta in BETAS[1:])])
        ax.minorticks_off()
        ax.axvline(LEGACY_BETA, color=INK, linewidth=1.6, linestyle=":", label="the original's beta")
    entropy.set_ylim(bottom=0)
    reference_lines(reward, {"original's HOP+": 0.68, "all take hares": 1.0})
    legend(figure)
    save(figure, museum.picture)
    raw = by_case["raw, values of hares"]
    at = BETAS.index(LEGACY_BETA)
    errors = [abs(b.entropy - e) for b, e in zip(raw, ENTROPIES)]
    scaled = [
        by_case[f"scaled, {hope}"][BETAS.index(20.0)].reward for hope in ("values of hares", "hoping for the stag")
    ]
    summary = (
        f"With exact values and raw beta = 2 players earn {raw[at].reward:.2f} at an entropy of {raw[at].entropy:.3f} "
        f"nats: as random as beta = 0 ({raw[0].reward:.2f}, {raw[0].entropy:.3f}), because values differ by only "
        f"{raw[at].spread:.2f}. Scaled, beta = 20 earns {scaled[0]:.2f}; hoping for the stag as well, {scaled[1]:.2f}. "
        f"Largest distance to the expected entropies: {max(errors):.3f} nats."
    )
    appeared = raw[at].reward < 0.8 and max(errors) <= ENTROPY_TOLERANCE
    figures = {name: {f"{beta:g}": b._asdict() for beta, b in zip(BETAS, v)} for name, v in by_case.items()}
    return Finding(summary, appeared, figures)


UNSCALED_BETA = Exhibit(
    "A Boltzmann policy on raw values",
    "behaviour entropy near that of random play although the values are right; reward near 0.7",
    "marlab hunt train --variant hopplus-mcts --plan.legacy-beta 2", _unscaled_beta,
)  # fmt: skip
