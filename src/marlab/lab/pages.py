"""What the notebook shows of the lab's own runs: sweeps."""

from __future__ import annotations

PAGES = {"marlab.lab.sweep.config:SweepConfig": "marlab.lab.notebook.sweep_page:sweep"}
