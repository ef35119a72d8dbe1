"""Sellers in the vector market: our agents as policies, several variants of rule W in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.market.agent.batched import Batched
from marlab.market.agent.layers import UNTRAINED, find_learned, load_habits, load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.networks import around
from marlab.market.online.net import AroundRule
from marlab.market.online.player import Player
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.habits import Learnt
from marlab.market.simulator.experts import find_player
from marlab.market.vector.builtin import Seated
from marlab.market.vector.clones import ClonePack
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy

Tensor = Any
"""A torch.Tensor; the rules' types name numpy's arrays."""
VARIANTS, FIRST_OTHER = 101, 102
"""Numbers of the policies of sellers; smaller ones are the population's."""


def settings_of(agent: str) -> AgentSettings:
    """The settings of one of our agents; others cannot sell here."""
    cls, values = find_player(agent)
    if cls.__name__ != "LitaAgentHRL":
        raise UserError(f"{agent} cannot sell in the vector market, expected LitaAgentHRL with some settings.")
    settings = AgentSettings(**values)
    load_layers(settings)  # weights that are missing are told at once
    return settings


def is_rule(settings: AgentSettings) -> bool:
    """Whether an agent plays rule W with some options, and nothing else."""
    usual = AgentSettings(mode="heuristic")
    changed = {name for name, value in vars(settings).items() if value != getattr(usual, name)}
    return settings.plays == "heuristic" and changed <= {"rule", "mode"}


def population(pack: ClonePack, market: Market, names: Sequence[str], who: Tensor, draw: torch.Generator) -> Seated:
    """Everybody but the sellers: `who` [B, L, A] is the place in `names`, -1 in the sellers' seats."""
    mine = who < 0
    seated = pack.seated(market, names, torch.where(mine, len(names), who), draw)
    if max(seated.policies, default=0) >= VARIANTS:
        raise UserError(f"A population of {len(names)} kinds is too large.")
    return seated


def seat_sellers(market: Market, seated: Seated, agents: Sequence[AgentSettings], seller: Tensor) -> Seated:
    """The population with sellers in their seats: `seller` [B, L, A] is the place in `agents`, -1 elsewhere."""
    kind, policies = seated.kind.clone(), dict[int, Policy](seated.policies)
    rules = [place for place, settings in enumerate(agents) if is_rule(settings)]
    number = torch.zeros_like(seller)
    for index, place in enumerate(rules):
        number[seller == place] = index
    variants = torch.isin(seller, torch.tensor(rules, device=seller.device, dtype=seller.dtype))
    if bool(variants.any()):
        kind[variants] = VARIANTS
        policies[VARIANTS] = rule = RuleW(market, chosen=variants, quick=True)
        rule.vary([agents[i].rule_options() for i in rules], number)
    for place, settings in enumerate(agents):
        mine = seller == place
        if place in rules or not bool(mine.any()):
            continue
        kind[mine] = FIRST_OTHER + place
        if settings.plays == "learned" and learnt_habits(settings) is not None:
            policies[FIRST_OTHER + place] = RuleW(market, chosen=mine, quick=True, habits=learnt_habits(settings))
        elif settings.plays == "learned":
            net, options = network_around(settings, market.device)
            rule = RuleW(market, options, chosen=mine, quick=True)
            policies[-1 - place] = rule  # it listens, and is asked nothing
            policies[FIRST_OTHER + place] = Player(market, rule, mine, net, None)
        else:
            policies[FIRST_OTHER + place] = Batched(market, settings, seated.generator, market.balance.dtype, mine)
    return Seated(market, kind, policies, seated.generator)


def learnt_habits(settings: AgentSettings) -> Learnt | None:
    """The habits of an agent in learned mode; None where a network around the rule plays."""
    file = None if settings.weights == UNTRAINED else find_learned(settings.weights)
    return None if file is None or file.suffix != ".json" else load_habits(file)


def network_around(settings: AgentSettings, device: torch.device) -> tuple[AroundRule, RuleOptions]:
    """What an agent in learned mode learnt, and the options of the rule that it stands around."""
    trained = around.untrained() if settings.weights == UNTRAINED else around.load(find_learned(settings.weights))
    return AroundRule.of(trained).to(device), from_dict(RuleOptions, trained.rule, "the rule of the learned network")
