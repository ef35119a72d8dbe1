"""`marlab market collect`: which worlds are played, and what came out.

`market.collect(preset="official")` does what `marlab market collect` does.
"""

from __future__ import annotations

from marlab.lab.door import make_callable

make_callable(__name__, "marlab.market.collect.command:main.call")
