"""Says whether ``import reprise`` finds the package of this distribution, ``reprise-ckpt``.

A distribution named ``reprise`` has a module of the same name. Where Python finds that one first, ``import
reprise.torch`` only says that there is no such module. ``import reprise_ckpt`` throws an ImportError that names it, and
``python -m reprise_ckpt`` prints the same.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

_MEND = "remove it (pip uninstall reprise), and then pip install --force-reinstall --no-deps reprise-ckpt"


def package() -> Path:
    """Returns the folder of the package ``reprise``. Throws ImportError if it is another one, or may become so."""
    spec = importlib.util.find_spec("reprise")
    if spec is None or spec.origin is None:
        raise ImportError("there is no package reprise: pip install --force-reinstall --no-deps reprise-ckpt")
    if "reprise-ckpt" not in Path(spec.origin).read_text(encoding="utf-8", errors="replace"):
        raise ImportError(f"import reprise finds {spec.origin}, which is not of reprise-ckpt; {_mending(spec.origin)}")
    for path in _files_of_the_other():
        if Path(path.locate()).resolve() == Path(spec.origin).resolve():
            raise ImportError(f"the distribution reprise has a file {spec.origin}, too; {_MEND}")
    return Path(spec.origin).parent


def _files_of_the_other():
    try:
        return importlib.metadata.distribution("reprise").files or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _mending(origin: str) -> str:
    if any(Path(path.locate()).resolve() == Path(origin).resolve() for path in _files_of_the_other()):
        return _MEND
    return "rename it, or start Python where it is not found first"


if __name__ == "__main__":
    try:
        print(f"reprise-ckpt {importlib.metadata.version('reprise-ckpt')}: {package()}")
    except ImportError as error:
        raise SystemExit(f"reprise-ckpt: {error}") from None
else:
    package()
