"""A Triton kernel that perceives one arena: observations, rewards and statistics (see `sea/fused.py`)."""

from __future__ import annotations

import triton
import triton.language as tl

from marlab.fish.sea import constants as sea
from marlab.fish.sea import rewards
from marlab.fish.sea.kernel_motion import add, length
from marlab.fish.sea.perception import TINY

# Numbers that the kernel knows when it is compiled.
ARENA_RADIUS = tl.constexpr(sea.ARENA_RADIUS)
EPISODE_STEPS = tl.constexpr(sea.EPISODE_STEPS)
SMALLEST, BEYOND = tl.constexpr(TINY), tl.constexpr(1e30)
SCALE, LIFE, DEATH = (tl.constexpr(value) for value in (rewards.SCALE, rewards.LIFE, rewards.DEATH))
VISION_TOP = tl.constexpr(rewards.VISION_TOP)
WALL_MARGIN, WALL_SLOPE = tl.constexpr(rewards.WALL_MARGIN), tl.constexpr(rewards.WALL_SLOPE)
OVER_ARENA, OVER_SPEED, OVER_VISION = (
    tl.constexpr(1 / value) for value in (sea.ARENA_RADIUS, sea.FISH_MAX_SPEED, sea.VISION_RADIUS)
)
EARLY, MIDDLE, LATE = (tl.constexpr(horizon) for horizon in sea.HORIZONS)


@triton.jit
def _sink(kept, value, ONCE: tl.constexpr):
    """One stage of a sorted list: the lesser is kept, the greater goes on; with ONCE equal numbers count once."""
    less = tl.minimum(kept, value)
    more = tl.maximum(kept, value)
    if ONCE:
        more = tl.where(less == more, BEYOND, more)
    return less, more


@triton.jit
def _sort_in(k0, k1, k2, k3, k4, k5, k6, k7, value, NEAREST: tl.constexpr, ONCE: tl.constexpr):
    """The NEAREST least numbers, sorted, after one more has come."""
    k0, value = _sink(k0, value, ONCE)
    if NEAREST > 1:
        k1, value = _sink(k1, value, ONCE)
    if NEAREST > 2:
        k2, value = _sink(k2, value, ONCE)
    if NEAREST > 3:
        k3, value = _sink(k3, value, ONCE)
    if NEAREST > 4:
        k4, value = _sink(k4, value, ONCE)
    if NEAREST > 5:
        k5, value = _sink(k5, value, ONCE)
    if NEAREST > 6:
        k6, value = _sink(k6, value, ONCE)
    if NEAREST > 7:
        k7, value = _sink(k7, value, ONCE)
    return k0, k1, k2, k3, k4, k5, k6, k7


@triton.jit
def _last(k0, k1, k2, k3, k4, k5, k6, k7, NEAREST: tl.constexpr):
    if NEAREST == 1:  # noqa: SIM116  (a kernel has no dictionaries)
        return k0
    elif NEAREST == 2:
        return k1
    elif NEAREST == 3:
        return k2
    elif NEAREST == 4:
        return k3
    elif NEAREST == 5:
        return k4
    elif NEAREST == 6:
        return k5
    elif NEAREST == 7:
        return k6
    else:
        return k7


@triton.jit
def _repeats(a, b):
    return ((a == b) & (b < BEYOND)).to(tl.int32)


@triton.jit
def _ways(x, y, slot, place_x, place_y, j, RADIUS_SQ: tl.constexpr):
    """Offset and squared way of every fish [F] to fish j, and whether that one is its neighbour."""
    dx = place_x - x
    dy = place_y - y
    distance_sq = SMALLEST + dx * dx + dy * dy
    return dx, dy, distance_sq, (distance_sq <= RADIUS_SQ) & (slot != j)


@triton.jit
def _meet(
    x, y, slot, place_ptr, y_ptr, vx_ptr, vy_ptr, pace_ptr, first, column, j, number, speeds, leaving,
    k0, k1, k2, k3, k4, k5, k6, k7, RADIUS_SQ: tl.constexpr, NEAREST: tl.constexpr,
):  # fmt: skip
    """First pass, neighbour j: how many, how fast, how fast away, and how far the nearest are."""
    other = first + j * column
    dx, dy, distance_sq, near = _ways(x, y, slot, tl.load(place_ptr + other), tl.load(y_ptr + other), j, RADIUS_SQ)
    away = (tl.load(vx_ptr + other) * dx + tl.load(vy_ptr + other) * dy) * tl.rsqrt(distance_sq)
    number = tl.where(near, number + 1.0, number)
    speeds = tl.where(near, speeds + tl.load(pace_ptr + other), speeds)
    leaving = tl.where(near, leaving + away, leaving)
    value = tl.where(near, distance_sq, BEYOND)
    k0, k1, k2, k3, k4, k5, k6, k7 = _sort_in(k0, k1, k2, k3, k4, k5, k6, k7, value, NEAREST, False)
    return number, speeds, leaving, k0, k1, k2, k3, k4, k5, k6, k7


