"""Every text of the notebook's own pages, in every language; worlds bring theirs in `marlab.WORLD.pages.WORDS`.

Pages are made with the texts of one language and carry the keys, so that a reader can change the language in the page.
`{name}` in a text is filled in; `{name|s}` is an "s" where that number is not 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marlab.lab.notebook.panels import table, world_pages

LANGUAGES = ("en", "zh")

WORDS: dict[str, dict[str, str]] = {
    "en": {
        # the frame of every page
        "notebook": "Notebook",
        "skip": "Skip to the content",
        "theme": "Light or dark",
        "language": "中文",
        "language.label": "Read this page in Chinese",
        "sections": "Sections",
        "unknown": "unknown",
        "copy": "Copy",
        "copied": "Copied",
        "data.missing": "The data {name} is not beside this page; make the page again with `marlab report`.",
        "panel.unknown": "Nothing here draws {kind}.",
        "intervals.beyond": "An arrow stands for a value beyond the scale; its number is beside it.",
        # states of a run, and time
        "status.planned": "planned",
        "status.running": "running",
        "status.finished": "finished",
        "status.interrupted": "interrupted",
        "status.failed": "failed",
        "status.abandoned": "abandoned",
        "time.s": "{s} s",
        "time.min": "{min} min {s} s",
        "time.h": "{h} h {min} min",
        "step": "step",
        "preset": "preset",
        "seed": "seed",
        "verdict": "Verdict",
        # the index
        "index.title": "Runs",
        "index.find": "Search names, goals, verdicts",
        "index.world": "World",
        "index.all_worlds": "all worlds",
        "index.status": "State",
        "index.all_states": "all states",
        "index.tag": "Tag",
        "index.all_tags": "all tags",
        "index.sort": "Order",
        "index.sort.newest": "newest first",
        "index.sort.oldest": "oldest first",
        "index.sort.name": "by name",
        "index.sort.figure": "best key figure first",
        "index.sort.duration": "longest first",
        "index.compare": "Compare",
        "index.compare_some": "Compare {count}",
        "index.clear": "Clear the choice",
        "index.count": "{total} run{total|s}",
        "index.some": "{count} of {total} run{total|s}",
        "index.more": "Show more",
        "index.choose": "Choose {run} for a comparison",
        "index.trials": "{count} training{count|s}",
        "index.leave_sweep": "Back from the trainings of {sweep}",
        "index.progress": "Progress",
        "index.spark": "Curve of {name}",
        "index.no_script": "The list of runs needs JavaScript; `marlab runs` lists them in a terminal.",
        "index.broken": "Folders that cannot be read",
        # runs side by side
        "compare.title": "Runs side by side",
        "compare.choose": "Choose two or more runs in the index.",
        "compare.missing": "These runs are not in the index: {runs}.",
        "compare.remove": "Leave out {run}",
        "compare.static": "What these differences are worth, seed by seed with intervals, `{command}` tells; so does "
        "this page when `marlab report --serve` shows it.",
        "compare.group": "group",
        "compare.trainings": "trainings",
        "compare.gap": "difference to the first, 95 % together",
        "compare.outcome": "outcome",
        "compare.outcome.better": "better",
        "compare.outcome.worse": "worse",
        "compare.outcome.higher": "higher",
        "compare.outcome.lower": "lower",
        "compare.outcome.within_noise": "within noise",
        "compare.outcome.equal": "equal",
        "compare.outcome.cannot_tell": "cannot tell",
        "compare.outcome.the_reference": "the reference",
        "compare.of": "{name} and {count} in all",
        "compare.band": "Runs that differ in their seed alone are one line: their mean with Student's 95 % band.",
        "compare.not_set": "not set",
        "compare.differ": "{count} of {total} setting{total|s} differ.",
        "compare.show_all": "show all settings",
        "compare.same": "All settings are the same.",
        # sweeps
        "sweep.settings": "Settings side by side",
        "sweep.marks": "Large marks are means over trainings with their 95 % interval, small ones single trainings.",
        "sweep.setting": "setting",
        "sweep.outcome": "outcome",
        "sweep.gap": "difference to the reference",
        "sweep.count": "trainings",
        "sweep.differ": "What the settings differ in",
        "sweep.trials": "Trainings",
        "sweep.training": "training",
        # the page of a run
        "run.look": "Replays and films",
        "run.results": "Results",
        "run.curves": "Curves",
        "run.figures": "Figures",
        "run.settings": "Settings",
        "run.origin": "Command and origin",
        "run.left_out": "not in this file, which would be too large",
        "run.result": "result",
        "run.value": "value",
        "run.interval": "95 % interval",
        "run.unit": "unit",
        "run.remark": "remark",
        "run.no_results": "No results are recorded yet.",
        "run.more_figures": "{count} more figure{count|s}",
        "run.words": "Notes",
        "run.changed": "Different from today's defaults:",
        "run.all_default": "All settings have their default.",
        "run.no_settings": "No settings are recorded.",
        "run.same": "{count} setting{count|s} at the default",
        "run.setting": "setting",
        "run.default": "default",
        "run.inferred": "inferred, not recorded",
        "run.command": "Command",
        "run.attempts": "Attempts",
        "run.started": "started",
        "run.took": "took",
        "run.status": "state",
        "run.reason": "reason",
        "run.parent": "Parent run",
        "run.weights": "Weights",
        "run.file": "file",
        "run.size": "size",
        "run.best": "best score",
        "run.environment": "Environment",
        "run.log": "End of the log",
        "run.stage": "Stage",
        "run.all_stages": "all stages",
        "run.band": "mean of {seeds} seeds with its 95 % band",
        "run.more_curves": "{group}: {count} more curve{count|s}",
        "run.others": "others",
        "curves.smooth": "Smoothing",
        "curves.log": "log axis",
        "curves.time": "working time instead of steps",
        "curves.time_axis": "working time [{unit}]",
        # the player
        "player.play": "Play",
        "player.pause": "Pause",
        "player.back": "One step back",
        "player.forth": "One step forward",
        "player.moment": "Moment",
        "player.speed": "Speed",
        "player.of": "{frame} of {last}",
    },
    "zh": {
        "notebook": "实验笔记",
        "skip": "跳到正文",
        "theme": "浅色或深色",
        "language": "English",
        "language.label": "用英文阅读本页",
        "sections": "章节",
        "unknown": "未知",
        "copy": "复制",
        "copied": "已复制",
        "data.missing": "数据 {name} 不在本页旁边；请用 `marlab report` 重新生成页面。",
        "panel.unknown": "这里没有程序能画 {kind}。",
        "intervals.beyond": "箭头表示超出刻度的数值，其数字写在旁边。",
        "status.planned": "已计划",
        "status.running": "进行中",
        "status.finished": "已完成",
        "status.interrupted": "已中断",
        "status.failed": "失败",
        "status.abandoned": "已放弃",
        "time.s": "{s} 秒",
        "time.min": "{min} 分 {s} 秒",
        "time.h": "{h} 小时 {min} 分",
        "step": "步",
        "preset": "预设",
        "seed": "随机种子",
        "verdict": "结论",
        "index.title": "实验运行",
        "index.find": "搜索名称、目标、结论",
        "index.world": "世界",
        "index.all_worlds": "所有世界",
        "index.status": "状态",
        "index.all_states": "所有状态",
        "index.tag": "标签",
        "index.all_tags": "所有标签",
        "index.sort": "排序",
        "index.sort.newest": "最新的在前",
        "index.sort.oldest": "最早的在前",
        "index.sort.name": "按名称",
        "index.sort.figure": "关键指标最好的在前",
        "index.sort.duration": "用时最长的在前",
        "index.compare": "比较",
        "index.compare_some": "比较 {count} 个",
        "index.clear": "清除选择",
        "index.count": "共 {total} 个运行",
        "index.some": "{total} 个运行中的 {count} 个",
        "index.more": "显示更多",
        "index.choose": "选择 {run} 进行比较",
        "index.trials": "{count} 次训练",
        "index.leave_sweep": "离开 {sweep} 的各次训练",
        "index.progress": "进度",
        "index.spark": "{name} 的曲线",
        "index.no_script": "运行列表需要 JavaScript；`marlab runs` 可以在终端中列出它们。",
        "index.broken": "无法读取的文件夹",
        "compare.title": "并排比较",
        "compare.choose": "请在索引中选择两个或更多运行。",
        "compare.missing": "索引中没有这些运行：{runs}。",
        "compare.remove": "去掉 {run}",
        "compare.static": "这些差异意味着什么（按种子逐一比较，带区间），`{command}` 会告诉你；"
        "用 `marlab report --serve` 打开本页时也会显示。",
        "compare.group": "组",
        "compare.trainings": "训练次数",
        "compare.gap": "与第一组之差，合计 95 %",
        "compare.outcome": "结论",
        "compare.outcome.better": "更好",
        "compare.outcome.worse": "更差",
        "compare.outcome.higher": "更高",
        "compare.outcome.lower": "更低",
        "compare.outcome.within_noise": "在噪声范围内",
        "compare.outcome.equal": "相等",
        "compare.outcome.cannot_tell": "无法判断",
        "compare.outcome.the_reference": "参照",
        "compare.of": "{name} 等共 {count} 个",
        "compare.band": "仅随机种子不同的运行合为一条线：均值及 Student 95 % 区间带。",
        "compare.not_set": "未设置",
        "compare.differ": "{total} 项设置中有 {count} 项不同。",
        "compare.show_all": "显示所有设置",
        "compare.same": "所有设置都相同。",
        "sweep.settings": "各设置并列",
        "sweep.marks": "大标记是各次训练的均值及其 95 % 区间，小标记是单次训练。",
        "sweep.setting": "设置",
        "sweep.outcome": "结论",
        "sweep.gap": "与参照之差",
        "sweep.count": "训练次数",
        "sweep.differ": "各设置的不同之处",
        "sweep.trials": "各次训练",
        "sweep.training": "训练",
        "run.look": "回放与影片",
        "run.results": "结果",
        "run.curves": "曲线",
        "run.figures": "图",
        "run.settings": "设置",
        "run.origin": "命令与来源",
        "run.left_out": "不在本文件中，否则文件会太大",
        "run.result": "结果",
        "run.value": "数值",
        "run.interval": "95 % 区间",
        "run.unit": "单位",
        "run.remark": "备注",
        "run.no_results": "尚无结果记录。",
        "run.more_figures": "另有 {count} 幅图",
        "run.words": "笔记",
        "run.changed": "与当前默认值不同：",
        "run.all_default": "所有设置均为默认值。",
        "run.no_settings": "没有记录设置。",
        "run.same": "{count} 项设置为默认值",
        "run.setting": "设置",
        "run.default": "默认值",
        "run.inferred": "推断所得，未经记录",
        "run.command": "命令",
        "run.attempts": "各次尝试",
        "run.started": "开始",
        "run.took": "用时",
        "run.status": "状态",
        "run.reason": "原因",
        "run.parent": "父运行",
        "run.weights": "权重",
        "run.file": "文件",
        "run.size": "大小",
        "run.best": "分数最高",
        "run.environment": "环境",
        "run.log": "日志末尾",
        "run.stage": "阶段",
        "run.all_stages": "所有阶段",
        "run.band": "{seeds} 个种子的均值及其 95 % 区间带",
        "run.more_curves": "{group}：另有 {count} 条曲线",
        "run.others": "其他",
        "curves.smooth": "平滑",
        "curves.log": "对数轴",
        "curves.time": "以工作时间代替步数",
        "curves.time_axis": "工作时间 [{unit}]",
        "player.play": "播放",
        "player.pause": "暂停",
        "player.back": "后退一步",
        "player.forth": "前进一步",
        "player.moment": "时刻",
        "player.speed": "速度",
        "player.of": "{frame} / {last}",
    },
}


def word(key: str, language: str = "en", **numbers: Any) -> str:
    """The text of a key; a text that is no key is itself."""
    package, dot, rest = key.partition(".")
    tables: list[Mapping[str, Mapping[str, str]]] = [WORDS]
    if dot and (module := world_pages(package)) is not None:
        tables.append(table(module, "WORDS"))
    for words, name in zip(tables, (key, rest)):
        for spoken in (language, "en"):
            if name in words.get(spoken, {}):
                return _filled(words[spoken][name], numbers)
    return key


def is_word(key: str) -> bool:
    """Whether a text is the key of one."""
    package, dot, rest = key.partition(".")
    if key in WORDS["en"]:
        return True
    module = world_pages(package) if dot else None
    return rest in table(module, "WORDS").get("en", {})


def _filled(text: str, numbers: Mapping[str, Any]) -> str:
    for name, value in numbers.items():
        text = re.sub(rf"\{{{name}\|(\w+)\}}", "" if value == 1 else r"\1", text).replace(f"{{{name}}}", str(value))
    return text


def words_of(package: str | None) -> dict[str, dict[str, str]]:
    """All texts of a package under the keys that pages use; None: those of the notebook itself."""
    if package is None:
        return WORDS
    stored = table(world_pages(package), "WORDS")
    return {
        language: {f"{package}.{key}": text for key, text in stored.get(language, {}).items()} for language in LANGUAGES
    }
