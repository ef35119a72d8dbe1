from __future__ import annotations

import shlex
from typing import Any

import pytest

from marlab.fish.sea.config import switches
from marlab.fish.training import assemble
from marlab.fish.training.config import IGNORED_FLAGS, OLD_FLAGS, PRESETS, FishTrainConfig
from marlab.lab.config import altered, from_dict, leaves, load_preset, to_dict
from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags, Parsed, parse_run
from marlab.lab.help import docs_of

SEA_PRESETS = ("pull", "pursuit", "intercept", "burst", "pack", "shoal")
NAMES = ("v32", "v32-runA", "v32-planB", "v33", "best", "quickstart", *SEA_PRESETS)


def preset(name: str) -> FishTrainConfig:
    return from_dict(FishTrainConfig, load_preset(name, PRESETS).values, f"preset {name}")


def command(text: str) -> Parsed[FishTrainConfig]:
    old = OldFlags(renamed=OLD_FLAGS, ignored=IGNORED_FLAGS)
    return parse_run(FishTrainConfig, shlex.split(text), prog="marlab fish train", presets=PRESETS, old=old)


def test_compat_turns_every_open_switch() -> None:
    ours, compat = FishTrainConfig(), FishTrainConfig(compat=True)
    for read in (lambda config: config.rules, assemble.sea_config):
        both = read(ours), read(compat)
        assert len(switches(type(both[0]))) in (4, 10)
        for name, choices in switches(type(both[0])).items():
            assert tuple(getattr(config, name) for config in both) == choices


def test_a_switch_that_is_set_wins_over_compat() -> None:
    set_one = altered(FishTrainConfig(), compat=True, vision_reward="continuous")
    assert assemble.sea_config(set_one).vision_reward == "continuous"
    assert altered(FishTrainConfig(), lr_progress="phase").rules.lr_progress == "phase"
    config = command("--preset v32 --action-mode per_fish").config
    assert config.rules.action_mode == "per_fish" and assemble.sea_config(config).episode_end == "terminated"
    assert command("--preset v32 --no-compat").config.rules.action_mode == "per_fish"


# --- the v32 flags ------------------------------------------------------------------------------------------

V32_DEFAULTS: dict[str, Any] = {
    "num_envs": 128, "num_fish": 25, "curriculum": "15:12,20:14,25:8,25:8,25:10,25:4,25:4", "n_steps": 512,
    "batch_size": 1024, "n_epochs": 10, "learning_rate": 3e-4, "lr_schedule": "warm_cosine",
    "policy_hidden_sizes": "384,384", "ent_coef": 0.02, "entropy_coef_schedule": "16-24:0.03,25-32:0.02",
    "checkpoint_interval": 5, "eval_episodes": 5, "eval_multi_fish": 25, "eval_multi_episodes": 48,
    "best_checkpoint_eval_episodes": 32, "best_checkpoint_max_step_one": 8, "best_checkpoint_max_early_death": 0.1,
    "skip_final_eval": False, "multi_eval_interval": 16, "multi_eval_probe_episodes": 12, "multi_eval_seed_base": None,
    "adaptive_boost_window": 4, "adaptive_boost_lower_p10": 12, "adaptive_boost_upper_p10": 18,
    "adaptive_boost_low_speed": 0.76, "adaptive_boost_high_speed": 0.80, "adaptive_boost_min_iteration": 12,
    "adaptive_boost_stage_floor": "", "adaptive_boost_use_median": True, "disable_adaptive_boost": False,
    "obs_sampling": "round_robin", "include_neighbor_features": True, "neighbor_radius": 3.0,
    "neighbor_average_count": 6, "initial_escape_boost": True, "escape_boost_speed": 0.75,
    "escape_boost_floor_default": 0.75, "escape_boost_phase_speeds": "3:0.76,4:0.78,5:0.82,6:0.82,7:0.82",
    "escape_boost_phase_floors": "3:0.76,4:0.78,5:0.80,6:0.80,7:0.80", "escape_boost_penalty_caps": "0.05:0.8",
    "escape_jitter_std": 0.35, "divergence_reward_coef": 0, "density_penalty_coef": 0, "density_target": 0.4,
    "predator_spawn_jitter_radius": 1.6, "predator_pre_roll_steps": 16, "predator_pre_roll_angle_jitter": 0.3,
    "predator_pre_roll_speed_jitter": 0.2,
    "predator_heading_bias":
        "0-60:1.1,60-90:0.8,90-120:0.08,120-150:0.05,150-210:0.9,210-270:1.3,270-330:1.2,330-360:0.95",
    "predator_pre_roll_speed_bias": "0-1.0:1.6,1.0-1.6:1.3,1.6-2.0:0.7,2.0-2.4:0.35,2.4-3.0:0.2",
    "density_penalty_phase_targets": "0.0,0.02,0.04,0.05,0.055,0.06,0.065", "density_penalty_ramp_phases": "6,7",
    "density_penalty_phase_plateaus": "0,0,6,6,4,0,0", "density_penalty_lock_value": 0.04,
    "density_penalty_lock_until": 28, "penalty_gate_phase_allowance": "4,5,6", "penalty_gate_required_successes": 1,
    "penalty_gate_freeze_iterations": 4, "penalty_gate_success_freeze_iterations": 1,
    "penalty_gate_success_step_one": 7, "penalty_gate_success_step_one_ratio": 0.0,
    "penalty_gate_success_early_death": 0.09, "penalty_gate_success_p10": 120,
    "penalty_gate_success_median_window": 1, "penalty_gate_failure_p10": 95, "penalty_gate_failure_min_final": 0.5,
    "penalty_gate_failure_tolerance": 2, "penalty_gate_lock_iteration": -1, "video_num_fish": 32,
    "video_max_steps": 500, "video_fps": 20, "tail_replay_count": 0, "tail_seed_stage_spec": "",
    "tail_seed_replay_path": "", "tail_seed_prewarm_iterations": 0,
}  # fmt: skip


