"""What the quickstart says at its end: key -> sentence, in every language that there is."""

from marlab.quickstart.verdicts_zh import SENTENCES_ZH

_NUMBERS = "trained minus its start is {difference:+.3f} {interval:+.3f}"

SENTENCES = {
    "en": {
        "above": f"Training helped: {_NUMBERS}, clear of zero.",
        "below": f"Training did harm: {_NUMBERS}, clear of zero.",
        "unclear": f"Training did not clearly help at this size: {_NUMBERS}, and the interval contains zero.",
        "one_market": "One market cannot tell whether training helped: trained minus its start is {difference:+.3f}.",
        "no_trained": "The trained agent could not play: {why}.",
        "no_start": "The start could not play, so that it is unknown whether training helped.",
        "beside_rule": "It started {before:+.3f} from the hand-written rule, made bad on purpose, and ends at "
        "{difference:+.3f} {interval:+.3f} from it.",
        "next_page": "Next: open {run}/report/quickstart.html, then the same loop at full size, as its last part says.",
    },
    "zh": SENTENCES_ZH,
}
