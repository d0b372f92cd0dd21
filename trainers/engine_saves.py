"""Saves of torch trainers by the Python package of this tree, in place of torch's: the option `engine: reprise`.

The option `wrong` gives it a defect: one of the package's, which are here, or a mutant of the harness in the library.
"""
import os
import pathlib


def _store_first_copies():
    """What was copied for the first save is stored by all that follow."""
    from reprise.torch import describe

    real, copies = describe._in_memory, {}
    describe._in_memory = lambda tensor, key: copies.setdefault((key, tensor.data_ptr()), real(tensor, key).clone())


def _describe_next_ranks_rows():
    """A rank says of its rows that they are those of the rank after it: the checkpoint is complete, and wrong."""
    from reprise.torch.describe import Leaves

    begin, part = Leaves._begin, Leaves._part

    def begun(self, key, dtype, shape, *rest):
        self.whole = shape
        begin(self, key, dtype, shape, *rest)

    def moved(self, key, dtype, offset, extent, local):
        if len(extent) > 0 and 0 < extent[0] < self.whole[0] and self.whole[0] % extent[0] == 0:
            offset = [(offset[0] + extent[0]) % self.whole[0], *offset[1:]]
        part(self, key, dtype, offset, extent, local)

    Leaves._begin, Leaves._part = begun, moved


DEFECTS = {"stale-copies": _store_first_copies, "next-ranks-rows": _describe_next_ranks_rows}


def _open_mutant_jobs(mutant):
    """Every job that is opened from now on has the mutant."""
    from reprise import _c

    library = _c.library()
    opened = library.rp_job_open

    def open_wrong(options, handle):
        status = opened(options, handle)
        if status == 0 and library.rp_make_wrong(handle._obj, mutant.encode()) != 0:
            raise ValueError(f"no mutant {mutant}")
        return status

    library.rp_job_open = open_wrong


def use(own):
    """Chooses the library, and gives it the defect of the option. Call it before the first save or load."""
    wrong, programs = own.options.get("wrong", "nothing"), pathlib.Path(os.environ["REPRISE_PROGRAMS"])
    mutant = wrong != "nothing" and wrong not in DEFECTS
    os.environ["REPRISE_LIBRARY"] = str(programs / ("libreprise_wrong.so" if mutant else "lib/libreprise_c.so"))
    if mutant:
        _open_mutant_jobs(wrong)
    elif wrong != "nothing":
        DEFECTS[wrong]()


class EngineSaves:
    """Saves by the engine, one at a time; they tell their phases. A trainer says how one begins."""

    def __init__(self, own):
        use(own)
        self.witness, self.root, self.pending = own, pathlib.Path(own.checkpoints), None

    def begin(self, step, begin, at_once):
        """Saves now, or begins to, which is in threads."""
        self.finalize()
        with self.witness.phase("save.begin", step):
            self.pending = (begin(), step)
        if at_once:
            with self.witness.phase("save.write", step):
                self.before_update()
            self.finalize()

    def before_update(self):
        """Before the optimizer's step: the state that is being saved has been copied."""
        if self.pending:
            self.pending[0].before_update()

    def finalize(self):
        if self.pending:
            (saving, step), self.pending = self.pending, None
            with self.witness.phase("save.commit", step):
                saving.finish()


class TorchSaves(EngineSaves):
    """Iterations step_<n> under the root, or one checkpoint for all, as torch_parts.Saves has them."""
    NAMES = "step_%d"

    def __init__(self, own):
        super().__init__(own)
        import reprise.torch

        self.engine, self.per_step = reprise.torch, own.options.get("folders", "per_step") == "per_step"
        self.path = self.root if self.per_step else self.root / "checkpoint"

    def save(self, state, step, kind):
        where = dict(step=step, step_names=self.NAMES) if self.per_step else {}
        self.begin(step, lambda: self.engine.begin_save(state, self.path, **where), kind == "none")

    def load(self, state):
        with self.witness.phase("load.begin"):
            pass
        with self.witness.phase("load.read"):
            self.engine.load(state, self.path, step_names=self.NAMES)
