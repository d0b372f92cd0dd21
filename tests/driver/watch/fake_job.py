"""A training command without torch, for tests of `reprise watch`: it computes with a few numbers, saves them
to a relative folder, and writes by itself what the hook of the Python package would record (docs/watch.md).

    fake_job.py [--steps N] [--save-every N] [--out DIR] [--resume] [--ranks N] [--defect NAME] [--once FILE]
"""

import argparse
import hashlib
import json
import os
import random
import signal
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--save-every", type=int, default=3)
parser.add_argument("--out", default="ckpt")
parser.add_argument("--resume", nargs="?", const="newest")
parser.add_argument("--exit", type=int, default=0)
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--defect", default="")
parser.add_argument("--once")  # a file; where it is, a resumed life has no defect, and makes it otherwise
args = parser.parse_args()

LIFE = os.environ["REPRISE_WATCH_LIFE"]
if args.once and LIFE == "C":
    if os.path.exists(args.once):
        args.defect = ""
    open(args.once, "w").close()
KILL = json.loads(os.environ.get("REPRISE_WATCH_KILL", "{}"))


def unseeded():
    """A number that no two runs draw."""
    return int.from_bytes(os.urandom(6), "little")


def tensor(values):
    digest = hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()
    return f"#float32[{len(values)}]:{digest}"


