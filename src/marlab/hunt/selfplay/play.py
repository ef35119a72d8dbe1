"""Games that planning agents play to learn from: every observer's beliefs and predictions are kept.

Every seat plans, apart from those of rule-based players and of guests: imagined ones, or, where a mind knows no goals
to imagine them by, stag hunters and hare catchers themselves. Games restart by themselves. An episode's steps wait
until it is over; then they get their value labels and go to the replay.

Letters: S seeds, E games of a seed, B = S E games, n players, S' = n - 1 others, T steps of an episode, W row width,
A actions, K goals, D code width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.config import REWARD_SCALE
from marlab.hunt.game.rules import STAY, Game, Outcome, State
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import BeliefTracker
from marlab.hunt.others.codes import Goals
from marlab.hunt.others.moa import masked_mixture, opponent_seats
from marlab.hunt.planner.mind import PlannerModels
from marlab.hunt.planner.planner import Planner
from marlab.hunt.planner.plans import JointPlan
from marlab.hunt.planner.replay import Experience, History, RankedRewards, Replay, value_labels
from marlab.hunt.players.episodes import EpisodeSums
from marlab.hunt.players.guests import BackgroundPlayers, RuleGuests
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import GuestConfig
from marlab.lab.ppo.choices import apply_mask, sample


class ImaginedGuests(BackgroundPlayers):
    """Guests that the agents' own models of others play."""

    def imagined(self, by_goal: Tensor, legal: Tensor) -> Tensor:
        """[B, n, A] how every player would act as a guest, from predictions [B, n, S', K, A] and legal [B, n, S', A].

        Player j is imagined by its neighbour j - 1, who sees it in slot 0.
        """
        logits = by_goal[:, :, 0].roll(1, 1)  # [B, n, K, A]
        index = self.wants.view(*self.wants.shape, 1, 1).expand(-1, -1, 1, logits.shape[-1])
        return apply_mask(logits.gather(2, index).squeeze(2), legal[:, :, 0].roll(1, 1)).softmax(-1)


def goal_weights(goals: Goals) -> Tensor:
    """[2, K] chances of each goal for a guest who is after the stag, and for one who is after hares."""
    return goals.common.clamp_min(1e-6) / goals.common.clamp_min(1e-6).sum(1, keepdim=True)


Ring = Replay[Experience]
HISTORIES = 1024
"""Newest histories of every seed that its encoder goes on learning from."""
PAIR_SUMS = ("rows", "ce", "top1", "top3", "floor")
"""What is summed for every pair of observer and other; correct and all predictions per action follow."""


class OpenEpisodes(NamedTuple):
    """The episodes under way."""

    rows: Tensor  # [B, T, n, W] uint8
    policy: Tensor  # [B, T, n, A]
    action: Tensor  # [B, T, n] int64, executed; ABSENT for players who have left
    reward: Tensor  # [B, T, n] scaled
    there: Tensor  # [B, T, n] bool: the player acted
    believed: Tensor  # [B, T, n, S', K] its beliefs about the others
    code: Tensor  # [B, T, n, 2, D] what its history said


