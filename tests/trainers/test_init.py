"""What `reprise init` writes: it runs and passes as it is, and fails where the resume is broken.

    REPRISE=build/release/reprise python3 -m unittest discover tests/trainers -p test_init.py
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", str(TREE / "build/release/reprise"))

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("no torch")


class Init(unittest.TestCase):
    def run_in(self, folder, *words):
        return subprocess.run([REPRISE, *words], cwd=folder, capture_output=True, text=True)

    def verdict(self, folder):
        """Exit code, and code and reason of the first result that did not pass."""
        ran = self.run_in(folder, "run", "scenarios", "--lane", "program", "--quiet", "--python", sys.executable, "--jobs", "1", "--report", "report")
        report = pathlib.Path(folder, "report/report.json")
        results = json.loads(report.read_text())["scenarios"] if report.exists() else []
        wrong = next((one for one in results if one["verdict"] != "pass"), {})
        return ran.returncode, len(results), wrong.get("code", ""), wrong.get("reason", ran.stdout + ran.stderr if ran.returncode else "")

    def test_it_runs_as_written_and_fails_where_it_is_broken(self):
        with tempfile.TemporaryDirectory() as folder:
            made = self.run_in(folder, "init")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn("reprise run scenarios --lane program", made.stdout)
            self.assertEqual(self.verdict(folder), (0, 2, "", ""))
            program, scenario = pathlib.Path(folder, "trainers/mine/train.py"), pathlib.Path(folder, "scenarios/mine.yaml")
            text = program.read_text()
            scenario.write_text(scenario.read_text().replace("[dp2, dp4]", "[dp2]"))
            loaded = "step = read[\"step\"]\n"
            self.assertEqual(text.count(loaded), 1)
            program.write_text(text.replace(loaded, loaded + "    optimizer.state[model.bias][\"momentum_buffer\"] /= 2\n"))
            exit_code, _, code, reason = self.verdict(folder)
            self.assertEqual((exit_code, code), (1, "BIT_MISMATCH"), reason)
            self.assertIn("optim.state.bias.momentum_buffer has different bits", reason)
            self.assertIn("the load is wrong", reason)


if __name__ == "__main__":
    unittest.main()
