"""Sentences of `marlab.fish.verdicts` in Chinese."""

_MODEL = "第 {iteration} 次迭代的模型"
_SURVIVE = "在 {episodes:,} x {fish} 条未见过的鱼中存活 {survival:.4f} {interval:.4f}"
_BESIDE = "与最好的脚本（{script}）在相同场景中相比 {difference:+.4f} {difference_interval:+.4f}"

SENTENCES_ZH = {
    "above_script": f"{_MODEL}胜过所有脚本：{_SURVIVE}，{_BESIDE}。",
    "below_script": f"{_MODEL}不及脚本：{_SURVIVE}，{_BESIDE}。",
    "unclear_script": f"{_MODEL}与脚本不能区分：{_SURVIVE}，{_BESIDE}。",
    "survival": f"{_MODEL}单独测试：{_SURVIVE}。",
    "of_possible": "这是任何策略在那里可能救下的 {share:.2%}（最多 {possible:.4f}）。",
    "probe": "最后一次探测（第 {iteration} 次迭代）：{episodes} x {fish} 条鱼中存活 {survival:.4f} {interval:.4f}；"
    "脚本 {script} 在另一些鱼中救下 {script_survival:.4f}。",
    "probed": "{episodes} x {fish} 条鱼中，第 {iteration} 次迭代的模型存活 {survival:.4f} {interval:.4f}，"
    "占可救者的 {share:.2%}。",
    "learned_predator": "学得的捕食者比拦截式捕食者多捕获第一群鱼的 {lost:.4f} {lost_interval:.4f}；"
    "下一群鱼赢回 {back:+.4f} {back_interval:+.4f}（{arenas} 个未见过的场景）。",
    "next_table": "下一步：运行文件夹中的 `selfplay.json` 列出每群鱼对每个捕食者的结果。",
    "of_foresight": "用真实动力学改进同样的回合后有 {upper:.4f} 存活；策略达到其 {share:.1%}（{arenas} 个场景）。",
    "suite": "策略在 {cells} 片海中的 {ahead} 片明显领先于所有反应式脚本，在 {behind} 片落后于其中最好的。",
    "next_suite_file": "下一步：运行文件夹中的 `suite.json` 和图说明在哪里。",
    "school": "鱼与最近邻居的平均距离为 {nearest:.2f} 米，另一群为 {other_nearest:.2f} 米。"
    "捕食者会被鱼群迷惑时多存活 {pays:+.4f} {pays_interval:+.4f}，不会时 {costs:+.4f} {costs_interval:+.4f}。",
    "next_school_file": "下一步：运行文件夹中的 `school.json` 列出各群的极化、环游和距离。",
    "not_judged": "未作评判：既没有探测，也没有评估。",
    "next_eval": "下一步：`marlab fish eval {run}` 在未见过的场景中与脚本和上限并列测试。",
    "next_who_dies": "下一步：训练更久，或看看谁会死：`marlab fish probe {run} --films 3`。",
    "next_watch": "下一步：`marlab fish watch {run}` 播放它。",
    "next_watch_checkpoint": "下一步：`marlab fish watch {checkpoint}` 播放它。",
}
