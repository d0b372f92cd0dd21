"""What the hook tells of steps: when they begin and end, what they take, and that nothing changes."""
import re
import unittest

from lives import Folder

TRAINER = """
import random, sys, torch, torch.nn as nn
torch.manual_seed(0); random.seed(0)

def main(steps=4, accumulate=1, save=0):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 / (1 + i))
    data = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=4, shuffle=True)
    taken = iter(data)
    for step in range(1, steps + 1):
        for _ in range(accumulate):
            loss = model(next(taken)).square().mean() / accumulate
            loss.backward()
        optimizer.step(); optimizer.zero_grad(); schedule.step()
        print(step, loss.item().hex())
        if save and step % save == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"step-{step}.pt")
    print([p.detach().numpy().tobytes().hex() for p in model.state_dict().values()])
    print(torch.get_rng_state().numpy().tobytes().hex(), random.random(), torch.rand(3))
"""


class Steps(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def run_script(self, text, *arguments, **options):
        life = self.folder.run(text, *arguments, **options)
        self.assertEqual(life.status, 0, life.output)
        self.assertEqual(life.of("hook_error"), [])
        return life

    def test_a_life_has_its_start_its_steps_and_its_end(self):
        life = self.run_script(TRAINER + "main()")
        self.assertEqual([r["what"] for r in life.records][0], "start")
        self.assertEqual([r["step"] for r in life.steps], [1, 2, 3, 4])
        self.assertEqual([r["step"] for r in life.of("held")], [0, 1, 2, 3, 4])
        self.assertEqual(life.of("held")[-1]["at"], "end")
        self.assertEqual(life.of("end")[0]["exit"], "returned")
        for record in life.steps:
            self.assertEqual((len(record["losses"]), len(record["inputs"]), record["forwards"]), (1, 1, 1))
        losses = [line.split()[1] for line in life.output.splitlines()[:4]]
        self.assertEqual([float.fromhex(r["losses"][0]).hex() for r in life.steps], losses)

    def test_what_is_held_is_named_after_the_model(self):
        held = self.run_script(TRAINER + "main()").held(2)
        for name in ("param.0.weight", "buffer.1.running_mean", "optim.3.bias.exp_avg", "optim.0.weight.step"):
            self.assertRegex(held[name], r"^#(float32|int64)\[[0-9,]*\]:[0-9a-f]{16}$")
        self.assertEqual(held["group.0.0.lr"], f"={(1e-2 * (1 / 3)).hex()}")
        self.assertEqual(held["sched.LambdaLR.last_epoch"], "=2")
        self.assertLessEqual({"rng.torch", "rng.python"}, set(held))

    def test_losses_and_final_state_are_the_same_to_the_bit(self):
        text = TRAINER + "main(accumulate=2, save=2)"
        plain = self.run_script(text, watched=False)
        for every in (True, False):
            self.assertEqual(self.run_script(text, every=every).output, plain.output)

    def test_by_default_all_is_read_first_after_saves_and_at_the_end(self):
        life = self.run_script(TRAINER + "main(steps=6, save=3)", every=False)
        whole = [(r["step"], r["why"]) for r in life.of("held") if not r.get("light")]
        self.assertEqual(whole, [(0, "first"), (3, "save"), (6, "end")])
        light = life.of("held", step=4)[0]
        self.assertTrue(light["light"])
        self.assertIn("rng.torch", light["names"])

    def test_several_forwards_make_one_step(self):
        life = self.run_script(TRAINER + "main(accumulate=3)")
        self.assertEqual([(r["forwards"], len(r["losses"]), len(r["inputs"])) for r in life.steps], [(3, 3, 3)] * 4)

    def test_keyword_arguments_are_inputs_and_what_models_compute_is_not(self):
        life = self.run_script("""
            import torch, torch.nn as nn
            class Encoder(nn.Module):
                def __init__(self): super().__init__(); self.layer = nn.Linear(3, 3)
                def forward(self, *, ids, options): return self.layer(ids * options["scale"])
            encoder, decoder = Encoder(), nn.Linear(3, 1)
            optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
            for i in range(3):
                hidden = encoder(ids=torch.full((2, 3), float(i)), options={"scale": torch.tensor(2.0)})
                decoder(hidden).sum().backward()
                optimizer.step()
            """)
        self.assertEqual([len(r["inputs"]) for r in life.steps], [2, 2, 2])
        self.assertEqual(len({r["inputs"][0] for r in life.steps}), 3)
        self.assertEqual(len({r["inputs"][1] for r in life.steps}), 1)
        self.assertIn("param.layer.weight", life.held(0))
        self.assertIn("param.Linear.weight", life.held(0))

    def test_evaluation_between_steps_is_no_step(self):
        life = self.run_script("""
            import torch
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(3):
                model(torch.ones(1, 2)).sum().backward(); optimizer.step()
                model.eval(); model(torch.zeros(1, 2)); model.train()
                with torch.no_grad(): model(torch.zeros(1, 2))
            """)
        self.assertEqual([r["forwards"] for r in life.steps], [1, 1, 1])
        self.assertEqual(len({r["inputs"][0] for r in life.steps}), 1)

    def test_optimizers_that_step_after_one_backward_make_one_step(self):
        life = self.run_script("""
            import torch
            model = torch.nn.Linear(2, 2)
            optimizers = [torch.optim.SGD([model.weight], lr=0.1), torch.optim.Adam([model.bias], lr=0.2)]
            for i in range(3):
                model(torch.ones(1, 2)).sum().backward()
                for optimizer in optimizers: optimizer.step()
            """)
        self.assertEqual([r["step"] for r in life.steps], [1, 2, 3])
        self.assertEqual([float.fromhex(rate) for rate in life.steps[0]["lr"]], [0.1, 0.2])
        self.assertIn("optim.bias.exp_avg", life.held(1))
        self.assertIn("group.1.0.lr", life.held(1))

    def test_the_step_of_get_state_dict_is_none(self):
        life = self.run_script("""
            import torch
            from torch.distributed.checkpoint.state_dict import get_state_dict
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            get_state_dict(model, optimizer)
            for i in range(3):
                model(torch.ones(1, 2)).sum().backward(); optimizer.step()
                get_state_dict(model, optimizer)
            """)
        self.assertEqual([r["step"] for r in life.steps], [1, 2, 3])

    def test_a_forward_in_a_backward_is_none(self):
        """Checkpointed activations are computed again by calling the module in the backward."""
        life = self.run_script("""
            import torch
            from torch.utils.checkpoint import checkpoint
            layer = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            for i in range(3):
                checkpoint(layer, torch.ones(1, 2), use_reentrant=False).sum().backward(); optimizer.step()
            """)
        self.assertEqual([r["forwards"] for r in life.steps], [1, 1, 1])

    def test_compiled_models_have_no_graph_break_and_the_same_losses(self):
        text = """
            import sys, torch
            from torch._dynamo.utils import counters
            torch.manual_seed(0)
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
                def forward(self, x): return self.inner(x)
            model = Model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if sys.argv[1] == "function":
                @torch.compile(backend="eager", fullgraph=True)
                def run(x): return model(x).square().sum()
            elif sys.argv[1] == "method":
                model.compile(backend="eager", fullgraph=True)
                run = lambda x: model(x).square().sum()
            else:
                compiled = torch.compile(model, backend="eager", fullgraph=True)
                run = lambda x: compiled(x).square().sum()
            for i in range(3):
                loss = run(torch.ones(1, 4)); loss.backward(); optimizer.step(); optimizer.zero_grad()
                print(loss.item().hex())
            print(dict(counters["graph_break"]), counters["stats"]["unique_graphs"], counters["frames"])
            """
        for kind in ("module", "method", "function"):
            with self.subTest(kind):
                plain = self.run_script(text, kind, watched=False)
                life = self.run_script(text, kind)
                self.assertEqual(life.output, plain.output)
                self.assertEqual(len(life.steps), 3)
                self.assertIn("param.inner.0.weight", life.held(0))

    def test_a_step_without_a_forward_that_can_be_seen_says_so(self):
        life = self.run_script("""
            import torch
            weight = torch.nn.Parameter(torch.ones(2))
            optimizer = torch.optim.SGD([weight], lr=0.1)
            for i in range(2): weight.square().sum().backward(); optimizer.step()
            """)
        self.assertEqual([(r["unseen"], r["inputs"]) for r in life.steps], [(True, [])] * 2)
        self.assertIn("optim.0.0.0.param", life.held(0))

    def test_two_models_of_one_class_keep_their_names(self):
        life = self.run_script("""
            import torch
            def main():
                first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 3)
                a, b = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (first, second))
                for i in range(3):
                    for model, optimizer in ((first, a), (second, b)):
                        model(torch.ones(1, 2)).sum().backward(); optimizer.step(); optimizer.zero_grad()
            main()
            """)
        self.assertEqual(len(life.steps), 6)
        for held in life.of("held"):
            self.assertEqual(re.findall(r"\[.*\]", held["names"]["param.weight"]), ["[2,2]"])
            self.assertEqual(re.findall(r"\[.*\]", held["names"]["param.Linear.weight"]), ["[3,2]"])

    def test_processes_that_do_not_train_write_nothing(self):
        life = self.run_script("import torch; torch.nn.Linear(2, 2)(torch.ones(1, 2)); torch.save({}, 'x.pt')")
        self.assertEqual(life.records, [])


if __name__ == "__main__":
    unittest.main()
