"""The flags of `marlab market fidelity`."""

from __future__ import annotations

import pytest

from marlab.market.fidelity.command import FidelityCommand, main
from marlab.market.fidelity.plan import FidelityConfig

pytest.importorskip("scml")


def test_flags_decide_the_comparison_and_where_it_is_played() -> None:
    parsed = main.parse(
        ["--configs", "6", "--sellers", "rule=LitaAgentHRL", "a=LitaAgentHRL(mode=neural)", "--device", "auto"]
    )
    config = parsed.config
    assert isinstance(config, FidelityCommand) and config.device == "auto" and config.configs == 6
    assert type(config.run_config()) is FidelityConfig and config.run_config().agent("a") == "LitaAgentHRL(mode=neural)"
