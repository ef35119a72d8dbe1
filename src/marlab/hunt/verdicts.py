"""What commands of the hunt say at their end, by key (`marlab.lab.verdict`)."""

from __future__ import annotations

_EARNED = "learners earn {reward:.3f} {interval:.3f} an episode, {gain:+.3f} {gain_interval:+.3f} "
_RULES = "{rule} players in their seats ({share:.0%} of what a team can earn)."
_STRANGERS, _PARTS = (
    "`marlab hunt eval {run}` scores it among strangers",
    "`marlab hunt diagnose {run}` judges its parts",
)

SENTENCES = {
    "en": {
        "above_rules": f"Training helped: {_EARNED}compared with {_RULES}",
        "below_rules": f"Training has not helped so far: {_EARNED}compared with {_RULES}",
        "like_rules": f"No gain is certain: {_EARNED}compared with {_RULES}",
        "only_curve": "Players earned {last:.3f} an episode in the last iterations ({count} of them) and {first:.3f} "
        "in the first; there was no time for fresh episodes.",
        "nothing_learnt": "Nothing can be judged yet: the first iteration was not over.",
        "cut": "It was stopped at {done} of {total} iterations and judged by {episodes} of {planned} episodes a seed.",
        "one_seed": "The interval is over episodes of one seed; `--seeds 0..4` would show how much seeds differ.",
        "next_trained": f"Next: {_STRANGERS}, {_PARTS}.",
        "in_phase": "It was stopped in phase {phase}, number {number} of {count}: {what}.",
        "phases_done": "The phases {phases} are done and passed their gates; self-play (P6) was not asked for.",
    }
}
