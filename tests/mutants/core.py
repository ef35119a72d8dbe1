"""The core modules, and the tests that should notice a fault in them (quickest first)."""

from __future__ import annotations

import random
import re
from pathlib import Path

from tests.mutants.faults import Fault, faults_in
from tests.mutants.judge import SOURCE

CORE: dict[str, tuple[str, ...]] = {
    "fish/sea/rewards.py": ("tests/fish/sea/test_rewards.py", "tests/fish/sea/test_world.py"),
    "fish/sea/dynamics.py": ("tests/fish/sea/test_dynamics.py",),
    "fish/schedule/gate.py": ("tests/fish/schedule/test_gate.py",),
    "fish/schedule/curriculum.py": ("tests/fish/schedule/test_curriculum.py",),
    "fish/measure/ceiling.py": ("tests/fish/measure/test_ceiling.py",),
    "hunt/game/rules.py": ("tests/hunt/game/test_rules.py",),
    "lab/stats.py": ("tests/lab/test_stats.py",),
    "lab/ppo/ppo.py": ("tests/lab/ppo/test_ppo.py",),
    "lab/search/rules.py": ("tests/lab/search/test_rules.py", "tests/lab/search/test_search.py"),
    "market/rules/l1.py": ("tests/market/rules/test_l1.py", "tests/market/rules/test_economic.py"),
    "market/rules/economic.py": ("tests/market/rules/test_economic.py",),
    "market/agent/safety.py": ("tests/market/agent/test_safety.py",),
    "market/simulator/settlement.py": ("tests/market/simulator/test_settlement.py",),
}
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def draw(count: int, seed: int, modules: tuple[str, ...] = tuple(CORE)) -> dict[str, list[Fault]]:
    """`count` faults over the modules, equally many of each as far as it has them, drawn from a seed."""
    left = {}
    for module in modules:
        found = faults_in(module, (SOURCE / module).read_bytes())
        random.Random(f"{seed} {module}").shuffle(found)
        left[module] = found
    drawn: dict[str, list[Fault]] = {module: [] for module in modules}
    while count > 0 and any(left.values()):
        for module in modules:
            if left[module] and count > 0:
                drawn[module].append(left[module].pop())
                count -= 1
    return drawn


def survivors(printed: Path) -> dict[str, list[Fault]]:
    """The faults that survived an earlier call, from what it printed."""
    names = re.findall(r"^ *survived, line \d+: (.+)$", printed.read_text(), re.M)
    found: dict[str, list[Fault]] = {}
    for module in dict.fromkeys(name.partition(" | ")[0] for name in names):
        known = {fault.name: fault for fault in faults_in(module, (SOURCE / module).read_bytes())}
        found[module] = [known[name] for name in dict.fromkeys(names) if name in known]
    return found


def equivalents() -> dict[str, str]:
    """Names of faults that change nothing that could be seen, each with the reason, as judged by hand."""
    found = {}
    name = ""
    for line in EQUIVALENT.read_text().splitlines():
        if line.startswith("    "):
            found[name] = line.strip()
        elif line and not line.startswith("#"):
            name = line
    return found
