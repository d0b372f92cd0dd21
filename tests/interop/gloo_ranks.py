"""Runs a function in several processes that communicate through gloo, as the ranks of a job do."""
import ctypes
import multiprocessing
import os
import pathlib
import signal
import socket
import tempfile
import time
import traceback
import warnings

import torch
import torch._dynamo  # DTensors import it; imported once here instead of in each rank
import torch.distributed as dist


def held_port():
    """Returns a socket bound to a free port. While it is open only who names the port gets it, as rank 0 of torch does."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def one_rank(rank, ranks, port, answer, function, arguments):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the rank ends when run() does
    os.setpgid(0, 0)  # so that run() also ends processes that the rank starts
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    try:
        if ranks > 1:
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
            dist.init_process_group("gloo", rank=rank, world_size=ranks)
        outcome = (True, function(*arguments, rank))
        if ranks > 1:
            dist.barrier()
    except BaseException:  # run() reports why the rank failed
        outcome = (False, traceback.format_exc())
    torch.save(outcome, answer.with_suffix(".part"))
    answer.with_suffix(".part").rename(answer)
    os._exit(0)  # otherwise threads of gloo and of an asynchronous save wait for each other


def end_group(process):
    """Kills a rank and its children. Any of these processes may have ended already."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()  # the rank has no group yet, or has ended
    process.join()


def run(ranks, function, *arguments, seconds=120):
    """Calls function(*arguments, rank) in `ranks` forked processes and returns the result of each.

    With one rank there is no process group. If a rank fails, all ranks are ended and the traceback of the failed rank is raised.
    """
    fork = multiprocessing.get_context("fork")  # torch is imported once, before the fork
    with tempfile.TemporaryDirectory() as folder:
        answers = [pathlib.Path(folder) / f"{rank}.pt" for rank in range(ranks)]
        held = held_port()
        port = held.getsockname()[1]
        processes = [fork.Process(target=one_rank, args=(rank, ranks, port, answers[rank], function, arguments))
                     for rank in range(ranks)]
        for process in processes:
            process.start()
        deadline = time.monotonic() + seconds
        outcomes = [None] * ranks
        try:
            while None in outcomes:
                for rank, answer in enumerate(answers):
                    alive = processes[rank].is_alive()
                    if outcomes[rank] is None and answer.exists():
                        outcomes[rank] = torch.load(answer, weights_only=False)
                        if not outcomes[rank][0]:
                            raise RuntimeError(f"rank {rank} of {ranks}: {outcomes[rank][1]}")
                    elif outcomes[rank] is None and not alive:
                        raise RuntimeError(f"rank {rank} of {ranks} ended without an answer, exit {processes[rank].exitcode}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"ranks {[r for r, o in enumerate(outcomes) if o is None]} of {ranks} took more than {seconds} s")
                time.sleep(0.01)
        finally:
            # A rank that has answered is done. A process that it started would keep join() waiting.
            for process in processes:
                end_group(process)
            held.close()
        return [value for _, value in outcomes]