@triton.jit
def _sum_up(
    x, y, slot, place_ptr, y_ptr, pace_ptr, first, column, j, reach_sq, speed_mean, closest, sum_dx, sum_dy, variance,
    RADIUS_SQ: tl.constexpr,
):  # fmt: skip
    """Second pass, neighbour j: the offsets of the nearest few, and how much speeds differ."""
    other = first + j * column
    dx, dy, distance_sq, near = _ways(x, y, slot, tl.load(place_ptr + other), tl.load(y_ptr + other), j, RADIUS_SQ)
    close = near & (distance_sq <= reach_sq)
    offset = tl.load(pace_ptr + other) - speed_mean
    closest = tl.where(close, closest + 1.0, closest)
    sum_dx = tl.where(close, sum_dx + dx, sum_dx)
    sum_dy = tl.where(close, sum_dy + dy, sum_dy)
    variance = tl.where(near, variance + offset * offset, variance)
    return closest, sum_dx, sum_dy, variance


@triton.jit
def _neighbours(
    x, y, slot, place_ptr, y_ptr, vx_ptr, vy_ptr, pace_ptr, first, column,
    FISH: tl.constexpr, WIDTH: tl.constexpr, UNROLL: tl.constexpr, RADIUS_SQ: tl.constexpr, NEAREST: tl.constexpr,
):  # fmt: skip
    """`perception.neighbours` of one arena's fish: [F] number, mean dx, dy, nearest, speeds' mean, std, divergence.

    Equal distances count as one step to the K nearest. They are rare, so the list is kept with repetitions, and made
    anew without in the arenas where that matters.
    """
    zero = tl.zeros((WIDTH,), tl.float32)
    k0 = zero + BEYOND
    k1 = k0
    k2 = k0
    k3 = k0
    k4 = k0
    k5 = k0
    k6 = k0
    k7 = k0
    number = zero
    speeds = zero
    leaving = zero
    for block in range(0, FISH - FISH % UNROLL, UNROLL):
        for step in tl.static_range(UNROLL):
            number, speeds, leaving, k0, k1, k2, k3, k4, k5, k6, k7 = _meet(
                x, y, slot, place_ptr, y_ptr, vx_ptr, vy_ptr, pace_ptr, first, column, block + step,
                number, speeds, leaving, k0, k1, k2, k3, k4, k5, k6, k7, RADIUS_SQ, NEAREST,
            )  # fmt: skip
    for step in tl.static_range(FISH % UNROLL):
        number, speeds, leaving, k0, k1, k2, k3, k4, k5, k6, k7 = _meet(
            x, y, slot, place_ptr, y_ptr, vx_ptr, vy_ptr, pace_ptr, first, column, FISH - FISH % UNROLL + step,
            number, speeds, leaving, k0, k1, k2, k3, k4, k5, k6, k7, RADIUS_SQ, NEAREST,
        )  # fmt: skip
    nearest_sq = k0
    repeats = _repeats(k0, k1) + _repeats(k1, k2) + _repeats(k2, k3) + _repeats(k3, k4) + _repeats(k4, k5)
    repeats += _repeats(k5, k6) + _repeats(k6, k7)
    if tl.sum(repeats, 0) > 0:
        k0 = zero + BEYOND
        k1 = k0
        k2 = k0
        k3 = k0
        k4 = k0
        k5 = k0
        k6 = k0
        k7 = k0
        for again in range(FISH):
            other = first + again * column
            _, _, distance_sq, near = _ways(
                x, y, slot, tl.load(place_ptr + other), tl.load(y_ptr + other), again, RADIUS_SQ
            )
            value = tl.where(near, distance_sq, BEYOND)
            k0, k1, k2, k3, k4, k5, k6, k7 = _sort_in(k0, k1, k2, k3, k4, k5, k6, k7, value, NEAREST, True)
    reach_sq = tl.minimum(_last(k0, k1, k2, k3, k4, k5, k6, k7, NEAREST), RADIUS_SQ)
    per_neighbour = tl.div_rn(1.0, tl.maximum(number, 1.0))
    speed_mean = speeds * per_neighbour
    closest = zero
    sum_dx = zero
    sum_dy = zero
    variance = zero
    for block in range(0, FISH - FISH % UNROLL, UNROLL):
        for step in tl.static_range(UNROLL):
            closest, sum_dx, sum_dy, variance = _sum_up(
                x, y, slot, place_ptr, y_ptr, pace_ptr, first, column, block + step, reach_sq, speed_mean,
                closest, sum_dx, sum_dy, variance, RADIUS_SQ,
            )  # fmt: skip
    for step in tl.static_range(FISH % UNROLL):
        closest, sum_dx, sum_dy, variance = _sum_up(
            x, y, slot, place_ptr, y_ptr, pace_ptr, first, column, FISH - FISH % UNROLL + step, reach_sq, speed_mean,
            closest, sum_dx, sum_dy, variance, RADIUS_SQ,
        )  # fmt: skip
    per_closest = tl.div_rn(1.0, tl.maximum(closest, 1.0))
    nearest = tl.where(nearest_sq <= RADIUS_SQ, tl.sqrt_rn(tl.minimum(nearest_sq, RADIUS_SQ)), 0.0)
    spread = tl.sqrt_rn(variance * per_neighbour)
    return number, sum_dx * per_closest, sum_dy * per_closest, nearest, speed_mean, spread, leaving * per_neighbour


