"""Beliefs about what the others want: a distribution over goals, within an episode and from one to the next.

Within an episode every observed action multiplies the belief by how likely each goal makes it; a small floor and a
little mixing with the prior let beliefs recover when goals change. Across episodes discounted counts of past goals
give the next prior, as if everybody drew a goal anew each time. With `lasting` a second account stands beside that one:
players who keep what they are after. Which of the two a player's episodes fit better is learnt, too; a player who keeps
its goal is then known after an episode or two instead of ten. Goals are {stag, hare}, or the prototypes of a codebook
of latent codes: the same updates apply.

Letters: B games, n players, G goals, Q aims (goals that are one thing to keep), *P whom a belief is about: (n,) for
every player as all others see it, or (n, n - 1) for observer i's own model of the player k + 1 places after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from marlab.hunt.game.rules import Game, Outcome
from marlab.hunt.game.views import View
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.players.policy import Memory
from marlab.hunt.players.rollout import OUTCOMES, captures
from marlab.hunt.players.rules import RulePlayers, rule_probabilities
from marlab.hunt.players.seats import Kind

STAG_GOAL, HARE_GOAL = 0, 1
GOAL_KINDS = (Kind.NS, Kind.NH)
"""The rule-based player of each goal."""
KEPT = 0.98
"""How often a player who keeps what it is after still has it in the next episode."""
DOUBT = 0.02
"""Neither account of a player is ever believed less than this, so that it can come back."""


# --- the updates, as functions of tensors -------------------------------------------------------------------------


def observed(belief: Tensor, likelihood: Tensor, prior: Tensor, present: Tensor, config: BeliefConfig) -> Tensor:
    """[*S, G] beliefs after an action with `likelihood` [*S, G] under each goal, where the player was `present` [*S].

    An action that every goal still believed in excludes tells nothing (possible only with floor 0): no update.
    """
    raised = belief * likelihood.clamp_min(config.floor)
    total = raised.sum(-1, keepdim=True)
    updated = torch.where(total > 0, raised / total.clamp_min(torch.finfo(total.dtype).tiny), belief)
    mixed = (1 - config.mixing) * updated + config.mixing * prior
    return torch.where(present.unsqueeze(-1), mixed, belief)


def condition_on_capture(belief: Tensor, evidence: Tensor, captured: Tensor) -> Tensor:
    """[*S, G] beliefs after a capture shows the goal, where `captured` [*S].

    `evidence` [*S, G] is the probability of the capture under each goal; for {stag, hare} it names the goal.
    """
    joint = belief * evidence
    total = joint.sum(-1, keepdim=True)
    surprise = evidence / evidence.sum(-1, keepdim=True).clamp_min(torch.finfo(belief.dtype).tiny)
    updated = torch.where(total > 0, joint / total.clamp_min(torch.finfo(belief.dtype).tiny), surprise)
    return torch.where(captured.unsqueeze(-1), updated, belief)


def counted(counts: Tensor, goals: Tensor, discount: float) -> Tensor:
    """[*S, G] discounted counts after an episode with `goals` [*S, G]: a certain goal, or a posterior as fractions."""
    return discount * counts + goals


def prior_of(counts: Tensor, strength: float, first: Tensor | None = None) -> Tensor:
    """[*S, G] belief at the start of an episode from counts of past goals. first: [G] of strangers, even by default."""
    total = counts.sum(-1, keepdim=True)
    start = strength / counts.shape[-1] if first is None else strength * first
    return (counts + start) / (total + strength)


def persistent_prior(after: Tensor, drawn: Tensor, aims: Tensor) -> Tensor:
    """[*S, G] the next episode's prior of somebody who keeps its aim, from what was believed of it `after` the last.

    Goals of one aim [Q, G] (0 or 1) are told apart by how common they are among `drawn` [*S, G], the prior of somebody
    who draws anew: a hunter for whom nobody came is still a hunter.
    """
    within = drawn / (drawn @ aims.T @ aims).clamp_min(torch.finfo(drawn.dtype).tiny)
    return KEPT * (after @ aims.T @ aims) * within + (1 - KEPT) * drawn


def account_posterior(lasts: Tensor, kept: Tensor, drawn: Tensor, believed: Tensor) -> tuple[Tensor, Tensor]:
    """[*S] how probable it now is that a player keeps its aim, and [*S, G] what it was after if it does.

    kept, drawn: [*S, G] the two priors of the episode; believed: [*S, G] the belief at its end, which began as their
    mixture and so says how likely each goal made all that was seen.
    """
    prior = lasts.unsqueeze(-1) * kept + (1 - lasts).unsqueeze(-1) * drawn
    likely = believed / prior.clamp_min(torch.finfo(prior.dtype).tiny)
    if_kept, if_drawn = (kept * likely).sum(-1), (drawn * likely).sum(-1)
    now = lasts * if_kept / (lasts * if_kept + (1 - lasts) * if_drawn)
    return now.clamp(DOUBT, 1 - DOUBT), kept * likely / if_kept.unsqueeze(-1)


# --- where likelihoods come from ----------------------------------------------------------------------------------


class Likelihoods(ABC):
    """How likely each goal makes an observed action."""

    goals: int
    about: tuple[int, ...]  # *P
    players: Tensor  # [*P] which player each belief is about

    @abstractmethod
    def __call__(self, view: View, actions: Tensor, memory: Memory) -> Tensor:
        """[B, *P, G] likelihoods of the executed actions [B, n] that followed `view`; anything for absent players."""

    def begin(self, batch: int) -> Memory:
        """What it keeps in mind of an episode of B games, at its start: tensors [B, ...]."""
        return {}

    def advance(self, view: View, actions: Tensor, memory: Memory) -> Memory:
        """The same after the executed actions [B, n] that followed `view`."""
        return {}


class ExactLikelihoods(Likelihoods):
    """The rules themselves: what NS and NH (or other memoryless kinds) would have done."""

    def __init__(self, game: Game, kinds: Sequence[Kind] = GOAL_KINDS) -> None:
        self.kinds, self.goals = tuple(kinds), len(kinds)
        self.about = (game.players,)
        self.players = torch.arange(game.players, device=game.device)
        self._rules = RulePlayers(game, [Kind.RAND] * game.players)  # lends its rules; the roles do not matter

    def __call__(self, view: View, actions: Tensor, memory: Memory) -> Tensor:
        by_goal = rule_probabilities(self._rules, view, self.kinds)  # [B, n, G, A]
        taken = actions.clamp_max(by_goal.shape[-1] - 1)[..., None, None]
        return by_goal.gather(-1, taken.expand(-1, -1, self.goals, 1)).squeeze(-1)


class BeliefTracker:
    """Beliefs of B games in a `Policy`'s memory: tensors [B, ...] that a policy carries along.

    belief [B, *P, G] now, prior [B, *P, G] of this episode, counts [B, *P, G] of past ones, outcome [B, n] captures
    so far, finished [B] (the episode's goals are counted; what follows until the reset means nothing), and what the
    likelihoods keep in mind. With `lasting`: lasts [B, *P] how probable it is that a player keeps its aim, kept
    [B, *P, G] the prior of this episode if it does.
    """

    def __init__(
        self,
        game: Game,
        likelihoods: Likelihoods,
        config: BeliefConfig | None = None,
        evidence: Tensor | None = None,
        first: Tensor | None = None,
        aims: Tensor | None = None,
    ) -> None:
        """evidence: [3, G] probability of each outcome (none, stag, hare) under each goal; the default is {stag, hare}.

        The row of "none" is not used: a player without a capture keeps the belief that its actions gave. first: [G]
        what is believed of strangers, even by default. aims: [G] which goals are one thing to keep; by default each is
        one of its own.
        """
        self.game, self.likelihoods, self.config = game, likelihoods, config or BeliefConfig()
        if evidence is None:
            evidence = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        if evidence.shape != (len(OUTCOMES), likelihoods.goals):
            raise ValueError(f"evidence {tuple(evidence.shape)} does not fit {likelihoods.goals} goals")
        self.evidence = evidence.to(game.device)
        self.first = None if first is None else first.to(game.device)
        alike = torch.arange(likelihoods.goals) if aims is None else aims
        self.aims = one_hot(alike).T.to(game.device, torch.float32)  # [Q, G]

    def begin(self, batch: int) -> Memory:
        """Beliefs about strangers, at the start of an episode."""
        shape = (batch, *self.likelihoods.about, self.likelihoods.goals)
        counts = torch.zeros(shape, device=self.game.device)
        prior = prior_of(counts, self.config.strength, self.first)
        outcome = torch.zeros(batch, self.game.players, dtype=torch.int64, device=self.game.device)
        return {
            "belief": prior,
            "prior": prior.clone(),
            "counts": counts,
            "outcome": outcome,
            "finished": torch.zeros(batch, dtype=torch.bool, device=self.game.device),
            **self.likelihoods.begin(batch),
            **self._strangers(prior),
        }

    def _strangers(self, prior: Tensor) -> Memory:
        """What is kept in mind of whether players keep their aims, before anything is known of them."""
        if not self.config.lasting:
            return {}
        return {"lasts": torch.full(prior.shape[:-1], self.config.lasting, device=prior.device), "kept": prior.clone()}

    def reset(self, memory: Memory, games: Tensor) -> Memory:
        """A new episode with the same players in the games [B] (bool) that are marked."""
        counts = memory["counts"] if self.config.inter else torch.zeros_like(memory["counts"])
        prior = prior_of(counts, self.config.strength, self.first)
        if self.config.lasting and self.config.inter:
            prior = memory["kept"].lerp(prior, 1 - memory["lasts"].unsqueeze(-1))
        marked = games.view(-1, *[1] * (prior.dim() - 1))
        fresh = self.likelihoods.begin(len(games))
        return {
            **memory,
            **{k: torch.where(games.view(-1, *[1] * (x.dim() - 1)), x, memory[k]) for k, x in fresh.items()},
            "belief": torch.where(marked, prior, memory["belief"]),
            "prior": torch.where(marked, prior, memory["prior"]),
            "outcome": torch.where(games.unsqueeze(1), 0, memory["outcome"]),
            "finished": memory["finished"] & ~games,
        }

    def begin_opponents(self, memory: Memory, games: Tensor, new_team: bool = True) -> Memory:
        """A new episode in the marked games, and with a `new_team` everything about the old one is forgotten."""
        if new_team:
            marked = games.view(-1, *[1] * (memory["counts"].dim() - 1))
            memory = {**memory, "counts": memory["counts"].masked_fill(marked, 0.0)}
            new = self._strangers(prior_of(memory["counts"], self.config.strength, self.first))
            each = {k: games.view(-1, *[1] * (x.dim() - 1)) for k, x in new.items()}
            memory = {**memory, **{k: torch.where(each[k], x, memory[k]) for k, x in new.items()}}
        return self.reset(memory, games)

    def observe(self, view: View, outcome: Outcome, memory: Memory) -> Memory:
        """Learn from one step: actions, captures, and at an episode's end what everybody's goal was."""
        who = self.likelihoods.players
        running = ~memory["finished"]
        belief = memory["belief"]
        present = view.state.alive[:, who] & self._wide(running)
        if self.config.intra:
            likelihood = self.likelihoods(view, outcome.executed, memory)
            belief = observed(belief, likelihood, memory["prior"], present, self.config)
        result = torch.where(running.unsqueeze(1), captures(self.game, outcome, memory["outcome"]), memory["outcome"])
        caught = (outcome.hunters > 0)[:, who] & present
        belief = condition_on_capture(belief, self.evidence[result[:, who]], caught)
        ends = self._wide(running & outcome.over).unsqueeze(-1)
        counts = torch.where(ends, counted(memory["counts"], belief, self.config.discount), memory["counts"])
        habits = self._habits(belief, counts, memory, ends) if self.config.lasting else {}
        finished = memory["finished"] | outcome.over
        after = self.likelihoods.advance(view, outcome.executed, memory)
        found = {"belief": belief, "counts": counts, "outcome": result, "finished": finished}
        return {**memory, **after, **habits, **found}

    def _habits(self, belief: Tensor, counts: Tensor, memory: Memory, ends: Tensor) -> Memory:
        """Who keeps its aim, and what that says of the next episode, where one `ends` [B, *P, 1] with `counts`."""
        before, after = (prior_of(each, self.config.strength, self.first) for each in (memory["counts"], counts))
        lasts, kept = account_posterior(memory["lasts"], memory["kept"], before, belief)
        return {
            "lasts": torch.where(ends.squeeze(-1), lasts, memory["lasts"]),
            "kept": torch.where(ends, persistent_prior(kept, after, self.aims), memory["kept"]),
        }

    def _wide(self, games: Tensor) -> Tensor:
        """[B, *P or broadcastable] from [B]."""
        return games.view(-1, *[1] * len(self.likelihoods.about))
