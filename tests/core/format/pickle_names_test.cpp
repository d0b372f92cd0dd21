// Tests names of classes and functions that are not on the reader's list. Names that run code are
// refused in every spelling; all others are kept as bytes.

#include <gtest/gtest.h>

#include "core/format/metadata.hpp"
#include "core/format/pickle/pickle_names.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test {
namespace {

struct Spelling {
  std::string module;
  std::string name;
};

/// Returns names under which os.system and similar functions can be reached: their own names, and
/// names in Python's library, torch and numpy that lead to them.
std::vector<Spelling> spellings() {
  return {
      {"os", "system"},
      {"os", "popen"},
      {"os", "execv"},
      {"os", "spawnl"},
      {"os.path", "os.system"},
      {"posix", "system"},
      {"nt", "system"},
      {"posixpath", "os.system"},
      {"ntpath", "os.system"},
      {"genericpath", "os.unlink"},
      {"subprocess", "Popen"},
      {"subprocess", "check_output"},
      {"subprocess", "os.system"},
      {"commands", "getoutput"},
      {"popen2", "popen3"},
      {"pty", "spawn"},
      {"_posixsubprocess", "fork_exec"},
      {"distutils.spawn", "spawn"},
      {"distutils.core", "run_setup"},
      {"distutils.file_util", "write_file"},
      {"platform", "popen"},
      {"platform", "os.system"},
      {"builtins", "eval"},
      {"builtins", "exec"},
      {"builtins", "compile"},
      {"builtins", "open"},
      {"builtins", "__import__"},
      {"builtins", "breakpoint"},
      {"builtins", "input"},
      {"builtins", "globals"},
      {"builtins", "setattr"},
      {"builtins", "eval.__call__"},
      {"__builtin__", "eval"},
      {"__builtin__", "execfile"},
      {"__builtin__", "reduce"},
      {"__builtin__", "file"},
      {"__builtin__", "apply"},
      {"io", "open"},
      {"_io", "open"},
      {"io", "FileIO"},
      {"_pyio", "open"},
      {"io", "open_code"},
      {"codecs", "open"},
      {"codecs", "builtins.eval"},
      {"pathlib", "Path.write_text"},
      {"pathlib", "PosixPath.unlink"},
      {"pathlib", "os.system"},
      {"tempfile", "NamedTemporaryFile"},
      {"shutil", "rmtree"},
      {"fileinput", "FileInput"},
      {"linecache", "getlines"},
      {"glob", "glob"},
      {"shelve", "open"},
      {"dbm", "open"},
      {"sqlite3", "connect"},
      {"tarfile", "open"},
      {"zipfile", "ZipFile"},
      {"mmap", "mmap"},
      {"logging", "FileHandler"},
      {"logging.config", "fileConfig"},
      {"logging", "os.system"},
      {"argparse", "FileType"},
      {"pickle", "loads"},
      {"_pickle", "loads"},
      {"cPickle", "loads"},
      {"pickle", "Unpickler"},
      {"marshal", "loads"},
      {"dill", "loads"},
      {"cloudpickle.cloudpickle", "_make_function"},
      {"joblib", "load"},
      {"pandas", "read_pickle"},
      {"pandas.io.pickle", "read_pickle"},
      {"pandas", "eval"},
      {"importlib", "import_module"},
      {"importlib.util", "find_spec"},
      {"imp", "load_source"},
      {"_imp", "create_dynamic"},
      {"_frozen_importlib", "__import__"},
      {"zipimport", "zipimporter"},
      {"pkgutil", "resolve_name"},
      {"runpy", "run_path"},
      {"runpy", "_run_code"},
      {"code", "interact"},
      {"code", "InteractiveInterpreter"},
      {"codeop", "compile_command"},
      {"timeit", "timeit"},
      {"cProfile", "run"},
      {"profile", "Profile.run"},
      {"_lsprof", "Profiler"},
      {"trace", "Trace"},
      {"doctest", "debug_script"},
      {"bdb", "Bdb"},
      {"pdb", "run"},
      {"pydoc", "pipepager"},
      {"pydoc", "locate"},
      {"unittest.mock", "_importer"},
      {"test.support.script_helper", "assert_python_ok"},
      {"lib2to3.pgen2.grammar", "Grammar.loads"},
      {"idlelib.run", "Executive"},
      {"idlelib.pyshell", "ModifiedInterpreter"},
      {"ensurepip", "_run_pip"},
      {"venv", "create"},
      {"pip", "main"},
      {"pip._internal", "main"},
      {"setuptools.sandbox", "run_setup"},
      {"site", "execsitecustomize"},
      {"webbrowser", "open"},
      {"antigravity", "geohash"},
      {"http.client", "HTTPConnection"},
      {"httplib", "HTTPConnection"},
      {"urllib.request", "urlopen"},
      {"urllib", "urlopen"},
      {"urllib2", "urlopen"},
      {"socket", "create_connection"},
      {"_socket", "socket"},
      {"ssl", "get_server_certificate"},
      {"ftplib", "FTP"},
      {"smtplib", "SMTP"},
      {"telnetlib", "Telnet"},
      {"imaplib", "IMAP4_stream"},
      {"xmlrpc.client", "ServerProxy"},
      {"requests", "get"},
      {"aiohttp.client", "ClientSession"},
      {"asyncio", "create_subprocess_shell"},
      {"asyncio.unix_events", "_UnixSubprocessTransport._start"},
      {"multiprocessing", "Process"},
      {"multiprocessing.util", "spawnv_passfds"},
      {"_multiprocessing", "SemLock"},
      {"concurrent.futures", "ProcessPoolExecutor"},
      {"threading", "Thread"},
      {"_thread", "start_new_thread"},
      {"thread", "start_new_thread"},
      {"sched", "scheduler"},
      {"atexit", "register"},
      {"signal", "raise_signal"},
      {"gc", "get_objects"},
      {"inspect", "getattr_static"},
      {"ctypes", "CDLL"},
      {"_ctypes", "dlopen"},
      {"sys", "modules"},
      {"sys", "settrace"},
      {"operator", "call"},
      {"functools", "reduce"},
      {"functools", "reduce.__globals__"},
      {"types", "FunctionType"},
      {"types", "CodeType"},
      {"dataclasses", "make_dataclass"},
      {"dataclasses", "sys.modules"},
      {"typing", "get_type_hints"},
      {"uuid", "_get_command_stdout"},
      {"uuid", "os.system"},
      {"copyreg", "add_extension"},
      {"collections.abc", "sys.modules"},
      {"collections", "_sys"},
      {"random", "_os"},
      {"random", "_os.system"},
      {"enum", "bltns"},
      {"enum", "sys"},
      {"zoneinfo", "ZoneInfo.__globals__"},
      {"my.project", "os"},
      {"my.project", "Config.__subclasses__"},
      {"torch", "load"},
      {"torch", "save"},
      {"torch.serialization", "load"},
      {"torch.serialization", "_legacy_load"},
      {"torch.storage", "_load_from_bytes"},
      {"torch.hub", "load"},
      {"torch.jit", "load"},
      {"torch.jit.unsupported_tensor_ops", "execWrapper"},
      {"torch.package", "PackageImporter"},
      {"torch.utils.cpp_extension", "load_inline"},
      {"torch.utils.collect_env", "run"},
      {"torch.utils.bottleneck.__main__", "run_cprofile"},
      {"torch.utils._config_module", "ConfigModule.load_config"},
      {"torch.utils.model_zoo", "load_url"},
      {"torch._dynamo.guards", "GuardBuilder.get"},
      {"torch._inductor.codecache", "compile_file"},
      {"torch.fx.graph_module", "reduce_graph_module"},
      {"torch.fx.experimental.symbolic_shapes", "ShapeEnv.evaluate_guards_expression"},
      {"torch.distributed.rpc", "rpc_sync"},
      {"torch.multiprocessing", "spawn"},
      {"torch.testing._internal.common_utils", "run_tests"},
      {"torch._ops", "_Ops.load_library"},
      {"torch", "from_file"},
      {"torch", "os.system"},
      {"torch._C._VariableFunctions", "from_file"},
      {"numpy", "load"},
      {"numpy", "fromfile"},
      {"numpy", "memmap"},
      {"numpy", "os.system"},
      {"numpy.lib.npyio", "NpzFile"},
      {"numpy.lib._datasource", "open"},
      {"numpy.testing._private.utils", "runstring"},
      {"numpy.testing", "runstring"},
      {"numpy.testing", "rundocs"},
      {"numpy.f2py.crackfortran", "myeval"},
      {"numpy.f2py.diagnose", "run_command"},
      {"numpy.distutils.exec_command", "exec_command"},
      {"numpy.ctypeslib", "load_library"},
      {"numpy", "testing.runstring"},
      {"numpy", "testing"},
      {"torch", "hub"},
      {"torch", "serialization.load"},
      {"torch.nn.functional", "torch.load"},
      {"torch.nn.functional", "torch.hub.load"},
      {"my.project", "numpy.testing.runstring"},
      {"my.project", "pickle.loads"},
      {"my.project", "shutil"},
      {"torch._utils", "_import_dotted_name"},
      {"yaml", "unsafe_load"},
      {"yaml", "load"},
      {"yaml.constructor", "UnsafeLoader"},
      {"transformers", "pipeline"},
      {"transformers.pipelines", "pipeline"},
      {"transformers", "AutoModel.from_pretrained"},
      {"hydra.utils", "instantiate"},
      {"my.project", "yaml.unsafe_load"},
      {"my.project", "Model.from_pretrained"},
  };
}

TEST(PickleNames, code_files_and_imports_are_refused_in_every_spelling) {
  EXPECT_GE(spellings().size(), 114U);
  for (const auto& [module, name] : spellings()) {
    SCOPED_TRACE(module + " " + name);
    for (const bool stacked : {false, true}) {
      const std::string loaded =
          stacked ? text(module) + text(name) + "\x93" : global(module, name);
      const Bytes call = pickle(loaded + text("echo") + "\x85R");
      const Error error = error_of([&] { decode(call); });
      EXPECT_EQ(error.code(), Code::kRefusedName) << error.what();
      EXPECT_EQ(error_of([&] { decode_tensor(call, {"t"}); }).code(), Code::kRefusedName);
      const std::vector<ByteSpan> files{call};
      const std::vector<std::string> names{"m"};
      EXPECT_EQ(error_of([&] { read_metadata(files, names); }).code(), Code::kRefusedName);
    }
  }
}

/// Users save objects that contain plain data types from Python's library, torch, numpy and other
/// packages.
TEST(PickleNames, data_types_and_pure_functions_are_opaque_in_an_object) {
  for (const auto& [module, name] :
       std::vector<Spelling>{{"functools", "partial"},
                             {"operator", "itemgetter"},
                             {"zoneinfo", "ZoneInfo"},
                             {"zoneinfo", "ZoneInfo._unpickle"},
                             {"decimal", "Decimal"},
                             {"fractions", "Fraction"},
                             {"collections", "UserDict"},
                             {"collections", "OrderedDict.fromkeys"},
                             {"builtins", "ValueError"},
                             {"builtins", "len"},
                             {"exceptions", "KeyError"},
                             {"io", "StringIO"},
                             {"types", "MappingProxyType"},
                             {"uuid", "SafeUUID"},
                             {"http", "HTTPStatus"},
                             {"logging", "getLogger"},
                             {"re", "_compile"},
                             {"random", "Random"},
                             {"enum", "Enum"},
                             {"array", "_array_reconstructor"},
                             {"__main__", "Config"},
                             {"my.project", "Outer.Inner"},
                             {"my.profile", "Profile"},
                             {"osprey", "system"},
                             {"torch.nn.modules.linear", "Linear"},
                             {"torch._C._nn", "gelu"},
                             {"torch._C", "_VariableFunctionsClass"},
                             {"torchao.optim.subclass_8bit", "OptimState8bit"},
                             {"numpy", "tanh"}}) {
    SCOPED_TRACE(module + " " + name);
    const PickledValue read = decode(global(module, name) + ")R");
    EXPECT_TRUE(read.opaque);
    const Bytes call = pickle(global(module, name) + ")R");
    EXPECT_EQ(error_of([&] { decode_tensor(call, {"t"}); }).code(), Code::kUnsupported);
    const std::vector<ByteSpan> files{call};
    const std::vector<std::string> names{"m"};
    EXPECT_EQ(error_of([&] { read_metadata(files, names); }).code(), Code::kUnsupported);
  }
}

TEST(PickleNames, what_getattr_returned_may_be_called_and_is_opaque) {
  const std::string get = global("__builtin__", "getattr");
  const std::string zone = get + global("zoneinfo", "ZoneInfo") + text("_unpickle") + "\x86R" +
                           text("UTC") + "\x88\x86R";
  const std::string nested = get + global("my", "Outer") + text("Inner") + "\x86RK\1\x85R";
  const std::string reduce_op = get + global("torch.distributed.distributed_c10d", "ReduceOp") +
                                text("RedOpType") + "\x86R" + "K\0\x85R"s;
  const std::string function =
      get + global("torch._C", "_VariableFunctionsClass") + text("tanh") + "\x86R";
  const std::string method = get + global("my", "Outer") + ")\x81" + text("run") + "\x86R";
  const std::string of_list = get + "]" + text("append") + "\x86R";
  const std::string part =
      global("functools", "partial") + global("my", "f") + "\x85R(" + global("my", "f") + ")}Ntb";
  for (const std::string& body : {zone, nested, reduce_op, function, method, of_list, part}) {
    const PickledValue read = decode("}" + text("x") + body + "s");
    EXPECT_TRUE(read.opaque) << body;
    EXPECT_FALSE(read.unlisted_names.empty()) << body;
  }
  EXPECT_EQ(decode(zone).unlisted_names,
            (std::vector<std::string>{"zoneinfo.ZoneInfo", "zoneinfo.ZoneInfo._unpickle"}));
}

TEST(PickleNames, a_chain_of_getattr_is_taken_as_the_name_that_it_reaches) {
  const std::string get = global("builtins", "getattr");
  const auto chain = [&](const std::string& from, const std::vector<std::string>& attributes) {
    std::string body = from;
    for (const std::string& attribute : attributes) {
      body = get + body + text(attribute) + "\x86R";
    }
    return body;
  };
  const std::string torch = global("torch.nn.functional", "torch");
  for (const std::string& body :
       {chain(torch, {"load"}), chain(torch, {"hub", "x"}), chain(torch, {"serialization", "load"}),
        chain(global("numpy", "lib"), {"npyio"}), chain(global("numpy", "lib"), {"x", "fromfile"}),
        chain(global("my", "project"), {"profile", "run"})}) {
    EXPECT_EQ(error_of([&] { decode(body + ")R"); }).code(), Code::kRefusedName) << body;
  }
  EXPECT_TRUE(decode(chain(torch, {"tanh"})).opaque);
  EXPECT_EQ(decode(chain(global("my", "A"), {"B", "C"})).unlisted_names,
            (std::vector<std::string>{"my.A", "my.A.B", "my.A.B.C"}));
  EXPECT_EQ(error_of([&] { decode(chain(torch, std::vector<std::string>(200, "a"))); }).code(),
            Code::kRefusedName);
}

/// Names that older checkpoints hold as values: nothing calls them when the object is unpickled.
std::vector<std::string> held_bodies() {
  const std::string partial = global("functools", "partial");
  const std::string mine = global("my", "f");
  const std::string get = global("builtins", "getattr");
  return {global("functools", "reduce"),
          global("_functools", "reduce"),
          global("__builtin__", "reduce"),
          global("builtins", "map"),
          global("builtins", "filter"),
          global("builtins", "open"),
          global("io", "open"),
          global("os.path", "join"),
          global("posixpath", "join"),
          global("ntpath", "basename"),
          get,
          global("operator", "attrgetter") + text("a.b") + "\x85R",
          global("operator", "methodcaller") + text("run") + "\x85R",
          global("builtins", "map") + mine + "]\x86R",
          partial + global("builtins", "open") + "\x85R(" + global("builtins", "open") + ")}Ntb",
          partial + get + "\x85R",
          "]" + get + "a",
          "}K\1" + get + "s",
          "\x8f(" + get + "\x90",
          global("my", "Thing") + ")\x81}" + text("join") + global("os.path", "join") + "sb"};
}

TEST(PickleNames, callables_that_run_code_are_only_held_and_the_reason_says_so) {
  for (const std::string& body : held_bodies()) {
    const PickledValue read = decode("}" + text("x") + body + "s");
    EXPECT_TRUE(read.opaque) << body;
    EXPECT_NE(read.reason.find("when it is called"), std::string::npos) << body << read.reason;
    EXPECT_FALSE(read.unlisted_names.empty() && read.reason.find("getattr") == std::string::npos);
    const std::vector<ByteSpan> none;
    const Bytes whole = pickle("}" + text("x") + body + "s");
    const Code code = error_of([&] { decode_tensor(whole, {"t"}); }).code();
    EXPECT_TRUE(code == Code::kRefusedName || code == Code::kUnsupported || code == Code::kTornFile)
        << body;
  }
}

TEST(PickleNames, what_is_held_is_refused_beside_a_call_that_could_call_it) {
  const std::string calls = global("my", "run") + "K\1\x85R";
  const std::string lazy = global("builtins", "map") + global("my", "f") + "]\x86R";
  const std::string get = global("builtins", "getattr");
  const std::string returned = get + global("my", "A") + text("B") + "\x86R)R";
  for (const std::string& body : held_bodies()) {
    for (const std::string& call : {calls, returned}) {
      EXPECT_EQ(error_of([&] { decode("(" + body + call + "t"); }).code(), Code::kRefusedName);
      EXPECT_EQ(error_of([&] { decode("(" + call + body + "t"); }).code(), Code::kRefusedName);
    }
  }
  for (const std::string& body :
       {global("builtins", "list") + lazy + "\x85R", global("builtins", "set") + lazy + "\x85R",
        global("collections", "deque") + lazy + "\x85R",
        global("array", "array") + text("b") + lazy + "\x86\x81",
        global("builtins", "open") + text("x") + "\x85R",
        global("functools", "reduce") + global("my", "f") + "]\x86R",
        global("itertools", "starmap") + get + "]\x86R",
        global("itertools", "starmap") + get + "\x85\x85R"}) {
    EXPECT_EQ(error_of([&] { decode(body); }).code(), Code::kRefusedName) << body;
  }
}

TEST(PickleNames, a_changed_letter_of_a_listed_name_is_damage) {
  const auto code = [](const std::string& module, const std::string& name) {
    const Bytes bytes = pickle(global(module, name));
    const std::vector<ByteSpan> files{bytes};
    const std::vector<std::string> names{"m"};
    return error_of([&] { read_metadata(files, names); }).code();
  };
  EXPECT_EQ(code("torch", "gloat32"), Code::kTornFile);
  EXPECT_EQ(code("dorch", "Size"), Code::kTornFile);
  EXPECT_EQ(code("torch.distributed.checkpoint.metadata", "Metadate"), Code::kTornFile);
  EXPECT_EQ(code("torch.distributed.checkpoint.metadata", "MyMetadata"), Code::kUnsupported);
  EXPECT_EQ(code("my.planner", "Metadata"), Code::kUnsupported);
}

TEST(PickleNames, those_of_python_2_are_told_as_python_3_reads_them) {
  const auto told = [](const std::string& module, const std::string& name, char protocol) {
    return decode(pickle(global(module, name), protocol)).unlisted_names;
  };
  EXPECT_EQ(told("exceptions", "ValueError", 2), (std::vector<std::string>{"builtins.ValueError"}));
  EXPECT_EQ(told("exceptions", "StandardError", 2),
            (std::vector<std::string>{"builtins.Exception"}));
  EXPECT_EQ(told("__builtin__", "unichr", 2), (std::vector<std::string>{"builtins.chr"}));
  EXPECT_EQ(told("cStringIO", "StringIO", 2), (std::vector<std::string>{"io.StringIO"}));
  EXPECT_EQ(told("exceptions", "ValueError", 4),
            (std::vector<std::string>{"exceptions.ValueError"}));
}

TEST(PickleNames, plain_data_is_plain_data_where_another_module_passes_it_on) {
  EXPECT_FALSE(pickle::always_refused("http", "HTTPStatus"));
  EXPECT_FALSE(pickle::always_refused("mine", "web.http.HTTPStatus"));
  EXPECT_TRUE(pickle::always_refused("mine", "web.http.HTTPConnection"));
}

TEST(PickleNames, the_list_is_sorted_and_holds_nothing_that_is_always_refused) {
  for (const pickle::NameRule& rule : pickle::all_names()) {
    EXPECT_EQ(pickle::rule_of(rule.module, rule.name), &rule);
    EXPECT_FALSE(pickle::always_refused(rule.module, rule.name)) << rule.module << rule.name;
  }
  EXPECT_EQ(pickle::rule_of("torch", "Float32"), nullptr);
  EXPECT_EQ(pickle::rule_of("", ""), nullptr);
}

}  // namespace
}  // namespace reprise::test
