"""The border between the package and the C interface."""
import ctypes
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import reprise
from reprise import _c

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRUCTS = {
    "rp_error": _c.ErrorView,
    "rp_job_options": _c.JobOptions,
    "rp_save_options": _c.SaveOptions,
    "rp_unequal_copy": _c.UnequalCopy,
    "rp_save_result": _c.SaveResult,
    "rp_load_options": _c.LoadOptions,
    "rp_load_result": _c.LoadResult,
}
NUMBERS = {
    "RP_ABI_VERSION": _c.ABI_VERSION,
    "RP_ANY_COPY": _c.ANY_COPY,
    "RP_ALONE": _c.ALONE,
    "RP_CALLBACKS": _c.CALLBACKS,
    "RP_HOST": _c.HOST,
    "RP_WHEN_QUEUED": _c.WHEN_QUEUED,
    "RP_CRC32": _c.CHECKSUMS["crc32"],
    "RP_NO_CHECKSUMS": _c.CHECKSUMS["none"],
    "RP_CRC32_AND_SHA256": _c.CHECKSUMS["crc32+sha256"],
    "RP_BEFORE_OLDER_GOES": _c.READ_BACK["before_older_goes"],
    "RP_READ_ALWAYS": _c.READ_BACK["always"],
    "RP_READ_NEVER": _c.READ_BACK["never"],
    "RP_FRESH": _c.PLANNED.index("fresh"),
    "RP_REPLANNED": _c.PLANNED.index("replanned"),
    "RP_REUSED": _c.PLANNED.index("reused"),
    "RP_RAISE_ALL": _c.RAISE_ALL,
    "RP_RAISE_UNEXPECTED": _c.RAISE_UNEXPECTED,
    "RP_RETURN_UNEXPECTED": _c.RETURN_UNEXPECTED,
    "RP_RETURN_ALL": _c.RETURN_ALL,
    "RP_PEER_FAILED": _c.numbers()["PEER_FAILED"],
    "RP_INTERNAL": _c.numbers()["INTERNAL"],
}


class Border(unittest.TestCase):
    def test_structs_and_numbers_are_those_of_the_header(self):
        expressions = {}
        for name, struct in STRUCTS.items():
            expressions[f"sizeof({name})"] = ctypes.sizeof(struct)
            for field, _ in struct._fields_:
                expressions[f"offsetof({name}, {field})"] = getattr(struct, field).offset
        expressions.update(NUMBERS)
        checks = "".join(f'if ((long)({e}) != {n}) puts("{e}");\n' for e, n in expressions.items())
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "p.c"), os.path.join(folder, "p")
            pathlib.Path(source).write_text(
                f"#include <reprise/c.h>\n#include <stdio.h>\nint main(void) {{\n{checks}return 0;\n}}\n"
            )
            subprocess.run(["cc", f"-I{ROOT}/include", source, "-o", program], check=True)
            self.assertEqual(subprocess.check_output([program], text=True), "")

    def test_the_package_and_the_library_have_one_version(self):
        self.assertEqual(reprise.__version__, reprise.library_version())

    def test_errors_have_fields_and_survive_a_pickle(self):
        handle = ctypes.c_void_p()
        with self.assertRaises(reprise.Error) as caught:
            _c.check(_c.library().rp_job_open(None, ctypes.byref(handle)))
        self.assertIsInstance(caught.exception, RuntimeError)
        self.assertEqual((caught.exception.code, caught.exception.rank), ("USAGE", None))
        error = reprise.Error("CHECKSUM", "no", rank=3, key="k", file="f", offset=7, what="all of it")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.__dict__), (str(error), error.__dict__))

    def test_an_error_of_a_later_library_keeps_its_number(self):
        self.assertEqual(_c.library().rp_code_name(4711), b"UNKNOWN_4711")

    def run_python(self, code, **changes):
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), **changes)
        return subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True)

    def test_importing_the_package_imports_neither_torch_nor_the_library(self):
        code = "import sys, reprise; sys.exit('torch' in sys.modules or reprise.__version__ == '')"
        self.assertEqual(self.run_python(code, REPRISE_LIBRARY="/nowhere").returncode, 0)

    def test_a_missing_library_is_named(self):
        ran = self.run_python("import reprise; reprise.library_version()", REPRISE_LIBRARY="/nowhere/x.so")
        self.assertIn("ImportError", ran.stderr)
        self.assertIn("/nowhere/x.so", ran.stderr)

    def test_another_package_of_the_same_name_is_named(self):
        code = (
            "import sys, types, importlib.util as u; import reprise; del reprise.Error\n"
            "import reprise.torch"
        )
        ran = self.run_python(code)
        self.assertIn("another package of that name", ran.stderr)


if __name__ == "__main__":
    unittest.main()
