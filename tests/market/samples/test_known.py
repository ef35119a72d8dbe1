"""Decisions without a record of their day, and days without decisions."""

from dataclasses import replace

import numpy as np

from marlab.market.rules.features import FeatureOptions
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import tracked_logs

LOGS = tracked_logs()


def test_decisions_of_a_day_without_a_record_are_left_out():
    log = LOGS[0]
    day = log.negotiations["day"][log.decisions["negotiation"]]
    gap = replace(log, days=log.days.take(log.days.day != 2))
    samples = extract(gap, SampleOptions())
    assert samples.rows("micro") == (day != 2).sum() < len(day)
    # yesterday of day 3 is not known now: its offers are not taken from day 1
    blind = extract(gap, SampleOptions(features=FeatureOptions(offers="none")))
    at = int(np.flatnonzero(samples.macro["day"] == 3)[0])
    np.testing.assert_array_equal(samples.macro["x_temporal"][at], blind.macro["x_temporal"][at])


def test_an_agent_that_never_negotiated_has_days_but_no_decisions():
    log = LOGS[0]
    silent = replace(
        log,
        decisions={name: values[:0] for name, values in log.decisions.items()},
        contracts={name: values[:0] for name, values in log.contracts.items()},
    )
    samples = extract(silent, SampleOptions(features=FeatureOptions(extra=True)))
    assert samples.rows("macro") == len(log.days) and samples.rows("micro") == samples.rows("calls") == 0
    assert with_goals(samples, samples.macro["label"]).rows("micro") == 0
