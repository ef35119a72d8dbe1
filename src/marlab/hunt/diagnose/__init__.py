"""Which module is at fault: figures, tables and a verdict per module.

`hunt.diagnose("runs/hunt/codes")` does what `marlab hunt diagnose` does.
"""

from __future__ import annotations

from marlab.lab.door import make_callable

make_callable(__name__, "marlab.hunt.diagnose.work:diagnose_runs")
