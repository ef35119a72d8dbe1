"""`marlab market submit`: pack, zip, try out, and say what was found.

submissions/my_agent/my_agent/          the package
submissions/my_agent/requirements.txt   versions that it was made with, as the league asks for
submissions/my_agent/my_agent.zip       both
submissions/my_agent/check.json         what was found when it played where only scml is installed
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_json
from marlab.lab.runs.lock import Owner
from marlab.market.simulator.experts import find_player
from marlab.market.submit.check import Trial, try_out
from marlab.market.submit.pack import Packed, pack, package_name, versions
from marlab.market.submit.settings import SubmitConfig

REPORT = "check.json"


def submit(config: SubmitConfig) -> tuple[Path, Packed, Trial]:
    """Make a submission; returns its folder. What was there under its name is replaced, if it was a submission."""
    cls, _ = find_player(config.agent)
    folder = config.output_dir / package_name(cls)
    if folder.exists() and not (folder / REPORT).is_file():
        raise UserError(f"{folder} exists and is no submission; give another --output-dir.")
    config.output_dir.mkdir(parents=True, exist_ok=True)
    for left in config.output_dir.glob(".submit-*-*"):  # by a process that was killed
        pid = left.name.split("-")[1]
        if pid.isdecimal() and not replace(Owner.this_process(), pid=int(pid), born="").is_alive():
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".submit-{os.getpid()}-", dir=config.output_dir) as work:
        made = Path(work) / folder.name
        made.mkdir()
        packed = pack(config.agent, made)
        pinned = versions()
        (made / "requirements.txt").write_text(
            f"# Python {pinned.pop('python')}\n" + "".join(f"{name}=={version}\n" for name, version in pinned.items())
        )
        zip_file = made / f"{packed.name}.zip"
        _zip(made, packed.folder, zip_file)
        trial = try_out(
            config.agent, made.resolve(), packed.name, packed.class_name, zip_file, config.days, config.seed
        )
        for cache in made.rglob("__pycache__"):
            shutil.rmtree(cache)
        facts = {"agent": config.agent, "package": packed.name, "class": packed.class_name, "versions": versions()}
        write_json(made / REPORT, {**facts, "modules": packed.modules, "networks": packed.networks, **asdict(trial)})
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    return folder, packed, trial


def _zip(root: Path, package: Path, target: Path) -> None:
    """The package and the requirements; the same files give the same bytes."""
    files = [root / "requirements.txt", *sorted(path for path in package.rglob("*") if path.is_file())]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(str(path.relative_to(root)), (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())


def told(folder: Path, packed: Packed, trial: Trial) -> list[str]:
    """What the command prints."""
    lines = [f"  {'ok ' if check.ok else 'NO '} {check.what}: {check.found}" for check in trial.checks]
    ready = "Ready" if trial.ok else "Not ready: mend what says NO"
    return [
        *lines,
        f"{ready}. Hand in {folder / (packed.name + '.zip')} with the class {packed.name}.{packed.class_name}.",
    ]
