"""The sea's constants.

Units everywhere in this package: metres, metres per second, steps of 0.1 s; angles in degrees counter-clockwise
from +x with +y up on the screen, except where a name says radians. Letters for shapes: B arenas, F fish slots.
"""

from __future__ import annotations

import math

ARENA_RADIUS = 10.0
EPISODE_STEPS = 500
DT = 0.1
FISH_MAX_SPEED = 2.0
FISH_TURN = math.pi / 6
FISH_ACCELERATION = 1.0
FISH_BRAKE = 0.9
FISH_RESTITUTION = 0.5
REST_SPEED = 0.01
"""Below this speed a fish has no heading of its own; its direction then counts as +x."""
KILL_DISTANCE = 0.7
"""Predator radius 0.5 plus fish radius 0.2; a fish strictly nearer than this is eaten."""
VISION_RADIUS = ARENA_RADIUS / 3
SPAWN_RADIUS = 0.8 * ARENA_RADIUS
SPAWN_MAX_SPEED = 1.0
PREDATOR_PULL = 0.5
"""Added to the predator's v_y per second: it falls towards the north pole."""
PREDATOR_SPEED = 1.5
PREDATOR_RESTITUTION = 0.85
HUNTER_ACCELERATION = 4.0
"""How fast (m/s per second) a predator that hunts comes to the speed it wants."""
INTERCEPT_HORIZON = 2.0
"""A predator that intercepts looks at most so many seconds ahead."""
STRIKE_RANGE = 2.5
"""A bursting predator spends its breath on fish nearer than this."""
BURST_FACTOR, TIRED_FACTOR = 1.6, 0.4
"""Its speed while it bursts and while it rests, as a factor on its top speed."""
BREATH, RECOVERY = 1.5, 3.0
"""Seconds that it can burst, and that it rests until it may again."""
CONFUSION_RADIUS = 1.0
"""Fish this near to a hunted fish confuse the predator, where that is switched on."""
ACTION_COUNT = 5
FORWARD, LEFT, RIGHT, BRAKE, HOLD = range(ACTION_COUNT)
HORIZONS = (100, 224, 500)
"""Survival is reported at these steps, so that runs with shorter episodes stay comparable."""
HEADING_BIN, SPEED_BIN = 30.0, 0.4
"""Step-one deaths are counted by the predator's heading (degrees) and speed (m/s) in bins of this size."""