class Job:
    def __init__(self, rank):
        self.rank = rank
        self.folder = os.path.join(os.environ["REPRISE_WATCH"], LIFE)
        os.makedirs(self.folder, exist_ok=True)
        self.file = os.path.join(self.folder, f"rank-{rank}-{os.getpid()}.jsonl")
        start = unseeded() if args.defect == "unseeded weights" else 1
        self.weights = [float(start), 2.0, 3.0]
        self.momentum = [0.0, 0.0, 0.0]
        self.ema = [0.0]
        self.buffer = [0.0, float(rank)]
        self.seen = 0  # samples
        self.random = random.Random(rank)
        self.made = 0  # steps of this process
        self.step = 0

    def say(self, what, **fields):
        with open(self.file, "a") as file:
            file.write(json.dumps({"what": what, **fields}) + "\n")

    def lr(self):
        return 0.5 / (1 + self.step)

    def held(self, why, at="forward"):
        weights = "optim.0.0.0.param" if args.defect == "weights that no module has" else "param.severity"
        names = {
            weights: tensor(self.weights),
            "optim.severity.momentum": tensor(self.momentum),
            "group.SGD.0.lr": f"={self.lr().hex()}",
            "rng.python": "#object:" + tensor(list(self.random.getstate()[1]))[-16:],
            "ema.shadow": tensor(self.ema),
            "buffer.mean": tensor(self.buffer),
            "loader.position": f"={self.made}",
        }
        if args.defect.startswith("a generator is not restored"):
            names["gen.own"] = f"=g{self.made}"
        # The model makes these buffers, and no state dict has them.
        if args.defect == "a count that nobody saves":
            names["buffer-not-saved.count"] = tensor([self.made])
        if args.defect == "a table that grows with the longest batch":
            names["buffer-not-saved.table"] = tensor([1] * (8 if self.step < 4 else 12))
            if args.resume:
                names["buffer-not-saved.table"] = tensor([1] * 8)
        if args.defect == "a table that the first forward fills":
            names["buffer-not-saved.table"] = tensor([min(self.made, 1)])
        if args.defect == "a clock":
            names["other.started"] = f"={os.getpid()}"
        self.say("held", step=self.made, why=why, at=at, names=names)

    def path(self, step):
        return os.path.join(args.out, f"step{step}-rank{self.rank}.json")

    def save(self):
        os.makedirs(args.out, exist_ok=True)
        path = self.path(self.step)
        work = os.environ["REPRISE_WATCH_WORK"]
        inside = os.path.abspath(path).startswith(work + "/")
        shown = "./" + os.path.relpath(path, work) if inside else os.path.abspath(path)
        state = {
            "step": self.step,
            "weights": self.weights,
            "momentum": self.momentum,
            "ema": self.ema,
            "buffer": self.buffer,
            "seen": self.seen,
            "random": self.random.getstate(),
        }
        leaves = {"weights": tensor(self.weights), "momentum": tensor(self.momentum), "step": f"={self.step}"}
        if args.defect == "a generator is not restored, though it was saved":
            leaves["own"] = f"=g{self.step}"
        leaves["count"] = f"={self.made if args.defect == 'a count begins anew' else self.step}"
        if args.defect != "random state not saved, no effect":
            leaves["random"] = "#object:" + tensor(list(self.random.getstate()[1]))[-16:]
        aside = {}
        if args.defect == "a thread saves the step before":
            self.before, state = state, getattr(self, "before", state)
            aside["thread"] = "other"
        self.say("save", step=self.made, by="fake.save", path=shown, leaves=leaves, **aside)
        if KILL.get("phase") == "save.begin" and self.made >= KILL["step"]:
            self.die("save.begin")
        written = path + ".part" if args.defect == "renames what it saved" else path
        with open(written, "w") as file:
            json.dump(state, file)
        if args.defect == "an object is not stored" and self.made >= 6:
            self.say("not_stored", step=self.made, path=shown, names=["best"])
        self.say("saved", step=self.made, path=shown)
        if KILL.get("phase") == "save.written" and self.made >= KILL["step"]:
            self.die("save.written")
        os.rename(written, path)

    def die(self, at):
        self.say("killed", step=self.made, at=at)
        os.kill(os.getpid(), signal.SIGKILL)

    def load(self):
        newest = [s for s in range(args.steps, 0, -1) if os.path.exists(self.path(s))]
        if args.resume != "newest":
            newest = [s for s in newest if args.resume in self.path(s)]
        if args.defect == "starts anew" or not newest:
            return
        if args.defect == "an older checkpoint":
            newest = newest[1:]
        path = self.path(newest[0])
        if args.defect == "the load fails":
            self.say("load", step=0, by="fake.load", path="./" + path, leaves={}, error="OSError: torn")
            raise OSError("torn")
        if args.defect.endswith("is not there"):
            missing = path if args.defect == "the saved file is not there" else "other.json"
            error = "FileNotFoundError: " + missing
            self.say("load", step=0, by="fake.load", path="./" + missing, leaves={}, error=error)
            raise FileNotFoundError(missing)
        with open(path) as file:
            state = json.load(file)
        self.say("load", step=0, by="fake.load", path="./" + path, leaves={"weights": tensor(state["weights"])})
        self.step, self.weights = state["step"], state["weights"]
        if args.defect == "weights are rounded":
            self.weights = [round(w, 3) for w in self.weights]
        if args.defect != "the optimizer is lost":
            self.momentum = state["momentum"]
        if args.defect == "rank 1 is stale" and self.rank == 1:
            with open(self.path(newest[1])) as file:
                self.momentum = json.load(file)["momentum"]
        if args.defect != "the average is lost":
            self.ema = state["ema"]
        if args.defect != "a buffer is lost":
            self.buffer = state["buffer"]
        if args.defect == "a buffer of rank 0 for all" and self.rank == 1:
            self.buffer = [self.buffer[0], 0.0]
        if args.defect != "data again":
            self.seen = state["seen"]
        if args.defect == "data differ late" and self.seen == 9:
            self.late = True
        if not args.defect.startswith("random state not"):
            version, numbers, rest = state["random"]
            if args.defect == "the random state of rank 0":
                with open(os.path.join(args.out, f"step{self.step}-rank0.json")) as file:
                    version, numbers, rest = json.load(file)["random"]
            self.random.setstate((version, tuple(numbers), rest))
        if args.defect == "makes too many steps":
            self.extra = 2

    late = False
    extra = 0

    def train(self):
        while self.step < args.steps + self.extra:
            saved = self.made and self.step % args.save_every == 0
            if not self.made or saved:
                self.held("save" if self.made else "first")
            sample = self.seen
            if self.late and self.step >= 10:
                sample = 100
            if args.defect == "runs differ late" and self.step >= 10:
                sample = unseeded()
            if args.defect == "unseeded data":
                sample = unseeded()
            drawn = self.random.random()
            noise = 0.0 if "no effect" in args.defect else drawn
            if args.defect == "sums in another order" and args.resume and self.made > 0:
                noise += 1e-9
            if args.defect == "another loss, unseen" and args.resume and self.made > 0:
                noise += 1e-2
            gradient = [w - sample - noise for w in self.weights]
            loss = sum(g * g for g in gradient)
            self.momentum = [0.5 * m + g for m, g in zip(self.momentum, gradient)]
            self.weights = [w - self.lr() * m for w, m in zip(self.weights, self.momentum)]
            self.ema = [0.9 * self.ema[0] + self.weights[0]]
            self.buffer = [self.buffer[0] + 1, float(self.rank)]
            self.seen += 1
            self.step += 1
            self.made += 1
            evaluates = args.defect == "the model is in eval mode"
            self.say(
                "step",
                step=self.made,
                losses=[loss.hex()],
                inputs=[] if evaluates else [tensor([sample])],
                lr=[self.lr().hex()],
                seconds=0.1,
                **({"unseen": True} if evaluates else {}),
            )
            if self.step % args.save_every == 0:
                self.save()
            if args.defect == "a best file is saved anew" and (self.step == 3 or args.resume and self.made == 1):
                leaves = {"weights": tensor(self.weights)}
                self.say("save", step=self.made, by="fake.save", path="./ckpt/best", leaves=leaves)
                self.say("saved", step=self.made, path="./ckpt/best")
            if KILL.get("step") == self.made and "phase" not in KILL and args.defect != "is not killed":
                self.die(f"step {self.made}")
            if args.exit and self.step == 11:
                self.say("end", step=self.made, exit="exit", error=str(args.exit))
                os._exit(args.exit)
        self.held("end", at="end")
        self.say("end", step=self.made, exit="returned", error="")

    def run(self):
        self.say("start", version=1, life=LIFE, rank=self.rank, world=args.ranks, pid=os.getpid(), packages={})
        try:
            if args.resume:
                self.load()
            if args.defect == "crashes later" and args.resume:
                self.held("first")
                raise ValueError("shape mismatch")
            self.train()
        except (OSError, ValueError) as error:
            self.say("end", step=self.made, exit="exception", error=f"{type(error).__name__}: {error}")
            print(f"{type(error).__name__}: {error}")
            return 3
        return 0


if args.defect == "prints, and trains nothing":
    print("nothing to do")
    sys.exit(0)
if args.defect == "wants no resume" and args.resume:
    print("fake_job.py: error: unrecognized arguments: --resume", file=sys.stderr)
    sys.exit(2)
children = []
for number in range(args.ranks):
    child = os.fork()
    if child == 0:
        os._exit(Job(number).run())
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(next((1 if code < 0 else code for code in codes if code), 0))
