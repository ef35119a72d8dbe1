"""Acceptance checks 1-8 and 10: the rules by hand, and the batched game against the scalar rules."""

from __future__ import annotations

import dataclasses
import random

import pytest
import torch

from marlab.hunt.game.build import make_game, restore
from marlab.hunt.game.config import GameConfig, game_config, game_names
from marlab.hunt.game.rules import _pick
from marlab.hunt.game.scalar import Rules
from marlab.hunt.game.views import View
from marlab.lab.errors import UserError
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import act, board, placed, seeded, situations, small_game

FOUR = game_config("msh_4x4")


# --- the rules, by hand -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hunters", "share"), [(2, 5.0), (3, 10 / 3), (4, 2.5)])
def test_hunters_share_a_stag_and_leave_with_it(hunters: int, share: float) -> None:
    game, state = placed(FOUR, players=[(1, 1)] * 4, stags=[(1, 1)], hares=[(3, 3)])
    after, out = game.step(state, act(*[5] * hunters, *[4] * (4 - hunters)))
    expected = [share] * hunters + [0.0] * (4 - hunters)
    assert out.reward[0].tolist() == pytest.approx(expected)
    assert after.alive[0].tolist() == [False] * hunters + [True] * (4 - hunters)
    assert out.hunters[0].tolist() == [hunters] * hunters + [0] * (4 - hunters)
    assert View(game, after).board[..., 5].sum() == 0  # the stag plane is empty
    assert out.done[0].tolist() == [True] * hunters + [False] * (4 - hunters)


def test_one_hunter_gets_nothing_from_a_stag_and_stays() -> None:
    game, state = placed(FOUR, players=[(1, 1), (0, 0), (0, 0), (0, 0)], stags=[(1, 1)], hares=[(3, 3)])
    after, out = game.step(state, act(5, 4, 4, 4))
    assert out.reward.sum() == 0 and after.alive.all() and after.prey_alive[0, 0]
    assert out.executed[0].tolist() == [5, 4, 4, 4]


def test_two_hunters_share_a_hare() -> None:
    game, state = placed(FOUR, players=[(2, 2), (2, 2), (0, 0), (0, 0)], stags=[(1, 1)], hares=[(2, 2), (3, 3)])
    after, out = game.step(state, act(6, 6, 4, 4))
    assert out.reward[0].tolist() == [0.5, 0.5, 0.0, 0.0]
    assert View(game, after).board[0, 2, 2, 6] == 0 and View(game, after).board[0, 3, 3, 6] == 1
    assert after.alive[0].tolist() == [False, False, True, True]


@pytest.mark.parametrize("action", [6, 5, 0, 2, 7, -1, 99])
def test_an_illegal_action_is_executed_and_recorded_as_stay(action: int) -> None:
    game, state = placed(FOUR, players=[(0, 0), (3, 3), (3, 3), (3, 3)], stags=[(1, 1)], hares=[(2, 2)])
    after, out = game.step(state, act(action, 4, 4, 4))
    assert after.cell[0, 0] == 0 and out.executed[0, 0] == 4 and after.last_action[0, 0] == 4


def test_an_obstacle_stops_a_move() -> None:
    config = game_config("msh_6x6_b4")
    game, state = placed(
        config, players=[(0, 0)] * 4, stags=[(5, 5)], hares=[(4, 4)], obstacles=[(0, 1), (0, 2), (0, 3)]
    )
    after, out = game.step(state, act(3, 1, 4, 4))
    assert after.cell[0].tolist() == [0, 6, 0, 0] and out.executed[0].tolist() == [4, 1, 4, 4]
    assert not View(game, state).mask[0, 0, 3] and View(game, state).mask[0, 0, 1]


def test_strengths_share_a_stag_but_not_a_hare() -> None:
    config = dataclasses.replace(FOUR, player_strength=(3.0, 1.0, 0.0, 0.0))
    game, state = placed(config, players=[(1, 1), (1, 1), (2, 2), (2, 2)], stags=[(1, 1)], hares=[(2, 2)])
    assert game.step(state, act(5, 5, 6, 6))[1].reward[0].tolist() == [7.5, 2.5, 0.5, 0.5]
    powerless, state = placed(config, players=[(0, 0), (0, 0), (1, 1), (1, 1)], stags=[(1, 1)], hares=[(3, 3)])
    assert powerless.step(state, act(4, 4, 5, 5))[1].reward[0].tolist() == [0.0, 0.0, 5.0, 5.0]


def test_prosocial_and_time_rewards() -> None:
    config = dataclasses.replace(FOUR, prosocial=True, time_reward=-0.1)
    game, state = placed(config, players=[(1, 1), (1, 1), (0, 0), None], stags=[(1, 1)], hares=[(3, 3)])
    reward = game.step(state, act(5, 5, 4, 4))[1].reward[0]
    assert reward.tolist() == pytest.approx([(10 - 0.1) / 4] * 3 + [0.0])


