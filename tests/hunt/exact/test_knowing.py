"""The value of knowing: its order, its ends, and that it is earned in play."""

from __future__ import annotations

import pytest

from marlab.hunt.exact.best_response import start_values
from marlab.hunt.exact.knowing import value_of_knowing
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.seats import Kind, parse_role
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded

NS, NH = parse_role("NS"), parse_role("NH")
FAR = make_game(game_config("msh_far"))


def test_who_is_told_more_earns_no_less() -> None:
    starts = FAR.reset(4, seeded(1))
    gaps = []
    for b in range(4):
        found = value_of_knowing(
            FAR, starts.select(slice(b, b + 1)), [[NS], [NS, NH], [NH], [NH]], [[1.0], [0.25, 0.75], [1.0], [1.0]]
        )
        assert found.known >= found.believed - 1e-9 >= found.planned - 2e-9
        assert found.believed >= found.prior - 1e-9
        gaps.append((found.known - found.believed, found.believed - found.prior))
    assert sum(gap for gap, _ in gaps) > 0.1 and sum(gap for _, gap in gaps) > 0.2  # goals show late on this layout


def test_known_is_the_mean_of_the_best_responses_and_certainty_leaves_nothing_to_know() -> None:
    tiny = make_game(game_config("msh_tiny"))
    start = tiny.reset(1, seeded(2))
    each = [float(start_values(tiny, start, [NS, rule])[0]) for rule in (NS, NH)]
    found = value_of_knowing(tiny, start, [[NS], [NS, NH]], [[1.0], [0.3, 0.7]])
    assert found.known == pytest.approx(0.3 * each[0] + 0.7 * each[1])
    for rule, value in zip((NS, NH), each):
        sure = value_of_knowing(tiny, start, [[NS], [rule]], [[1.0], [1.0]])
        assert [sure.known, sure.believed, sure.planned, sure.prior] == pytest.approx([value] * 4)


def test_the_best_plan_over_beliefs_equals_the_best_over_all_histories() -> None:
    """Brute force: a policy may depend on everything that was seen; on the tiny game that tree can be searched."""
    tiny = make_game(game_config("msh_tiny", final_time=3))
    start = tiny.reset(1, seeded(0))
    found = value_of_knowing(tiny, start, [[NS], [NS, NH]], [[1.0], [0.4, 0.6]])
    assert found.believed == pytest.approx(best_of_histories(tiny, start, (Kind.NS, Kind.NH), (0.4, 0.6)))


def best_of_histories(game, state, kinds, weights) -> float:
    """Expectimax of player 1 over unnormalised weights of the partner's rules."""
    from marlab.hunt.game.views import View
    from marlab.hunt.players.rules import RulePlayers, rule_probabilities

    if bool(game.over(state)) or not bool(state.alive[0, 0]):
        return 0.0
    rules = RulePlayers(game, [Kind.RAND] * game.players)
    chance = rule_probabilities(rules, View(game, state), kinds)[0, 1]  # [K, A]
    values = []
    for mine in game.legal(state)[0, 0].nonzero().flatten().tolist():
        total = 0.0
        for theirs in range(game.actions):
            after = [float(w * c) for w, c in zip(weights, chance[:, theirs])]
            if bool(state.alive[0, 1]) and sum(after) == 0:
                continue
            if not bool(state.alive[0, 1]):
                after = list(weights)
            joint = state.cell.new_tensor([[mine, theirs]])
            then, out = game.step(state, joint)
            total += sum(after) * float(out.reward[0, 0]) + best_of_histories(game, then, kinds, after)
            if not bool(state.alive[0, 1]):
                break
        values.append(total)
    return max(values)


def test_chances_must_be_chances_and_noise_has_no_end() -> None:
    tiny = make_game(game_config("msh_tiny"))
    start = tiny.reset(1, seeded(0))
    with pytest.raises(ValueError, match="no chances"):
        value_of_knowing(tiny, start, [[NS], [NS, NH]], [[1.0], [0.5, 0.6]])
    with pytest.raises(UserError, match="not MIX"):
        value_of_knowing(tiny, start, [[NS], [parse_role("MIX(0.5)")]], [[1.0], [1.0]])
