"""`marlab market submit` and `marlab market new-agent`: their flags."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.lab.flags import parse
from marlab.market.submit.settings import NewAgentConfig, SubmitConfig


def main(argv: Sequence[str]) -> int:
    """`marlab market submit`."""
    config = parse(SubmitConfig, argv, prog="marlab market submit", positional=("agent",))
    from marlab.market.submit.submit import submit, told

    folder, packed, trial = submit(config)
    print("\n".join(told(folder, packed, trial)))
    return 0 if trial.ok else 1


def new_agent_main(argv: Sequence[str]) -> None:
    """`marlab market new-agent`."""
    config = parse(NewAgentConfig, argv, prog="marlab market new-agent", positional=("name",))
    from marlab.market.submit.new_agent import new_agent

    agent, test = new_agent(config)
    print(
        f"{agent} and {test}; try it: marlab market play --preset quickstart --agents mine={agent.stem}:{config.name}"
    )
