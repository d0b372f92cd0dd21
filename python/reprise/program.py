"""Runs the program ``reprise``, which the wheel installs beside the Python that it is installed for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Any, Mapping, NamedTuple, Sequence, Union

Word = Union[str, "os.PathLike[str]", int, float]


class Ended(NamedTuple):
    """How the program ended.

    Attributes:
        code: exit code.
        screen: what it printed.
        complaint: what it printed on standard error.
    """

    code: int
    screen: str
    complaint: str


def folders() -> str:
    """Returns the folders of programs, in the form of PATH: first those of this Python."""
    own = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    users = [sysconfig.get_path("scripts", "posix_user")] if os.name == "posix" else []
    return os.pathsep.join([*own, os.environ.get("PATH", os.defpath), *users])


def program() -> str:
    """Returns the program's path: what REPRISE_PROGRAM names, or the one that is installed.

    Throws FileNotFoundError if there is none.
    """
    found = os.environ.get("REPRISE_PROGRAM") or shutil.which("reprise", path=folders())
    if found is None:
        raise FileNotFoundError(
            "the program reprise is not here: the wheel reprise-ckpt has it, and REPRISE_PROGRAM names another"
        )
    return found


def words(options: Mapping[str, Any]) -> list[str]:
    """Returns options of the command line: ``max_shard="2GB"`` is ``--max-shard=2GB``.

    A list repeats its option, a dict repeats it with ``NAME=VALUE``, True stands for the option alone, and None, False
    and what is empty for none.
    """
    result: list[str] = []
    for name, given in options.items():
        if isinstance(given, Mapping):
            given = [f"{key}={value}" for key, value in given.items()]
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if value is not None and value is not False:
                option = f"--{name.rstrip('_').replace('_', '-')}"
                result.append(option if value is True else f"{option}={value}")
    return result


def run(arguments: Sequence[Word], *, cwd: Any = None, env: Union[Mapping[str, str], None] = None) -> Ended:
    """Runs the program to its end. Throws FileNotFoundError as program() does.

    After an exception such as KeyboardInterrupt the program is told to end, which removes what it had begun to write.
    """
    process = subprocess.Popen(
        [program(), *[str(word) for word in arguments]],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C comes to it once, from here
    )
    try:
        screen, complaint = process.communicate()
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    return Ended(process.returncode, screen, complaint)
