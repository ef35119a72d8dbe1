"""`marlab market verify` and `marlab market configs`: their flags. `verify` and `export` do the work."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.lab.flags import parse
from marlab.market.verify.settings import ConfigsConfig, VerifyConfig


def main(argv: Sequence[str]) -> int:
    """`marlab market verify`."""
    config = parse(VerifyConfig, argv, prog="marlab market verify")
    from marlab.market.verify.verify import verify

    return verify(config)


def configs_main(argv: Sequence[str]) -> None:
    """`marlab market configs`."""
    config = parse(ConfigsConfig, argv, prog="marlab market configs", positional=("file",))
    from marlab.market.verify.export import export

    done = export(config)
    print(f"{len(done)} configs, {config.file.stat().st_size / 1e3:,.0f} KB, in {config.file}")
