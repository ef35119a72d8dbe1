"""What is in a code: linear probes, a codebook of prototypes, goals to believe in, and a picture in two dimensions.

Letters: R rows, D code width, K prototypes or other goals, V goal width (V = D for codes).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from marlab.hunt.others.vae import Code
from marlab.hunt.players.rollout import HARE, NONE, OUTCOMES, STAG
from marlab.lab.errors import UserError

PROTOTYPES = 8
SHARE_ROUNDS = 30
"""Rounds in which the shares of stag hunters among the players of a prototype settle."""


class Probe(NamedTuple):
    """How well a linear classifier reads a label from features, on rows it was not trained on."""

    accuracy: float
    balanced: float  # mean of the classes' recalls: chance is one over the number of classes
    majority: float  # accuracy of always naming the most frequent class
    rows: int


def linear_probe(
    train_x: Tensor, train_y: Tensor, test_x: Tensor, test_y: Tensor, penalty: float = 1e-3, iterations: int = 100
) -> Probe:
    """Logistic regression from features [R, F] to labels [R] (0, 1, ...), fitted to its optimum with L2 `penalty`."""
    classes = int(train_y.max()) + 1
    centre, scale = train_x.mean(0), train_x.std(0).clamp_min(1e-3)  # a constant feature stays silent
    train, test = ((x - centre) / scale for x in (train_x.float(), test_x.float()))
    weight = torch.zeros(train.shape[1], classes, device=train.device, requires_grad=True)
    bias = torch.zeros(classes, device=train.device, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=iterations, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        value = cross_entropy(train @ weight + bias, train_y) + penalty * (weight**2).sum()
        value.backward()
        return value

    solver.step(loss)
    with torch.no_grad():
        right = (test @ weight + bias).argmax(1) == test_y
    recalls = [right[test_y == c].float().mean().item() for c in range(classes) if bool((test_y == c).any())]
    majority = (test_y == train_y.mode().values).float().mean().item()
    return Probe(right.float().mean().item(), sum(recalls) / len(recalls), majority, len(test_y))


class Codebook(NamedTuple):
    """Prototypes of codes, so that beliefs over codes are distributions over K goals."""

    prototypes: Tensor  # [K, D]
    spread: Tensor  # [K, D] variance of the codes that a prototype stands for
    outcome: Tensor  # [3, K] probability of each outcome (none, stag, hare) under a prototype
    usage: Tensor  # [K] share of the trajectories
    goal: Tensor  # [2, K] probability of being after the stag and after hares under a prototype

    def nearest(self, codes: Tensor) -> Tensor:
        """[*S] index of the prototype nearest to codes [*S, D]."""
        return (codes.unsqueeze(-2) - self.prototypes).square().sum(-1).argmin(-1)


class Goals:
    """Candidates for what a player is after, and what a capture says about them."""

    def __init__(
        self, candidates: Tensor, evidence: Tensor, common: Tensor | None = None, spread: Tensor | None = None
    ) -> None:
        """candidates: [K, V]; evidence: [3, K] probability of each outcome (none, stag, hare) under a goal.

        common: [2, K] how common each goal is among players who are after the stag, and after hares. By default that is
        read from captures, which tell nothing about those who wait at the stag in vain. spread: [K, V] variance of the
        codes that a prototype stands for, where goals are codes.
        """
        if candidates.dim() != 2 or evidence.shape != (3, len(candidates)):
            raise ValueError(f"evidence {tuple(evidence.shape)} does not fit goals {tuple(candidates.shape)}")
        self.candidates, self.evidence = candidates.float(), evidence
        known = evidence[1:] if common is None else common
        self.common = known / known.sum()
        self.spread = torch.zeros_like(self.candidates) if spread is None else spread.float()

    @staticmethod
    def hunt() -> Goals:
        return Goals(torch.eye(2), torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))

    @staticmethod
    def none() -> Goals:
        return Goals(torch.zeros(1, 0), torch.ones(3, 1))

    @property
    def count(self) -> int:
        """K, the number of goals."""
        return self.candidates.shape[0]

    @property
    def stag(self) -> Tensor:
        """[K] how much of each goal is about the stag: the share of stag hunters among those who have it."""
        return self.common[0] / self.common.sum(0)

    def to(self, device: torch.device | str) -> Goals:
        return Goals(*(x.to(device) for x in (self.candidates, self.evidence, self.common, self.spread)))


class CoPlayerTypes:
    """What a player may be up to: one of K goals that it keeps, or one that depends on what somebody else does.

    A follower takes hares until another player stands on a stag, then it comes. Until that happens it does what a hare
    catcher does, so only standing there can tell the two apart, and only memory of earlier episodes makes that
    worthwhile. No network is needed beyond those of the goals: in each situation a follower has one goal or the other.
    There are G = K + F hypotheses, with a follower for each goal that is about hares.
    """

    def __init__(self, goals: Goals, followers: float = 0.0, fates: bool = True) -> None:
        """followers: how probable it is of a stranger who takes hares that it follows; 0: nobody is thought to.

        fates: whether a planner's networks are told prototypes as they are. Some stand for hunters who captured
        nothing, and networks have learnt that there is no stag to be had with such a player, because nobody had come.
        Whoever could come must not be told so; without fates such a hunter is told as most stag hunters are.
        """
        check_followers(followers)
        stag = goals.stag
        count, device = goals.count, stag.device
        hares = ((stag < 0.5) & bool((stag > 0.5).any()) & (followers > 0)).nonzero().squeeze(1)  # [F]
        usual = int((goals.common[0] * goals.evidence[STAG]).argmax())  # the goal of most who captured a stag
        every = torch.arange(count, device=device)
        self.alone = torch.cat([every, hares])  # [G] goal while no other player stands on a stag
        self.joined = torch.cat([every, torch.full_like(hares, usual)])  # [G] goal once one does
        self.follows = torch.arange(len(self.alone), device=device) >= count  # [G]
        even = torch.full((count,), 1.0 / count, device=device)
        kept = even.index_fill(0, hares, (1 - followers) / count)
        self.prior = torch.cat([kept, followers * even[hares]])  # [G]: goals are as probable as without followers
        self.stag = stag[self.alone]  # [G]
        self.hunts = (self.stag > 0.5) & ~self.follows  # [G] after the stag whatever others do
        self.aims = torch.where(self.follows, 2, (self.stag <= 0.5).long())  # [G] the stag, hares, or to follow
        self.evidence = goals.evidence[:, self.alone].clone()  # [3, G] a follower captures one or the other
        self.evidence[STAG] = goals.evidence[STAG, self.joined]
        self.goals = count
        vain = (goals.evidence[NONE] > 0.5) & (stag > 0.5) & (not fates)
        called = torch.where(vain, usual, every)
        self._halves = (one_hot(called[self.alone], count) + one_hot(called[self.joined], count)) / 2  # [G, K]
        self._candidates = goals.candidates

    @property
    def count(self) -> int:
        """G."""
        return len(self.alone)

    @property
    def depend(self) -> bool:
        """Whether any of them depends on what somebody else does."""
        return self.count > self.goals

    def now(self, by_goal: Tensor, held: Tensor) -> Tensor:
        """[*S, G] of each hypothesis from [*S, K] of each goal, for players `held` [*S] (bool) of whom another stands
        on a stag."""
        return torch.where(held.unsqueeze(-1), by_goal[..., self.joined], by_goal[..., self.alone])

    def meanings(self, meant: Tensor) -> tuple[Tensor, Tensor]:
        """[*S, G, V] twice, while no other player stands on a stag and once one does, from what goals mean [*S, K, V].

        A follower's history says nothing about how it will hunt the stag, so that is the bare goal.
        """
        alone = meant[..., self.alone, :]
        return alone, torch.where(self.follows.unsqueeze(1), self._candidates[self.joined], alone)

    def told(self, belief: Tensor) -> Tensor:
        """[*S, K] what a planner's own networks are told of beliefs [*S, G]: a follower is half of either goal.

        They know fixed goals only. Told that a follower takes hares, they would never lead; told that it hunts the
        stag, they would count on it from anywhere.
        """
        return belief @ self._halves


def check_followers(followers: float) -> None:
    if not 0 <= followers < 1:
        raise UserError(f"followers is {followers:g}, expected 0 or more and below 1.")


def others_at(standing: Tensor) -> Tensor:
    """[*S, n] bool: another player stands on a stag, from who does [*S, n]."""
    return standing.sum(-1, keepdim=True) > standing


def fuse_prototype_and_history(code: Code, candidates: Tensor, spread: Tensor) -> Tensor:
    """[*S, K, D] what each of K prototypes [K, D] means for players whose histories say `code` [*S, D].

    Both are normal distributions, and this is the mean of their product: the prototype where the history says little,
    the history's code where it is sure.
    """
    certain, vague = code.log_var.exp().unsqueeze(-2), spread
    own = vague / (vague + certain)  # the weight of the history's code
    return own * code.mean.unsqueeze(-2) + (1 - own) * candidates


def make_codebook(codes: Tensor, outcomes: Tensor, count: int, generator: torch.Generator) -> Codebook:
    """k-means on one code per trajectory [R, D], with what became of the trajectories: `outcomes` [R].

    Its goals are by captures alone; `relabel_by_likelihood` knows better where players captured nothing.
    """
    prototypes = k_means(codes, min(count, codes.shape[0]), generator)
    place = torch.cdist(codes, prototypes).argmin(1)
    size = len(prototypes)
    members = torch.bincount(place, minlength=size)
    apart = torch.zeros_like(prototypes).index_add_(0, place, (codes - prototypes[place]).square())
    spread = apart / members.clamp_min(1).unsqueeze(1)
    ones = one_hot(outcomes, len(OUTCOMES)).to(codes.dtype)
    goals = captured(outcomes).to(codes.dtype)
    return Codebook(prototypes, spread, _shares(ones, place, size), members / len(place), _shares(goals, place, size))


def relabel_by_likelihood(book: Codebook, codes: Tensor, outcomes: Tensor, deeds: Tensor) -> Codebook:
    """The codebook with goals [2, K] that players without a capture have a part in, by what they did.

    codes [R, D] and outcomes [R] as for `make_codebook`; deeds: [R, K] logarithm of how likely each prototype makes the
    actions of a trajectory. What stag hunters and hare catchers do is what those do who captured one; the shares of
    both among the players of a prototype are the most likely ones.
    """
    place, size = book.nearest(codes), len(book.usage)
    hunted = torch.stack([torch.bincount(place[outcomes == prey], minlength=size) for prey in (STAG, HARE)])
    among = (hunted + 1e-3) / (hunted + 1e-3).sum(1, keepdim=True)  # [2, K]
    likely = (deeds.unsqueeze(1) + among.to(deeds).log()).logsumexp(2).softmax(1)  # [R, 2]
    known, unknown = captured(outcomes).to(deeds), (outcomes == NONE).unsqueeze(1)
    shares = deeds.new_full((2, size), 0.5)
    for _ in range(SHARE_ROUNDS):
        joint = shares.T[place] * likely
        shares = _shares(torch.where(unknown, joint / joint.sum(1, keepdim=True), known), place, size)
    return book._replace(goal=shares)


def captured(outcome: Tensor) -> Tensor:
    """[R, 2] goals by what players captured in the end [R]; even without a capture."""
    return certain(outcome == STAG, outcome == HARE)


def certain(stag: Tensor, hare: Tensor) -> Tensor:
    """[R, 2] goals of players who are known to be after the stag [R] or after hares [R]; even for the others."""
    known = torch.stack([stag, hare], 1)
    return torch.where(known.any(1, keepdim=True), known.float(), 0.5)


def _shares(labels: Tensor, place: Tensor, size: int) -> Tensor:
    """[classes, size] share of each label [R, classes] in a cluster; one even pseudo-count avoids certainty."""
    classes = labels.shape[1]
    counts = torch.zeros(size, classes, dtype=labels.dtype).index_add_(0, place, labels) + 1.0 / classes
    return (counts / counts.sum(1, keepdim=True)).T.contiguous()


def k_means(points: Tensor, count: int, generator: torch.Generator, iterations: int = 50) -> Tensor:
    """[count, D] centres of points [R, D], from starts that are spread out (k-means++)."""
    centres = points[torch.randint(len(points), (1,), generator=generator, device=points.device)]
    for _ in range(count - 1):
        far = torch.cdist(points, centres).amin(1) ** 2
        if not bool(far.sum() > 0):  # fewer different points than centres
            far = torch.ones_like(far)
        centres = torch.cat([centres, points[torch.multinomial(far, 1, generator=generator)]])
    for _ in range(iterations):
        distance, place = torch.cdist(points, centres).min(1)
        total = torch.zeros_like(centres).index_add_(0, place, points)
        size = torch.bincount(place, minlength=count)
        moved = torch.where((size > 0).unsqueeze(1), total / size.clamp_min(1).unsqueeze(1), centres)
        if bool((size == 0).any()):  # a centre without members starts again at the worst-served point
            moved[int((size == 0).int().argmax())] = points[distance.argmax()]
        if torch.allclose(moved, centres, atol=1e-6):
            return moved
        centres = moved
    return centres


def two_dimensions(codes: Tensor) -> Tensor:
    """[R, 2] codes [R, D] along the two directions in which they vary most."""
    centred = codes - codes.mean(0)
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    return centred @ axes[:2].T
