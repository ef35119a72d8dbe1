"""Sentences of `marlab.hunt.verdicts` in Chinese."""

_EARNED = (
    "每局得 {reward:.3f} {interval:.3f}，与坐在其席位上的 {rule} 玩家相比 {gain:+.3f} {gain_interval:+.3f}"
    "（为团队可得的 {share:.0%}）。"
)
_PREDICTED = (
    "模型预测对 {top1:.1%} {interval:.1%} 的未见过的动作，与不知目标相比 {gain:+.1%} {gain_interval:+.1%}；"
    "任何人最多能预测对 {best:.1%}。"
)
_PLACED = (
    "在未见过的步骤中，它在 {right:.2%} {interval:.2%} 的情形里把玩家放在正确的格子上（最差的席位），"
    "而重复上一帧在 {copy:.2%} 的情形里即可。"
)
_PARTS = "`marlab hunt diagnose {run}` 评判其各部分"

SENTENCES_ZH = {
    "above_rules": f"学习者优于规则玩家：{_EARNED}",
    "below_rules": f"学习者不如规则玩家：{_EARNED}",
    "like_rules": f"学习者与规则玩家无法区分：{_EARNED}",
    "only_start": f"训练尚未教会任何东西，因为还没有完成一次迭代；其起点{_EARNED}",
    "only_curve": "在最后 {count} 次迭代中玩家每局得 {last:.3f}，最初为 {first:.3f}；没有时间玩新的对局。",
    "nothing_learnt": "尚不能评判：第一次迭代还没有结束。",
    "cut": "它在 {total} 次迭代中的第 {done} 次停止，每个种子按 {planned} 局中的 {episodes} 局评判。",
    "one_seed": "区间是对一个种子的各局而言；`--seeds 0..4` 会显示种子之间的差别。",
    "next_trained": f"下一步：`marlab hunt eval {{run}}` 在陌生人中为它评分，{_PARTS}。",
    "in_phase": "它在阶段 {phase} 停止（共 {count} 个阶段中的第 {number} 个）：{what}。",
    "phases_done": "阶段 {phases} 已完成；没有要求自我对弈（P6）。",
    "no_epoch": "尚不能评判：{total} 轮中的第一轮还没有结束。",
    "models_so_far": "在 {total} 轮中的 {done} 轮之后，模型预测对 {top1:.1%} {interval:.1%} 的未见过的动作，"
    "不知目标时为 {without:.1%}。",
    "goals_help": f"知道目标有帮助：{_PREDICTED}",
    "goals_harm": f"知道目标有害：{_PREDICTED}",
    "goals_unclear": f"目标是否有帮助在噪声范围内：{_PREDICTED}",
    "next_models": f"下一步：{_PARTS}；`marlab hunt train --variant hopplus-mcts --load-moa {{run}}` 使用其编码。",
    "world_so_far": "在 {total} 轮中的 {done} 轮之后，未见过步骤上的损失为 {loss:.4g}，第一轮之后为 {first:.4g}。",
    "world_helps": f"世界模型有帮助：{_PLACED}",
    "world_useless": f"世界模型没有帮助：{_PLACED}",
    "next_world": f"下一步：{_PARTS}；`marlab hunt train --variant hopplus --load-wm {{run}}` 用它来想象。",
    "scored": "在 {count} 个情景中，{agent} 走完了从随机玩家（0）到最佳玩家（100 %）的 {share:.1%} {interval:.1%}。",
    "better_than": "它优于 {other}：逐个开局相差这段路程的 {gain:+.1%} {interval:+.1%}。",
    "worse_than": "它劣于 {other}：逐个开局相差这段路程的 {gain:+.1%} {interval:+.1%}。",
    "like_other": "它与 {other} 之差在噪声范围内：这段路程的 {gain:+.1%} {interval:+.1%}。",
    "weakest": "下一步：它最弱的情景是 {scenario}（{share:.0%}）；`marlab hunt watch AGENT` 播放它的对局。",
    "card_cut": "还没有成绩单；已测量的都保留着。",
    "data_sound": "数据可靠：{episodes:,} 局的全部 {rows:,} 行在游戏中重放时与记录一致。",
    "data_unsound": "不要用这些数据学习：其 {rows:,} 行中只有 {equality:.3%} 重放时与记录一致。",
    "data_cut": "在 {wanted:,} 行中的 {rows:,} 行处停止，什么也没有保留：半个数据集会被当成完整的。",
    "next_data": "下一步：`marlab hunt pretrain vae {run}` 从中学习目标，"
    "`marlab hunt train --load-data {run}` 用它启动规划智能体。",
    "healthy": "全部 {count} 个模块都通过其门槛。",
    "at_fault": "{count} 个模块中有 {failed} 个未达门槛；先看 {module}：{why}。",
    "diagnosis_cut": "时间不足，{count} 个部分中有 {left} 个没有完成。",
    "next_diagnosis": "下一步：{run}/report.md 显示每个结论的依据。",
}
