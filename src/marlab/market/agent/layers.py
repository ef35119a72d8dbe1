"""The four layers of a playing agent: rules and networks, loaded once per process."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from marlab.lab.config import diff, from_dict, to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json
from marlab.market.agent import decide
from marlab.market.agent.decide import Decider, RuleW, Weigh
from marlab.market.agent.learned import Learned
from marlab.market.agent.neural import Neural, NeuralWeights, partly
from marlab.market.agent.settings import AgentSettings, Place
from marlab.market.networks import around
from marlab.market.networks.forward import L2_KIND, L3_KIND, L4_KIND, Plain, PlainCoordinator, PlainExecutor, plain
from marlab.market.networks.learnt import LearntWith, learnt_with
from marlab.market.networks.play import L2StrategicManager, load_for_play
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.habits import Learnt
from marlab.market.rules.l1 import ECONOMIC, L1Options
from marlab.market.rules.round_state import heuristic_weights, uniform_weights

SHIPPED = Path(__file__).parents[1] / "shipped"
"""Where weights lie that come with the package."""
HABITS = "habits.json"
"""What the habits of a run of `marlab market habits` are called."""
AROUND = "around.npz"
"""What the network of a training by `marlab market online` is called."""
UNTRAINED = "untrained"
"""A model path that means: a network that has learnt nothing yet, which plays L1's baseline."""
FILES = {"l2": ("l2_bc.pt",), "l3": ("l3_awr.pt", "l3_bc.pt"), "l4": ("l4_distill.pt",)}
"""Names under which a layer's weights are looked for in a folder, the best first."""


@dataclass(frozen=True)
class Layers:
    """The four layers of one agent."""

    l1: L1Options
    features: FeatureOptions
    l2: L2StrategicManager
    l3: Decider
    l4: Weigh

    def with_decider(self, l3: Decider) -> Layers:
        """The same with another L3."""
        return replace(self, l3=l3)


@functools.lru_cache(maxsize=16)
def _loaded(settings: AgentSettings) -> Layers:
    return _make(settings)


def load_layers(settings: AgentSettings) -> Layers:
    """The layers for some settings, made once per process; raises UserError for weights that are missing or that
    learnt with other options."""
    try:
        hash(settings)
    except TypeError:  # options given as a mapping
        return _make(settings)
    return _loaded(settings)


@dataclass(frozen=True)
class Parts:
    """What layers are made of, before it is said how they decide."""

    l1: L1Options
    features: FeatureOptions
    l2: L2StrategicManager
    executor: PlainExecutor | None  # L3's network; None: rules decide
    coordinator: PlainCoordinator | None  # L4's network
    l4: Literal["heuristic", "uniform", "neural"]

    @property
    def is_rule_w(self) -> bool:
        """Whether rule W decides where no network does; else it is the rule of thumb that concedes in price."""
        return self.l1.rules == "economic"

    def learns_sales_only(self, settings: AgentSettings) -> bool:
        """Whether L3's network sells only, and the rule buys."""
        only_sales = self.is_rule_w and settings.l3_model_path != UNTRAINED
        return (settings.learnt or ("sales" if only_sales else "both")) == "sales"


def load_parts(settings: AgentSettings) -> Parts:
    """Networks and options for some settings; raises UserError for weights that are missing or that learnt with other
    options."""
    weighing = settings.l4 or ("neural" if settings.is_neural else "heuristic")
    if not settings.is_neural:
        if weighing == "neural":
            raise UserError("LitaAgentHRL in heuristic mode has no network for l4: take heuristic or uniform.")
        rules = settings.l1_options() or ECONOMIC
        features = FeatureOptions(horizon=settings.horizon)
        manager = L2StrategicManager("heuristic", settings.horizon, l1=rules)
        return Parts(rules, features, manager, None, None, weighing)
    l2_path = None if settings.l2_model_path == UNTRAINED else find_weights("l2", settings.place_of("l2"))
    executor = None if settings.is_pure_l1 else _network("l3", settings)
    coordinator = _network("l4", settings) if weighing == "neural" else None
    trained = {"l2": None if l2_path is None else load_for_play(l2_path, L2_KIND), "l3": executor, "l4": coordinator}
    learnt = _learnt({layer: network for layer, network in trained.items() if network is not None}, settings)
    rules = _agreed_l1(settings, learnt)
    manager = L2StrategicManager("heuristic" if l2_path is None else "neural", settings.horizon, l2_path, rules)
    usual = FeatureOptions(horizon=settings.horizon)
    features = usual if learnt is None else learnt.features
    return Parts(
        rules,
        features,
        manager,
        cast("PlainExecutor | None", executor),
        cast("PlainCoordinator | None", coordinator),
        weighing,
    )


def _make(settings: AgentSettings) -> Layers:
    parts = load_parts(settings)
    weigh: Weigh = heuristic_weights if parts.l4 == "heuristic" else uniform_weights
    if parts.coordinator is not None:
        weigh = NeuralWeights(parts.coordinator)
    return Layers(parts.l1, parts.features, parts.l2, _decider(parts, settings), weigh)


