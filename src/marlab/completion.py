"""Shell completion: `marlab --completion bash|zsh|fish` prints a script that calls `marlab --complete WORDS...`.

Words of commands come from the table of the entry point, at once. Flags, their choices and presets come from the
command's own help, so that they can never differ from it.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping, Sequence

from marlab.lab.errors import UserError

SCRIPTS = {
    "bash": """\
# eval "$(marlab --completion bash)"
_marlab() {
    local IFS=$'\\n'
    COMPREPLY=($(marlab --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _marlab marlab
""",
    "zsh": """\
# eval "$(marlab --completion zsh)"
_marlab() {
    local -a found
    found=("${(@f)$(marlab --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _marlab marlab
""",
    "fish": """\
# marlab --completion fish | source
complete -c marlab -a '(marlab --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}

_FLAG = re.compile(r"^  --((?:[a-z0-9-]+\.)*)(\[no-\])?([a-z0-9-]+)", re.MULTILINE)


def script(shell: str) -> str:
    """What a shell has to read once."""
    if shell not in SCRIPTS:
        raise UserError(f"--completion is '{shell}', expected one of: {', '.join(SCRIPTS)}.")
    return SCRIPTS[shell]


def candidates(words: Sequence[str], table: Mapping[str, object], main: Callable[[list[str]], int]) -> list[str]:
    """What may stand in the place of the last of `words`, which may be empty or half a word."""
    *before, last = words or [""]
    entry: object = table
    depth = 0
    while isinstance(entry, Mapping) and depth < len(before):
        entry = entry.get(before[depth])
        depth += 1
    if isinstance(entry, Mapping):
        return [word for word in [*entry, "--help"] if word.startswith(last)]
    if entry is None:
        return []
    flag = before[-1] if before[-1].startswith("--") else ""
    text = _help(main, before[: len(before) - bool(flag)])  # with all words so far: `--variant` decides about flags
    if flag and not last.startswith("-"):
        return [value for value in _values(text, flag) if value.startswith(last)]
    return [name for name in _flags(text) if name.startswith(last)] if last.startswith("-") else []


def _help(main: Callable[[list[str]], int], command: Sequence[str]) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        main([*command, "--help-all"])
    return shown.getvalue()


def _flags(text: str) -> list[str]:
    """`--[no-]films` stands for two flags."""
    rows = _FLAG.findall(text)
    return sorted(f"--{head}{no}{name}" for head, either, name in rows for no in (["", "no-"] if either else [""]))


def _values(text: str, flag: str) -> list[str]:
    """The presets, or the choices that the help shows in braces behind a flag."""
    line = " ".join(text.split())
    if flag == "--preset":
        presets = re.search(r"Settings to start from: one of (.*?), or a TOML file", line)
        return presets.group(1).split(", ") if presets else []
    choices = re.search(rf"{re.escape(flag)} \{{([^}}\s]*)\}}", line)
    return choices.group(1).split(",") if choices else []
