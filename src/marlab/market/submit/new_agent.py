"""`marlab market new-agent`: a small agent that works, and a test of it."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_text
from marlab.market.submit.settings import NewAgentConfig

AGENT = '''"""NAME: an agent of the SCML Standard league.

Try it:     marlab market play --preset quickstart --agents mine=FILE:NAME
Hand it in: marlab market submit FILE:NAME
"""

from negmas import ResponseType
from negmas.sao import SAOResponse
from scml.std import StdSyncAgent

END = SAOResponse(ResponseType.END_NEGOTIATION, None)


class NAME(StdSyncAgent):
    """Trades for today only: takes the offers that it needs, best price first, and splits the rest over the others."""

    def __init__(self, *args, yielding=0.5, **kwargs):
        super().__init__(*args, **kwargs)
        self.yielding = yielding  # share of a negotiation after which it accepts the worst price

    def first_proposals(self):
        """Offers for the negotiations in which the agent speaks first."""
        return {partner: self.offer(partner, share, 0.0) for partner, share in self.shares(self.negotiators).items()}

    def counter_all(self, offers, states):
        """An answer to every partner's offer."""
        answers, left = {}, {True: self.needed(True), False: self.needed(False)}
        for partner in sorted(offers, key=lambda p: self.price_of(p, offers[p])):
            offer, buying = offers[partner], partner in self.awi.my_suppliers
            if offer is not None and offer[1] == self.awi.current_step and 0 < offer[0] <= left[buying]:
                answers[partner] = SAOResponse(ResponseType.ACCEPT_OFFER, offer)
                left[buying] -= offer[0]
        others = [partner for partner in offers if partner not in answers]
        for partner, share in self.shares(others, left).items():
            offer = self.offer(partner, share, states[partner].relative_time)
            answers[partner] = END if offer is None else SAOResponse(ResponseType.REJECT_OFFER, offer)
        return answers

    def needed(self, buying):
        """Units that are still missing today."""
        return max(0, int(self.awi.needed_supplies if buying else self.awi.needed_sales))

    def shares(self, partners, left=None):
        """What is needed, split over some partners."""
        found = {}
        for buying in (True, False):
            side = [p for p in partners if (p in self.awi.my_suppliers) == buying]
            need = self.needed(buying) if left is None else left[buying]
            found |= {p: need // len(side) + (place < need % len(side)) for place, p in enumerate(sorted(side))}
        return found

    def offer(self, partner, quantity, time):
        """An offer for today: the best price first, the worst when time runs out; None for nothing."""
        if quantity < 1:
            return None
        buying = partner in self.awi.my_suppliers
        issues = self.awi.current_input_issues if buying else self.awi.current_output_issues
        lowest, highest = issues[2].min_value, issues[2].max_value
        best, worst = (lowest, highest) if buying else (highest, lowest)
        price = best + (worst - best) * min(1.0, time / self.yielding)
        return min(quantity, issues[0].max_value), self.awi.current_step, round(price)

    def price_of(self, partner, offer):
        """For sorting: what an offer costs, or minus what it brings."""
        if offer is None:
            return 0
        return offer[2] if partner in self.awi.my_suppliers else -offer[2]
'''

TEST = '''"""NAME plays a small world: no exception, and it trades."""

from FILE import NAME
from scml.std import SCML2024StdWorld
from scml.std.agents import GreedyStdAgent, SyncRandomStdAgent


def test_it_plays_a_world_without_an_exception():
    types = [NAME, GreedyStdAgent, NAME, SyncRandomStdAgent]
    config = SCML2024StdWorld.generate(
        agent_types=types, agent_processes=[0, 0, 1, 1], n_processes=2, n_steps=8, random_agent_types=False
    )
    world = SCML2024StdWorld(**config, compact=True, no_logs=True)
    world.run()
    mine = [name for name, agent in world.agents.items() if isinstance(agent.adapted_object, NAME)]
    assert len(mine) == 2 and all(not world.agent_exceptions.get(name) for name in mine)
    assert any({c["seller_name"], c["buyer_name"]} & set(mine) for c in world.signed_contracts)
    assert all(world.scores()[name] > 0 for name in mine)
'''


def new_agent(config: NewAgentConfig) -> list[Path]:
    """Write both files; nothing is replaced."""
    name = config.name
    if not name.isidentifier() or keyword.iskeyword(name) or not name[0].isupper():
        raise UserError(f"'{name}' is no name for a class, expected one such as MyAgent.")
    if not config.folder.is_dir():
        raise UserError(f"There is no folder {config.folder}.")
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    stem = "_".join(word.lower() for word in words)
    texts = {f"{stem}.py": AGENT, f"test_{stem}.py": TEST}
    files = {config.folder / file: text.replace("NAME", name).replace("FILE", stem) for file, text in texts.items()}
    there = [file for file in files if file.exists()]
    half_done = len(there) < len(files) and all(file.read_text(encoding="utf-8") == files[file] for file in there)
    if there and not half_done:
        raise UserError(f"{there[0]} exists; take another name or another --folder.")
    for file, text in files.items():
        write_text(file, text)
    return list(files)
