"""The work of `marlab market verify`: play worlds, replay them, print the agreement."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from marlab.lab.engine.tasks import EngineConfig, TaskResult
from marlab.lab.errors import UserError
from marlab.lab.extras import need
from marlab.lab.progress import Progress, stage
from marlab.market.simulator.worlds import WorldSpec, play_worlds
from marlab.market.vector.clones.pack import OURS, plain_name
from marlab.market.vector.replay import Recorded, Replayed, play_rule, read, read_folder, replay_contracts, replay_moves
from marlab.market.verify.compare import TOLERANCE, Agreement, compare, total
from marlab.market.verify.plan import LEVELS, ONE_AT_A_TIME, RULE_WORLDS, SYNC, by_level, planned
from marlab.market.verify.policies import compare_policies
from marlab.market.verify.settings import VerifyConfig

BATCH = 32
"""Worlds that are replayed together."""
MOST_POPULATIONS = 12
"""Names of recorded worlds that get a line of their own."""
REPEATS = 40
"""Plays of each config by an array version."""
LEAST_MIXED = 0.99
"""Share of equal contracts where some agents answer one negotiation at a time; joint deciders must reach 1."""


def verify(config: VerifyConfig) -> int:
    """Print the agreement of all levels; the exit code is 0 if every level holds."""
    if config.recorded is None or config.policy_worlds > 1:
        need("market", "Playing worlds")
    if config.recorded is not None:
        worlds = read_folder(config.recorded)
        if not worlds:
            raise UserError(f"There is no recorded world in {config.recorded}, expected files as --keep writes them.")
        names = [population(world) for world in worlds]
        if len(set(names)) > MOST_POPULATIONS:  # a collection names every world by itself
            names = [name if name == RULE_WORLDS else "recorded" for name in names]
    else:
        plan = planned(config.worlds, config.days, config.seed, config.populations)
        worlds = recorded([spec for _, spec in plan], config.engine_config(), config.quiet, config.keep)
        names = [name for name, _ in plan]
    with stage(f"replaying {len(worlds)} worlds", config.quiet):
        settled = [compare(*pair) for pair in zip(worlds, _in_batches(replay_contracts, worlds))]
        moved = [compare(*pair) for pair in zip(worlds, _in_batches(replay_moves, worlds))]
        lines, right = report(names, [world.sync for world in worlds], settled, moved)
        lines += ["", "both levels by length and shape of the worlds:", *by_shape(worlds, settled, moved)]
        more, alike = rule_worlds(names, worlds)
    lines, right = [*lines, *more], right and alike
    if config.policy_worlds > 1:
        more, alike = policies(config)
        lines, right = [*lines, *more], right and alike
    lines.append(f"the vector market {'agrees' if right else 'does NOT agree'} with the simulator")
    if not config.quiet:
        print("\n".join(lines))
    return 0 if right else 1


def population(world: Recorded) -> str:
    """A name for the agents of a recorded world: our rule, or what its file was called."""
    if all(plain_name(agent) == OURS for agent in world.agents):
        return RULE_WORLDS
    return world.world_id.rpartition("-")[0] or world.world_id


def rule_worlds(names: Sequence[str], worlds: Sequence[Recorded]) -> tuple[list[str], bool]:
    """Level 4: worlds in which everybody plays rule W, played by its array version: equal to the last day or not."""
    mine = [world for name, world in zip(names, worlds) if name == RULE_WORLDS]
    if not mine:
        return [], True
    found = total(compare(*pair) for pair in zip(mine, _in_batches(play_rule, mine)))
    title = "level 4, rule W in all seats, as arrays: nothing is given but the config"
    return [
        "",
        title,
        _settled_line("rule W", found),
        *(f"    {cause}" for cause in found.causes),
    ], found.equal == found.worlds


def recorded(specs: Sequence[WorldSpec], engine: EngineConfig, quiet: bool, keep: Path | None = None) -> list[Recorded]:
    """Play worlds in the simulator, in the order given; `keep`: a folder for their files, from which they are taken."""

    def failed(result: TaskResult, bar: Progress) -> None:
        raise UserError(f"World {result.key} could not be played ({result.kind}): {result.error[-500:]}")

    with tempfile.TemporaryDirectory(prefix="marlab-verify-") as folder:
        place = keep or Path(folder)
        play_worlds(specs, place, engine, failed, quiet=quiet)
        return [read(place / f"{spec.world_id}.parquet") for spec in specs]


def report(
    names: Sequence[str], sync: Sequence[bool], settled: Sequence[Agreement], moved: Sequence[Agreement]
) -> tuple[list[str], bool]:
    """The lines to print, and whether everything agrees as it must."""
    lines = ["level 1, replay of contracts: money, stock, prices and scores of every day"]
    lines += [_settled_line(name, _of(settled, names, name)) for name in dict.fromkeys(names)]
    everything = total(settled)
    lines.append(_settled_line("all", everything))
    right = everything.equal == everything.worlds
    lines += ["", "level 2, replay of moves: who agreed on what, and everything that follows from it"]
    for kind, joint, least in ((SYNC, True, 1.0), (ONE_AT_A_TIME, False, LEAST_MIXED)):
        some = [i for i, value in enumerate(sync) if value is joint]
        if not some:
            continue
        lines.append(f"  agents that decide {kind}:" if joint else f"  some agents decide {kind}:")
        inside = dict.fromkeys(names[i] for i in some)
        lines += [_moved_line(name, _of([moved[i] for i in some], [names[i] for i in some], name)) for name in inside]
        together = total(moved[i] for i in some)
        lines.append(_moved_line("together", together))
        right &= together.more_contracts == 0 if joint else together.more_contracts <= 0.01 * together.contracts
        right &= together.same_contracts >= least * together.contracts
    causes = total([*settled, *moved]).causes
    lines += ["", "differences and their causes:" if causes else "no differences"]
    lines += [f"  {count:6d}  {cause}" for cause, count in causes.most_common()]
    return lines, right


def by_shape(worlds: Sequence[Recorded], settled: Sequence[Agreement], moved: Sequence[Agreement]) -> list[str]:
    """Worlds, those that settle alike, bankruptcies and identical contracts, by days, levels and the widest level."""
    groups: dict[str, list[int]] = {}
    for i, world in enumerate(worlds):
        days, sizes = int(world.config.n_steps[0]), world.config.sizes[0]
        fewest = (days - 1) // 50 * 50 + 1
        about = f"{fewest} to {fewest + 49} days", f"{(sizes > 0).sum()} levels", f"{sizes.max()} factories at most"
        for name in about:
            groups.setdefault(name, []).append(i)
    ordered = sorted(groups, key=lambda name: (name.split()[-1], int(name.split()[0])))
    return [
        _shape_line(name, *(total(found[i] for i in groups[name]) for found in (settled, moved))) for name in ordered
    ]


def _shape_line(name: str, settled: Agreement, moved: Agreement) -> str:
    return (
        f"    {name:22s} {settled.equal} of {settled.worlds} worlds equal, {settled.bankrupt} bankruptcies; "
        f"{moved.same_contracts} of {moved.contracts} contracts identical, {moved.more_contracts} too many"
    )


def policies(config: VerifyConfig) -> tuple[list[str], bool]:
    """Level 3: lines about the built-in agents as arrays, and whether they do what the real ones do."""
    lines, alike = ["", "level 3, built-in agents as arrays: what they do and earn, beside the real ones"], True
    for agents in LEVELS:
        specs = by_level(agents, config.policy_worlds, config.days[1], config.seed)
        worlds = recorded(specs, config.engine_config(), config.quiet)
        with stage(f"playing {' beside '.join(agents)} as arrays", config.quiet):
            found = compare_policies(agents, worlds, REPEATS, config.seed)
        lines += [f"  {' beside '.join(agents)}:", *(beside.line() for beside in found)]
        alike &= all(beside.agrees for beside in found)
    return lines, alike


def _of(values: Sequence[Agreement], names: Sequence[str], name: str) -> Agreement:
    return total(value for value, its in zip(values, names) if its == name)


def _settled_line(name: str, found: Agreement) -> str:
    worst = max(found.largest, key=lambda series: found.largest[series])
    return (
        f"    {name:22s} {found.equal} of {found.worlds} worlds equal to {TOLERANCE:g}, {found.days} days, "
        f"{found.bankrupt} bankruptcies; largest difference {found.largest[worst]:.1e} ({worst})"
    )


def _moved_line(name: str, found: Agreement) -> str:
    share = found.same_contracts / found.contracts if found.contracts else 1.0
    return (
        f"    {name:22s} {found.same_contracts} of {found.contracts} contracts identical ({share:.2%}), "
        f"{found.more_contracts} too many; {found.same_ends} of {found.negotiations} negotiations end alike; "
        f"{found.equal} of {found.worlds} worlds equal to the last day"
    )


def _in_batches(replay: Callable[[list[Recorded]], list[Replayed]], worlds: list[Recorded]) -> list[Replayed]:
    return [again for start in range(0, len(worlds), BATCH) for again in replay(worlds[start : start + BATCH])]
