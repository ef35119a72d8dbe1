"""Online learning in the market: an agent that starts as rule W and learns in the vector market to sell better.

`settings` are the flags, `net` the networks, `player` plays them in the vector market, `ground_vector` keeps thousands
of worlds going, `credit` says what each choice brought, `trainer` learns, `steer` compares with the rule seat by seat,
`work` is the command.
"""