def test_every_v32_flag_keeps_its_name_and_default() -> None:
    config = FishTrainConfig()
    ours = {**to_dict(config), **{old: to_dict(config)[new] for old, new in FishTrainConfig.OLD_NAMES.items()}}
    derived = {name for name in V32_DEFAULTS if ours.get(name, "") is None and V32_DEFAULTS[name] is not None}
    assert derived == {
        "escape_boost_phase_speeds", "escape_boost_phase_floors", "density_penalty_phase_targets",
        "density_penalty_ramp_phases", "density_penalty_phase_plateaus", "penalty_gate_phase_allowance",
    }  # fmt: skip
    stated = V32_DEFAULTS.keys() - derived - IGNORED_FLAGS.keys()
    assert {name: ours.get(name, "missing") for name in stated} == {name: V32_DEFAULTS[name] for name in stated}
    given = altered(config, **{name: V32_DEFAULTS[name] for name in derived})
    for part in (assemble.schedules, assemble.gate):
        a, b = part(config), part(given)
        assert plain(a) == plain(b)
    assert config.iterations == 60


def plain(part: Any) -> Any:
    """The settings of a schedule or gate, without the config that they come from."""
    if not hasattr(part, "__dict__"):
        return part
    return {k: plain(v) for k, v in vars(part).items() if k != "config"}


def test_flags_without_effect_are_accepted_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    parsed = command("--eval_episodes 5 --seed 3 --best_checkpoint_eval_episodes=7")
    assert parsed.config == FishTrainConfig(seed=3)
    assert capsys.readouterr().out.count("has no effect in marlab fish train") == 2


# --- phases -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("--density-penalty-phase-targets 0,0.02,0.04", "density_penalty_phase_targets has 3 entries"),
        ("--density-penalty-phase-plateaus 0", "density_penalty_phase_plateaus has 1 entries"),
        ("--density-penalty-ramp-phases 3", "density_penalty_ramp_phases names phase 3"),
        ("--escape-boost-phase-speeds 3:0.8", "escape_boost_phase_speeds names phase 3"),
        ("--escape-boost-phase-floors 7:0.8", "escape_boost_phase_floors names phase 7"),
        ("--penalty-gate-phase-allowance 1,4", "penalty_gate_phase_allowance names phase 4"),
        ("--total-iterations 11", "covers 10 iterations, but total_iterations is 11"),
    ],
)
def test_a_list_that_does_not_fit_the_curriculum_is_one_sentence(words: str, flag: str) -> None:
    with pytest.raises(UserError, match=flag) as error:
        command(f"--curriculum 10:5,20:5 {words}")
    assert "\n" not in str(error.value)