def _learned(rules: L1Options, settings: AgentSettings) -> Decider:
    """The rule with habits that it learnt, or with what a network around it learnt online."""
    if rules != ECONOMIC:
        raise UserError("LitaAgentHRL in learned mode plays with the economic L1 that it learnt with: leave l1 out.")
    if settings.rule is not None:
        raise UserError("LitaAgentHRL in learned mode plays around the rule that it learnt with: leave rule out.")
    if settings.weights == UNTRAINED:
        return Learned(around.untrained(), RuleOptions())
    file = find_learned(settings.weights)
    if file.suffix == ".json":
        return RuleW(habits=load_habits(file))
    net = around.load(file)
    return Learned(net, from_dict(RuleOptions, net.rule, "the rule of the learned network"))


def find_learned(place: Place) -> Path:
    """What was learnt: habits (.json) or a network (.npz); a file, one in a run, or that of the package."""
    path = SHIPPED if place is None else Path(place)
    path = path if path.exists() else Path("runs") / "market" / path
    places = [path, *(folder / name for folder in (path, path / "checkpoints") for name in (HABITS, AROUND))]
    for file in places:
        if file.is_file():
            return file
    if place is None:
        raise UserError("LitaAgentHRL in learned mode needs weights: nothing learnt is shipped.")
    raise UserError(f"Nothing learnt is at {path}; give a run of `marlab market habits` or `online`, or a file.")


def load_habits(file: Path) -> Learnt:
    """Learnt habits from their file."""
    return Learnt.from_json(read_json(file, UserError), str(file))


def _decider(parts: Parts, settings: AgentSettings) -> Decider:
    """Who decides: L1 alone, the rule, the network, or the network with the rule where it is not to decide."""
    if settings.is_pure_l1:
        return decide.pure_l1
    rule: Decider = RuleW(settings.rule_options()) if parts.is_rule_w else decide.heuristic
    decider = rule if settings.plays != "learned" else _learned(parts.l1, settings)
    if parts.executor is not None:
        network = decider = Neural(parts.executor, settings.decode == "sample", settings.modulation)
        only_sales = parts.learns_sales_only(settings)
        if only_sales or settings.min_confidence > 0:
            decider = partly(network, rule, settings.min_confidence, only_sales)
    if settings.residual_off or settings.op_head_off:
        return decide.ablated(decider, settings.residual_off, settings.op_head_off)
    return decider


def _agreed_l1(settings: AgentSettings, learnt: LearntWith | None) -> L1Options:
    """L1 as the networks learnt with it; refused if the settings ask for another one."""
    asked = settings.l1_options()
    if learnt is None:
        return asked or ECONOMIC
    if asked is not None and asked != learnt.l1:
        key, theirs, ours = diff(to_dict(learnt.l1), to_dict(asked))[0]
        raise UserError(f"The networks learnt with l1.{key} = {theirs!r}, LitaAgentHRL is to play with {ours!r}.")
    return learnt.l1


def _learnt(networks: Mapping[str, Plain], settings: AgentSettings) -> LearntWith | None:
    """The options that all networks learnt with, None where none has learnt; differing ones are refused."""
    told = [
        learnt_with(find_weights(layer, place), network)
        for layer, network in networks.items()
        if (place := settings.place_of(layer)) != UNTRAINED
    ]
    for other in told[1:]:
        for part in LearntWith._fields:
            changed = diff(to_dict(getattr(told[0], part)), to_dict(getattr(other, part)))
            if changed:
                key, one, two = changed[0]
                raise UserError(f"The networks learnt with different options: {part}.{key} is {one!r} and {two!r}.")
    if told and told[0].features.offers == "same_day_full":
        raise UserError(
            "The networks learnt from offers of the whole day (features.offers same_day_full), which nobody knows in "
            "play; train them on samples made with features.offers prev_day."
        )
    return told[0] if told else None


def _network(layer: str, settings: AgentSettings) -> Plain:
    """L3 or L4."""
    place, kind = settings.place_of(layer), L3_KIND if layer == "l3" else L4_KIND
    if place == UNTRAINED:
        from marlab.market.networks.weights import untrained

        return plain(kind, untrained(kind, settings.horizon))
    path = find_weights(layer, place)
    network = load_for_play(path, kind)
    looks = network.options["horizon"]
    if looks != settings.horizon:
        raise UserError(f"The {layer.upper()} model {path} looks {looks} days ahead, not {settings.horizon}.")
    return network


def find_weights(layer: str, place: Place) -> Path:
    """The weights meant by a path, or those that come with the package."""
    if place is None:
        shipped = _in_folder(SHIPPED, layer)
        if shipped is None:
            needs = f"LitaAgentHRL in neural mode needs {layer}_model_path"
            raise UserError(f"{needs}: no weights of {layer.upper()} come with this package.")
        return shipped
    path = Path(place)
    if path.is_file():
        return path
    if layer == "l2":
        from marlab.market.networks.manager import find_manager

        return find_manager(path)
    for folder in (path, path / "checkpoints"):
        weights = _in_folder(folder, layer)
        if weights is not None:
            return weights
    raise UserError(f"There is no {layer.upper()} model at {path}; give a file such as {FILES[layer][-1]}.")


def _in_folder(folder: Path, layer: str) -> Path | None:
    return next((folder / name for name in FILES[layer] if (folder / name).is_file()), None)
