"""What the quickstart says at its end: key -> sentence, in every language that there is."""

from marlab.quickstart.verdicts_zh import SENTENCES_ZH

_NUMBERS = "trained minus pure L1 is {difference:+.3f} {interval:+.3f}"
_BESIDE = "({difference:+.3f} {interval:+.3f})"

SENTENCES = {
    "en": {
        "above": f"Training helped: {_NUMBERS}, clear of zero.",
        "below": f"Training did not help at this size: {_NUMBERS}, clear of zero, so the networks even hurt.",
        "unclear": f"Training did not clearly help at this size: {_NUMBERS}, and the interval contains zero.",
        "one_market": "One market cannot tell whether training helped: trained minus pure L1 is {difference:+.3f}.",
        "no_trained": "The trained agent could not play: {why}.",
        "no_pure_l1": "Pure L1 could not play, so that it is unknown whether training helped.",
        "above_teacher": f"The trained agent is ahead of its teacher PenguinAgent {_BESIDE}.",
        "below_teacher": f"The trained agent is behind its teacher PenguinAgent {_BESIDE}.",
        "unclear_teacher": f"The trained agent is not told apart from its teacher PenguinAgent {_BESIDE}.",
        "next_page": "Next: open {run}/report/quickstart.html, then the same loop at full size, as its last part says.",
    },
    "zh": SENTENCES_ZH,
}