def test_time_is_up_and_nobody_left_and_no_prey_left_end_an_episode() -> None:
    game, late = placed(FOUR, players=[(0, 0)] * 4, stags=[(1, 1)], hares=[(2, 2)], t=34)
    assert game.step(late, act(4, 4, 4, 4))[1].over.item()
    game, last = placed(FOUR, players=[(2, 2), None, None, None], stags=[(1, 1)], hares=[(2, 2), (3, 3)])
    assert game.step(last, act(6, 4, 4, 4))[1].over.item()
    game, bare = placed(FOUR, players=[(2, 2), (0, 0), None, None], hares=[(2, 2)])
    out = game.step(bare, act(6, 4, 4, 4))[1]
    assert out.over.item() and out.done[0].tolist() == [True, True, False, False]


def test_dynamic_final_time_ends_five_steps_after_the_first_capture() -> None:
    config = dataclasses.replace(FOUR, dynamic_final_time=True)
    game, state = placed(config, players=[(2, 2), (0, 0), (0, 0), (0, 0)], stags=[(1, 1)], hares=[(2, 2), (3, 3)])
    over = []
    for step in range(6):
        state, out = game.step(state, act(6 if step == 0 else 4, 4, 4, 4))
        over.append(out.over.item())
    assert over == [False] * 5 + [True]


# --- starts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", game_names())
def test_a_start_puts_everything_on_different_free_cells(name: str) -> None:
    game = small_game(game_config(name))
    state = game.reset(2000, seeded(0))
    cells = torch.cat([state.prey_cell, state.cell], 1)
    assert (cells.sort(1).values.diff(dim=1) > 0).all()
    assert not game.maps.blocks[state.map.unsqueeze(1), cells].any()
    assert state.alive.all() and (state.last_action == 4).all()
    assert (state.t == 0).all() and (state.first_hunt == -1).all()
    free = (~game.maps.blocks).float().mean(0)
    counts = torch.bincount(state.cell.flatten(), minlength=game.cells) / (2000 * game.players)
    if not game.config.max_block_comp and game.config.layout == "anywhere":  # uniform over the grid
        assert (counts - free / game.cells).abs().max() < 0.03


def test_players_share_cells_where_there_is_no_room() -> None:
    config = GameConfig(height=2, width=3, hares=3, max_block_comp=0)
    game = make_game(config)
    state = game.reset(500, seeded(0))
    assert state.cell.shape == (500, 4)
    assert set(state.cell.unique().tolist()) == set(range(6))


# --- against the scalar rules ----------------------------------------------------------------------------------------


def follow(name: str, episodes: int, seed: int, **changes) -> None:
    """Play `episodes` with mixed actions in both implementations and compare everything at every step."""
    config = game_config(name, **changes)
    rules, rng, generator = Rules(config), random.Random(seed), seeded(seed)
    starts = [rules.start(rng) for _ in range(episodes)]
    game, state = restore(config, torch.stack([board(config, s) for s in starts]), torch.zeros(episodes))
    scalar, live = situations(game, state), list(range(episodes))  # a restored game numbers its prey anew
    total = [[0.0] * config.players for _ in range(episodes)]
    for _ in range(config.final_time):
        mask = View(game, state).mask
        masks = mask.tolist()
        actions = torch.randint(0, 8, state.cell.shape, generator=generator)  # 7 is never legal
        # Random walkers rarely hunt together, so let most players hunt whenever they can.
        hunts = mask[..., 5:].any(2) & (torch.rand(state.cell.shape, generator=generator) < 0.7)
        actions = torch.where(hunts, 5 + mask[..., 5:].int().argmax(2), actions)
        after, out = game.step(state, actions)
        asked, rewards, dones = actions.tolist(), out.reward.tolist(), out.done.tolist()
        overs, executed, still = out.over.tolist(), out.executed.tolist(), []
        for b in live:
            assert masks[b] == [rules.legal(scalar[b], i) for i in range(config.players)]
            step = rules.step(scalar[b], asked[b])
            assert rewards[b] == pytest.approx(step.reward, abs=1e-5)
            assert (dones[b], overs[b], executed[b]) == (step.done, step.over, step.after.last_action)
            total[b] = [x + y for x, y in zip(total[b], step.reward)]
            scalar[b] = step.after
            if not step.over:
                still.append(b)
        assert [situations(game, after.select(slice(b, b + 1)))[0] for b in still] == [scalar[b] for b in still]
        state, live = after, still
        if not live:
            break
    assert not live
    if config.rules == "hunt":
        best = config.stag_reward * config.stags + config.hare_reward * max(0, config.players - 2 * config.stags)
        assert all(sum(row) <= best + 1e-4 for row in total)


@pytest.mark.parametrize("name", game_names())
def test_the_batched_game_equals_the_scalar_rules(name: str) -> None:
    follow(name, episodes=92, seed=11)  # eleven games: 1,012 seeded episodes in all


@pytest.mark.parametrize(
    "changes",
    [
        {"dynamic_final_time": True},
        {"prosocial": True, "time_reward": -0.05},
        {"player_strength": (2.0, 1.0, 0.0, 0.0), "stags": 2},
        {"height": 9, "width": 11, "hares": 20, "stags": 3},  # too many cells for codes of one byte
    ],
)
def test_the_options_of_the_game_equal_the_scalar_rules(changes: dict) -> None:
    follow("msh_4x4", episodes=60, seed=12, **changes)


