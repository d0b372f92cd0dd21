"""What is held beside models and optimizers: found by the names under which the script has it."""
import unittest

from lives import Folder

TRAINER = """
import random, sys, torch
import torch.nn as nn
torch.manual_seed(0)
class Average:
    def __init__(self, model): self.rate = 0.9; self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
    def update(self, model):
        for n, p in model.named_parameters(): self.shadow[n].lerp_(p.detach(), 1 - self.rate)
    def state_dict(self): return {"shadow": self.shadow}
    def load_state_dict(self, state): self.shadow = state["shadow"]
def train(model, optimizer, data, after=lambda: None):
    for batch in data:
        model(batch).sum().backward(); optimizer.step(); optimizer.zero_grad(); after()
"""


class Search(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def run_script(self, text, *arguments, **options):
        life = self.folder.run(TRAINER + text, *arguments, **options)
        self.assertEqual(life.status, 0, life.output)
        self.assertEqual(life.of("hook_error"), [])
        return life

    def test_an_average_in_an_object_with_a_state_dict(self):
        life = self.run_script("""
def main():
    model = nn.Linear(2, 2); average = Average(model)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.ones(1, 2)] * 3, lambda: average.update(model))
main()
""")
        held = [life.held(step) for step in range(3)]
        self.assertEqual(held[0]["other.average.shadow.weight"], held[0]["param.weight"])
        self.assertEqual(len({names["other.average.shadow.weight"] for names in held}), 3)
        self.assertEqual(held[0]["attr.average.rate"], f"={(0.9).hex()}")

    def test_an_average_in_a_dict_and_in_a_model(self):
        life = self.run_script("""
from torch.optim.swa_utils import AveragedModel
class Trainer:
    def __init__(self):
        self.model = nn.Linear(2, 2)
        self.ema = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        self.swa = AveragedModel(self.model)
    def run(self):
        def after(): self.swa.update_parameters(self.model); self.ema["weight"] += 1
        train(self.model, torch.optim.SGD(self.model.parameters(), lr=0.1), [torch.ones(1, 2)] * 2, after)
Trainer().run()
""")
        first, second = life.held(0), life.held(1)
        self.assertNotEqual(first["ema.weight"], second["ema.weight"])
        self.assertLessEqual({"other.swa.module.weight", "other.swa.n_averaged"} & set(second), set(second))
        self.assertIn("other.swa.module.weight", second)

    def test_an_average_of_a_state_dict_with_buffers_and_tied_weights(self):
        life = self.run_script("""
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.register_buffer("cache", torch.zeros(3), persistent=False)
    def forward(self, x): return self.b(self.norm(self.a(x)))
def main():
    model = Tied()
    smooth = {n: t.detach().clone() for n, t in model.state_dict().items()}
    def after():
        for n, t in model.state_dict().items(): smooth[n] = smooth[n] + t
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.ones(4, 2)] * 2, after)
main()
""")
        held = life.held(1)
        names = [name for name in held if "smooth" in name]
        self.assertIn("other.smooth.norm.running_mean", names)
        self.assertIn("other.smooth.b.weight", names)
        self.assertIn("buffer-not-saved.cache", held)
        self.assertIn("buffer.norm.running_mean", held)

    def test_an_optimizer_that_the_script_drops_is_dropped(self):
        life = self.run_script("""
def main():
    model = nn.Linear(2, 2)
    train(model, torch.optim.Adam(model.parameters(), lr=0.1), [torch.ones(1, 2)] * 2)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), [torch.ones(1, 2)] * 3)
main()
""")
        self.assertIn("optim.weight.exp_avg", life.held(1))
        last = life.held(4)
        self.assertIn("optim.weight.momentum_buffer", last)
        self.assertEqual([name for name in last if "exp_avg" in name or name.startswith("group.1.")], [])

    def test_what_the_script_makes_after_its_first_step_is_no_state(self):
        life = self.run_script("""
def main():
    model = nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(3):
        model(torch.ones(1, 2)).sum().backward()
        grads = [p.grad.clone() for p in model.parameters()]
        optimizer.step(); optimizer.zero_grad()
main()
""")
        self.assertEqual([name for name in life.held(2) if "grads" in name], [])

    def test_samplers_loaders_and_generators_are_told_as_soft_kinds(self):
        life = self.run_script("""
import numpy
def main():
    model = nn.Linear(2, 2); data = torch.ones(8, 2)
    noise, other = numpy.random.default_rng(3), random.Random(4)
    sampler = torch.utils.data.DistributedSampler(data, num_replicas=1, rank=0, seed=3)
    loader = torch.utils.data.DataLoader(data, batch_size=2, sampler=sampler, generator=torch.Generator().manual_seed(2))
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
        noise.random(); other.random()
main()
""")
        first, later = life.held(0), life.held(5)
        self.assertEqual((first["sampler.epoch"], later["sampler.epoch"]), ("=0", "=1"))
        self.assertIn("gen.data.generator", first)
        for name in ("gen.noise", "gen.other"):
            self.assertNotEqual(first[name], later[name])

    def test_a_scaler_and_a_chain_of_schedules(self):
        life = self.run_script("""
def main():
    model = nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    chain = torch.optim.lr_scheduler.SequentialLR(optimizer, [torch.optim.lr_scheduler.ConstantLR(optimizer),
        torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)], milestones=[1])
    for i in range(3):
        scaler.scale(model(torch.ones(1, 2)).sum()).backward(); scaler.step(optimizer); scaler.update(); chain.step()
main()
""")
        held = life.held(2)
        self.assertEqual(held["scaler.GradScaler.scale"], f"={(8.0).hex()}")
        self.assertEqual(held["sched.SequentialLR.last_epoch"], "=2")
        self.assertIn("sched.ExponentialLR.gamma", held)

    def test_looking_changes_nothing_that_the_script_can_see(self):
        text = """
import weakref, gc
class Big: pass
def main():
    model = nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    early = locals()
    late = big = Big(); gone = weakref.ref(big)
    def look():
        nonlocal late
        model(torch.ones(1, 2)).sum().backward(); optimizer.step()
    look()
    print(sorted(early), early is locals())
    del big; late = None
    print(gone() is None)
class Asks:
    def __getattr__(self, name): print("asked for", name); raise AttributeError(name)
    @property
    def value(self): print("asked for value")
class StandsFor:
    @property
    def __class__(self): print("asked for its class"); return nn.Linear
asks, stands = Asks(), StandsFor()
linear = nn.Linear(1, 1); proxy = weakref.proxy(linear)
main()
"""
        self.assertEqual(self.run_script(text).output, self.run_script(text, watched=False).output)

    def test_large_structures_end_the_search_and_are_told(self):
        life = self.run_script("""
from reprise.watch import search
search.OBJECTS = 5
train(nn.Linear(2, 2), torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1), [torch.ones(1, 2)])
""")
        self.assertEqual([r["name"] for r in life.of("not_judged")], ["objects"])

    def test_containers_of_data_are_not_entered(self):
        life = self.run_script("""
data = [torch.ones(1, 2)] * 1000
model = nn.Linear(2, 2)
train(model, torch.optim.SGD(model.parameters(), lr=0.1), data[:2])
""")
        self.assertEqual([n for n in life.held(0) if n.startswith(("other", "ema", "attr"))], [])


if __name__ == "__main__":
    unittest.main()
