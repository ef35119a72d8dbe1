"""The three networks, their files and their losses."""

from typing import Literal

QTransform = Literal["none", "log1p", "sqrt"]
"""How quantities of goals are compared."""
ResidualLoss = Literal["mse", "huber"]
"""How residuals are compared."""