def test_renewed_games_are_the_fresh_ones_and_the_rest_is_untouched() -> None:
    game = small_game(game_config("msh_8x8_b5"))
    state, fresh = game.reset(50, seeded(1)), game.reset(3, seeded(2))
    state = game.step(state, torch.full((50, 4), 1))[0]
    games = torch.tensor([4, 17, 49])
    found, kept = state.renewed(games, fresh), torch.ones(50, dtype=torch.bool).index_fill(0, games, False)
    assert_same(tuple(found.select(games)), tuple(fresh))
    assert_same(tuple(found.select(kept)), tuple(state.select(kept)))
    assert found.cell.stride() == state.cell.stride() == (1, 50)  # games stay next to each other: that is what is fast
    assert state.t.eq(1).all()  # the old state is as it was


@pytest.mark.parametrize("action", [-(2**40), 256, 260, 2**40])
def test_numbers_of_any_size_that_are_no_action_mean_stay(action: int) -> None:
    game, state = placed(FOUR, players=[(1, 1), (3, 3), (3, 3), (3, 3)], stags=[(0, 1)], hares=[(2, 2)])
    after, out = game.step(state, act(action, 4, 4, 4))
    assert after.cell[0, 0] == 5 and out.executed[0, 0] == 4


def test_snowdrift_pays_everybody_and_charges_the_removers() -> None:
    config = game_config("msg_4x4")
    game, state = placed(config, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1), (2, 2), (3, 3)])
    after, out = game.step(state, act(5, 5, 5, 5))
    assert out.reward[0].tolist() == [10.0, 10.0, 8.0, 12.0]
    assert after.alive.all() and after.prey_alive.sum() == 1 and not out.over.item()
    assert out.executed[0].tolist() == [5, 5, 5, 4]


def test_whole_numbers_are_picked_up_to_the_last() -> None:
    uniform = torch.tensor([0.0, 0.24, 0.25, 0.74, 0.75, 0.999, 1.0])
    assert _pick(uniform, 4).tolist() == [0, 0, 1, 2, 3, 3, 3]
    assert _pick(torch.tensor([0.9, 0.9]), torch.tensor([1, 3])).tolist() == [0, 2]


def test_states_are_mixed_game_by_game() -> None:
    game = small_game(FOUR)
    one, other = game.reset(5, seeded(1)), game.reset(5, seeded(2))
    marked = torch.tensor([True, False, False, True, False])
    mixed = one.where(marked, other)
    for field, a, b in zip(mixed, one, other):
        for i, is_other in enumerate(marked.tolist()):
            assert torch.equal(field[i], b[i] if is_other else a[i])


def test_two_maps_are_two_maps() -> None:
    """The smallest number of maps for which a cell of one is not a cell of the other."""
    config = game_config("msh_6x6_b4")
    game = make_game(config, seeded(3), maps=2)
    assert not torch.equal(game.maps.blocks[0], game.maps.blocks[1])
    state = game.reset(64, seeded(4))
    state = state._replace(map=torch.arange(64) % 2)
    there = torch.stack([game.maps.blocks[m] for m in state.map])
    moves = View(game, state).mask[..., :4]  # [B, n, 4]: up, down, left, right
    for b in range(64):
        for p in range(config.players):
            row, column = divmod(int(state.cell[b, p]), config.width)
            for action, (down, right) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
                r, c = row + down, column + right
                free = 0 <= r < config.height and 0 <= c < config.width and not bool(there[b, r * config.width + c])
                assert bool(moves[b, p, action]) == free


def test_far_away_layouts_have_everything_in_its_column() -> None:
    game = make_game(game_config("msh_far"))
    state = game.reset(300, seeded(0))
    column = state.prey_cell % 8
    assert (column[:, 0] == 7).all() and (column[:, 1:3] >= 6).all() and (column[:, 3:] == 0).all()
    assert (state.cell % 8 == 4).all() and len(state.cell.unique()) == 4
    everything = torch.cat([state.prey_cell, state.cell], 1).sort(1).values
    assert (everything.diff(dim=1) > 0).all()  # nobody begins where somebody else does
    with pytest.raises(UserError, match="as many rows"):
        game_config("msh_4x4", layout="far")


def test_loose_layouts_let_players_begin_anywhere_in_half_of_the_games() -> None:
    game = make_game(game_config("msh_far_loose"))
    state = game.reset(400, seeded(0))
    middle = (state.cell % 8 == 4).all(1)
    assert 150 < int(middle.sum()) < 250
    assert (state.prey_cell[:, 0] % 8 == 7).all() and (state.prey_cell[:, 3:] % 8 == 0).all()
    assert set((state.cell[~middle] % 8).unique().tolist()) >= {1, 2, 3, 4, 5}
    everything = torch.cat([state.prey_cell, state.cell], 1).sort(1).values
    assert (everything.diff(dim=1) > 0).all()
