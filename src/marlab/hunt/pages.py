"""What the notebook shows of hunt runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

from marlab.hunt.watch.words import WORDS as WORDS

PAGES = {
    "marlab.hunt.evaluate.command:HuntEvalConfig": "marlab.hunt.watch.pages:evaluated",
    "marlab.hunt.data.config:HuntCollectConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.others.config:PretrainGoalsConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.world_model.config:PretrainWorldConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.ppo.config:PPOTrainConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.selfplay.config:HopTrainConfig": "marlab.hunt.watch.pages:trained",
}

SITE = {"play": "marlab.hunt.seat.pages:play", "watch": "marlab.hunt.watch.pages:watched"}

ACTIONS = {"seat": "marlab.hunt.seat.serve:answer"}

CAPTIONS: dict[str, dict[str, str]] = {
    "en": {
        "training": "Reward, outcomes, prediction and sharpness of plans while training",
        "reward": "Reward and outcomes while training",
        "trainings": "Several trainings side by side",
        "losses": "Losses on data that is learnt and on data that is not",
        "epochs": "How predictions grow with the epochs",
        "predictions": "How often the next move of others is predicted",
        "codes": "Goal codes, drawn in two dimensions",
        "belief": "Belief in the true type, step by step",
        "cross_play": "Every team beside every stranger",
        "*_shares": "Score card: share of the way from random to best",
        "*_adaptation": "How rewards change from episode to episode with strangers",
        "online_learning": "What is learnt while playing",
        "reliability": "Are probabilities what they say?",
        "episode": "An episode with everybody's beliefs and plans",
    },
    "zh": {
        "training": "训练中的奖励、结局、预测与规划的锐度",
        "reward": "训练中的奖励与结局",
        "trainings": "多次训练并列",
        "losses": "学习数据与保留数据上的损失",
        "epochs": "预测如何随轮数提高",
        "predictions": "预测对他人下一步动作的频率",
        "codes": "目标编码的二维图",
        "belief": "对真实类型的信念,逐步",
        "cross_play": "每个队伍与每个陌生人",
        "*_shares": "成绩单:从随机到最佳的份额",
        "*_adaptation": "与陌生人反复对局时奖励逐局如何变化",
        "online_learning": "对局中学到了什么",
        "reliability": "概率是否名副其实",
        "episode": "一局,含每人的信念与规划",
    },
}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {
    "en": {
        "episode/reward": "reward of a player in an episode",
        "episode/length": "length of an episode [steps]",
        "episode/count": "episodes that ended",
        "episode/reward_player_*": "reward of one seat",
        "outcome/none": "share of players who left with nothing",
        "outcome/hare": "share of players who took a hare",
        "outcome/stag_*": "share of players who shared a stag",
        "progress/env_steps": "game steps of a seed",
        "plan/beta": "sharpness of plans (beta)",
        "reward_sampled": "reward of all players, moves drawn",
        "reward_learners_sampled": "reward of the learners, moves drawn",
        "reward_greedy": "reward of all players, likeliest moves",
        "reward_learners_greedy": "reward of the learners, likeliest moves",
        "seat_spread_sampled": "spread between seats, moves drawn",
        "seat_spread_greedy": "spread between seats, likeliest moves",
        "validation_top1": "moves predicted right (held out)",
        "validation_top3": "right move among the three likeliest",
        "validation_cross_entropy": "cross-entropy of predictions",
        "best_epoch": "best epoch",
        "test_obs_mse": "squared error of imagined frames",
        "test_reward_mse": "squared error of imagined rewards",
        "replay_equality": "rows that replay as written",
    },
    "zh": {
        "episode/reward": "每局每名玩家的奖励",
        "episode/length": "一局的长度 [步]",
        "episode/count": "结束的局数",
        "episode/reward_player_*": "一个席位的奖励",
        "outcome/none": "空手而归的玩家份额",
        "outcome/hare": "捉到兔的玩家份额",
        "outcome/stag_*": "分得鹿的玩家份额",
        "progress/env_steps": "每个种子的游戏步数",
        "plan/beta": "规划的锐度 (beta)",
        "reward_sampled": "所有玩家的奖励(抽样动作)",
        "reward_learners_sampled": "学习者的奖励(抽样动作)",
        "reward_greedy": "所有玩家的奖励(最可能动作)",
        "reward_learners_greedy": "学习者的奖励(最可能动作)",
        "seat_spread_sampled": "席位间差距(抽样动作)",
        "seat_spread_greedy": "席位间差距(最可能动作)",
        "validation_top1": "预测对的动作(保留数据)",
        "validation_top3": "正确动作在前三之中",
        "validation_cross_entropy": "预测的交叉熵",
        "best_epoch": "最佳轮",
        "test_obs_mse": "想象画面的平方误差",
        "test_reward_mse": "想象奖励的平方误差",
        "replay_equality": "重放与记录一致的行",
    },
}
"""Metrics and results."""
