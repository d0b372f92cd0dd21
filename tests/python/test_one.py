"""One process: every kind of tensor and value, both ways with torch."""
import os
import tempfile
import unittest
import warnings

import torch
import torch.distributed.checkpoint as dcp

import reprise
import reprise.torch as rt
from states import Counter, Plain, differences, every_kind, numbers

warnings.filterwarnings("ignore")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name="run"):
        return os.path.join(self.folder, name)

    def assert_same(self, left, right):
        self.assertEqual(differences(left, right), [])

    def assert_refused(self, code, call, *arguments, **options):
        with self.assertRaises(reprise.Error) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception


class BitForBit(Case):
    def test_ours_to_ours(self):
        rt.save(every_kind(1), self.path(), step=3)
        loaded = every_kind(2)
        result = rt.load(loaded, self.path())
        self.assert_same(loaded, every_kind(1))
        self.assertEqual((result.step, result.not_stored), (3, ()))
        self.assertIn("views.sliced", result.loaded)

    def test_ours_to_torch(self):
        saved = rt.save(every_kind(1), self.path(), step=3)
        self.assertEqual(saved.path, self.path("run/step-3"))
        loaded = every_kind(2)
        dcp.load(loaded, checkpoint_id=saved.path)
        self.assert_same(loaded, every_kind(1))

    def test_torch_to_ours(self):
        dcp.save(every_kind(1), checkpoint_id=self.path())
        loaded = every_kind(2)
        rt.load(loaded, self.path())
        self.assert_same(loaded, every_kind(1))

    def test_begun_to_torch(self):
        state = every_kind(1)
        saving = rt.begin_save(state, self.path(), step=1)
        saving.before_update()
        with torch.no_grad():
            state["parameter"].zero_()
        while not saving.poll():
            pass
        result = saving.finish()
        loaded = every_kind(2)
        dcp.load(loaded, checkpoint_id=result.path)
        self.assert_same(loaded, every_kind(1))

    def test_torch_nests_what_ours_saved(self):
        from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

        rt.save(every_kind(1), self.path())
        dcp.save(every_kind(1), checkpoint_id=self.path("stock"))
        nested = []
        for name in ("run", "stock"):
            dcp_to_torch_save(self.path(name), self.path(name + ".pt"))
            nested.append(torch.load(self.path(name + ".pt"), weights_only=False))
        self.assert_same(*nested)

    def test_the_files_are_those_of_torch(self):
        rt.save(every_kind(1), self.path())
        dcp.save(every_kind(1), checkpoint_id=self.path("stock"))
        self.assertEqual(sorted(os.listdir(self.path())), sorted(os.listdir(self.path("stock"))))
        ours, theirs = (dcp.FileSystemReader(self.path(n)).read_metadata() for n in ("run", "stock"))
        self.assertEqual(ours.state_dict_metadata.keys(), theirs.state_dict_metadata.keys())
        self.assertEqual(ours.planner_data, theirs.planner_data)

    def test_of_dimensions_that_do_not_lie_together(self):
        def made(seed):
            return {"w": numbers(seed, 2, 4, 1, 1, 1, 1, 1, 1, 3, 5).transpose(1, 9)}

        rt.save(made(1), self.path())
        for load in (rt.load, lambda state, path: dcp.load(state, checkpoint_id=path)):
            loaded = made(2)
            load(loaded, self.path())
            self.assert_same(loaded, made(1))

    def test_of_ten_thousand_tensors(self):
        state = {f"layer.{i}.weight": numbers(i % 97, 8) for i in range(10000)}
        rt.save(state, self.path())
        loaded = {key: torch.zeros(8) for key in state}
        rt.load(loaded, self.path())
        self.assert_same(loaded, state)


class Stateful(Case):
    def test_objects_are_asked_and_told(self):
        rt.save({"counter": Counter(7), "n": 1}, self.path())
        for load in (rt.load, lambda state, path: dcp.load(state, checkpoint_id=path)):
            counter = Counter(0)
            state = {"counter": counter, "n": 0}
            load(state, self.path())
            self.assertEqual((counter.count, counter.loads, state["n"]), (7, 1, 1))
            self.assertEqual(counter.weights.tolist(), [7.0] * 3)

    def test_objects_are_asked_and_told_in_the_order_of_their_keys(self):
        """Whatever that of the dict is: on another rank it may be another one, and what they do is collective."""
        order = []

        class Asked(Counter):
            def state_dict(self):
                order.append(self.count)
                return super().state_dict()

            def load_state_dict(self, state):
                order.append(-self.count)

        for keys in ((3, 1, 2), (2, 1, 3)):
            state = {f"k{key}": Asked(key) for key in keys}
            rt.save(state, self.path())
            rt.load(state, self.path())
        self.assertEqual(order, [1, 2, 3, 1, 2, 3, -1, -2, -3] * 2)

    def test_keys_that_are_no_texts_find_their_place(self):
        state = {"by": {3: torch.ones(2), 4: "four"}}
        rt.save(state, self.path())
        loaded = {"by": {3: torch.zeros(2), 4: None}}
        rt.load(loaded, self.path())
        self.assert_same(loaded, state)


