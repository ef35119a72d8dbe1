"""What commands of the hunt say at their end, by key (`marlab.lab.verdict`)."""

from __future__ import annotations

from marlab.hunt.verdicts_zh import SENTENCES_ZH

_EARNED = (
    "{reward:.3f} {interval:.3f} an episode, {gain:+.3f} {gain_interval:+.3f} compared with {rule} "
    "players in their seats ({share:.0%} of what a team can earn)."
)
_PREDICTED = (
    "the models predict {top1:.1%} {interval:.1%} of held-out moves, {gain:+.1%} {gain_interval:+.1%} compared with no "
    "goal; {best:.1%} is the most that anybody could."
)
_PLACED = (
    "in held-out steps it puts players on the right cell in {right:.2%} {interval:.2%} of all cases (worst seat), and "
    "in {copy:.2%} the last frame again would do."
)
_PARTS = "`marlab hunt diagnose {run}` judges its parts"

SENTENCES = {
    "en": {
        # trainings that play
        "above_rules": f"The learners are better than the rule: they earn {_EARNED}",
        "below_rules": f"The learners are worse than the rule: they earn {_EARNED}",
        "like_rules": f"The learners cannot be told from the rule: they earn {_EARNED}",
        "only_start": f"Training has taught nothing yet, for no iteration is done: what it starts from earns {_EARNED}",
        "only_curve": "Players earned {last:.3f} an episode in the last iterations ({count} of them) and {first:.3f} "
        "in the first; there was no time for fresh episodes.",
        "nothing_learnt": "Nothing can be judged yet: the first iteration was not over.",
        "cut": "It was stopped at {done} of {total} iterations and judged by {episodes} of {planned} episodes a seed.",
        "one_seed": "The interval is over episodes of one seed; `--seeds 0..4` would show how much seeds differ.",
        "next_trained": f"Next: `marlab hunt eval {{run}}` scores it among strangers, {_PARTS}.",
        "in_phase": "It was stopped in phase {phase}, number {number} of {count}: {what}.",
        "phases_done": "The phases {phases} are done; self-play (P6) was not asked for.",
        # trainings on offline data
        "no_epoch": "Nothing can be judged yet: the first of {total} epochs was not over.",
        "models_so_far": "After {done} of {total} epochs the models predict {top1:.1%} {interval:.1%} of held-out "
        "moves, and {without:.1%} when they know no goal.",
        "goals_help": f"Knowing goals helps: {_PREDICTED}",
        "goals_harm": f"Knowing goals harms: {_PREDICTED}",
        "goals_unclear": f"Whether goals help is within noise: {_PREDICTED}",
        "next_models": f"Next: {_PARTS}; `marlab hunt train --variant hopplus-mcts --load-moa {{run}}` uses its codes.",
        "world_so_far": "After {done} of {total} epochs the loss on held-out steps is {loss:.4g}, after the first it "
        "was {first:.4g}.",
        "world_helps": f"The world model helps: {_PLACED}",
        "world_useless": f"The world model does not help: {_PLACED}",
        "next_world": f"Next: {_PARTS}; `marlab hunt train --variant hopplus --load-wm {{run}}` imagines with it.",
        # evaluations
        "scored": "{agent} comes {share:.1%} {interval:.1%} of the way from a random player (0) to the best known one "
        "(100 %), over {count} scenarios.",
        "better_than": "It is better than {other}: {gain:+.1%} {interval:+.1%} of that way, start by start.",
        "worse_than": "It is worse than {other}: {gain:+.1%} {interval:+.1%} of that way, start by start.",
        "like_other": "Its difference to {other} is within noise: {gain:+.1%} {interval:+.1%} of that way.",
        "weakest": "Next: its weakest scenario is {scenario} ({share:.0%}); `marlab hunt watch AGENT` shows it play.",
        "card_cut": "There is no score card yet; what is measured is kept.",
        # data
        "data_sound": "The data is sound: all {rows:,} rows of {episodes:,} episodes replay in the game as written.",
        "data_unsound": "Do not learn from this data: only {equality:.3%} of its {rows:,} rows replay as written.",
        "data_cut": "It was stopped at {rows:,} of {wanted:,} rows, and nothing is kept: half a data set would be "
        "taken for a whole one.",
        "next_data": "Next: `marlab hunt pretrain vae {run}` learns goals from it, and `marlab hunt train --load-data "
        "{run}` starts planning agents with it.",
        # the diagnosis
        "healthy": "All {count} modules pass their gates.",
        "at_fault": "{failed} of {count} modules miss their gates; look at {module} first: {why}.",
        "diagnosis_cut": "The time was too short for {left} of {count} parts.",
        "next_diagnosis": "Next: {run}/report.md shows what is behind every verdict.",
    },
    "zh": SENTENCES_ZH,
}
