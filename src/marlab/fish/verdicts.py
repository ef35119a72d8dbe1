"""What fish commands say at their end: key -> sentence, in every language that there is."""

from marlab.fish.verdicts_zh import SENTENCES_ZH

_MODEL = "The model of iteration {iteration}"
_SURVIVE = "{survival:.4f} {interval:.4f} of {episodes:,} x {fish} held-out fish survive"
_BESIDE = "{difference:+.4f} {difference_interval:+.4f} compared with the best script ({script}) on the same arenas"

SENTENCES = {
    "en": {
        "above_script": f"{_MODEL} beats every script: {_SURVIVE}, {_BESIDE}.",
        "below_script": f"{_MODEL} does not reach the scripts: {_SURVIVE}, {_BESIDE}.",
        "unclear_script": f"{_MODEL} cannot be told apart from a script: {_SURVIVE}, {_BESIDE}.",
        "survival": f"{_MODEL} was played alone: {_SURVIVE}.",
        "of_possible": "That is {share:.2%} of what any policy could save there (at most {possible:.4f}).",
        "probe": "In the last probe (iteration {iteration}) {survival:.4f} {interval:.4f} of {episodes} x {fish} fish "
        "survive; {script} saves {script_survival:.4f} of others.",
        "probed": "Of {episodes} x {fish} fish {survival:.4f} {interval:.4f} survive with the model of iteration "
        "{iteration}, {share:.2%} of those that can be saved at all.",
        "learned_predator": "The learned predator takes {lost:.4f} {lost_interval:.4f} more of the first shoal "
        "than the intercepting one; the next shoal wins {back:+.4f} {back_interval:+.4f} back "
        "({arenas} held-out arenas).",
        "next_table": "Next: `selfplay.json` in the run's folder has every shoal against every predator.",
        "of_foresight": "Where the same episodes are mended with the true dynamics {upper:.4f} survive; the policy "
        "reaches {share:.1%} of that ({arenas} arenas).",
        "suite": "The policy is clearly ahead of every reactive script in {ahead} of {cells} seas, and behind the best "
        "one in {behind}.",
        "next_suite_file": "Next: `suite.json` and the figures in the run's folder say where.",
        "school": "Fish keep {nearest:.2f} m from their nearest neighbour, those of the other {other_nearest:.2f} m. "
        "Where a crowd confuses the predator they save {pays:+.4f} {pays_interval:+.4f} more of them, "
        "where it does not {costs:+.4f} {costs_interval:+.4f}.",
        "next_school_file": "Next: `school.json` in the run's folder has polarisation, milling and distances of all.",
        "not_judged": "Nothing was judged: there was neither a probe nor an evaluation.",
        "next_eval": "Next: `marlab fish eval {run}` plays it on held-out arenas beside scripts and the ceiling.",
        "next_who_dies": "Next: train longer, or see who dies: `marlab fish probe {run} --films 3`.",
        "next_watch": "Next: `marlab fish watch {run}` shows it.",
        "next_watch_checkpoint": "Next: `marlab fish watch {checkpoint}` shows it.",
    },
    "zh": SENTENCES_ZH,
}
