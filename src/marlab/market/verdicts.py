"""What market commands say at their end: key -> sentence, in every language that there is."""

from marlab.market.verdicts_zh import SENTENCES_ZH

_DIFFERENCE = "{agent} minus {other} is {difference:+.3f} {interval:+.3f} of the opening balance over {markets} markets"

_ONLINE = (
    "it earns {difference:+.3f} {interval:+.3f} of the opening balance more in the same seats of the same worlds of "
    "the vector market."
)

SENTENCES = {
    "en": {
        "collected": "{worlds:,} of {planned:,} worlds are recorded ({failed:,} failed), with {days:,} days and "
        "{decisions:,} decisions of experts to learn from.",
        "next_samples": "Next: `marlab market samples {run}` makes what the layers learn from.",
        "samples": "{micro:,} decisions, {macro:,} days and {calls:,} rounds to learn from, out of {worlds:,} worlds; "
        "{val:,} more worlds are for validation and {test:,} for the test.",
        "samples_begun": "{done:,} of {parts:,} parts are read; they become samples when all of them are.",
        "next_train": "Next: `marlab market train {run}` lets L2, L3 and L4 learn.",
        "learnt": "Learning helped {better} of {measured} measured parts on worlds that were not learnt from: {what} "
        "is off by {value:.3f} {interval:.3f}, {share:.0%} of the best predictor that learns nothing ({trivial}).",
        "learnt_nothing": "Learning helped none of {measured} measured parts on worlds that were not learnt from: "
        "{what} is off by {value:.3f} {interval:.3f}, {share:.0%} of the best predictor that learns nothing "
        "({trivial}).",
        "answers": "L3 answers as the expert in {own:.0%} of the cases, instead of {other:.0%} without learning.",
        "not_measured": "No layer was measured: there are neither validation nor test worlds, or no phase is finished.",
        "next_play": 'Next: `marlab market play --agents "LitaAgentHRL(weights={run})" PenguinAgent` shows what that '
        "earns.",
        "above": f"{{agent}} plays better: {_DIFFERENCE}.",
        "below": f"{{agent}} plays worse: {_DIFFERENCE}.",
        "unclear": f"Nobody can tell yet who plays better: {_DIFFERENCE}, and the interval contains zero.",
        "one_market": "One market cannot tell who plays better: {agent} minus {other} is {difference:+.3f} of the "
        "opening balance.",
        "alone": "{agent} ends with {score:.3f} {interval:.3f} of its opening balance over {markets} markets.",
        "nothing_played": "No market is complete yet, so nobody can be compared.",
        "best": "{agent} earns most of {agents}: {score:.3f} {interval:.3f} of its opening balance.",
        "best_official": "{agent} wins the league's own tournament of {agents} agents with a score of {score:.3f}.",
        "next_more_markets": "Next: more markets decide it, `--configs {more}` and another `--name`.",
        "cloned": "{better} of {experts} clones tell what their expert does better than its shares do, on worlds "
        "that were never fitted: cross-entropy {value:.3f} a decision instead of {trivial:.3f}.",
        "cloned_scores": "In worlds of clones, scores by agent and place in the chain are off by {gap:.3f} of the "
        "opening balance on average ({worlds} configs).",
        "fidelity_right": "The vector market ranks sellers as the simulator does: {held} of {asked} clear differences "
        "to the rule have the same sign and size, correlation of ranks {correlation:.2f} ({markets} markets).",
        "fidelity_wrong": "The vector market does NOT rank sellers as the simulator does: {held} of {asked} clear "
        "differences to the rule have the same sign and size, correlation of ranks {correlation:.2f} ({markets} "
        "markets). Mend the clones before learning among them.",
        "fidelity_nothing": "No seat was played by all sellers in both markets yet.",
        "online_above": f"The learner is better than the rule: {_ONLINE}",
        "online_below": f"The learner is worse than the rule: {_ONLINE}",
        "online_unclear": f"The learner cannot be told from the rule: {_ONLINE}",
        "online_back": "Training helped: it began {start:+.3f} {before:+.3f} from the rule, with a start that was made "
        "bad, and ends at {now:+.3f} {after:+.3f}, in the same seats of the vector market.",
        "online_not_back": "Training did not clearly help: it began {start:+.3f} {before:+.3f} from the rule, with a "
        "start that was made bad, and ends at {now:+.3f} {after:+.3f}, in the same seats of the vector market.",
        "online_unmeasured": "The learner was not compared with the rule yet.",
        "next_online": "Next: `marlab market play --preset seats --configs 4 --agents "
        '"LitaAgentHRL(mode=learned, weights={run})" "LitaAgentHRL(mode=heuristic)"` shows what both earn in the '
        "simulator.",
        "distilled": "The student earns {difference:+.4f} {interval:+.4f} of the opening balance beside the mean of "
        "its {teachers} teachers, in the same seats of the vector market.",
        "believed": "After {day} days of talking the true type of a partner is the likeliest of {types} in {hit:.0%} "
        "of the cases, with a probability of {own:.2f} instead of {chance:.2f}; probabilities are off by {error:.3f}.",
        "believed_strangers": "{agents} agents without a type are taken for strangers with {share:.2f} at the end, "
        "agents with one with {types:.2f}.",
        "l2_above": "L2 is worse than what needs no learning: its quantities are off by {value:.3f} {interval:.3f} "
        "units, {trivial} by {other:.3f}.",
        "l2_below": "L2 has learnt: its quantities are off by {value:.3f} {interval:.3f} units, {trivial} by "
        "{other:.3f}.",
        "l2_unclear": "L2 is as good as what needs no learning: its quantities are off by {value:.3f} {interval:.3f} "
        "units, {trivial} by {other:.3f}.",
        "l2_prices": "Its prices are off by {value:.3f} {interval:.3f} of money a unit, {trivial} by {other:.3f}.",
    },
    "zh": SENTENCES_ZH,
}