class Partial(Case):
    def test_strict_refuses_what_is_not_stored_and_changes_nothing(self):
        rt.save({"a": torch.ones(2), "n": 1}, self.path())
        state = {"a": torch.zeros(2), "n": 0, "b": torch.zeros(2)}
        error = self.assert_refused("NOT_STORED", rt.load, state, self.path())
        self.assertEqual(error.key, "b")
        self.assert_same(state, {"a": torch.zeros(2), "n": 0, "b": torch.zeros(2)})

    def test_not_strict_loads_what_is_stored_and_names_the_rest(self):
        rt.save({"a": torch.ones(2), "n": 1, "m": 2}, self.path())
        state = {"a": torch.zeros(2), "b": torch.zeros(2), "o": Plain(0), "n": 0}
        result = rt.load(state, self.path(), strict=False)
        self.assert_same(state, {"a": torch.ones(2), "b": torch.zeros(2), "o": Plain(0), "n": 1})
        self.assertEqual(result.loaded, ("a", "n"))
        self.assertEqual((result.not_stored, result.not_requested), (("b", "o"), ("m",)))

    def test_a_part_of_what_is_stored_is_no_mistake(self):
        rt.save({"a": torch.ones(2), "n": 1}, self.path())
        state = {"n": 0}
        rt.load(state, self.path())
        self.assertEqual(state, {"n": 1})


class Iterations(Case):
    def test_keep_leaves_the_newest(self):
        for step in range(5):
            rt.save({"n": step}, self.path(), step=step, keep=2)
        self.assertEqual(sorted(os.listdir(self.path())), ["step-3", "step-4"])

    def test_a_step_is_chosen(self):
        for step in (1, 2):
            rt.save({"n": step}, self.path(), step=step)
        state = {"n": 0}
        self.assertEqual(rt.load(state, self.path(), step=1).step, 1)
        self.assertEqual(state, {"n": 1})

    def test_a_damaged_one_is_passed_over(self):
        for step in (1, 2):
            rt.save({"w": numbers(step, 1000)}, self.path(), step=step)
        file = self.path("run/step-2/__0_0.distcp")
        with open(file, "r+b") as out:
            out.seek(os.path.getsize(file) // 2)
            out.write(b"\xa5\x5a\xa5")
        state = {"w": torch.zeros(1000)}
        with self.assertLogs("reprise", "WARNING") as log:
            result = rt.load(state, self.path())
        self.assertEqual(result.step, 1)
        self.assertEqual(log.output, [f"WARNING:reprise:passed over {one}" for one in result.fell_back_from])
        self.assertEqual(len(result.fell_back_from), 1)
        self.assertTrue(result.fell_back_from[0].startswith(f"{self.path()}/step-2: "), result.fell_back_from)
        self.assert_same(state, {"w": numbers(1, 1000)})
        error = self.assert_refused("CHECKSUM", rt.load, state, self.path(), step=2)
        self.assertEqual((error.key, error.file), ("w", file))
        self.assertGreater(error.offset, 0)

    def test_a_plan_is_used_again(self):
        state = {"w": torch.zeros(3)}
        planned = [rt.save(state, self.path(), step=s, structure="mine").planned for s in (1, 2)]
        self.assertEqual(planned, ["fresh", "reused"])

    def test_nothing_there(self):
        self.assert_refused("NOT_FOUND", rt.load, {"n": 0}, self.path())
        self.assertIsNone(rt.load({"n": 0}, self.path(), missing_ok=True))

    def test_an_existing_one_is_kept_if_asked(self):
        rt.save({"n": 1}, self.path())
        self.assert_refused("USAGE", rt.save, {"n": 2}, self.path(), replace=False)
        rt.save({"n": 3}, self.path())
        state = {"n": 0}
        rt.load(state, self.path())
        self.assertEqual(state["n"], 3)

    def test_the_manifest_is_written(self):
        rt.save({"w": torch.ones(2)}, self.path(), checksums="crc32+sha256")
        self.assertIn("integrity.json", os.listdir(self.path()))


class Refusals(Case):
    def test_shapes_and_types_must_be_those_that_are_stored(self):
        rt.save({"w": torch.ones(2)}, self.path())
        error = self.assert_refused("SHAPE_DRIFT", rt.load, {"w": torch.ones(3)}, self.path())
        self.assertEqual(error.key, "w")
        self.assert_refused("DTYPE_DRIFT", rt.load, {"w": torch.ones(2).half()}, self.path())

    def test_what_can_not_be_stored_is_named(self):
        for value in (
            torch.ones(2, device="meta"),
            torch.ones(2, 2).to_sparse(),
            torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        ):
            error = self.assert_refused("UNSUPPORTED", rt.save, {"k": {"w": value}}, self.path())
            self.assertEqual(error.key, "k.w")

    def test_a_destination_whose_elements_share_memory(self):
        rt.save({"w": torch.ones(3).expand(2, 3)}, self.path())
        self.assert_refused("USAGE", rt.load, {"w": torch.ones(3).expand(2, 3)}, self.path())
        state = {"w": torch.zeros(2, 3)}
        rt.load(state, self.path())
        self.assert_same(state, {"w": torch.ones(2, 3)})

    def test_options(self):
        for wrong in ({"keep": 0}, {"checksums": "md5"}, {"read_back": "maybe"}):
            with self.assertRaises(ValueError):
                rt.save({"n": 1}, self.path(), step=1, **wrong)
        self.assert_refused("USAGE", rt.save, {"n": 1}, self.path(), keep=2)
        self.assert_refused("USAGE", rt.save, {"n": 1}, self.path(), step=1, step_names="x")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
