"""A simulated job saves its rerun machine, idle and with a fault. Megatron-Core's own machine loads it and must decide as ours would."""
import logging
import os
import re

import torch
import torch.distributed as dist

import gloo_ranks
from content import Content, Different, tree
from writes import has_mcore

RANKS, SUSPECT = 4, 2
KEY = "rerun_state_machine"
JOB = """
proves: What a job saves.
job: {model: gpt-tiny, layout: {tp: 2, dp: 2}, optimizer: {kind: adam, sharding: fully_reshardable}, rerun: validate_results}
"""
STEPS = {
    "idle": "steps: [{train: 2}, save, restart, {train: 1}]\n",
    "pending": "steps: [{train: 2}, save, {train: 1}, {bad_result: {kind: persistent_error, rank: 2, fatal: true}}, {exits: 16}, {restart: {on: other_device, rerun: disabled}}, {train: 1}]\n",
}
EXPECT = "expect: {max_delta: 0, against: uninterrupted}\n"
# Ways in which the rerun from the checkpoint ends: on the same device or not, with the same result or not; then what
# Megatron concludes.
ENDINGS = {
    "where it was rejected, the same": (True, True, (False, True, 16), "RERUNNING_AGAIN_FROM_CHECKPOINT", None),
    "where it was rejected, another": (True, False, (False, True, 16), "RERUNNING_AGAIN_FROM_CHECKPOINT", None),
    "elsewhere, the same": (False, True, (False, True, 17), "RERUNNING_FROM_CHECKPOINT", "SECOND_RERUN_REPRODUCIBLE"),
    "elsewhere, another": (False, False, (False, True, 17), "RERUNNING_FROM_CHECKPOINT", "SECOND_RERUN_NOT_REPRODUCIBLE"),
}


def saved_by_job(reprise, folder, state):
    """Returns the checkpoint of the last save before the restart. The log is next to the checkpoints."""
    (folder / f"{state}.yaml").write_text(JOB + STEPS[state] + EXPECT)
    reprise.must("run", folder / f"{state}.yaml", "--quiet", "--keep", folder / state)
    found = sorted((folder / state).rglob("checkpoints/iter_*"))
    if len(found) != (1 if state == "idle" else 2):
        raise Different(f"{state}: {len(found)} checkpoints")
    return found[-1]


def machine_of(state_dict, log=None):
    """Returns Megatron's machine, in which gloo sums over the ranks, since there is no GPU for the sum."""
    from megatron.core import rerun_state_machine as m

    class Machine(m.RerunStateMachine):
        def _reduce_any(self, value):
            values = torch.tensor(value if isinstance(value, list) else [value], dtype=torch.int32)
            dist.all_reduce(values)
            some = tuple(n > 0 for n in values.tolist())
            return some if isinstance(value, list) else some[0]

    machine = Machine(mode=m.RerunMode.VALIDATE_RESULTS, result_rejected_tracker_filename=log)
    if state_dict is not None:
        machine.load_state_dict(state_dict)
    return machine


def loaded(path):
    """Loads as Megatron's training does: dist_checkpointing fills a template made with force=True."""
    import make_mcore_fixtures  # replaces CUDA calls where there is no GPU
    from megatron.core import dist_checkpointing
    assert make_mcore_fixtures
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the common state holds Megatron's own enums
    template = machine_of(None).state_dict(None, "torch_dist", force=True)
    return dist_checkpointing.load({KEY: template}, str(path))[KEY]


def fields(machine):
    """Returns what state_dict() would write for the machine."""
    written = machine.state_dict(None, "torch_dist", force=True)
    own = dict(written["sharded"].data, data_iterator_checkpoints=machine.data_iterator_checkpoints)
    return {name: tree(value) for name, value in {**written, "sharded": own}.items()}


def idle_is_taken(path):
    """Megatron does not restore an idle machine. If it did, the machine would equal a new one except for its statistics."""
    state = loaded(path)
    machine = machine_of(state)
    if machine.validate_state_dict(state):
        raise Different("Megatron would restore an idle machine")
    mine, new = fields(machine), fields(machine_of(None))
    for side in (mine, new):
        side["sharded"]["dict"] = [[k, v] for k, v in side["sharded"]["dict"] if k not in ("large_value_counts", "max_values")]
        side.pop("current_iteration")
    if mine != new:
        raise Different(f"idle: {mine} is not {new}")


