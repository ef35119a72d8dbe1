"""The words of tracker files: what an entry's values mean, whoever wrote them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_gzip
from marlab.market.logs.worldlog import ACCEPT, END, REJECT

SYSTEM_SELLER, SYSTEM_BUYER = "SELLER", "BUYER"
"""The simulator's names for the other side of exogenous contracts."""
OPERATORS = {ACCEPT: "ACCEPT", REJECT: "REJECT", END: "END"}
OPERATOR_OF = {"ACCEPT": ACCEPT, "REJECT": REJECT, "COUNTER": REJECT, "END": END}
ROUNDS = 20
"""Rounds of a negotiation; relative time in round r is (r + 1) / (ROUNDS + 1)."""
RANGES = {"quantity_range": "quantity", "time_range": "day", "price_range": "price"}
Offer = tuple[int, int, int]
"""quantity, delivery day, unit price"""


def parse(path: Path) -> dict[str, Any]:
    """The JSON document of a tracker file, compressed or not."""
    try:
        raw = read_gzip(path)
        document = json.loads(raw)
        if rb"\ud" in raw:  # half a pair of surrogates: a text that no file of ours could hold
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise UserError(f"{path} is not a tracker log: it is nested too deeply.") from None
    except (OSError, ValueError) as error:  # also numbers of thousands of digits
        raise UserError(f"{path} is not a tracker log: {str(error)[:200]}.") from None
    if not isinstance(document, dict) or not isinstance(document.get("entries"), list):
        raise UserError(f"{path} is not a tracker log: it has no list of entries.")
    return document


def refuse_oneshot(path: Path, document: Mapping[str, Any], game: Mapping[str, Any]) -> None:
    """OneShot games have no deliveries ahead and their offers were never tracked."""
    words = [str(game.get("league", "")), str(document.get("world_id", "")), class_of(document, game)[1]]
    if any("oneshot" in word.lower() for word in words):
        raise oneshot(path)


def oneshot(path: Path) -> UserError:
    """The sentence for logs of the other league."""
    return UserError(f"{path} is a log of a OneShot world; only the Standard league (SCML2024StdWorld) is supported.")


def class_name(agent_type: Any) -> str:
    """The expert's class: trackers record a subclass whose name ends in "Tracked"."""
    name = str(agent_type)
    return name.removesuffix("Tracked") or name


def class_of(document: Mapping[str, Any], game: Mapping[str, Any]) -> tuple[str, str]:
    """Class name, and the same with its module: that of the subclass's base if it bears this name."""
    name = class_name(game.get("agent_type_raw") or document.get("agent_type"))
    fulls = [str(game[key]) for key in ("agent_type_base_full", "agent_type_raw_full") if game.get(key)]
    named = [full for full in fulls if full.rpartition(".")[2] == name]
    return name, (named or fulls or [name])[0]


def world_name(world_id: Any, path: Path) -> str:
    """The world's id; some trackers do not know it, then the file stands for it."""
    known = isinstance(world_id, str) and world_id not in ("", "unknown")
    return world_id if known else path.name.removesuffix(".gz").removesuffix(".json")


def roles_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """partner -> my role, from the entries that state it: a partner is always a supplier or always a consumer."""
    roles: dict[str, str] = {}
    for entry in entries:
        data = entry.get("data")
        if isinstance(data, dict) and data.get("role") in ("buyer", "seller") and data.get("partner"):
            roles.setdefault(str(data["partner"]), data["role"])
    return roles


def terms(offer: Any) -> Offer | None:
    """(quantity, delivery day, unit price) of an offer, an agreement or a contract; None if one is not a number."""
    if isinstance(offer, (list, tuple)) and len(offer) == 3:
        values = [number(v) for v in offer]
    elif isinstance(offer, Mapping):
        keys = (("quantity",), ("delivery_day", "time"), ("unit_price", "price"))
        values = [next((v for k in names if (v := number(offer.get(k))) is not None), None) for names in keys]
    else:
        return None
    known = [round(v) for v in values if v is not None]
    return (known[0], known[1], known[2]) if len(known) == 3 else None


def whole(value: Any) -> int | None:
    """The value as a whole number if it is a number."""
    known = number(value)
    return None if known is None else int(known)


def plain(value: Any) -> int | float:
    """A number for JSON: whole ones without a fraction, all others with every digit."""
    number = float(value)
    return int(number) if number.is_integer() else number


def number(value: Any) -> float | None:
    """The value if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > sys.float_info.max:
        return None
    return None if math.isnan(value) else float(value)


def numbers(values: Any) -> list[float] | None:
    """The list if all of it is finite numbers."""
    each = [number(value) for value in values] if isinstance(values, list) else [None]
    return None if None in each else [value for value in each if value is not None]
