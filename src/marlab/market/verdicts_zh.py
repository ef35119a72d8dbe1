"""Sentences of `marlab.market.verdicts` in Chinese."""

_DIFFERENCE = "{agent} 减去 {other} 为期初余额的 {difference:+.3f} {interval:+.3f}（{markets} 个市场）"
_ONLINE = "在矢量市场相同世界的相同席位上，学习者与规则相比多得期初余额的 {difference:+.3f} {interval:+.3f}。"
_TRIVIAL = "其数量误差为 {value:.3f} {interval:.3f} 单位，{trivial} 为 {other:.3f}。"

SENTENCES_ZH = {
    "collected": "{planned:,} 个世界中已记录 {worlds:,} 个（{failed:,} 个失败），"
    "有 {days:,} 天和 {decisions:,} 个专家决策可供学习。",
    "next_samples": "下一步：`marlab market samples {run}` 生成各层学习所用的样本。",
    "samples": "从 {worlds:,} 个世界得到 {micro:,} 个决策、{macro:,} 天和 {calls:,} 个回合可供学习；"
    "另有 {val:,} 个世界用于验证，{test:,} 个用于测试。",
    "samples_begun": "{parts:,} 个部分中已读取 {done:,} 个；全部读完后才成为样本。",
    "next_train": "下一步：`marlab market train {run}` 让 L2、L3 和 L4 学习。",
    "learnt": "在未学习过的世界上，{measured} 个被测部分中有 {better} 个因学习而改进："
    "{what}的误差为 {value:.3f} {interval:.3f}，是不学习的最佳预测器（{trivial}）的 {share:.0%}。",
    "learnt_nothing": "在未学习过的世界上，{measured} 个被测部分无一因学习而改进："
    "{what}的误差为 {value:.3f} {interval:.3f}，是不学习的最佳预测器（{trivial}）的 {share:.0%}。",
    "answers": "L3 在 {own:.0%} 的情形中与专家的回答相同，不学习时为 {other:.0%}。",
    "not_measured": "没有测量任何一层：既没有验证世界也没有测试世界，或没有完成任何阶段。",
    "next_play": '下一步：`marlab market play --agents "LitaAgentHRL(weights={run})" PenguinAgent` 显示其收益。',
    "above": f"{{agent}} 表现更好：{_DIFFERENCE}。",
    "below": f"{{agent}} 表现更差：{_DIFFERENCE}。",
    "unclear": f"尚不能判断谁表现更好：{_DIFFERENCE}，区间包含零。",
    "one_market": "一个市场不能判断谁表现更好：{agent} 减去 {other} 为期初余额的 {difference:+.3f}。",
    "alone": "{agent} 在 {markets} 个市场中最终为其期初余额的 {score:.3f} {interval:.3f}。",
    "nothing_played": "尚无完整的市场，因此无法比较。",
    "best": "{agents} 个智能体中 {agent} 收益最高：期初余额的 {score:.3f} {interval:.3f}。",
    "best_official": "{agent} 以 {score:.3f} 分赢得有 {agents} 个智能体参加的联赛官方赛制。",
    "next_more_markets": "下一步：更多市场才能决定，用 `--configs {more}` 和另一个 `--name`。",
    "cloned": "在从未拟合过的世界上，{experts} 个克隆中有 {better} 个比专家的平均份额更能预测其行为："
    "每个决策的交叉熵为 {value:.3f}，而非 {trivial:.3f}。",
    "cloned_scores": "在克隆的世界中，按智能体和链中位置的得分平均偏差为期初余额的 {gap:.3f}（{worlds} 个配置）。",
    "online_above": f"学习者优于规则：{_ONLINE}",
    "online_below": f"学习者不如规则：{_ONLINE}",
    "online_unclear": f"学习者与规则无法区分：{_ONLINE}",
    "online_back": "训练有帮助：起点被故意变差，与规则相差 {start:+.3f} {before:+.3f}，最后相差 {now:+.3f} {after:+.3f}"
    "（向量市场中的相同席位）。",
    "online_not_back": "看不出训练有明显帮助：起点被故意变差，与规则相差 {start:+.3f} {before:+.3f}，最后相差 "
    "{now:+.3f} {after:+.3f}（向量市场中的相同席位）。",
    "online_unmeasured": "学习者尚未与规则比较。",
    "next_online": "下一步：`marlab market play --preset seats --configs 4 --agents "
    '"LitaAgentHRL(mode=learned, weights={run})" "LitaAgentHRL(mode=heuristic)"` 显示二者在模拟器中的收益。',
    "believed": "交谈 {day} 天后，在 {hit:.0%} 的情形中伙伴的真实类型是 {types} 种中最可能的一种，概率为 {own:.2f}，"
    "而非 {chance:.2f}；概率的偏差为 {error:.3f}。",
    "believed_strangers": "{agents} 个没有类型的智能体最终以 {share:.2f} 被当作陌生人，有类型的则为 {types:.2f}。",
    "l2_above": f"L2 比不需要学习的方法更差：{_TRIVIAL}",
    "l2_below": f"L2 学到了东西：{_TRIVIAL}",
    "l2_unclear": f"L2 与不需要学习的方法一样好：{_TRIVIAL}",
    "l2_prices": "其价格误差为每单位 {value:.3f} {interval:.3f}，{trivial} 为 {other:.3f}。",
}
