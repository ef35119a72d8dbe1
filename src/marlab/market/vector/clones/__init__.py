"""Clones of entrants: small networks that answer as a recorded agent did, for all factories of a batch at once.

`inputs` is what a clone sees of a thread, `network` what it makes of it, `policy` plays it, `pack` keeps the clones of
several experts in one file. They are fitted by `marlab market clone` (docs/guides/market-engine.md).

    pack = load(path)
    policy = pack.policy("PenguinAgent", market, generator)
"""

from marlab.market.vector.clones.pack import ClonePack as ClonePack
from marlab.market.vector.clones.pack import load as load