@triton.jit
def perceive_arena(
    x_ptr, y_ptr, vx_ptr, vy_ptr, exists_ptr, alive_ptr, death_ptr, px_ptr, py_ptr, pvx_ptr, pvy_ptr, t_ptr, pack_ptr,
    place_ptr, pace_ptr, waiting_ptr, obs_ptr, reward_ptr, coef_ptr, target_ptr, rewards_ptr, returns_ptr, ends_ptr,
    first_death_ptr, arenas, row, column,
    FISH: tl.constexpr, WIDTH: tl.constexpr, UNROLL: tl.constexpr, PREDATORS: tl.constexpr, INPUTS: tl.constexpr,
    SUMMARY: tl.constexpr, SOCIAL: tl.constexpr, VISION: tl.constexpr, OUTSIDE: tl.constexpr, RADIUS: tl.constexpr,
    NEAREST: tl.constexpr, DIVERGENCE: tl.constexpr,
):  # fmt: skip
    """Observations, rewards, and the statistics of rewards and ends."""
    arena = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, WIDTH)
    real = slot < FISH
    at = arena * row + slot * column
    x = tl.load(x_ptr + at, real, 0.0)
    y = tl.load(y_ptr + at, real, 0.0)
    vx = tl.load(vx_ptr + at, real, 0.0)
    vy = tl.load(vy_ptr + at, real, 0.0)
    alive = tl.load(alive_ptr + at, real, 0) != 0
    exists = tl.load(exists_ptr + at, real, 0) != 0
    death = tl.load(death_ptr + at, real, -1)
    t = tl.load(t_ptr + arena)

    # the nearest predator
    lead_vx = tl.load(pvx_ptr + arena)
    lead_vy = tl.load(pvy_ptr + arena)
    dx = tl.load(px_ptr + arena) - x
    dy = tl.load(py_ptr + arena) - y
    seen_vx = lead_vx + 0.0 * x
    seen_vy = lead_vy + 0.0 * x
    if PREDATORS > 1:
        for p in tl.static_range(1, PREDATORS):
            mate = pack_ptr + arena * (4 * (PREDATORS - 1)) + p - 1
            mate_dx = tl.load(mate) - x
            mate_dy = tl.load(mate + (PREDATORS - 1)) - y
            nearer = mate_dx * mate_dx + mate_dy * mate_dy < dx * dx + dy * dy
            dx = tl.where(nearer, mate_dx, dx)
            dy = tl.where(nearer, mate_dy, dy)
            seen_vx = tl.where(nearer, tl.load(mate + 2 * (PREDATORS - 1)), seen_vx)
            seen_vy = tl.where(nearer, tl.load(mate + 3 * (PREDATORS - 1)), seen_vy)
    distance = length(dx, dy)
    visible = distance < VISION

    living = tl.where(alive, 1.0, 0.0)
    seeing = tl.where(alive & visible, 1.0, 0.0)
    wall = ARENA_RADIUS - length(x, y)
    out = obs_ptr + (arena * FISH + slot) * INPUTS
    over_arena = living * OVER_ARENA
    over_speed = living * OVER_SPEED
    over_vision = seeing * OVER_VISION
    over_seen = seeing * OVER_SPEED
    tl.store(out, x * over_arena, real)
    tl.store(out + 1, y * over_arena, real)
    tl.store(out + 2, vx * over_speed, real)
    tl.store(out + 3, vy * over_speed, real)
    tl.store(out + 4, wall * over_arena, real)
    tl.store(out + 5, seeing, real)
    tl.store(out + 6, dx * over_vision, real)
    tl.store(out + 7, dy * over_vision, real)
    tl.store(out + 8, seen_vx * over_seen, real)
    tl.store(out + 9, seen_vy * over_seen, real)
    tl.store(out + 10, distance * over_vision, real)

    pays = tl.where(t > 0, SCALE, 0.0) * living  # an arena that has just begun pays nothing
    life = LIFE * pays
    predator = tl.where(visible, distance * (VISION_TOP / VISION), OUTSIDE) * pays
    near_wall = tl.maximum(WALL_MARGIN - wall, 0.0)
    at_wall = -WALL_SLOPE * near_wall * pays
    density = tl.zeros((WIDTH,), tl.float32)
    divergence = tl.zeros((WIDTH,), tl.float32)
    if SOCIAL:
        number, mean_dx, mean_dy, nearest, speed_mean, speed_std, leaving = _neighbours(
            x, y, slot, place_ptr, y_ptr, vx_ptr, vy_ptr, pace_ptr, arena * row, column,
            FISH, WIDTH, UNROLL, RADIUS * RADIUS, NEAREST,
        )  # fmt: skip
        excess = tl.maximum(number * (1.0 / NEAREST) - tl.load(target_ptr), 0.0)
        density = -tl.load(coef_ptr) * excess * pays
        divergence = leaving * pays * DIVERGENCE
        if SUMMARY:
            over_radius = living * (1.0 / RADIUS)
            tl.store(out + 11, tl.minimum(number * (1.0 / NEAREST), 1.0) * living, real)
            tl.store(out + 12, mean_dx * over_radius, real)
            tl.store(out + 13, mean_dy * over_radius, real)
            tl.store(out + 14, nearest * over_radius, real)
            tl.store(out + 15, speed_mean * over_speed, real)
            tl.store(out + 16, speed_std * over_speed, real)
            tl.store(out + 17, leaving * over_speed, real)
    dies = tl.where((death == t) & (t > 0), DEATH, 0.0)
    gain = life + predator + at_wall + density + divergence + dies
    tl.store(reward_ptr + at, gain, real)

    fish = tl.sum(exists.to(tl.int32), 0)
    add(rewards_ptr + arena, tl.sum(tl.where(real, life, 0.0), 0))
    add(rewards_ptr + arenas + arena, tl.sum(tl.where(real, predator, 0.0), 0))
    add(rewards_ptr + 2 * arenas + arena, tl.sum(tl.where(real, at_wall, 0.0), 0))
    if SOCIAL:
        add(rewards_ptr + 3 * arenas + arena, tl.sum(tl.where(real, density, 0.0), 0))
        add(rewards_ptr + 4 * arenas + arena, tl.sum(tl.where(real, divergence, 0.0), 0))
    add(rewards_ptr + 5 * arenas + arena, tl.sum(tl.where(real, dies, 0.0), 0))
    returned = tl.load(returns_ptr + arena) + tl.div_rn(tl.sum(tl.where(real, gain, 0.0), 0), fish.to(tl.float32))
    ended = tl.load(waiting_ptr + arena) != 0
    tl.store(returns_ptr + arena, tl.where(ended, 0.0, returned))
    if ended:
        left = tl.sum(alive.to(tl.int32), 0)
        dead = death > 0
        lived = tl.sum(tl.where(exists, tl.where(dead, death - 1, t), 0), 0)
        first = tl.min(tl.where(dead, death, EPISODE_STEPS + 1), 0)
        someone = first <= EPISODE_STEPS
        over = left == 0
        count = fish.to(tl.float32)
        row_ptr = ends_ptr + arena
        add(row_ptr, ended)
        add(row_ptr + arenas, left)
        add(row_ptr + 2 * arenas, tl.div_rn(left.to(tl.float32), count))
        add(row_ptr + 3 * arenas, t)
        whole = (fish * tl.maximum(t, 1)).to(tl.float32)
        add(row_ptr + 4 * arenas, tl.div_rn(lived.to(tl.float32), whole))
        add(row_ptr + 5 * arenas, returned)
        add(row_ptr + 6 * arenas, tl.where(someone, first, 0))
        add(row_ptr + 7 * arenas, someone)
        add(row_ptr + 8 * arenas, (left > 0) & (t < EPISODE_STEPS))
        for h in tl.static_range(3):
            horizon = EARLY if h == 0 else (MIDDLE if h == 1 else LATE)
            reached = over | (t >= horizon)
            stood = tl.sum((exists & ((death <= 0) | (death > horizon))).to(tl.int32), 0)
            share = tl.div_rn(stood.to(tl.float32), count)
            add(row_ptr + (9 + h) * arenas, tl.where(reached, share, 0.0))
            add(row_ptr + (12 + h) * arenas, reached)
        tl.atomic_add(first_death_ptr + tl.where(someone, first, 0), 1)
