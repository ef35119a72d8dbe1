"""How the lab's own runs, which belong to no world, are drawn again (`marlab draw`)."""

DRAWERS = {"marlab.lab.sweep.config:SweepConfig": "marlab.lab.sweep.conclude:draw_again"}
