"""``python -m reprise.watch SCRIPT ARGUMENT...`` runs a script as Python would, watched: for launchers that
drop PYTHONPATH."""

from __future__ import annotations

import os
import runpy
import sys

from . import start


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m reprise.watch SCRIPT [ARGUMENT...]")
    start()
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