def rerun_leaves(machine, batches, same_result):
    """Runs one iteration of a restarted job. Returns the number of passes, and whether and how the job exits."""
    passes = 0
    while machine.should_run_forward_backward(batches):
        passes += 1
        call = machine.failed_validation_call
        for _ in range(call.sequence if call else 0):
            result = machine.initial_result if same_result else torch.tensor(1.5)
            machine.validate_result(result, torch.isnan, call.caller.message, fatal=True)
    return passes, machine.should_checkpoint_and_exit(), machine.state.name


def pending_is_taken(path, ending, log, rank):
    """Megatron restores a machine with a pending rerun, runs the iteration again, and exits with the right code."""
    from megatron.core import rerun_state_machine as m
    same_place, same_result, leaves, state_after, status = ENDINGS[ending]
    state = loaded(path)
    machine = machine_of(state, log)
    stored = {name: tree(value) for name, value in state.items()}
    if not machine.validate_state_dict(state) or fields(machine) != stored:
        raise Different(f"pending: Megatron's machine is {fields(machine)}, the checkpoint {stored}")
    if (machine.failed_validation_call is None) == (rank == SUSPECT):
        raise Different(f"rank {rank} holds the failed call {machine.failed_validation_call}")
    os.uname = lambda: ("Linux", machine.suspicious_node if same_place else "another")
    torch.cuda.current_device = lambda: machine.suspicious_device if rank == SUSPECT else 0
    batches = [m.RerunDataIterator(iter(())) for _ in machine.data_iterator_checkpoints]
    found = (*rerun_leaves(machine, batches, same_result), re.findall(r"status=RerunValidationStatus\.(\w+)", open(log).read()))
    expected = (1, leaves, state_after, [status] if status and rank == SUSPECT else [])
    if found != expected:
        raise Different(f"rank {rank}, {ending}: {found}, not {expected}")
    return len(batches)


def all_are_taken(idle, pending, folder, rank):
    logging.disable()
    idle_is_taken(idle)
    return sum(pending_is_taken(pending, ending, f"{folder}/log.{rank}.{n}", rank) for n, ending in enumerate(ENDINGS))


def read_as_written(reprise, path):
    """torch reads all objects as Reprise does, including the names of the rerun objects."""
    content = Content(path)
    values = reprise.agrees_with(content)
    ours = [key for key in content.objects if key.startswith(KEY)]
    if len(ours) != RANKS or values != len(content.objects) + 1:
        raise Different(f"{len(ours)} rerun objects; {values} of {len(content.objects)} objects as values")
    return len(ours)


def machine_is_read(reprise, folder):
    compared = 0
    idle, pending = (saved_by_job(reprise, folder, state) for state in STEPS)
    for path in (idle, pending):
        compared += read_as_written(reprise, path)
    batches = sum(gloo_ranks.run(RANKS, all_are_taken, idle, pending, folder))
    if batches != RANKS * len(ENDINGS):
        raise Different(f"{batches} data iterators")
    return compared, f"{compared} objects of {RANKS} ranks; idle, and pending with {len(ENDINGS)} ways to end"


def log_is_read(reprise, folder):
    """Megatron's own parser finds in the log next to the checkpoints which iterations a job skips."""
    from megatron.core.rerun_state_machine import RerunStateMachine
    pending = saved_by_job(reprise, folder, "pending")
    log = pending.parent / "rerun_results.log"
    logging.getLogger("megatron").setLevel(logging.CRITICAL)  # it would warn about each line
    lines = log.read_text().splitlines()
    once = RerunStateMachine.get_skipped_iterations_from_tracker_file(str(log))
    log_twice = folder / "twice.log"
    log_twice.write_text("\n".join(lines * 2) + "\n")
    twice = RerunStateMachine.get_skipped_iterations_from_tracker_file(str(log_twice))
    if not lines or once or len(twice) != 1:
        raise Different(f"{len(lines)} lines; skipped {once}, and {twice} if all happens again")
    return len(lines), f"{len(lines)} lines; iteration {twice[0]} is skipped once it was rejected twice"


def cases():
    if has_mcore():
        yield "Reprise writes a rerun machine", machine_is_read
        yield "Reprise writes a log of rejected results", log_is_read
