"""The figures that a right implementation of the game reproduces, as `marlab hunt check` compares them.

They were derived by simulating the rules; they describe this game. Populations and teams are written as roles.
"""

from __future__ import annotations

LADDER = {
    (2, 2): ("2 hunt the stag, 2 take hares", 3.00),
    (3, 1): ("3 on the stag, 1 hare", 2.75),
    (4, 0): ("4 on the stag", 2.50),
    (0, 4): ("4 different hares", 1.00),
    (0, 0): ("nobody scores", 0.00),
}
"""(hunters of the stag, hunters of hares) -> what it is called and the mean reward per player."""

LENGTH_TOLERANCE = 0.5
POPULATIONS = {
    "msh_4x4": {
        "RAND,RAND,RAND,RAND": (0.647, 34.3, 0.03),
        "NH,NH,NH,NH": (0.864, 4.8, 0.02),
        "NS,NS,NS,NS": (2.500, 33.3, 0.001),
        "NS,NS,NH,NH": (2.975, 4.6, 0.02),
    },
    "msh_8x8_b5": {
        "RAND,RAND,RAND,RAND": (0.299, 35.0, 0.03),
        "NH,NH,NH,NH": (0.931, 11.2, 0.02),
        "NS,NS,NS,NS": (2.500, 34.7, 0.001),
        "NS,NS,NH,NH": (2.988, 10.0, 0.02),
    },
}
"""Mean reward, mean episode length, tolerance of the reward."""

FOCAL_TOLERANCE = {"msh_4x4": 0.13, "msh_8x8_b5": 0.2, "msh_4x4_4h2s": 0.2}
"""The published cells come from a few hundred episodes; these are their intervals."""
FOCAL = {
    ("msh_4x4", "NS,NS,NS"): (2.50, 1.00, 0.80),
    ("msh_4x4", "NH,NH,NH"): (0.00, 0.86, 0.38),
    ("msh_4x4", "RAND,RAND,RAND"): (2.08, 0.99, 0.65),
    ("msh_4x4", "NS,NH,NH"): (5.00, 0.90, 1.41),
    ("msh_4x4", "NS,NH,RAND"): (4.95, 0.95, 1.41),
    ("msh_4x4", "NS,NS,RAND"): (3.23, 1.00, 0.79),
    ("msh_8x8_b5", "NS,NS,NS"): (2.50, 1.00, 0.40),
    ("msh_8x8_b5", "NH,NH,NH"): (0.00, 0.93, 0.11),
    ("msh_8x8_b5", "RAND,RAND,RAND"): (0.89, 1.00, 0.30),
    ("msh_8x8_b5", "NS,NH,NH"): (5.00, 0.96, 0.53),
    ("msh_8x8_b5", "NS,NH,RAND"): (4.98, 0.98, 0.60),
    ("msh_8x8_b5", "NS,NS,RAND"): (3.39, 1.00, 0.43),
    ("msh_4x4_4h2s", "NS,NS,NS"): (4.39, 1.00, 1.44),
    ("msh_4x4_4h2s", "NH,NH,NH"): (0.00, 0.86, 0.38),
    ("msh_4x4_4h2s", "RAND,RAND,RAND"): (2.22, 0.99, 0.69),
    ("msh_4x4_4h2s", "NS,NH,NH"): (2.83, 0.91, 1.50),
    ("msh_4x4_4h2s", "NS,NH,RAND"): (3.11, 0.94, 1.38),
    ("msh_4x4_4h2s", "NS,NS,RAND"): (3.63, 1.00, 1.38),
}
"""Mean reward of a focal NS / NH / RAND player among a team."""

CEILINGS = {
    "msh_4x4": {
        "known": (0.71, 0.92, (0.51, 0.54)),
        "mixture": (0.46, 0.90, (1.03, 1.03)),
        "bayes": (0.67, 0.92, (0.60, 0.63)),
        "uniform": (0.240, 0.720, (1.446, 1.446)),
    },
    "msh_8x8_b5": {
        "known": (0.762, 0.940, (0.415, 0.415)),
        "mixture": (0.533, 0.934, (0.860, 0.860)),
        "bayes": (0.739, 0.939, (0.482, 0.482)),
        "uniform": (0.252, 0.748, (1.400, 1.400)),
    },
}
"""top-1, top-3, range of the cross-entropy (nats) of the predictors in `ceilings.py`."""
MIXTURE_SPLIT = {"msh_4x4": 0.55}
"""top-1 of the mixture when equal best guesses share the point."""
STAY_SHARE = {"msh_4x4": 0.364}
"""Share of rows that are "stay"."""
BELIEF = {
    "msh_4x4": {0: 0.50, 1: 0.75, 2: 0.93, 3: 0.98, 4: 0.993},
    "msh_8x8_b5": {0: 0.50, 1: 0.71, 2: 0.82, 3: 0.87, 4: 0.92, 5: 0.94, 8: 0.98},
}
"""Mean belief in the true type before step t."""
