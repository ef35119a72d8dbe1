"""What a selling factory's stock and contracts are worth: the potential that rewards of online learning are made of.

Cash shows a sale only on the day of its delivery. A potential adds now what the contract will bring, and takes it back
when it becomes cash, so the rewards of a game still sum to what the game earned; they only come when the deed is done.
A contract is worth its price less the cost of making it. At the first level supply comes by itself, and every unit of
it that is not sold is stored to the end of the game: there a sale also saves that. Stock costs its storage from now on.

Letters: N factories, S days of a plan, K contracts of each.
"""

from __future__ import annotations

from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules.arrays import namespace


def potential(state: DayState) -> Array:
    """[N] worth of contracts and stock, in shares of the opening balance; 0 before the first and after the last day."""
    xp = namespace(state.day)
    served = xp.minimum(state.q_out, state.n_lines[..., None])
    price = state.receive / xp.maximum(1, state.q_out)
    made = ((price - state.production_cost[..., None]) * served).sum(-1)
    missed = (state.q_out - served).sum(-1) * state.shortfall_penalty * state.price_out
    saved = (xp.minimum(state.q_out, _supply(state)) * _storage(state)).sum(-1)
    held = state.inventory_input * _storage(state)[..., 0]
    worth = made - missed + saved - held - state.pay.sum(-1)
    return xp.where(state.day < state.n_steps, worth, 0.0) / _opening(state)


def contract(state: DayState, units: Array, price: Array, ahead: Array) -> Array:
    """[N, K] what one more sale [N, K] adds to the potential of a morning [N], each on its own; 0 without units."""
    xp = namespace(state.day)
    slots = state.q_out.shape[-1]
    day = xp.clip(ahead, 0, slots - 1)
    unsold = xp.maximum(0, _supply(state) - state.q_out)[..., None, :]
    saved = xp.minimum(units, xp.take(unsold, day)) * xp.take(_storage(state)[..., None, :], day)
    return (units * (price - state.production_cost[..., None]) + saved) / _opening(state)[..., None]


def sunk(state: DayState) -> Array:
    """[N] what today's exogenous supply costs whatever is done: its bill, and storing it to the end."""
    xp = namespace(state.day)
    costs = state.exogenous_in_price + state.exogenous_in_quantity * _storage(state)[..., 0]
    return xp.where(state.can_buy | (state.day >= state.n_steps), 0.0, costs) / _opening(state)


def _storage(state: DayState) -> Array:
    """[N, S] money that a unit costs which is stored from day t + k to the end."""
    xp = namespace(state.day)
    left = (state.n_steps - state.day)[..., None] - xp.arange(state.q_out.shape[-1], state.day)
    return (state.storage_cost * state.price_in)[..., None] * xp.maximum(left, 0)


def _supply(state: DayState) -> Array:
    """[N, S] units that come to a first-level factory by themselves, as far as it knows; none to others."""
    xp = namespace(state.day)
    slots = xp.arange(state.q_out.shape[-1], state.day)
    comes = xp.where(slots == 0, state.exogenous_in_quantity[..., None], state.exogenous_in_mean[..., None])
    return xp.where(state.can_buy[..., None], 0.0, comes)


def _opening(state: DayState) -> Array:
    return namespace(state.day).maximum(1, state.initial_balance)
