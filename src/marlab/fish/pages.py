"""What the notebook shows of fish runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

from marlab.fish.measure.words import WORDS as WORDS

PAGES = {
    "marlab.fish.measure.config:EvalConfig": "marlab.fish.measure.pages:evaluation",
    "marlab.fish.training.config:FishTrainConfig": "marlab.fish.measure.pages:training",
}

CAPTIONS: dict[str, dict[str, str]] = {
    "en": {
        "survival": "Survival while training, beside scripts and the ceiling",
        "first_death": "When the first fish of an episode dies",
        "iter*_death_hist": "When fish die, in one probe",
        "death_histogram": "When fish die",
        "hard_starts": "Hard starts: how many are known, and how often they are played",
        "multi_eval_timeline": "Every probe on the way",
        "penalty_vs_entropy": "Death penalty and entropy of the policy",
        "penalty_vs_first_death": "Death penalty and the first death",
        "step_one_by_type": "Deaths in the first step, by kind of start",
        "step_one_heading_polar": "Where the predator comes from when a fish dies at once",
        "step_one_polar": "Where the predator comes from when a fish dies at once",
        "training_curve": "Survival over the whole training",
        "training_survival": "Survival over the whole training",
        "curve": "How survival grew, iteration by iteration",
        "multi_fish_eval": "The trained shoal in a held-out arena",
        "*tail_rank*": "One of the worst episodes: who is caught, and how",
        "worst_rank*": "One of the worst episodes: who is caught, and how",
        "episode": "One episode",
    },
    "zh": {
        "survival": "训练中的存活率,与脚本和上限并列",
        "first_death": "一局中第一条鱼何时死亡",
        "iter*_death_hist": "一次探测中鱼何时死亡",
        "death_histogram": "鱼何时死亡",
        "hard_starts": "困难开局:已知多少,使用多频繁",
        "multi_eval_timeline": "途中的每次探测",
        "penalty_vs_entropy": "死亡惩罚与策略的熵",
        "penalty_vs_first_death": "死亡惩罚与第一次死亡",
        "step_one_by_type": "第一步死亡,按开局类型",
        "step_one_heading_polar": "鱼立刻死亡时捕食者来自何方",
        "step_one_polar": "鱼立刻死亡时捕食者来自何方",
        "training_curve": "整个训练过程的存活率",
        "training_survival": "整个训练过程的存活率",
        "curve": "存活率如何逐次迭代增长",
        "multi_fish_eval": "训练后的鱼群在未见过的场景中",
        "*tail_rank*": "最差的几局之一:谁被捉住,如何被捉住",
        "worst_rank*": "最差的几局之一:谁被捉住,如何被捉住",
        "episode": "一局",
    },
}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {
    "en": {
        "custom/avg_survival_rate": "survival [share of fish]",
        "custom/step_one_death_count": "deaths in the first step",
        "episode/survival": "survival of episodes [share of fish]",
        "episode/reward": "reward of an episode",
        "final model: survival": "survival of the final model",
        "best model: survival": "survival of the best model",
        "final model: share of the possible": "final model, share of the possible",
        "best model: share of the possible": "best model, share of the possible",
        "final model: worst episode": "worst episode of the final model",
        "best model: worst episode": "worst episode of the best model",
        "final model: minus side-step": "final model minus the best script",
        "best model: minus side-step": "best model minus the best script",
        "training survival": "survival while training",
        "last probe survival": "survival in the last probe",
        "last gate stage": "last stage of the gate",
        "survival": "survival [share of fish]",
        "share of the possible": "share of the possible",
        "worst episode": "worst episode",
    },
    "zh": {
        "custom/avg_survival_rate": "存活率 [鱼的份额]",
        "custom/step_one_death_count": "第一步的死亡数",
        "episode/survival": "各局存活率 [鱼的份额]",
        "episode/reward": "一局的奖励",
        "final model: survival": "最终模型的存活率",
        "best model: survival": "最佳模型的存活率",
        "final model: share of the possible": "最终模型占可能值的份额",
        "best model: share of the possible": "最佳模型占可能值的份额",
        "final model: worst episode": "最终模型最差的一局",
        "best model: worst episode": "最佳模型最差的一局",
        "final model: minus side-step": "最终模型减去最好的脚本",
        "best model: minus side-step": "最佳模型减去最好的脚本",
        "training survival": "训练中的存活率",
        "last probe survival": "最后一次探测的存活率",
        "last gate stage": "门控的最后阶段",
        "survival": "存活率 [鱼的份额]",
        "share of the possible": "占可能值的份额",
        "worst episode": "最差的一局",
    },
}
"""Metrics and results."""
