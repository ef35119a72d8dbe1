"""The score card: agents by name, scenarios, streams of episodes, scores.

`hunt.evaluate("hop_4x4", runs=8)` does what `marlab hunt eval` does.
"""

from __future__ import annotations

from marlab.lab.door import make_callable

make_callable(__name__, "marlab.hunt.evaluate.command:main.call")
