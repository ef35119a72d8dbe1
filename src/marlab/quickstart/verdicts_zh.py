"""Sentences of `marlab.quickstart.verdicts` in Chinese."""

_NUMBERS = "训练后的智能体减去纯 L1 为 {difference:+.3f} {interval:+.3f}"
_BESIDE = "({difference:+.3f} {interval:+.3f})"

SENTENCES_ZH = {
    "above": f"训练有帮助：{_NUMBERS}，明显大于零。",
    "below": f"在这个规模上训练没有帮助：{_NUMBERS}，明显小于零，网络甚至有害。",
    "unclear": f"在这个规模上看不出训练有明显帮助：{_NUMBERS}，区间包含零。",
    "one_market": "一个市场不能说明训练是否有帮助：训练后的智能体减去纯 L1 为 {difference:+.3f}。",
    "no_trained": "训练后的智能体未能参赛：{why}。",
    "no_pure_l1": "纯 L1 未能参赛，因此不知道训练是否有帮助。",
    "above_teacher": f"训练后的智能体领先于其老师 PenguinAgent {_BESIDE}。",
    "below_teacher": f"训练后的智能体落后于其老师 PenguinAgent {_BESIDE}。",
    "unclear_teacher": f"训练后的智能体与其老师 PenguinAgent 不能区分 {_BESIDE}。",
    "next_page": "下一步：打开 {run}/report/quickstart.html，然后按其最后一部分所述以完整规模重复这一流程。",
}
