"""The frozen scenario suite: who plays with whom, by name.

A scenario seats some *focal* players, all copies of the agent under test, among *background* players that it never
trained with. One focal player visits a population; three focal players are residents who get a visitor. The score is
what the focal players earn per head. The list and its names do not change: a new idea becomes a new scenario, and a
change of an old one a new `SUITE_VERSION`. The suite is written for four players; games of other sizes play the same
ideas with as many as they have (`suite_of`, `teams_of`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from marlab.hunt.players.characters import Character, parse_character
from marlab.hunt.players.seats import team_members
from marlab.lab.errors import UserError

SUITE_VERSION = 1
SEATS = 4
"""The suite is written for games of four players."""


@dataclass(frozen=True)
class Scenario:
    """Focal players and their background. Background players are written as in the tables of players."""

    name: str
    background: tuple[str, ...]
    focal: int = 1
    description: str = ""
    tags: tuple[str, ...] = ()

    def characters(self, trained: Collection[str] = ()) -> tuple[Character, ...] | None:
        """The background as characters, or None if somebody in it is one of the `trained` agents."""
        if set(self.background) & set(trained):
            return None
        return tuple(parse_character(name) for name in self.background)


def _s(name: str, background: str, focal: int, description: str, *tags: str) -> Scenario:
    return Scenario(name, team_members(background) if background else (), focal, description, tags)


def team(text: str, seats: int = SEATS) -> Scenario:
    """One focal player among a team, such as NS+2NH."""
    members = team_members(text)
    if len(members) != seats - 1:
        raise UserError(f"The team '{text}' has {len(members)} members, expected {seats - 1} beside the focal player.")
    return Scenario(text, members, 1, f"one focal player among {text}", ("visitor",))


def check_background(scenarios: Sequence[Scenario], agents: Sequence[str]) -> None:
    """Every background player must be a character or one of the named agents."""
    for scenario in scenarios:
        for name in scenario.background:
            if name not in agents:
                try:
                    parse_character(name)
                except UserError as error:
                    known = f"{', '.join(agents)}" if agents else "none"
                    raise UserError(f"The scenario '{scenario.name}': {error} Named agents: {known}.") from None


SUITE: tuple[Scenario, ...] = (
    _s("visit_all_stag", "3NS", 1, "all others hunt the stag, and can do so without you", "visitor", "convention"),
    _s("visit_all_hare", "3NH", 1, "nobody will ever join you at the stag", "visitor", "convention"),
    _s("visit_lone_hunter", "NS+2NH", 1, "one player waits at the stag for exactly you", "visitor", "partner"),
    _s("visit_pair", "2NS+NH", 1, "two hunt the stag; hurry to join or leave it", "visitor", "timing"),
    _s("visit_random", "3RAND", 1, "the others do anything", "visitor", "noise"),
    _s("visit_motley", "NS+NH+RAND", 1, "a hunter, a hare catcher and a random player", "visitor", "mixture"),
    _s("visit_mixture", "3MIX(0.5)", 1, "stag or hare, drawn by everyone at every start", "visitor", "mixture"),
    _s("visit_grim", "GRIM(1)+2NH", 1, "a partner who never forgives to be let down once", "visitor", "reciprocity"),
    _s("visit_grim_2", "GRIM(2)+2NH", 1, "a partner who forgives once", "visitor", "reciprocity"),
    _s("visit_tit_for_tat", "TFT+2NH", 1, "a partner who comes if somebody came last time", "visitor", "reciprocity"),
    _s("visit_deserter", "SWITCH(4)+2NH", 1, "a hunter who turns to hares at step 4", "visitor", "change"),
    _s("visit_latecomer", "SWITCH(2,NH)+2NH", 1, "a hare catcher who turns to the stag at step 2", "visitor", "change"),
    _s("visit_impatient", "WAIT(5)+2NH", 1, "a hunter who waits five steps for you", "visitor", "timing"),
    _s("visit_exploiters", "3EXPL", 1, "they come to the stag only when somebody stands on it", "visitor", "lead"),
    _s("halves_stag", "2NS", 2, "half of you and half of them hunters", "half", "mixture"),
    _s("halves_hare", "2NH", 2, "half of you, half hare catchers: hunt together", "half", "coordination"),
    _s("host_hunter", "NS", 3, "all others are you, with a hunter as visitor", "resident", "coordination"),
    _s("host_hare", "NH", 3, "all others are you, with a hare catcher as visitor", "resident", "coordination"),
    _s("host_random", "RAND", 3, "all others are you, with a random player as visitor", "resident", "noise"),
    _s("self_play", "", 4, "only copies of you", "resident", "coordination"),
)

TEAMS: tuple[Scenario, ...] = tuple(
    team(text)
    for text in (
        "3NS", "3NH", "3RAND", "NS+2NH", "2NS+NH", "NS+NH+RAND", "2NS+RAND", "3MIX(0.5)", "3SWITCH(8)", "3WAIT(5)",
    )
)  # fmt: skip
"""The teams of the few-shot protocol; teams of trained agents are added by name."""


def suite_of(players: int) -> tuple[Scenario, ...]:
    """The suite in a game of so many players; of scenarios that become the same there, the first."""
    return _fitted_all(SUITE, players)


def teams_of(players: int) -> tuple[Scenario, ...]:
    """The teams of the few-shot protocol in a game of so many players."""
    return _fitted_all(TEAMS, players)


def fitted(scenario: Scenario, players: int) -> Scenario:
    """A scenario of four players for more or fewer: a lone visitor, a lone guest, halves and self-play stay what they
    are; the last background player fills the seats that are left. A team is called by its members.
    """
    if players == SEATS:
        return scenario
    focal = {1: 1, SEATS // 2: players // 2, SEATS - 1: players - 1, SEATS: players}[scenario.focal]
    last = scenario.background[-1:]
    background = (scenario.background + last * players)[: players - focal]
    name = _text(background) if scenario in TEAMS else scenario.name
    told = f"one focal player among {name}" if scenario in TEAMS else scenario.description
    return Scenario(name, background, focal, told, scenario.tags)


def _fitted_all(scenarios: Sequence[Scenario], players: int) -> tuple[Scenario, ...]:
    if players < 2:
        raise UserError(f"A scenario needs others; this game has {players} player.")
    alike: dict[tuple[int, tuple[str, ...]], Scenario] = {}
    for scenario in scenarios:
        made = fitted(scenario, players)
        alike.setdefault((made.focal, tuple(sorted(made.background))), made)
    return tuple(alike.values())


def _text(members: Sequence[str]) -> str:
    """A team as it is written: NS+4NH."""
    counts = {name: list(members).count(name) for name in members}
    return "+".join(f"{count if count > 1 else ''}{name}" for name, count in counts.items())


def by_name(name: str, players: int = SEATS) -> Scenario:
    """A scenario of the suite in a game of so many players, or a team written out."""
    for scenario in SUITE:
        if scenario.name == name:
            return fitted(scenario, players)
    if re.search(r"[+()]|^\d|^[A-Z]", name):
        return team(name, players)
    raise UserError(
        f"'{name}' is not a scenario, expected a team such as NS+2NH or one of: {', '.join(s.name for s in SUITE)}."
    )
