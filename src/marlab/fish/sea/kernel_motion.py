"""A Triton kernel that moves one arena: fish, predators, who is eaten, fresh starts, who ended (see `sea/fused.py`)."""

from __future__ import annotations

import math

import triton
import triton.language as tl

from marlab.fish.sea import constants as sea
from marlab.fish.sea.perception import FAR
from marlab.fish.sea.predators import NOWHERE
from marlab.fish.sea.stats import HEADING_BINS, SPEED_BINS

AIMS = ("ballistic", "pursuit", "intercept", "burst")
"""How a predator aims."""
BALLISTIC, PURSUIT, INTERCEPT, BURST = (tl.constexpr(aim) for aim in range(4))

# Numbers that the kernel knows when it is compiled.
DT = tl.constexpr(sea.DT)
ARENA_RADIUS, ARENA_RADIUS_SQ = tl.constexpr(sea.ARENA_RADIUS), tl.constexpr(sea.ARENA_RADIUS**2)
FISH_MAX_SPEED = tl.constexpr(sea.FISH_MAX_SPEED)
REST_SPEED = tl.constexpr(sea.REST_SPEED)
LOST_BY_BRAKE = tl.constexpr(1 - sea.FISH_BRAKE)
ALONG_TURN, ACROSS_TURN = tl.constexpr(math.cos(sea.FISH_TURN)), tl.constexpr(math.sin(sea.FISH_TURN))
PUSH = tl.constexpr(sea.FISH_ACCELERATION * sea.DT)
FORWARD, LEFT, RIGHT, BRAKE = (tl.constexpr(action) for action in range(4))
FISH_BOUNCE, PREDATOR_BOUNCE = tl.constexpr(1 + sea.FISH_RESTITUTION), tl.constexpr(1 + sea.PREDATOR_RESTITUTION)
KILL_DISTANCE = tl.constexpr(sea.KILL_DISTANCE)
EPISODE_STEPS = tl.constexpr(sea.EPISODE_STEPS)
HUNTER_GAIN = tl.constexpr(sea.HUNTER_ACCELERATION * sea.DT)
HORIZON = tl.constexpr(sea.INTERCEPT_HORIZON)
STRIKE_RANGE = tl.constexpr(sea.STRIKE_RANGE)
BURST_FACTOR, TIRED_FACTOR = tl.constexpr(sea.BURST_FACTOR), tl.constexpr(sea.TIRED_FACTOR)
BREATH, REGAINED = tl.constexpr(sea.BREATH), tl.constexpr(sea.DT * sea.BREATH / sea.RECOVERY)
CONFUSION_SQ = tl.constexpr(sea.CONFUSION_RADIUS**2)
NOBODY, AWAY, BEYOND = tl.constexpr(NOWHERE), tl.constexpr(FAR), tl.constexpr(1e30)
SPEED_BIN, LAST_SPEED_BIN, SPEED_COLUMNS = (tl.constexpr(n) for n in (sea.SPEED_BIN, SPEED_BINS - 1, SPEED_BINS))
HALF_TURN_BINS = tl.constexpr(HEADING_BINS // 2)
COS30, SIN30 = tl.constexpr(math.cos(math.pi / 6)), tl.constexpr(0.5)


@triton.jit
def length(x, y):
    return tl.sqrt_rn(x * x + y * y)


@triton.jit
def _bounce(x, y, vx, vy, bounce: tl.constexpr):
    radius_sq = x * x + y * y
    outside = tl.where(radius_sq > ARENA_RADIUS_SQ, 1.0, 0.0)
    removed = tl.div_rn(bounce * outside * (vx * x + vy * y), tl.maximum(radius_sq, 1.0))
    shrink = 1.0 + outside * (ARENA_RADIUS * tl.rsqrt(tl.maximum(radius_sq, 1.0)) - 1.0)
    return x * shrink, y * shrink, vx - removed * x, vy - removed * y


@triton.jit
def _swim_fish(x, y, vx, vy, alive, action):
    """`fish_step`: act, keep to the top speed, move, bounce."""
    speed = length(vx, vy)
    moving = tl.where(speed > REST_SPEED, 1.0, 0.0)
    inverse = tl.div_rn(moving, tl.maximum(speed, REST_SPEED))
    dx = vx * inverse + (1.0 - moving)
    dy = vy * inverse
    forward = tl.where(action == FORWARD, 1.0, 0.0)
    left = tl.where(action == LEFT, 1.0, 0.0)
    right = tl.where(action == RIGHT, 1.0, 0.0)
    brake = tl.where(action == BRAKE, 1.0, 0.0)
    turning = left + right
    keep = 1.0 - turning - LOST_BY_BRAKE * brake
    along = turning * speed * ALONG_TURN + PUSH * forward
    across = (left - right) * speed * ACROSS_TURN
    new_vx = keep * vx + along * dx - across * dy
    new_vy = keep * vy + along * dy + across * dx
    fast = tl.maximum(length(new_vx, new_vy), 1e-30)
    scale = tl.where(alive, tl.minimum(tl.div_rn(FISH_MAX_SPEED, fast), 1.0), 0.0)
    new_vx = new_vx * scale
    new_vy = new_vy * scale
    return _bounce(x + DT * new_vx, y + DT * new_vy, new_vx, new_vy, FISH_BOUNCE)


@triton.jit
def _hunt(
    px, py, pvx, pvy, x, y, vx, vy, alive, owner_sq, slot, breath, resting,
    MODE: tl.constexpr, PREDATORS: tl.constexpr, TOP: tl.constexpr, TURN: tl.constexpr, VISION_SQ: tl.constexpr,
    CONFUSION: tl.constexpr, COS_TURN: tl.constexpr, SIN_TURN: tl.constexpr, NONE: tl.constexpr,
):  # fmt: skip
    """One hunter's move after its fish [F] have moved; `owner_sq` [F] is the squared way of the nearest predator."""
    dx = x - px
    dy = y - py
    distance_sq = tl.where(alive, dx * dx + dy * dy, NOBODY)
    if PREDATORS > 1:
        shared = distance_sq + tl.where(distance_sq > owner_sq, NOBODY, 0.0)
        alone = tl.min(shared, 0) >= VISION_SQ
        distance_sq = tl.where(alone, distance_sq, shared)
    least = tl.min(distance_sq, 0)
    prey = tl.min(tl.where(distance_sq == least, slot, NONE), 0)
    here = slot == prey
    near_x = tl.sum(tl.where(here, dx, 0.0), 0)
    near_y = tl.sum(tl.where(here, dy, 0.0), 0)
    seen = least < VISION_SQ
    aim_x = near_x
    aim_y = near_y
    if MODE == INTERCEPT:
        prey_vx = tl.sum(tl.where(here, vx, 0.0), 0)
        prey_vy = tl.sum(tl.where(here, vy, 0.0), 0)
        time = tl.minimum(length(near_x, near_y) * (1.0 / TOP), HORIZON)
        time = tl.minimum(length(near_x + prey_vx * time, near_y + prey_vy * time) * (1.0 / TOP), HORIZON)
        aim_x = near_x + prey_vx * time
        aim_y = near_y + prey_vy * time
    top = TOP
    if MODE == BURST:
        rests = resting > 0
        bursting = (resting <= 0) & seen & (tl.sqrt_rn(least) < STRIKE_RANGE)
        breath = tl.minimum(tl.maximum(breath + tl.where(bursting, -DT, REGAINED), 0.0), BREATH)
        still = tl.where(rests, breath < BREATH - 0.5 * REGAINED, breath < 0.5 * DT)
        resting = tl.where(still, 1.0, 0.0)
        top = TOP * tl.where(bursting, BURST_FACTOR, tl.where(rests, TIRED_FACTOR, 1.0))
    cos_limit = COS_TURN
    sin_limit = SIN_TURN
    if CONFUSION > 0:
        apart_x = dx - near_x
        apart_y = dy - near_y
        close = (apart_x * apart_x + apart_y * apart_y <= CONFUSION_SQ) & alive
        crowd = tl.sum(tl.where(close, 1.0, 0.0), 0) - 1.0
        limit = tl.div_rn(TURN, 1.0 + CONFUSION * crowd)
        cos_limit = tl.cos(limit)
        sin_limit = tl.sin(limit)
    # swim: turn towards the aim as far as the limit lets it, gather speed, move
    speed = length(pvx, pvy)
    moving = speed > REST_SPEED
    reach = tl.maximum(length(aim_x, aim_y), 1e-6)
    scale = tl.div_rn(1.0, tl.maximum(speed, REST_SPEED))
    hx = tl.where(moving, pvx * scale, tl.where(seen, tl.div_rn(aim_x, reach), 1.0))
    hy = tl.where(moving, pvy * scale, tl.where(seen, tl.div_rn(aim_y, reach), 0.0))
    cross = hx * aim_y - hy * aim_x
    dot = hx * aim_x + hy * aim_y
    way = length(cross, dot)
    inverse = tl.div_rn(1.0, tl.maximum(way, 1e-30))
    c = dot * inverse
    s = cross * inverse
    beyond = c < cos_limit
    c = tl.where(beyond, cos_limit, c)
    s = tl.where(beyond, tl.where(cross >= 0, sin_limit, -sin_limit), s)
    turns = seen & (way > 0)
    c = tl.where(turns, c, 1.0)
    s = tl.where(turns, s, 0.0)
    speed = speed + tl.minimum(tl.maximum(top - speed, -HUNTER_GAIN), HUNTER_GAIN)
    new_vx = speed * (c * hx - s * hy)
    new_vy = speed * (s * hx + c * hy)
    new_x, new_y, new_vx, new_vy = _bounce(px + DT * new_vx, py + DT * new_vy, new_vx, new_vy, PREDATOR_BOUNCE)
    return new_x, new_y, new_vx, new_vy, breath, resting


@triton.jit
def _heading_bin(vx, vy):
    """The 30-degree sector of a direction, counted from +x; borders belong to the later sector."""
    upper = (vy > 0) | ((vy == 0) & (vx >= 0))
    a = tl.where(upper, vx, -vx)
    b = tl.where(upper, vy, -vy)
    passed = (b * COS30 - a * SIN30 >= 0).to(tl.int32) + (b * SIN30 - a * COS30 >= 0).to(tl.int32)
    passed += (a <= 0).to(tl.int32)
    passed += (-b * SIN30 - a * COS30 >= 0).to(tl.int32) + (-b * COS30 - a * SIN30 >= 0).to(tl.int32)
    still = (a == 0) & (b == 0)
    return tl.where(still, 0, passed + tl.where(upper, 0, HALF_TURN_BINS))


@triton.jit
def add(pointer, value):
    tl.store(pointer, tl.load(pointer) + value.to(tl.float64))


@triton.jit
def advance_arena(
    x_ptr, y_ptr, vx_ptr, vy_ptr, exists_ptr, alive_ptr, death_ptr, px_ptr, py_ptr, pvx_ptr, pvy_ptr, t_ptr, pack_ptr,
    memory_ptr, bank_x_ptr, bank_y_ptr, bank_vx_ptr, bank_vy_ptr, bank_px_ptr, bank_py_ptr, bank_pvx_ptr, bank_pvy_ptr,
    bank_pack_ptr, bank_memory_ptr, queue_active_ptr, queue_stage_ptr, queue_velocity_ptr, queue_position_ptr,
    actions_ptr, waiting_ptr, order_ptr, used_ptr, fish_count_ptr, resets_ptr, stage_ptr, limit_ptr, terminated_ptr,
    truncated_ptr, place_ptr, pace_ptr, stat_resets_ptr, step_one_ptr, step_one_bins_ptr, stage_deaths_ptr,
    stage_fish_ptr, arenas, bank_size, slots, row, column, bank_row, bank_column, action_row, action_column,
    FISH: tl.constexpr, WIDTH: tl.constexpr, MODE: tl.constexpr, PREDATORS: tl.constexpr, MEMORY: tl.constexpr,
    PULL: tl.constexpr, TOP: tl.constexpr, TURN: tl.constexpr, VISION_SQ: tl.constexpr, CONFUSION: tl.constexpr,
    COS_TURN: tl.constexpr, SIN_TURN: tl.constexpr, TERMINATES: tl.constexpr,
):  # fmt: skip
    """Clock, fish, predators, collisions, fresh starts, and who ended; also what is counted at resets and step one."""
    arena = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, WIDTH)
    real = slot < FISH
    at = arena * row + slot * column
    waiting = tl.load(waiting_ptr + arena) != 0
    x = tl.load(x_ptr + at, real, 0.0)
    y = tl.load(y_ptr + at, real, 0.0)
    vx = tl.load(vx_ptr + at, real, 0.0)
    vy = tl.load(vy_ptr + at, real, 0.0)
    exists = tl.load(exists_ptr + at, real, 0) != 0
    was_alive = tl.load(alive_ptr + at, real, 0) != 0
    death = tl.load(death_ptr + at, real, -1)
    action = tl.load(actions_ptr + arena * action_row + slot * action_column, real, 4)
    t = tl.load(t_ptr + arena) + 1
    x, y, vx, vy = _swim_fish(x, y, vx, vy, was_alive, action)

    # the arena's next start, and the hard start that is next in its queue
    order = tl.load(order_ptr + arena) - 1 + tl.load(used_ptr)
    start = tl.where(waiting, order % bank_size, 0)
    resets = tl.load(resets_ptr + arena)
    queued = tl.minimum(resets, slots - 1) * arenas + arena
    active = (tl.load(queue_active_ptr + queued) != 0) & waiting & (resets < slots)
    hard_x = tl.load(queue_position_ptr + 2 * queued)
    hard_y = tl.load(queue_position_ptr + 2 * queued + 1)
    hard_vx = tl.load(queue_velocity_ptr + 2 * queued)
    hard_vy = tl.load(queue_velocity_ptr + 2 * queued + 1)
    placed = active & (hard_x == hard_x)  # a place that is not a number keeps the ordinary one
    stage = tl.load(stage_ptr + arena)
    stage = tl.where(waiting, tl.where(active, tl.load(queue_stage_ptr + queued), -1), stage)

    # predators
    owner_sq = tl.full((WIDTH,), BEYOND, tl.float32)
    if PREDATORS > 1:
        for p in tl.static_range(PREDATORS):
            if p == 0:
                px = tl.load(px_ptr + arena)
                py = tl.load(py_ptr + arena)
            else:
                mate = pack_ptr + arena * (4 * (PREDATORS - 1)) + p - 1
                px = tl.load(mate)
                py = tl.load(mate + (PREDATORS - 1))
            owner_sq = tl.minimum(owner_sq, tl.where(was_alive, (x - px) * (x - px) + (y - py) * (y - py), NOBODY))
    distance = tl.full((WIDTH,), BEYOND, tl.float32)
    breath = 0.0
    resting = 0.0
    if MEMORY > 0:
        breath = tl.load(memory_ptr + arena * MEMORY)
        resting = tl.load(memory_ptr + arena * MEMORY + 1)
    pull_x = breath  # a ballistic predator that is pulled to a side keeps that in the same two numbers
    pull_y = resting
    lead_vx = 0.0
    lead_vy = 0.0
    for p in tl.static_range(PREDATORS):
        if p == 0:
            px = tl.load(px_ptr + arena)
            py = tl.load(py_ptr + arena)
            pvx = tl.load(pvx_ptr + arena)
            pvy = tl.load(pvy_ptr + arena)
        else:
            mate = pack_ptr + arena * (4 * (PREDATORS - 1)) + p - 1
            px = tl.load(mate)
            py = tl.load(mate + (PREDATORS - 1))
            pvx = tl.load(mate + 2 * (PREDATORS - 1))
            pvy = tl.load(mate + 3 * (PREDATORS - 1))
        if MODE == BALLISTIC:
            if MEMORY > 0:
                pvx = pvx + PULL * pull_x
                pvy = pvy + PULL * pull_y
            else:
                pvy = pvy + PULL
            px, py, pvx, pvy = _bounce(px + DT * pvx, py + DT * pvy, pvx, pvy, PREDATOR_BOUNCE)
        else:
            px, py, pvx, pvy, breath, resting = _hunt(
                px, py, pvx, pvy, x, y, vx, vy, was_alive, owner_sq, slot, breath, resting,
                MODE, PREDATORS, TOP, TURN, VISION_SQ, CONFUSION, COS_TURN, SIN_TURN, WIDTH,
            )  # fmt: skip
        distance = tl.minimum(distance, length(x - px, y - py))
        if p == 0:
            px = tl.where(waiting, tl.where(placed, hard_x, tl.load(bank_px_ptr + start)), px)
            py = tl.where(waiting, tl.where(placed, hard_y, tl.load(bank_py_ptr + start)), py)
            lead_vx = tl.where(waiting, tl.where(active, hard_vx, tl.load(bank_pvx_ptr + start)), pvx)
            lead_vy = tl.where(waiting, tl.where(active, hard_vy, tl.load(bank_pvy_ptr + start)), pvy)
            tl.store(px_ptr + arena, px)
            tl.store(py_ptr + arena, py)
            tl.store(pvx_ptr + arena, lead_vx)
            tl.store(pvy_ptr + arena, lead_vy)
        else:
            mate = pack_ptr + arena * (4 * (PREDATORS - 1)) + p - 1
            fresh = bank_pack_ptr + start * (4 * (PREDATORS - 1)) + p - 1
            tl.store(mate, tl.where(waiting, tl.load(fresh), px))
            tl.store(mate + (PREDATORS - 1), tl.where(waiting, tl.load(fresh + (PREDATORS - 1)), py))
            tl.store(mate + 2 * (PREDATORS - 1), tl.where(waiting, tl.load(fresh + 2 * (PREDATORS - 1)), pvx))
            tl.store(mate + 3 * (PREDATORS - 1), tl.where(waiting, tl.load(fresh + 3 * (PREDATORS - 1)), pvy))
    if MEMORY > 0:
        tl.store(memory_ptr + arena * MEMORY, tl.where(waiting, tl.load(bank_memory_ptr + start * MEMORY), breath))
        fresh_rest = tl.load(bank_memory_ptr + start * MEMORY + 1)
        tl.store(memory_ptr + arena * MEMORY + 1, tl.where(waiting, fresh_rest, resting))

    # who was eaten, and what a fresh start puts in their place
    hit = was_alive & (distance < KILL_DISTANCE)
    alive = was_alive & (distance >= KILL_DISTANCE)
    death = tl.where(hit, t, death)
    born = real & (slot < tl.load(fish_count_ptr + arena))
    fresh_at = start * bank_row + slot * bank_column
    arrives = real & born & waiting
    x = tl.where(waiting, tl.load(bank_x_ptr + fresh_at, arrives, 0.0), x)
    y = tl.where(waiting, tl.load(bank_y_ptr + fresh_at, arrives, 0.0), y)
    vx = tl.where(waiting, tl.load(bank_vx_ptr + fresh_at, arrives, 0.0), vx)
    vy = tl.where(waiting, tl.load(bank_vy_ptr + fresh_at, arrives, 0.0), vy)
    exists = (waiting & born) | (exists & (waiting == 0))
    alive = (waiting & born) | (alive & (waiting == 0))
    death = tl.where(waiting, -1, death)
    t = tl.where(waiting, 0, t)
    tl.store(x_ptr + at, x, real)
    tl.store(y_ptr + at, y, real)
    tl.store(vx_ptr + at, vx, real)
    tl.store(vy_ptr + at, vy, real)
    tl.store(exists_ptr + at, exists, real)
    tl.store(alive_ptr + at, alive, real)
    tl.store(death_ptr + at, death, real)
    tl.store(place_ptr + at, tl.where(alive, x, AWAY), real)  # what neighbours read: the dead are far from everybody
    tl.store(pace_ptr + at, length(vx, vy), real)
    tl.store(t_ptr + arena, t)
    tl.store(stage_ptr + arena, stage)
    tl.store(resets_ptr + arena, resets + waiting.to(tl.int64))

    # who ended
    living = tl.sum(alive.to(tl.int32), 0)
    ended = (t >= tl.load(limit_ptr)) | (living == 0)
    died = hit & (waiting == 0)
    survived = alive & ended
    if TERMINATES:
        timed_out = survived & (t >= EPISODE_STEPS)
        tl.store(terminated_ptr + at, died | timed_out, real)
        tl.store(truncated_ptr + at, survived & (t < EPISODE_STEPS), real)
    else:
        tl.store(terminated_ptr + at, died, real)
        tl.store(truncated_ptr + at, survived, real)
    tl.store(waiting_ptr + arena, ended)

    if waiting:
        add(stat_resets_ptr + arena, waiting)
        add(stat_resets_ptr + arenas + arena, active)
        add(stat_resets_ptr + 2 * arenas + arena, order >= bank_size)
    if t == 1:
        deaths = tl.sum((death == 1).to(tl.int64), 0)
        fish = tl.sum(exists.to(tl.int64), 0)
        add(step_one_ptr + arena, deaths)
        add(step_one_ptr + arenas + arena, fish)
        fast = tl.minimum((length(lead_vx, lead_vy) * (1.0 / SPEED_BIN)).to(tl.int32), LAST_SPEED_BIN)
        tl.atomic_add(step_one_bins_ptr + _heading_bin(lead_vx, lead_vy) * SPEED_COLUMNS + fast, deaths)
        tl.atomic_add(stage_deaths_ptr + stage + 1, deaths)
        tl.atomic_add(stage_fish_ptr + stage + 1, fish)
