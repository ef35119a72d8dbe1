"""Sentences of `marlab.quickstart.verdicts` in Chinese."""

_NUMBERS = "训练后减去起点为 {difference:+.3f} {interval:+.3f}"

SENTENCES_ZH = {
    "above": f"训练有帮助：{_NUMBERS}，明显大于零。",
    "below": f"训练有害：{_NUMBERS}，明显小于零。",
    "unclear": f"在这个规模上看不出训练有明显帮助：{_NUMBERS}，区间包含零。",
    "one_market": "一个市场不能说明训练是否有帮助：训练后减去起点为 {difference:+.3f}。",
    "no_trained": "训练后的智能体未能参赛：{why}。",
    "no_start": "起点未能参赛，因此不知道训练是否有帮助。",
    "beside_rule": "它从故意变差的起点开始，与手写规则相差 {before:+.3f}，最后相差 {difference:+.3f} {interval:+.3f}。",
    "next_page": "下一步：打开 {run}/report/quickstart.html，然后按其最后一部分所述以完整规模重复这一流程。",
}
