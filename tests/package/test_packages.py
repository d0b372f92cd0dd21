"""What ./dev package made: what is in the packages, and how the wheel does in environments with nothing else.

It runs under the Python that has the packages' tools. REPRISE_PYTHONS lists interpreters, and REPRISE_TORCH_PYTHON is
one with torch; without it that test is skipped.
"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import textwrap
import unittest
import zipfile

import ziglang

TREE = pathlib.Path(__file__).resolve().parents[2]
BUILD = TREE / "build/package"
SOURCES = TREE / "build/package-sources"
PACKAGES = TREE / "build/packages"
WHEEL = next(PACKAGES.glob("*.whl"))
TARBALL = next(PACKAGES.glob("reprise-*.tar.gz"))
SDIST = next(PACKAGES.glob("reprise_ckpt-*.tar.gz"))
BUILD_CUDA = TREE / "build/package-cuda"
FOR_CUDA = {path.name for path in (BUILD_CUDA / "wheel").iterdir()}  # the library and its licence, or nothing
LIBRARIES = {"libreprise_c.so", "libreprise_witness.so"} | (FOR_CUDA - {"cuda"})
OF_EACH_MACHINE = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 28)
PYTHONS = os.environ["REPRISE_PYTHONS"].split()
TORCH = os.environ.get("REPRISE_TORCH_PYTHON")


def said(*command, **options):
    """What a command printed, both streams; throws if it failed."""
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if ran.returncode:
        raise AssertionError(f"{command} ended with {ran.returncode}: {ran.stdout}")
    return ran.stdout


def has_driver():
    """Whether this machine has NVIDIA's driver."""
    try:
        return bool(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return False


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def environment(self, python, *wheels):
        """Makes an environment with these wheels, installed in this order, and nothing else; returns its folder."""
        where = self.folder / "env"
        said(python, "-m", "venv", "--clear", "--without-pip", where)
        for wheel in wheels:
            said(sys.executable, "-m", "pip", "--python", where / "bin/python", "install", "--quiet", "--no-index", "--no-deps",
                 "--disable-pip-version-check", wheel)
        return where

    def run_python(self, python, text, **env):
        """Runs a program in an empty folder and an empty environment; returns what it printed, also if it failed."""
        place = self.folder / "elsewhere"
        place.mkdir(exist_ok=True)
        return subprocess.run([str(python), "-c", textwrap.dedent(text)], cwd=place, env={"LANG": "C", **env}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


class Contents(Scratch):
    def setUp(self):
        super().setUp()
        with zipfile.ZipFile(WHEEL) as wheel:
            wheel.extractall(self.folder / "wheel")
        with tarfile.open(TARBALL) as tarball:
            tarball.extractall(self.folder / "tarball")
        self.wheel = self.folder / "wheel"
        self.tarball = next((self.folder / "tarball").iterdir())
        self.info = next(self.wheel.glob("*.dist-info"))
        self.programs = [next(self.wheel.glob("*.data/scripts/reprise")), self.tarball / "bin/reprise"]

    def test_the_wheel_has_the_package_of_the_tree_and_its_libraries(self):
        package = {str(path.relative_to(TREE / "python")) for path in (TREE / "python").rglob("*") if path.suffix in (".py", ".typed")}
        self.assertIn("reprise/py.typed", package)
        found = {str(path.relative_to(self.wheel)) for path in self.wheel.rglob("*") if path.is_file()}
        self.assertEqual({path for path in found if ".dist-info/" not in path and ".data/" not in path},
                         package | {f"reprise/{name}" for name in LIBRARIES})

    def test_programs_and_libraries_need_only_what_each_machine_has(self):
        for path in [*self.programs, *(self.wheel / "reprise").glob("*.so")]:
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-dW", path)))
            self.assertLessEqual(needed, OF_EACH_MACHINE, path)
            self.assertEqual("libc.so.6" in needed, path.name != "libreprise_witness.so", f"{path} needs {needed}")
            versions = re.findall(r"\*UND\*.*\b((?:GLIBC|GLIBCXX|CXXABI|GCC)_[0-9.]+)", said("objdump", "-T", path))
            self.assertEqual(bool(versions), bool(needed), path)
            for version in versions:
                kind, number = version.split("_")
                self.assertEqual(kind, "GLIBC", f"{path}: {version}")
                self.assertLessEqual(tuple(map(int, number.split(".")))[:2], NEWEST_GLIBC, f"{path}: {version}")

    def test_the_name_and_the_tarball_say_for_which_systems(self):
        self.assertRegex(WHEEL.name, r"^reprise_ckpt-[0-9.]+-py3-none-manylinux_2_28_x86_64\.whl$")
        needs = tuple(map(int, (self.tarball / "glibc").read_text().split(".")))
        self.assertLessEqual(needs, NEWEST_GLIBC)

    def test_the_library_exports_the_c_interface_alone(self):
        names = re.findall(r" T (\S+)$", said("nm", "-D", "--defined-only", self.wheel / "reprise/libreprise_c.so"), re.M)
        declared = set(re.findall(r"\b(rp_\w+)\(", (TREE / "include/reprise/c.h").read_text()))
        self.assertEqual(set(names), declared)

    @unittest.skipUnless(FOR_CUDA, "there is no file for CUDA")
    def test_the_file_for_cuda(self):
        """It exports one function, NVIDIA's licence is about what is in it, and g++ left nothing of its library."""
        names = re.findall(r" T (\S+)$", said("nm", "-D", "--defined-only", self.wheel / "reprise/libreprise_c_cuda.so"), re.M)
        self.assertEqual(names, ["reprise_c_cuda_table"])
        self.assertIn("libcudart_static.a", (self.info / "licenses/cuda").read_text())
        objects = list(BUILD_CUDA.glob("CMakeFiles/reprise_core_adapters_cuda.dir/**/copy_batch.cu.o"))
        self.assertEqual(len(objects), 1)
        undefined = said("nm", "-u", objects[0])
        self.assertIn("__cudaRegisterFatBinary", undefined)
        self.assertNotRegex(undefined, r"(?m) U (_ZN?K?S|_Zn|_Zd)")

    def libraries_read(self, build, *targets):
        """The libraries of which the compilers and the linker read a file in a build."""
        inputs = said("ninja", "-C", build, "-t", "inputs", *targets).split("\n")
        read = said("ninja", "-C", build, "-t", "deps").split("\n")
        paths = {line.strip() for line in inputs + [line for line in read if line.startswith("    ")]}
        owners = {path.name: path.resolve() for path in SOURCES.iterdir() if path.is_dir() and path.name != "licences"}
        owners["zig"] = pathlib.Path(ziglang.__file__).resolve().parent
        owners[""] = TREE
        unowned = []
        if build == BUILD_CUDA:
            unowned = [pathlib.Path(folder) for folder in ("/usr/include", "/usr/lib/gcc")]  # g++ reads headers for nvcc
            nvcc = re.search(r"^REPRISE_NVCC:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M).group(1)
            owners["cuda"] = pathlib.Path(nvcc).resolve().parents[1]
        inside = {"zig"}  # its runtime is linked into all
        for path in paths:
            where = (build / path).resolve()
            if not where.is_file() or any(folder in where.parents for folder in unowned):
                continue
            owner = next((name for name, folder in owners.items() if folder in where.parents), None)
            self.assertIsNotNone(owner, f"{where} is of no library that tools/package-libraries.txt names")
            inside.add(owner)
        return inside - {""}

    def test_there_is_a_licence_of_each_library_that_the_compiler_read(self):
        inside = self.libraries_read(BUILD, "reprise", "reprise_library_c", "reprise_witness")
        table = {line.split()[0] for line in (TREE / "tools/package-libraries.txt").read_text().split("\n") if line and line[0] != "#"}
        self.assertEqual(table, inside)
        for_cuda = self.libraries_read(BUILD_CUDA, "reprise_library_c_cuda") if FOR_CUDA else set()
        for licences, wanted in ((self.info / "licenses", inside | for_cuda), (self.tarball / "licences", inside)):
            texts = {path.name: path.read_text() for path in licences.iterdir()}
            texts.pop("LICENSE", None)
            self.assertEqual(set(texts), wanted)
            for name, text in texts.items():
                self.assertRegex(text, "(?i)copyright", name)

    def test_the_source_distribution_has_what_is_compiled_and_no_tests(self):
        with tarfile.open(SDIST) as sdist:
            folders = {name.split("/")[1] for name in sdist.getnames() if "/" in name}
        self.assertLessEqual({"core", "cli", "driver", "sim", "python", "pyproject.toml", "CMakePresets.json", "LICENSE"}, folders)
        self.assertFalse({"tests", "docs", "scenarios", "build"} & folders)


NEWCOMER = """
    import importlib.metadata, subprocess, sys
    import reprise, reprise_ckpt
    program = subprocess.run([sys.prefix + "/bin/reprise", "--version"], stdout=subprocess.PIPE, text=True).stdout.split()[1]
    print({importlib.metadata.version("reprise-ckpt"), reprise.__version__, reprise.library_version(), program} == {program})
"""


NO_SUCH_DEVICE = """
    import ctypes
    from reprise import _c
    job, options = ctypes.c_void_p(), _c.JobOptions(root=b"/")
    _c.check(_c.library().rp_job_open(ctypes.byref(options), ctypes.byref(job)))
    try:
        _c.check(_c.library().rp_job_use_device(job, 100))
    except _c.Error as error:
        print(error)
"""


class Pythons(Scratch):
    def test_the_wheel_works_under_each(self):
        self.assertTrue(PYTHONS)
        for python in PYTHONS:
            with self.subTest(said(python, "--version").strip()):
                where = self.environment(python, WHEEL)
                self.assertEqual(self.run_python(where / "bin/python", NEWCOMER), "True\n")
                self.assertEqual(said(where / "bin/python", "-m", "reprise_ckpt", cwd=self.folder).count("reprise-ckpt"), 1)
                asked = f"from reprise import checkpoints; print(checkpoints.verify({str(TREE / 'tests/data/mcore_0.16.1_gpt_dp2')!r}).good)"
                self.assertEqual(self.run_python(where / "bin/python", asked), "True\n")
                said("bash", "-uo", "pipefail", "-c", '. tools/package.sh && package_works "$1"', "bash", where / "bin/reprise", cwd=TREE)
                print(f"  {said(python, '--version').strip()}: works", file=sys.stderr)

    def test_a_cuda_device_that_is_not_there_is_refused_with_the_reason(self):
        where = self.environment(PYTHONS[0], WHEEL)
        why = "no driver is installed$" if FOR_CUDA else "Install a build that has libreprise_c_cuda.so beside"
        if FOR_CUDA and has_driver():
            why = "this process sees [0-9]+;"
        text = self.run_python(where / "bin/python", NO_SUCH_DEVICE)
        self.assertRegex(text, f"^UNSUPPORTED: .*{why}")
        self.assertEqual(text.count("\n"), 1)


WITH_TORCH = """
    import torch, torch.distributed.checkpoint as dcp
    import reprise, reprise.torch as rt
    from reprise import witness
    assert reprise.__file__.startswith({site!r}), reprise.__file__
    assert witness.FAST is not None
    want = {{"w": torch.arange(12.0).reshape(3, 4).t(), "half": torch.ones(5, dtype=torch.bfloat16), "step": 7}}
    rt.save(want, "run", step=3)
    for load in (lambda state: rt.load(state, "run"), lambda state: dcp.load(state, checkpoint_id="run/step-3")):
        state = {{"w": torch.zeros(4, 3), "half": torch.zeros(5, dtype=torch.bfloat16), "step": 0}}
        load(state)
        print(all(torch.equal(state[key], want[key]) for key in ("w", "half")), state["step"])
"""


class Torch(Scratch):
    @unittest.skipUnless(TORCH, "no environment with torch: ./dev interop makes one")
    def test_saves_and_loads_both_ways(self):
        site = self.folder / "site"
        said(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", site, WHEEL)
        out = self.run_python(TORCH, WITH_TORCH.format(site=str(site)), PYTHONPATH=str(site), HOME=str(self.folder), PYTHONWARNINGS="ignore")
        self.assertEqual(out, "True 7\nTrue 7\n")


RESUMES = """
    import pytest

    JOB = ["python", "train.py", "--steps", "12"]
    LOST = "python train.py --defect 'the average is lost'"

    def test_comes_back(resume):
        watched = resume(JOB, resume_args="--resume", kill=7)
        assert (watched.verdict, watched.code, watched.report["lane"]) == ("pass", "", "watch")
        assert "resume: pass   continues from step 6" in watched.screen
        assert (watched.folder / "report.html").exists()

    def test_loses_its_average(resume):
        resume(LOST, resume_args="--resume")

    def test_is_known_to_lose_it(resume):
        assert resume(LOST, resume_args=["--resume"], expect=["LOST_OBJECT", "pass"]).verdict == "fail"
        with pytest.raises(pytest.fail.Exception, match="pass, not LOST_OBJECT"):
            resume(JOB, resume_args="--resume", expect="LOST_OBJECT")

    def test_says_nothing(resume):
        resume([*JOB, "--defect", "unseeded weights"], resume_args="--resume")

    def test_wrong_usage(resume):
        resume(JOB, colour="red")
"""


class Pytest(Scratch):
    """The plug-in, under the pytest of the packages' tools, in an environment that has the wheel alone."""

    def setUp(self):
        super().setUp()
        self.where = self.environment(sys.executable, WHEEL)
        self.desk = self.folder / "desk"
        self.desk.mkdir()
        (self.desk / "train.py").write_text((TREE / "tests/driver/watch/fake_job.py").read_text())
        (self.desk / "test_job.py").write_text(textwrap.dedent(RESUMES))

    def pytest(self, *words):
        tools = sysconfig.get_path("purelib")
        return subprocess.run([self.where / "bin/python", "-m", "pytest", "-rA", *words], cwd=self.desk, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={"LANG": "C", "PATH": os.defpath, "PYTHONPATH": tools}).stdout

    def test_tests_fail_where_a_resume_does(self):
        said = self.pytest("--reprise", "--reprise-report", "kept")
        self.assertRegex(said, "= 3 failed, 2 passed in ", said)
        for part in ("PASSED test_job.py::test_comes_back", "PASSED test_job.py::test_is_known_to_lose_it",
                     "fail: python train.py --defect 'the average is lost'\nresume: FAIL   continues from step 9, the newest save\n  ema.shadow ",
                     "inconclusive: python train.py --steps 12 --defect 'unseeded weights'\nresume: inconclusive\n",
                     "test_says_nothing - reprise.pytest_plugin.Inconclusive", "reprise watch ended with 2\nreprise watch: unknown option '--colour'"):
            self.assertIn(part, said)
        self.assertEqual({path.parent.name for path in self.desk.glob("kept/*/report.json")},
                         {f"test_job.py-test_{name}" for name in ("comes_back", "loses_its_average", "is_known_to_lose_it",
                                                                  "is_known_to_lose_it-2", "says_nothing")})

    def test_is_quiet_unless_it_is_switched_on(self):
        self.assertRegex(self.pytest(), r"SKIPPED \[1\] test_job.py:\d+: it kills and resumes a training command: pytest --reprise(.|\n)*= 5 skipped in ")
        (self.desk / "test_job.py").write_text("import sys\ndef test_alone(): assert 'torch' not in sys.modules and 'reprise.watch' not in sys.modules\n")
        self.assertIn("= 1 passed in ", self.pytest("-p", "no:reprise"))
        self.assertIn("= 1 passed in ", self.pytest())


class Beside(Scratch):
    """The index has another distribution, `reprise`, with a module of that name."""

    OTHER = '"""reprise - REtrospective and PRospective Inference SchEme"""\n__version__ = "1.0.0"\n'

    def other_wheel(self):
        path = self.folder / "reprise-1.0.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("reprise/__init__.py", self.OTHER)
            wheel.writestr("reprise/gym/__init__.py", "")
            wheel.writestr("reprise-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: reprise\nVersion: 1.0.0\n")
            wheel.writestr("reprise-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            names = [*wheel.namelist(), "reprise-1.0.0.dist-info/RECORD"]
            wheel.writestr(names[-1], "".join(f"{name},,\n" for name in names))
        return path

    def imported(self, python, module, **env):
        return self.run_python(python, f"import {module}", **env).strip().split("\n")[-1]

    def test_the_other_installed_over_ours_is_named(self):
        where = self.environment(PYTHONS[0], WHEEL, self.other_wheel())
        theirs = str(next(where.glob("lib/*/site-packages/reprise/__init__.py")))
        for module in ("reprise.torch", "reprise_ckpt"):
            error = self.imported(where / "bin/python", module)
            self.assertRegex(error, "^ImportError: ")
            for part in (theirs, "pip uninstall reprise", "pip install --force-reinstall"):
                self.assertIn(part, error)
        mended = [("uninstall", "--yes", "reprise"), ("install", "--no-index", "--no-deps", "--force-reinstall", WHEEL)]
        for words in mended:
            said(sys.executable, "-m", "pip", "--python", where / "bin/python", "--quiet", *words)
        self.assertEqual(self.imported(where / "bin/python", "reprise_ckpt"), "")

    def test_ours_installed_over_the_other_is_said(self):
        where = self.environment(PYTHONS[0], self.other_wheel(), WHEEL)
        self.assertRegex(self.imported(where / "bin/python", "reprise_ckpt"), "^ImportError: the distribution reprise has .*pip uninstall reprise")
        self.assertEqual(self.imported(where / "bin/python", "reprise"), "")

    def test_one_that_is_found_first_is_named(self):
        where = self.environment(PYTHONS[0], WHEEL)
        for number, name in enumerate(("reprise/__init__.py", "reprise.py")):
            folder = self.folder / f"first{number}"
            first = folder / name
            first.parent.mkdir(parents=True)
            first.write_text(self.OTHER)
            self.assertIn("reprise.torch", self.imported(where / "bin/python", "reprise.torch", PYTHONPATH=str(folder)))
            error = self.imported(where / "bin/python", "reprise_ckpt", PYTHONPATH=str(folder))
            self.assertRegex(error, f"^ImportError: import reprise finds {first}, which is not of reprise-ckpt; rename it")


if __name__ == "__main__":
    unittest.main(verbosity=2)