def test_every_field_is_documented_and_every_name_is_one_field() -> None:
    found = leaves(FishTrainConfig)
    assert [leaf.flag for leaf in found if not docs_of(leaf.owner).get(leaf.name)] == []  # type: ignore[arg-type]
    assert len({leaf.flag for leaf in found}) == len(found)


def test_short_help_fits_on_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("--help")
    short = capsys.readouterr().out
    assert "quickstart" in short and "--learning-rate" in short and "--penalty-gate-success-p10" not in short
    assert len(short.splitlines()) <= 80  # of 80 columns or more
    with pytest.raises(SystemExit):
        command("--help-all")
    assert "--penalty-gate-success-p10 X" in capsys.readouterr().out


V32_COMMAND = """--run_name dev_v32_stage_tail_ratio_r2
    --total_iterations 60 --num_envs 128 --n_steps 128 --batch_size 1024 --n_epochs 5
    --learning_rate 2.5e-4 --curriculum 15:9,20:10,25:9,25:8,25:8,25:8,25:8
    --multi_eval_interval 16 --multi_eval_probe_episodes 10 --eval_multi_fish 96 --eval_multi_episodes 24
    --multi_eval_seed_base 311232 --seed 311232
    --tail_seed_stage_spec '16:experiments/v32/artifacts/checkpoints/tail_seed_mix_v32_stage1.json;\
16:experiments/v32/artifacts/checkpoints/tail_seed_mix_v32_stage2.json'
    --penalty_gate_success_step_one_ratio 0.015 --penalty_gate_success_step_one 18
    --tail_replay_count 2 --video_num_fish 48 --skip_final_eval"""


def test_the_logs_command_runs_unchanged() -> None:
    parsed = command(V32_COMMAND)
    config = parsed.config
    assert parsed.options.name == "dev_v32_stage_tail_ratio_r2"
    assert (config.seed, config.ppo.n_steps, config.measure.skip_final_eval, config.compat) == (
        311232,
        128,
        True,
        False,
    )
    queue, warnings = assemble.start_queue(config)
    assert queue.capacity == 4096 and len(warnings) == 2 and all("in the package is used" in w for w in warnings)


def test_the_logs_command_and_the_preset_agree_where_both_speak() -> None:
    log, ours = to_dict(command(V32_COMMAND).config), to_dict(preset("v32"))
    different = {name for name in log if log[name] != ours[name]}
    assert different == {*load_preset("v32", PRESETS).inferred, "compat", "tail_seed_stage_spec", "total_iterations"}


def test_later_commands_keep_their_flags() -> None:
    config = command(
        "--no_neighbor_features --no_initial_escape_boost --adaptive_boost_use_mean --disable_adaptive_boost "
        "--penalty_gate_success_early_death_by_stage ne:0.13,main:0.10 "
        "--penalty_gate_failure_tolerance_by_stage main:3 "
        "--penalty_gate_success_early_death_window 3 --penalty_gate_success_early_death_window_by_stage main:4 "
        "--penalty_gate_success_first_death_p10_by_stage main:100 --penalty_gate_success_step_one_by_stage main:45 "
        "--penalty_gate_success_p10_median_window_by_stage main:3 --tail_stage_warn_ratio 0.70 "
        "--tail_stage_warn_patience 2 --tail_force_reset_steps 224 --penalty_gate_lock_iteration -1"
    ).config
    assert not config.sea.include_neighbor_features and not config.sea.initial_escape_boost
    assert not config.adaptive_boost.use_median and config.disable_adaptive_boost
    by_type = config.gate.by_type
    assert by_type["success_early_death"] == {"ne": 0.13, "main": 0.10} and by_type["success_step_one"] == {"main": 45}
    assert assemble.sea_config(config).observation_size == 11
    assert assemble.tail_warnings(config)[0].limit == 0.7


