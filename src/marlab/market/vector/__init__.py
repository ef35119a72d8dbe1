"""The vector market: thousands of worlds of the SCML Standard league in lockstep, as tensors, on CPU or GPU.

It needs torch and numpy only. `configs` says what a market gives to its factories, `market` plays the days, `rounds`
the negotiations of a day, `settle` the evening. `seats` shows everything from the side of a factory, `views` in the
words of rules and networks. `builtin`, `sync_random` and `greedy` are agents of the league, `clones` networks that
answer as entrants do, `rule_w` is our own rule.
`replay` plays recorded worlds again, which is how all of it is proven (`marlab market verify`).

Letters in shapes: B worlds, L levels, A factories of a level (L and A are the largest of the batch), P = L - 1 markets
between levels, T days, S = 11 days on which a contract can be delivered, from today on. Levels are aligned to the end:
index L - 1 is the last level of every world, so that who calls does not depend on the world.

    seats    [B, L, A]       one value per factory
    threads  [B, P, C, R]    one value per negotiation, C = R = A: caller and responder
"""