class SelfPlay:
    """B games with the minds of S seeds in the learning seats and rule-based players in the others."""

    def __init__(
        self, game: Game, mind: PlannerModels, planner: Planner, games: int, generator: torch.Generator, *,
        learns: tuple[int, ...], rules: RulePlayers | None, ranked: RankedRewards | None = None,
        guests: GuestConfig | None = None, rows_after_exit: bool = False,
    ) -> None:  # fmt: skip
        """games: E, of each seed. learns: seats that plan; `rules` plays the others. guests: other players, too.

        rows_after_exit: players who left go on "staying" in the replay until their episode is over, with every action
        legal, as in the original.
        """
        self.rows_after_exit = rows_after_exit
        self.game, self.mind, self.planner, self.generator = game, mind, planner, generator
        self.seeds, self.games, self.ranked = len(mind.seeds), games, ranked
        self.tracker: BeliefTracker = mind.tracker(game)
        batch, n, device = self.seeds * games, game.players, game.device
        self.learns = torch.zeros(n, dtype=torch.bool, device=device)
        self.learns[list(learns)] = True
        self.rules = rules
        self.state = game.reset(batch, generator)
        self.memory = self.tracker.begin(batch)
        self.rule_memory = {} if rules is None else rules.begin(batch, generator)
        self.guests: ImaginedGuests | RuleGuests | None = None
        if guests is not None and guests.share and rules is None:
            if mind.others is not None and mind.count > 1:
                weights = goal_weights(mind.goals).to(device)
                self.guests = ImaginedGuests(guests, batch, n, generator, weights)
            else:
                self.guests = RuleGuests(guests, game, batch, generator)
        shape = (batch, game.config.final_time, n)
        self.diary = OpenEpisodes(
            torch.zeros(*shape, mind.layout.size, dtype=torch.uint8, device=device),
            torch.zeros(*shape, game.actions, device=device),
            torch.zeros(shape, dtype=torch.int64, device=device),
            torch.zeros(shape, device=device),
            torch.zeros(shape, dtype=torch.bool, device=device),
            torch.zeros(*shape, n - 1, mind.count, device=device),
            torch.zeros(*shape, 2, 0 if mind.others is None else mind.others.code_width, device=device),
        )
        self.histories: Replay[History] | None = None
        if mind.reads_histories:
            step = self.diary
            like = History(
                step.rows[0, :, 0],
                step.action[0].unsqueeze(1).expand(-1, n, -1)[:, 0],
                step.there[0, :, 0],
                step.believed[0, 0, 0, 0],
                step.action[0, 0, 0],
            )
            self.histories = Replay(self.seeds, HISTORIES, like)
        self.hunters = torch.zeros(batch, n, dtype=torch.int64, device=device)
        self._pairs = opponent_seats(game)
        slot = torch.arange(n - 1, device=device)
        self._seen_by = (torch.arange(n, device=device).unsqueeze(1) - slot - 1) % n  # [n, S'] who sees me in slot k
        self._slot = slot
        self.clear_sums()

    SUMS = ("stats", "pairs", "believed", "plans", "entropy", "beside")

    @property
    def stats(self) -> Tensor:
        """[S, K] what ended episodes add up to."""
        return self.ended.sums

    @stats.setter
    def stats(self, sums: Tensor) -> None:
        self.ended.sums = sums

    def sums(self) -> dict[str, Any]:
        """What was counted since `clear_sums`."""
        return {name: getattr(self, name) for name in self.SUMS}

    def load_sums(self, saved: dict[str, Any]) -> None:
        self.clear_sums()
        device = self.game.device
        for name in self.SUMS:
            if name != "plans":
                setattr(self, name, saved[name].to(device))
        self.plans.extend({key: value.to(device) for key, value in plan.items()} for plan in saved["plans"])

    def clear_sums(self) -> None:
        """Begin to count anew: episodes per seed, predictions per pair, beliefs, plans."""
        n, actions, device = self.game.players, self.game.actions, self.game.device
        self.ended = EpisodeSums(self.seeds, n, device)
        wide = len(PAIR_SUMS) + 2 * actions
        self.pairs = torch.zeros(self.seeds, n, n - 1, wide, dtype=torch.float64, device=device)
        self.believed = torch.zeros(self.seeds, n, n - 1, 2, dtype=torch.float64, device=device)
        self.plans: list[dict[str, Tensor]] = []
        self.entropy = torch.zeros(self.seeds, 2, dtype=torch.float64, device=device)
        self.beside = torch.zeros(self.seeds, 2, dtype=torch.float64, device=device)

    @property
    def plans_here(self) -> Tensor:
        """[B, n] seats that are a planner's."""
        mine = self.learns.expand(self.state.batch, -1)
        return mine if self.guests is None else mine & ~self.guests.seats

    @torch.no_grad()
    def step(
        self, replay: Replay[Experience], update: int, beta: float, successes: Replay[Experience] | None = None
    ) -> None:
        """One step of every game; finished episodes go to `replay` and new ones begin.

        successes: takes the steps of players who caught something once more.
        """
        view = View(self.game, self.state)
        rows, _, _ = self.mind.seen(view)
        alive = self.state.alive
        planning = alive & self.plans_here
        models = self.mind.others
        code = self.diary.code[:, 0] if models is None else models.code(view, self.memory)
        meant = None if models is None else models.meant(code)
        plan = self.planner.plan(self.state, self.memory["belief"], planning, self.generator, beta, meant)
        foretold = None if models is None else models.by_goal(view, meant)
        policy, actions = self._act(view, plan)
        self._score_predictions(view, foretold, policy, actions)
        after, outcome = self.game.step(self.state, actions)
        self._write(rows, policy, outcome, alive if self.guests is None else planning, code)
        self.memory = self.tracker.observe(view, outcome, self.memory)
        self.hunters = self.hunters + outcome.hunters
        self._count(plan, policy, planning, outcome, after)
        over = outcome.over
        ended = over.nonzero().squeeze(1)
        if len(ended):
            self._finish(ended, replay, update, successes)
        self.state = after.where(over, self.game.reset(len(over), self.generator))
        self.memory = self.tracker.reset(self.memory, over)
        if self.guests is not None:
            self.memory = self.tracker.begin_opponents(self.memory, self.guests.next_episode(over))
        if self.rules is not None:
            self.rule_memory = self.rules.reset(self.rule_memory, over, self.generator)
        self.hunters = self.hunters * ~over.unsqueeze(1)

    def _act(self, view: View, plan: JointPlan) -> tuple[Tensor, Tensor]:
        """The distributions [B, n, A] that players act by, and their actions [B, n]."""
        policy = plan.policy
        if self.guests is not None:
            if isinstance(self.guests, RuleGuests):
                theirs = self.guests.probabilities(view)
            else:
                assert self.mind.others is not None
                theirs = self.guests.imagined(*self.mind.others.by_goal(view))  # a guest's goal is what it is
            policy = torch.where(self.guests.seats.unsqueeze(2), theirs, policy)
        actions = sample(policy.clamp_min(1e-30).log(), (self.game.actions,), self.generator)
        if self.rules is None:
            return policy, actions
        known = self.rules.probabilities(view, self.rule_memory)
        theirs, self.rule_memory = self.rules.act(view, self.rule_memory, self.generator)
        return torch.where(self.learns.view(1, -1, 1), policy, known), torch.where(self.learns, actions, theirs)

    # --- statistics -----------------------------------------------------------------------------------------------

    def _score_predictions(
        self, view: View, foretold: tuple[Tensor, Tensor] | None, policy: Tensor, actions: Tensor
    ) -> None:
        """How well every observer foretold this step, before it learns from it; guests are left out."""
        if foretold is None:
            return
        logits, legal = foretold
        log_p = masked_mixture(logits, legal, self.memory["belief"])  # [B, n, S', A]
        real = view.state.alive if self.guests is None else view.state.alive & ~self.guests.seats
        there = (real[:, self._pairs] & real.unsqueeze(2)).double()
        did = actions[:, self._pairs].clamp(0, self.game.actions - 1)
        chance = log_p.gather(-1, did.unsqueeze(-1)).squeeze(-1)
        rank = (log_p > chance.unsqueeze(-1)).sum(-1)
        true = policy[:, self._pairs]
        floor = -(true * true.clamp_min(1e-30).log()).sum(-1)
        kinds = torch.arange(self.game.actions, device=did.device)
        of_kind = (did.unsqueeze(-1) == kinds).double()
        right = (rank == 0).double()
        columns = [torch.ones_like(right), -chance.double(), right, (rank < 3).double(), floor.double()]
        wide = torch.cat([torch.stack(columns, -1), of_kind * right.unsqueeze(-1), of_kind], -1) * there.unsqueeze(-1)
        self.pairs += wide.unflatten(0, (self.seeds, -1)).sum(1)
        stag = (self.memory["belief"] * self.mind.goals.stag.to(log_p)).sum(-1).double() * there
        self.believed += torch.stack([stag, there], -1).unflatten(0, (self.seeds, -1)).sum(1)

    def _count(self, plan: JointPlan, policy: Tensor, planning: Tensor, outcome: Outcome, after: State) -> None:
        """Episodes with guests are counted apart: the others are self-play."""
        self.plans.append(plan.metrics)
        mine = planning.double()
        entropy = -(policy * policy.clamp_min(1e-30).log()).sum(-1).double() * mine
        self.entropy += torch.stack([entropy.sum(1), mine.sum(1)], 1).unflatten(0, (self.seeds, -1)).sum(1)
        over = outcome.over
        paid = self.diary.reward.sum(1).double() / REWARD_SCALE
        if self.guests is not None:
            with_guests = over & self.guests.mixed_games
            own = (paid * self.plans_here).sum(1) / self.plans_here.sum(1)
            pair = torch.stack([own, torch.ones_like(own)], 1) * with_guests.unsqueeze(1)
            self.beside += pair.unflatten(0, (self.seeds, -1)).sum(1)
            over = over & ~with_guests
        self.ended.add(over, after.t, paid, self.memory["outcome"], self.hunters)

    # --- the diary ------------------------------------------------------------------------------------------------

    def _write(self, rows: Tensor, policy: Tensor, outcome: Outcome, alive: Tensor, code: Tensor) -> None:
        game, t = torch.arange(len(alive), device=alive.device), self.state.t
        executed = outcome.executed
        if self.rows_after_exit:
            gone = ~self.state.alive if self.guests is None else ~self.state.alive & self.plans_here
            rows, policy = rows.clone(), policy.clone()
            rows[..., : self.game.actions] |= gone.unsqueeze(-1).to(rows.dtype)
            policy[..., STAY] += gone.to(policy.dtype)
            executed, alive = torch.where(gone, STAY, executed), alive | gone
        reward = outcome.reward * REWARD_SCALE
        for kept, new in zip(self.diary, (rows, policy, executed, reward, alive, self.memory["belief"], code)):
            kept[game, t] = new

    def _finish(
        self, ended: Tensor, replay: Replay[Experience], update: int, successes: Replay[Experience] | None
    ) -> None:
        """Label the episodes that are over and hand them to the replay."""
        diaries = OpenEpisodes(*(field[ended] for field in self.diary))  # [e, T, n, ...]
        reward = diaries.reward if self.ranked is None else self._rank(ended, diaries)
        labels = value_labels(reward.transpose(1, 2), self.planner.config.gamma).transpose(1, 2)
        belief = self.memory["belief"][ended]  # [e, n, S', K] by observer and slot
        goal = belief[:, self._seen_by, self._slot]  # [e, n, S', K] by player and the slot it is seen in
        where, when, who = diaries.there.nonzero(as_tuple=True)
        seed = ended[where] // self.games
        steps = Experience(
            diaries.rows[where, when, who],
            when / self.game.config.final_time,
            diaries.action[where, when, who],
            diaries.policy[where, when, who],
            labels[where, when, who],
            goal[where, who],
            torch.stack([diaries.believed[where, when, who], belief[where, who]], 1),
            diaries.code[where, when, who],
            torch.full_like(where, update),
        )
        ring = seed * self.game.players + who
        replay.add(ring, steps)
        if successes is not None:
            caught = (diaries.reward.sum(1) > 0)[where, who]
            successes.add(ring[caught], steps.select(caught))
        if self.histories is not None:
            self._store_sequences(ended, diaries, goal[:, :, 0])
        self.diary.there[ended] = False
        self.diary.reward[ended] = 0.0

    def _store_sequences(self, ended: Tensor, diaries: OpenEpisodes, goal: Tensor) -> None:
        """Hand whole histories to the encoder's memory; goal: [e, n, K] by the player before."""
        assert self.histories is not None
        where, who = diaries.there[:, 0].nonzero(as_tuple=True)  # everybody who learns or plans acts at the start
        actions = diaries.action[where].gather(
            2, self.game.ego[who].unsqueeze(1).expand(-1, diaries.action.shape[1], -1)
        )
        new = History(
            diaries.rows[where, :, who],
            actions,
            diaries.there[where, :, who],
            goal[where, who],
            self.memory["outcome"][ended][where, who],
        )
        self.histories.add(ended[where] // self.games, new)

    def _rank(self, ended: Tensor, diaries: OpenEpisodes) -> Tensor:
        """r2: every player's final reward is replaced by its rank, at the player's last step."""
        assert self.ranked is not None
        final = diaries.reward.sum(1)  # [e, n]
        seed = (ended // self.games).unsqueeze(1).expand_as(final)
        ranks = self.ranked.rank(final, seed, self.generator)
        self.ranked.add(final.flatten(), seed.flatten())
        steps = diaries.there.shape[1]
        last = steps - 1 - diaries.there.flip(1).to(torch.uint8).argmax(1)  # [e, n]
        return torch.zeros_like(diaries.reward).scatter(1, last.unsqueeze(1), ranks.unsqueeze(1))

    # --- saving ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "state": self.state._asdict(),
            "memory": dict(self.memory),
            "rule_memory": dict(self.rule_memory),
            "diary": self.diary._asdict(),
            "hunters": self.hunters,
            "generator": self.generator.get_state(),
            "ranked": None if self.ranked is None else self.ranked.state_dict(),
            "guests": None if self.guests is None else self.guests.state_dict(),
            "histories": None if self.histories is None else self.histories.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        device = self.game.device
        self.state = State(**saved["state"]).to(device)
        self.memory = {k: v.to(device) for k, v in saved["memory"].items()}
        self.rule_memory = {k: v.to(device) for k, v in saved["rule_memory"].items()}
        self.diary = OpenEpisodes(**{k: v.to(device) for k, v in saved["diary"].items()})
        self.hunters = saved["hunters"].to(device)
        self.generator.set_state(saved["generator"].cpu())
        if self.ranked is not None:
            self.ranked.load_state_dict(saved["ranked"])
        if self.guests is not None:
            self.guests.load_state_dict(saved["guests"])
        if self.histories is not None:
            self.histories.load_state_dict(saved["histories"])
