"""Learnt habits: which numbers should stand in rule W, and how should they lean on what a seller sees?

`settings` are the flags, `ground` plays worlds whose sellers have drawn habits, `evolve` finds out from their scores
where to go next, `trainer` does both in turn, `work` is the command.
"""
