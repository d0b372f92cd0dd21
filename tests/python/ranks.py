"""Runs a function on several ranks, which are processes over gloo."""
import importlib
import os
import tempfile
import time
import traceback
import warnings

import torch.distributed as dist
import torch.multiprocessing as mp


def _rank(rank, size, meet, answers, function, arguments):
    warnings.filterwarnings("ignore")
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=size)
    try:
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = getattr(importlib.import_module(module), name)
        answers.put((rank, function(rank, size, *arguments), None))
    except BaseException:
        answers.put((rank, None, traceback.format_exc()))
        os._exit(1)
    dist.destroy_process_group()


def run(size, function, *arguments, ends=None, timeout=120):
    """Returns what each rank returned. `ends` are the ranks that must end by themselves; by default all.

    A function that is named, as "module:function", is one of a module that takes seconds to import, or changes torch:
    a process of its own has imported it, and the ranks are forked from that.
    """
    context = mp.get_context("forkserver" if isinstance(function, str) else "spawn")
    context.set_forkserver_preload(["megatron_ranks", "titan_job"])
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        meet = os.path.join(folder, "meet")
        workers = [
            context.Process(target=_rank, args=(rank, size, meet, answers, function, arguments))
            for rank in range(size)
        ]
        for worker in workers:
            worker.start()
        ends_at = time.monotonic() + timeout
        for worker in workers:
            worker.join(max(0, ends_at - time.monotonic()))
        late = [rank for rank, worker in enumerate(workers) if worker.is_alive()]
        for rank in late:
            workers[rank].kill()
            workers[rank].join()
        if late:
            raise AssertionError(f"ranks {late} did not end")
    found, failures = {}, []
    while not answers.empty():
        rank, answer, failure = answers.get()
        found[rank] = answer
        if failure is not None:
            failures.append(f"rank {rank}: {failure}")
    if failures:
        raise AssertionError("\n".join(failures))
    wanted = range(size) if ends is None else ends
    wrong = {rank: workers[rank].exitcode for rank in wanted if workers[rank].exitcode != 0}
    if wrong:
        raise AssertionError(f"ranks ended with these codes: {wrong}")
    missing = [rank for rank in wanted if rank not in found]
    if missing:
        raise AssertionError(f"ranks {missing} gave no answer")
    return [found.get(rank) for rank in range(size)]
