"""Self-protection: what is kept, what is taken back, when it stops and what it warns of."""

from __future__ import annotations

from marlab.market.online.protect import Guard, alarms


def test_the_best_is_kept_and_a_deep_fall_is_taken_back() -> None:
    guard = Guard(patience=0)
    assert guard.judge(1, 0.02, 0.01) == "better"
    assert guard.judge(2, 0.00, 0.01) == "go on"  # two standard errors
    assert guard.judge(3, -0.01, 0.01) == "roll back"
    again = Guard(patience=0)
    again.load_state_dict(guard.state_dict())
    assert again.best == guard.best == (1, 0.02) and again.rollbacks == 1


def test_patience_ends_it() -> None:
    guard = Guard(patience=2)
    assert [guard.judge(step, -0.001, 1.0) for step in (1, 2)] == ["go on", "stop"]


def test_alarms_name_what_is_worse_than_with_the_rule() -> None:
    told = {"steer/short": 0.5, "steer/rule_short": 0.1, "steer/bankrupt": 0.0, "steer/rule_bankrupt": 0.0,
            "steer/left": 0.3, "steer/rule_left": 0.2, "ppo/approx_kl": 0.2, "ppo/entropy": 0.01}  # fmt: skip
    found = alarms(told)
    assert len(found) == 4 and "not delivered" in found[0] and "left by the partner" in found[1]
    assert alarms({"ppo/approx_kl": 0.01, "ppo/entropy": 1.0}) == []