# --- wrong settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"total_iterations": 61}, "curriculum"),
        ({"num_envs": 0}, "num_envs"),
        ({"compat": True, "num_envs": 32}, "at least 64"),
        ({"policy_hidden_sizes": ""}, "policy_hidden_sizes"),
        ({"policy_hidden_sizes": "64,x"}, "policy_hidden_sizes"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"tail_override_probability": 1.1}, "tail_override_probability"),
        ({"tail_seed_stage_spec": "16"}, "tail_seed_stage_spec"),
        ({"penalty_gate_phase_allowance": "4,8"}, "phase 8"),
        ({"penalty_gate_phase_allowance": ""}, "empty"),
        ({"penalty_gate_failure_min_final": 1.2}, "penalty_gate_failure_min_final"),
        ({"penalty_gate_success_early_death_by_stage": "0.13"}, "by_stage"),
        ({"adaptive_boost_lower_p10": 30.0}, "adaptive_boost_lower_p10"),
        ({"escape_boost_penalty_caps": "x:0.8"}, "escape_boost_penalty_caps"),
        ({"escape_boost_phase_speeds": "3:0.7,3:0.8"}, "twice"),
        ({"predator_heading_bias": "10-20"}, "predator_heading_bias"),
        ({"density_target": 2.0}, "density_target"),
        ({"video_max_steps": 900}, "video_max_steps"),
        ({"cuda_graph": True, "target_kl": 0.01}, "cuda_graph"),
        ({"vision_reward": "none"}, "vision_reward"),
    ],
)
def test_impossible_settings_are_one_sentence(change: dict[str, Any], word: str) -> None:
    with pytest.raises(UserError, match=word) as error:
        altered(FishTrainConfig(), **change)
    assert "\n" not in str(error.value)


# --- presets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_presets_are_whole_and_say_only_what_differs(name: str) -> None:
    loaded = load_preset(name, PRESETS)
    config, standard = preset(name), to_dict(FishTrainConfig())
    same = {k for k, v in loaded.values.items() if standard[k] == v}
    assert same <= {"total_iterations", "num_envs", "batch_size", "multi_eval_interval", "penalty_gate_phase_allowance",
                    "penalty_gate_failure_tolerance", "penalty_gate_success_p10", "tail_override_probability",
                    "multi_eval_probe_episodes"}  # fmt: skip
    queue, warnings = assemble.start_queue(config)
    assert bool(queue.stages) == (name not in ("quickstart", *SEA_PRESETS)) and warnings == []
    assert {p.stem for p in PRESETS.glob("*.toml")} == set(NAMES)


def test_v32_is_the_main_run() -> None:
    config = preset("v32")
    schedules = assemble.schedules(config)
    trace = [schedules.begin_iteration(i).density_penalty for i in range(1, 61)]
    assert trace == [0.0] * 9 + [0.02] * 10 + [0.04] * 9 + [0.05] * 32
    assert config.compat and config.sea.predator_pre_roll_steps == 20 and config.measure.eval_multi_fish == 96


def test_siblings_differ_as_the_log_says() -> None:
    main, run_a, plan_b = preset("v32"), preset("v32-runA"), preset("v32-planB")
    assert run_a.ppo.n_steps == 192
    assert altered(run_a, n_steps=128, batch_size=1024, multi_eval_probe_episodes=10) == main
    assert plan_b.measure.multi_eval_interval == 12
    queue, _ = assemble.start_queue(plan_b)
    shares = [s.starts.heading_deg for s in queue.stages]
    assert queue.stages[1].spec.iterations > main.iterations // 4
    assert ((shares[1] >= 180) & (shares[1] < 270)).all()


def test_v33_carries_and_refills_its_doubled_queue() -> None:
    config = preset("v33")
    queue, _ = assemble.start_queue(config)
    assert len(queue.stages) >= 3 and queue.capacity >= 2 * 4096
    assert config.rules.queue_on_phase_change == "carried" and config.rules.tail_queue == "cyclic"
    assert (config.gate.required_successes, config.gate.success_step_one_ratio) == (2, 0.02)


def test_best_uses_our_rules() -> None:
    config = preset("best")
    assert config.rules == FishTrainConfig().rules
    gate = config.gate
    assert gate.confidence == "wilson" and gate.subtract_doomed and gate.success_step_one < 0
    assert gate.allowance(len(config.phases))[-1] == len(config.phases)
    queue, _ = assemble.start_queue(config)
    assert all(len(s.starts) == (s.starts.position[:, 0] == s.starts.position[:, 0]).sum() for s in queue.stages)
