"""Planning for all seats of all games at once: goals are drawn from beliefs, each draw is searched, draws are averaged.

A decision is one player of one game who is to act. Decisions are grouped by (seed, seat), because that decides which
networks they use; groups are filled up to one size, so that everything is one batch: [G groups, M decisions, N trees].

Letters: S seeds, E games of a seed, B = S E games, n players, S' = n - 1 others, A actions, K goals, G = S n groups,
M decisions of a group, N trees of a decision, R = G M N roots.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from marlab.hunt.game.config import REWARD_SCALE
from marlab.hunt.game.rules import HUNT_HARE, STAY, Game, State
from marlab.hunt.game.views import View
from marlab.hunt.others.codes import CoPlayerTypes, others_at
from marlab.hunt.others.moa import opponent_seats
from marlab.hunt.planner.config import Engine, PlanConfig
from marlab.hunt.planner.coplayers import CoPlayers
from marlab.hunt.planner.dynamics import Dynamics, Embedding, ImaginedStep, Seen
from marlab.hunt.planner.native import MOST_ROOTS, NativeStep, supports
from marlab.hunt.planner.nets import PlayerNets
from marlab.hunt.planner.plans import (
    LINE,
    JointPlan,
    SeatDecisions,
    TreeResults,
    boltzmann,
    decision_metrics,
    decisions,
    normalised,
    scatter_to_groups,
    summarise,
)
from marlab.hunt.planner.replay import RankedRewards
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.ppo.choices import apply_mask, sample
from marlab.lab.search.rules import gumbel_noise
from marlab.lab.search.search import Evaluation, Expand, RecordedSearch, SearchResult, Transition, record_search, search

RECORDED_SIZES = 8
"""Recorded searches are made for so many sizes of batches."""


class Planner:
    """Plans with given networks, models of others and dynamics. `seeds` batches are planned side by side."""

    def __init__(
        self, game: Game, nets: PlayerNets, coplayers: CoPlayers, dynamics: Dynamics, config: PlanConfig, *,
        seeds: int = 1, reward_scale: float = REWARD_SCALE, one_step: bool = False, rollout: float = 0.0,
        hypotheses: CoPlayerTypes | None = None, loyalty: float = 0.0,
    ) -> None:  # fmt: skip
        """one_step: look one step ahead instead of searching. rollout: weight of rule-based rollouts in leaf values.

        hypotheses: what beliefs are about, where that is more than goals (with learned models of others only). loyalty:
        what it costs, in rewards of the game, to take a hare while a single other player is after the stag: whoever is
        let down may not come again, which no tree of one episode can see.
        """
        self.hypotheses = hypotheses
        self.depend = hypotheses is not None and hypotheses.depend
        self.loyalty = loyalty if hypotheses is not None else 0.0
        self.game, self.nets, self.coplayers, self.dynamics, self.config = game, nets, coplayers, dynamics, config
        self.seeds, self.reward_scale, self.one_step, self.rollout = seeds, reward_scale, one_step, rollout
        self.engine: Engine = "tensors"  # native is asked only where the C code knows all parts, graph on a GPU
        self._imagines: bool | None = None
        self._recorded: dict[int, tuple[RecordedSearch, list[Tensor | None]]] = {}
        self.ranked: RankedRewards | None = None  # r2: what an exit is worth in a tree is then its rank
        self._stay = torch.arange(game.actions, device=game.device) == STAY
        self._powers = game.actions ** torch.arange(game.players - 1, device=game.device)
        self._rules = RulePlayers(game, [Kind.RAND] * game.players)

    @torch.no_grad()
    def plan(
        self,
        state: State,
        belief: Tensor,
        want: Tensor,
        generator: torch.Generator,
        beta: float | None = None,
        meant: Tensor | None = None,
    ) -> JointPlan:
        """Plan for the seats that `want` [B, n] to decide, with beliefs [B, n, S', K] about the others' goals (with
        hypotheses [B, n, S', G]).

        meant: [B, n, K, V] what each goal means for each player at this root, for models of others that ask.
        """
        empty = torch.zeros(*want.shape, self.game.actions, device=want.device)
        who = decisions(want, self.seeds, RECORDED_SIZES if self.engine == "graph" else None)
        if who is None:
            nothing, no_line = empty[..., 0], torch.full((*want.shape, LINE), -1, device=want.device)
            return JointPlan(empty, empty, empty, empty, nothing, nothing, no_line, {})
        game, seat = who.game.flatten(), who.seat.flatten()
        root = self.dynamics.root(state, game, seat)
        view = self.dynamics.own_view(root)
        believed = belief[game, seat]  # [GM, S', K]
        if meant is None:
            meant = believed.new_zeros(*want.shape, believed.shape[-1], 0)
        means = meant[game.unsqueeze(1), opponent_seats(self.game)[seat]]  # [GM, S', K, V]
        logits, guess = self._evaluate(root, view, self._goal_input(believed))
        legal = self._ensure_legal_action(view.legal.squeeze(1))
        run = self._look_ahead if self.one_step else self._search
        results = run(root, Evaluation(logits, guess, legal), believed, means, who.real.flatten(), generator)
        return self._combine(who, results, logits, guess, legal, self.config.beta_end if beta is None else beta, want)

    # --- searching ------------------------------------------------------------------------------------------------

    def _search(
        self,
        root: Embedding,
        at: Evaluation,
        believed: Tensor,
        means: Tensor,
        real: Tensor,
        generator: torch.Generator,
    ) -> TreeResults:
        trees = self.config.trees
        goals = draw_goals(believed, trees, generator)  # [GM, N, S']
        prepared = self._prepare(goals, means)
        goals = goals.flatten(0, 1)  # [R, S']
        goal_input = self._goal_input(one_hot(goals, believed.shape[-1]).to(believed))  # [P, R / P, X]
        repeated = Evaluation(*(x.repeat_interleave(trees, 0) for x in at))
        start = tuple(x.repeat_interleave(trees, 0) for x in root)
        hunting = self._hunting(goals)
        if self.engine == "native" and self._natively(int(real.sum()) * trees):
            return self._in_c(repeated, start, prepared, goal_input, hunting, real, generator)
        if self.engine == "graph" and not self.rollout:
            return summarise(self._replay(repeated, start, prepared, goal_input, hunting, generator), trees)
        expand = self._expansion(prepared, goal_input, hunting, generator)
        return summarise(search(repeated, start, expand, self.config.search, generator), trees)

    def _natively(self, roots: int) -> bool:
        """Whether a search of so many roots is made in C: of learned models in the game itself, and small."""
        if roots > MOST_ROOTS or self.rollout or self.ranked is not None:
            return False
        if self._imagines is None:
            self._imagines = supports(self.game, self.nets, self.coplayers, self.dynamics)
        return self._imagines and self.config.search.dirichlet_share == 0

    def _in_c(
        self, root: Evaluation, start: Embedding, prepared: Tensor, goal_input: Tensor | None, hunting: Tensor | None,
        real: Tensor, generator: torch.Generator,
    ) -> TreeResults:  # fmt: skip
        """The search of the `real` decisions [GM]; those that only fill up their group find nothing."""
        trees, config, total = self.config.trees, self.config.search, len(root.value)
        chosen = real.repeat_interleave(trees).nonzero().squeeze(1)
        noise = gumbel_noise(root.logits, config, generator)[chosen] if config.root == "gumbel" else None
        mine = State(*(x[chosen] for x in start))
        step = NativeStep(self, mine, chosen, total, prepared, goal_input, hunting, generator)
        found = search(Evaluation(*(x[chosen] for x in root)), (step.root,), step, config, generator, noise)
        return scatter_to_groups(summarise(found, trees), real)

    def _replay(
        self,
        root: Evaluation,
        start: Embedding,
        prepared: Tensor,
        goal_input: Tensor | None,
        hunting: Tensor | None,
        generator: torch.Generator,
    ) -> SearchResult:
        """The recorded search of this size; what is constant in a tree lies where the recording reads it."""
        constants = (prepared, goal_input, hunting)
        size = len(root.value)
        if size not in self._recorded:
            kept = [None if x is None else x.clone() for x in constants]
            assert kept[0] is not None
            expand = self._expansion(kept[0], kept[1], kept[2], generator)
            self._recorded[size] = (record_search(root, start, expand, self.config.search, generator), kept)
        run, kept = self._recorded[size]
        for old, new in zip(kept, constants):
            if old is not None and new is not None:
                old.copy_(new)
        return run(root, start)

    def _hunting(self, goals: Tensor) -> Tensor | None:
        """[R, S'] bool: who hunts the stag whatever others do, by drawn goals [R, S']; None where nobody asks."""
        if not self.loyalty or self.hypotheses is None:
            return None
        return self.hypotheses.hunts[goals]

    def _deserts_partner(self, before: Embedding, action: Tensor, stepped: ImaginedStep, hunting: Tensor) -> Tensor:
        """[R] bool: the planner took a hare while a single other player was after a stag that is there."""
        left = self.dynamics.left(before)
        took = (action == HUNT_HARE) & (stepped.stays == 0)
        return took & left.stag & ((hunting & left.others).sum(1) == 1)

    def _expansion(
        self, prepared: Tensor, goal_input: Tensor | None, hunting: Tensor | None, generator: torch.Generator
    ) -> Expand:
        """How a node grows: the others act, the game goes on, the networks judge."""
        resampled = self.config.search.outcomes > 1

        def expand(embedding: Embedding, actions: Tensor) -> Transition:
            others = self._others(embedding, prepared, generator)
            stepped = self.dynamics.step(embedding, actions, others)
            view = self.dynamics.own_view(stepped.embedding)
            logits, value = self._evaluate(stepped.embedding, view, goal_input)
            if self.rollout:
                earned = self._roll_out(stepped.embedding, prepared, generator)
                value = (1 - self.rollout) * value + self.rollout * earned
            evaluation = Evaluation(logits, value, view.legal.squeeze(1))
            reward = self._reward(stepped, generator)
            if hunting is not None:
                reward = reward - self._deserts_partner(embedding, actions, stepped, hunting) * (
                    self.loyalty * self.reward_scale
                )
            drawn = (others * self._powers).sum(1) if resampled else None  # one number names what the others did
            return Transition(reward, self.config.gamma * stepped.stays, evaluation, stepped.embedding, drawn)

        return expand

    def _look_ahead(
        self,
        root: Embedding,
        at: Evaluation,
        believed: Tensor,
        means: Tensor,
        real: Tensor,
        generator: torch.Generator,
    ) -> TreeResults:
        """Every action tried once per draw of goals and of the others' actions."""
        draws, actions = self.config.draws, self.game.actions
        drawn = draw_goals(believed, draws, generator)  # [GM, draws, S']
        goals = drawn.flatten(0, 1)
        start = tuple(x.repeat_interleave(draws, 0) for x in root)
        others = self._others(start, self._prepare(drawn, means), generator)
        goal_input = self._goal_input(one_hot(goals, believed.shape[-1]).to(believed).repeat_interleave(actions, 0))
        wide = tuple(x.repeat_interleave(actions, 0) for x in start)
        tried = torch.arange(actions, device=goals.device).repeat(goals.shape[0])
        stepped = self.dynamics.step(wide, tried, others.repeat_interleave(actions, 0))
        _, value = self._evaluate(stepped.embedding, self.dynamics.own_view(stepped.embedding), goal_input)
        q = self._reward(stepped, generator) + self.config.gamma * stepped.stays * value
        q = q.view(-1, draws, actions)  # [GM, draws, A]
        off = ~at.legal.unsqueeze(1)
        visits = (~off).expand_as(q).to(q.dtype)
        value = apply_mask(q, ~off).amax(2)
        low, high = q.masked_fill(off, torch.inf).amin((1, 2)), q.masked_fill(off, -torch.inf).amax((1, 2))
        ends = ((1 - stepped.stays).view_as(q) * visits).sum((1, 2)) / visits.sum((1, 2))
        depth = torch.ones_like(low)

        def line(first: Tensor) -> Tensor:
            return pad(first.unsqueeze(1), (0, LINE - 1), value=-1)

        return TreeResults(
            q, visits, value, low, high, line, {"depth": depth, "depth_max": depth, "terminal_share": ends}
        )

    def _prepare(self, goals: Tensor, means: Tensor) -> Tensor:
        """What the models of others make of goals [GM, N, S'] and their meanings [GM, S', K, V], constant in a tree.

        Where hypotheses depend on others it is that twice, [2, ...]: while nobody else stands on a stag, and once
        somebody does.
        """
        if not self.depend:
            return self._prepare_one(goals, means)
        assert self.hypotheses is not None
        return torch.stack([self._prepare_one(goals, each) for each in self.hypotheses.meanings(means)])

    def _prepare_one(self, goals: Tensor, means: Tensor) -> Tensor:
        wide = means.unsqueeze(1).expand(-1, goals.shape[1], -1, -1, -1)  # [GM, N, S', K, V]
        index = goals[..., None, None].expand(*goals.shape, 1, means.shape[-1])
        return self.coplayers.prepare(goals.flatten(0, 1), wide.gather(3, index).squeeze(3).flatten(0, 1))

    def _others(self, embedding: Embedding, prepared: Tensor, generator: torch.Generator) -> Tensor:
        """[R, S'] drawn actions of the others; of players who left, 0."""
        seen = self.dynamics.views_of_others(embedding)
        if self.depend:
            held = others_at(self.dynamics.on_stag(embedding))[:, 1:]  # [R, S']
            alone, joined = prepared.unbind(0)  # [P, R / P, S', X]
            prepared = torch.where(held.view(*alone.shape[:-1], 1), joined, alone)
        logits = apply_mask(self.coplayers.logits(embedding, seen, prepared), seen.legal)
        return sample(logits, (self.game.actions,), generator) * seen.legal[..., STAY]

    def _reward(self, stepped: ImaginedStep, generator: torch.Generator) -> Tensor:
        """[R] scaled rewards; with r2 the rank of the reward that a player leaves with."""
        reward = stepped.reward * self.reward_scale
        if self.ranked is None:
            return reward
        seed = torch.arange(self.seeds, device=reward.device).repeat_interleave(len(reward) // self.seeds)
        return self.ranked.rank(reward, seed, generator) * (stepped.stays == 0)

    def _goal_input(self, goals: Tensor) -> Tensor | None:
        """What the planning players' networks make of goal probabilities [R, S', K] of the others."""
        if self.hypotheses is not None:
            goals = self.hypotheses.told(goals)
        return self.nets.goal_input(goals.unflatten(0, (self.nets.copies, -1)))

    def _evaluate(self, embedding: Embedding, view: Seen, goal_input: Tensor | None) -> tuple[Tensor, Tensor]:
        """Prior logits [R, A] and values [R] of the planning players, never above what the rules still allow.

        Networks hope where they have seen little: a player who is left alone with the stag would wait for nobody.
        """
        rows, time = (x.unflatten(0, (self.nets.copies, -1)) for x in (view.rows.squeeze(1), view.time))
        logits, value = self.nets(rows, time, goal_input)
        most = self.dynamics.most(embedding) if self.ranked is None else None
        hoped = value.flatten()
        return logits.flatten(0, 1), hoped if most is None else torch.minimum(hoped, most * self.reward_scale)

    def _ensure_legal_action(self, legal: Tensor) -> Tensor:
        """Legal actions [R, A]; who is gone may stay, so that every row has one."""
        return legal | (self._stay & ~legal.any(1, keepdim=True))

    def _roll_out(self, embedding: Embedding, prepared: Tensor, generator: torch.Generator) -> Tensor:
        """[R] return of committing to the stag or to a hare, by a coin, and walking there while the others act."""
        state, rules = State(*embedding), self._rules
        types = torch.full_like(state.cell, int(Kind.RAND))
        coin = torch.rand(state.batch, generator=generator, device=types.device) < 0.5
        types[:, 0] = torch.where(coin, int(Kind.NS), int(Kind.NH))
        memory = rules.memory_of(types)
        value = torch.zeros(state.batch, device=types.device)
        factor = state.alive[:, 0].to(value.dtype) * ~self.game.over(state)
        for _ in range(self.game.config.final_time):
            mine, _ = rules.act(View(self.game, state), memory, generator)
            others = self._others(tuple(state), prepared, generator)
            stepped = self.dynamics.step(tuple(state), mine[:, 0], others)
            value = value + factor * stepped.reward * self.reward_scale
            factor = factor * self.config.gamma * stepped.stays
            state = State(*stepped.embedding)
            if state.t.device.type == "cpu" and not bool(factor.any()):
                break
        return value

    # --- combining ------------------------------------------------------------------------------------------------

    def _combine(
        self, who: SeatDecisions, results: TreeResults, logits: Tensor, guess: Tensor, legal: Tensor, beta: float,
        want: Tensor,
    ) -> JointPlan:  # fmt: skip
        q = results.q.mean(1)  # [GM, A]
        prior_logits = apply_mask(logits, legal)
        prior = prior_logits.softmax(1)
        if self.config.legacy_beta:
            policy = boltzmann(q / self.reward_scale, legal, self.config.legacy_beta)
        else:
            start = prior_logits if self.config.target == "improved" else None
            policy = boltzmann(normalised(q, results.low, results.high), legal, beta, start)
        line = results.line(policy.argmax(1))
        metrics = decision_metrics(results, q, policy, prior, legal, 1.0 / self.reward_scale)
        weight = who.real.flatten().to(q.dtype)
        means = {name: (value * weight).sum() / weight.sum() for name, value in metrics.items()}
        means["depth_max"] = (metrics["depth_max"] * weight).max()

        def put(x: Tensor) -> Tensor:
            out = torch.zeros(*want.shape, *x.shape[1:], device=x.device)
            out[who.game.flatten(), who.seat.flatten()] = x * weight.view(-1, *[1] * (x.dim() - 1))
            return out

        back = 1.0 / self.reward_scale
        planned = q.masked_fill(~legal, 0.0) * back
        return JointPlan(
            put(policy), put(prior), put(planned), put(results.visits.sum(1)), put(results.value.mean(1) * back),
            put(guess * back), torch.where(want.unsqueeze(2), put(line + 1.0).long() - 1, -1), means,
        )  # fmt: skip


def draw_goals(believed: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """[D, draws, S'] goals drawn from beliefs [D, S', K]."""
    wide = believed.clamp_min(1e-30).log().unsqueeze(1).expand(-1, draws, -1, -1)
    return sample(wide, (believed.shape[-1],), generator)
