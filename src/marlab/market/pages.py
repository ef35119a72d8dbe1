"""What the notebook shows of market runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

from marlab.market.replay.words import WORDS as WORDS

PAGES = {
    "marlab.market.arena.plan:PlayConfig": "marlab.market.replay.pages:cup",
    "marlab.market.collect.plan:MarketCollectConfig": "marlab.market.replay.pages:collected",
}

CAPTIONS: dict[str, dict[str, str]] = {
    "en": {
        "collection": "What was recorded, world by world",
        "days": "Days of recorded worlds",
        "goals": "Goals of the day that experts followed",
        "operators": "How experts answer offers",
        "residuals": "How experts leave the safe baseline",
        "*_loss": "Losses while a layer learns",
        "*_operators": "Answers of a layer beside the expert's",
        "*_residuals": "Offers of a layer beside the expert's",
        "l2_bc_buckets": "Goals of L2 beside the expert's, by time and side",
        "l4_distill_weights": "How L4 weighs negotiations",
        "scores": "Scores by agent and place in the chain",
        "parts": "Where the score comes from",
        "leaving": "When clones and experts leave negotiations",
        "lots": "Quantities that clones and experts offer",
        "differences": "Differences in the same seats",
        "minus_*": "Differences in the same seats",
        "levels": "Scores by level of the chain",
    },
    "zh": {
        "collection": "记录了什么,逐个世界",
        "days": "所记录世界的天数",
        "goals": "专家遵循的当日目标",
        "operators": "专家如何回应报价",
        "residuals": "专家如何偏离安全基线",
        "*_loss": "一层学习时的损失",
        "*_operators": "一层的回应与专家的回应并列",
        "*_residuals": "一层的报价与专家的报价并列",
        "l2_bc_buckets": "L2 的目标与专家的并列,按时间和方向",
        "l4_distill_weights": "L4 如何权衡谈判",
        "scores": "按智能体和链中位置的得分",
        "parts": "得分从何而来",
        "leaving": "克隆与专家何时离开谈判",
        "lots": "克隆与专家报出的数量",
        "differences": "相同席位上的差值",
        "minus_*": "相同席位上的差值",
        "levels": "按链中层级的得分",
    },
}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {
    "en": {
        "worlds": "worlds",
        "configs": "markets",
        "worlds_failed": "worlds that failed",
        "days": "days",
        "decisions": "decisions of experts",
        "settlement_error": "largest error of the settlement",
        "left_out": "agents that could not play",
    },
    "zh": {
        "worlds": "世界数",
        "configs": "市场数",
        "worlds_failed": "失败的世界",
        "days": "天数",
        "decisions": "专家决策数",
        "settlement_error": "结算的最大误差",
        "left_out": "未能参赛的智能体",
    },
}
"""Metrics and results."""
