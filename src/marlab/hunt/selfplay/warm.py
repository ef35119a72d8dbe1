"""The warm start: prior and value learn from offline data what rule-based players do and earn, before the first game.

The models of others come from pretraining and do not change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from marlab.hunt.others.copies import spread
from marlab.hunt.planner.mind import PlannerModels
from marlab.hunt.planner.replay import Experience
from marlab.hunt.selfplay.learn import PlannerLearner
from marlab.hunt.selfplay.offline import relabel_losers
from marlab.lab.progress import Progress
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.run import Run
from marlab.lab.runs.trainer import loop, restore

KIND = "hunt/warm-start"
CHUNK = 4096
"""Steps judged at once."""
LEARNING_RATE = 2e-3
"""Adam step size at the start; it falls to 0."""
SAVE_EVERY = 250
"""Updates between two checkpoints."""


class WarmStart:
    """A trainer whose unit is an update.

    Every seed learns one network, which all of its seats then begin with. The value learns from everybody, or it would
    promise the stag to whoever waits. The prior learns from players who caught something, and with `imagine` from the
    others, as in front of a stag without a partner, what somebody with another goal would have done.
    """

    def __init__(
        self, learner: PlannerLearner, offline: Experience, generator: torch.Generator, *, imagine: bool
    ) -> None:
        """imagine: hindsight, which needs models of others that know something."""
        mind = learner.fast
        self.learner, self.offline, self.generator, self.imagine = learner, offline, generator, imagine
        self.step, self.total = 0, learner.config.warm_updates
        self.first = PlannerModels(
            mind.game, mind.config, mind.goals, mind.seeds, mind.world[0], history=mind.reads_histories, own_moa=False
        )
        self.first.to(offline.time.device)
        if self.first.others is not None and mind.others is not None:
            seeds = len(mind.seeds)  # every observer begins with the same models, so those of the first will do
            known = {k: w.unflatten(0, (seeds, -1))[:, 0] for k, w in mind.others.state_dict().items()}
            self.first.others.load_state_dict(known)
        self.teacher = PlannerLearner(self.first, learner.config, generator)

    def lessons(self) -> Experience:
        """The offline steps [R] with what the prior should learn from them, for self-play to go on with.

        All seeds begin with the same models of others, so those of the first will do.
        """
        rows, copies = torch.arange(len(self.offline.time), device=self.offline.time.device), self.first.players.copies
        parts = [self.offline.select(part.expand(copies, -1)) for part in rows.split(CHUNK)]
        return self.offline._replace(
            policy=torch.cat([relabel_losers(self.first, part, self.imagine)[0] for part in parts])
        )

    def iterate(self) -> Mapping[str, Any]:
        first, c, offline = self.first, self.learner.config, self.offline
        size, device = len(offline.time), offline.time.device
        rate = LEARNING_RATE * (1.0 - self.step / self.total)
        seen = offline.select(
            torch.randint(size, (first.players.copies, c.batch_size), generator=self.generator, device=device)
        )
        self.teacher.player_step(seen._replace(policy=relabel_losers(first, seen, self.imagine)), rate, 0.0)
        self.step += 1
        return {}

    def copy_to_learner(self) -> None:
        """What was learnt so far becomes what all seats begin with."""
        learned, own = self.teacher.slow.players.state_dict(), self.learner.fast.players
        own.load_state_dict({name: spread(learned[name], len(w)) for name, w in own.state_dict().items()})
        self.learner.settle()

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step, "teacher": self.teacher.state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.teacher.load_state_dict(state["teacher"])
        self.generator.set_state(state["generator"].cpu())


def drive_warm_start(warm: WarmStart, run: Run, checkpoints: Path, *, quiet: bool) -> bool:
    """Go on with the warm start where its last checkpoint left it; False if it should stop before its end."""
    store = CheckpointStore(checkpoints, KIND, "warm_{step}.pt", Keep(last=2))
    restore(warm, run, store, warm.offline.time.device)

    def save(score: float | None) -> None:
        store.save(warm.step, warm.state_dict())
        run.log(f"warm start | {warm.step}/{warm.total} updates")

    bar = Progress("warm start", total=warm.total, done=warm.step, unit="updates", quiet=quiet)
    return loop(warm, log=lambda values: None, should_stop=run.should_stop, save=save, save_every=SAVE_EVERY, bar=bar)
