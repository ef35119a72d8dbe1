"""Names and registration need nothing heavy."""

from __future__ import annotations

import subprocess
import sys

from marlab.fish.envs.register import register


def test_core_and_trainer_side_import_without_gymnasium() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = sys.modules['pettingzoo'] = None\n"
        "import marlab.fish.sea.world, marlab.fish.sea.single, marlab.fish.measure.policies, marlab.fish.envs.frame"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_registration_needs_no_torch() -> None:
    code = "import sys, marlab.fish.envs.register; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    register()  # a second time is harmless
