"""Sentences of `marlab.lab.verdict` in Chinese."""

_GAP = "{what} {value} 对 {base}，差 {difference:+.3g} {interval:+.3g}。"

SENTENCES_ZH = {
    "at_the_best": "{what}在 {size} 上为 {value} {interval}，最佳可能值为 {best}：已无可改进。",
    "short_of_best": "{what}在 {size} 上为 {value} {interval}；最佳可能值为 {best}。",
    "go_on": "下一步：同一命令加上 `--resume` 从这里继续。",
    "draw": "下一步：`marlab draw {run}` 补做因时间不足而缺少的部分。",
    "look": "下一步：`marlab note {run}` 讲述全部经过。",
    "compare.better": "{name} 优于 {other}：" + _GAP,
    "compare.worse": "{name} 劣于 {other}：" + _GAP,
    "compare.higher": "{name} 高于 {other}：" + _GAP,
    "compare.lower": "{name} 低于 {other}：" + _GAP,
    "compare.within_noise": "{name} 与 {other} 之差在噪声范围内：" + _GAP,
    "compare.equal": "{name} 与 {other} 相等：{what} {value}。",
    "compare.unknown": "{name} 与 {other} 尚不能区分：{what} {value} 与 {base}。",
    "compare.seeds": "差值按双方共有的 {pairs} 个训练种子计算。",
    "compare.seeds_needed": "差值按双方共有的 {pairs} 个训练种子计算；约需 {needed} 个才能把这样大小的差别与噪声分开。",
    "compare.cases": "差值按双方各一次训练所遇到的 {pairs} 个情形计算：对其他种子没有说明力。",
    "compare.apart": "种子不相同，因此两组作为两个样本比较，而非成对比较。",
    "compare.single": "下一步：每组用相同的种子训练两次以上，因为一次训练对另一个种子没有说明力。",
    "compare.one_group": "全部 {count} 个运行除种子外设置相同：它们是一组，没有可比较的对象。",
}
