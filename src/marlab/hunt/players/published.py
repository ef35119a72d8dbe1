"""Published figures of the original, beside which ours are shown. Readings from its pictures are approximate.

The original is the system that this one was built again from; its figures are about the game msh_4x4 unless said, and
its models were judged on the rows they had been trained on.
"""

from __future__ import annotations

from typing import NamedTuple

ROWS = 107_010
"""Rows of its offline data."""
CLASSES = (0.1294, 0.1300, 0.1280, 0.1294, 0.3457, 0.0516, 0.0859)
"""Shares of the seven actions in them."""

CONFUSION = (
    (8423, 1370, 1507, 1581, 171, 98, 698),
    (1270, 9387, 1309, 1236, 86, 35, 590),
    (1831, 1861, 7985, 921, 108, 72, 923),
    (1746, 1797, 1272, 8013, 153, 111, 756),
    (4710, 4409, 2750, 3202, 21513, 118, 286),
    (485, 247, 229, 340, 28, 4097, 92),
    (644, 765, 227, 1088, 14, 39, 6417),
)
"""True (rows) and predicted (columns) actions, last epoch."""

TOP1 = (0.5337, 0.5474, 0.5608, 0.5724, 0.5853, 0.5936, 0.5983, 0.6080, 0.6120, 0.6152)
TOP3 = (0.7465, 0.7430, 0.7441, 0.7431, 0.7421, 0.7421, 0.7424, 0.7411, 0.7412, 0.7405)
"""Per epoch."""


class Losses(NamedTuple):
    """Where the loss curves of a training of the autoencoder ended."""

    recon: float | None
    policy: float | None
    total: float
    kl: float | None
    factor: float
    steps: int | None


VAE_LOSSES = {
    "recon": Losses(0.026, None, 0.033, 7.0, 1e-3, 390_000),
    "moa": Losses(None, 1.6, 1.6, 1000.0, 5e-5, 155_000),
    "restored": Losses(None, 1.95, 0.02, None, 1e-4, None),
}
"""By objective: the original autoencoder, the prediction of actions alone, and reconstruction put back."""

WORLD_OBS_MSE = 0.007402
WORLD_PSNR = 24.08
WORLD_REWARD_MSE = 0.001189
WORLD_CHANNELS = (6.775978e-3, 1.623118e-2, 1.559676e-2, 8.610861e-3, 4.749758e-8, 7.902491e-4, 3.805568e-3)
WORLD_LOSS = (
    0.076094, 0.076446, 0.076996, 0.077331, 0.077460, 0.077460, 0.077518, 0.077713, 0.077528, 0.077788, 0.077189,
    0.077524, 0.077544, 0.077387, 0.077324, 0.077374,
)  # fmt: skip
"""Of epochs 1760 to 1775, with the channel weights 2 2 2 2 1 1 1; about 0.01 without them."""

ONLINE_BROKEN = {"top1": (0.138, 0.150), "top3": (0.342, 0.366), "ce": (9.75, 10.3)}
"""The model of others online, before its buffer was mended."""

PPO_START, PPO_END = 0.85, 2.784
PPO_ITERATIONS, PPO_HOURS = 4657, 3.307
MCTS_START, MCTS_PEAK, MCTS_END = 0.90, 1.5, 0.726
"""Mean reward of the original's PPO and HOP+-MCTS: at the start, the highest, at the end."""
OPTIMUM = 3.0
"""Team optimum of its game."""
RANDOM_REWARD, RANDOM_ENTROPY = 0.647, 1.447
"""Four random players in its game: mean reward, and entropy of what they do in nats."""
RANDOM_TOP1, RANDOM_TOP3, RANDOM_CE = 0.240, 0.720, 1.446
"""The best that anybody can predict of them: the original's models of others ended there."""

Point = tuple[int, float]
"""Iteration and value."""


class RewardCurve(NamedTuple):
    """Mean reward over a training of the original: readings off its curve."""

    points: tuple[Point, ...]
    hours: float
    band: tuple[float, float] | None = None  # where the curve stayed all the time

    @property
    def iterations(self) -> int:
        return self.points[-1][0]


REWARD_CURVES = {
    "ppo": RewardCurve(((0, PPO_START), (1500, 2.5), (3000, 2.65), (PPO_ITERATIONS, PPO_END)), PPO_HOURS),
    "hopplus": RewardCurve(((0, 0.68), (445, 0.681)), 21.93, (0.62, 0.74)),
    "hopplus-mcts": RewardCurve(((0, MCTS_START), (27, MCTS_PEAK), (126, MCTS_END)), 30.55),
}
"""By variant. The plateau of PPO, 2.6 to 2.7, is put in its middle."""


class OnlineCurves(NamedTuple):
    """Scores of the models of others over a training of the original, and the recall of single actions at its end."""

    top1: tuple[Point, ...]
    top3: tuple[Point, ...]
    cross_entropy: tuple[Point, ...]
    recall: dict[int, float]  # by action
    remark: str

    @property
    def scores(self) -> dict[str, tuple[Point, ...]]:
        """Curves by the name that the metric has here."""
        return {"acc_top1": self.top1, "acc_top3": self.top3, "ce_loss": self.cross_entropy}


ONLINE_CURVES = {
    "hopplus": OnlineCurves(
        ((30, 0.52), (445, 0.247)), ((30, 0.88), (445, 0.735)), ((30, 1.2), (445, 1.435)),
        {4: 0.02, 5: 0.16, 6: 0.97}, "the original's moves went up and down between 0 and 0.7",
    ),
    "hopplus-mcts": OnlineCurves(
        ((0, 0.50), (37, 0.62), (126, 0.30)), ((0, 0.93), (126, 0.76)), ((0, 1.16), (37, 0.985), (126, 1.41)),
        {a: 0.92 if a == 4 else 0.06 for a in range(7)}, "all of the original's but stay were 0.06 or less",
    ),
}  # fmt: skip
"""By variant, after the original had mended its buffer."""
