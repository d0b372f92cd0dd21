"""Python imports this before a script where this folder stands in PYTHONPATH. It begins the watch, and
runs the sitecustomize that it hides."""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1]


def package() -> None:
    """Makes ``reprise`` the package to which this file belongs, without a look at sys.path: the script's
    environment may have none, and gets nothing else from the one that this file is in."""
    if "reprise" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "reprise", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["reprise"] = module
    spec.loader.exec_module(module)


def hidden() -> None:
    """Runs the next sitecustomize on the path, if there is one."""
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    package()
    from reprise.watch import start

    start()
except Exception as error:  # whatever it is, the script runs as it does without the watch
    print(f"reprise watch: this process is not watched: {type(error).__name__}: {error}", file=sys.stderr)
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
hidden()
