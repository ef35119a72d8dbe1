"""A fourth world in about 200 lines: two walkers on a ring of cells who should meet as soon as they can.

    rules.py     what happens, as pure functions of batched tensors
    config.py    what can be set; no torch here, so that help comes at once
    trainer.py   the world that PPO drives, the training, and what it is measured by
    command.py   `python -m examples.tiny_world.command --preset small`

docs/contributing.md shows how to make a world of your own from a copy of it.
"""
