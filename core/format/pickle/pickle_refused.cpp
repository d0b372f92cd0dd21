// Defines which names are refused in every pickle.

#include <algorithm>
#include <array>
#include <string>

#include "core/format/pickle/pickle_names.hpp"

namespace reprise::pickle {
namespace {

// Modules of Python's standard library, including modules that Python has removed, but not its
// plain-data modules. Some modules written in C have a leading underscore, which is left out here.
constexpr std::string_view kPython =
    "aifc aix_support antigravity asynchat asyncio asyncore atexit audioop base64 bdb bootlocale "
    "bootsubprocess bz2 cProfile cgi cgitb cmd code codecs codeop commands compileall "
    "concurrent contextlib crypt ctypes curses dbm dis distutils doctest dummy_thread "
    "dummy_threading elementtree email encodings ensurepip faulthandler fcntl filecmp fileinput "
    "fnmatch "
    "frozen_importlib frozen_importlib_external ftplib gc gdbm genericpath getopt getpass gettext "
    "glob grp gzip hashlib hmac http idlelib imaplib imghdr imp importlib inspect "
    "interpchannels interpqueues interpreters io ios_support lib2to3 linecache locale logging "
    "lsprof lzma macpath mailbox mailcap marshal mimetypes mmap modulefinder msi msilib msvcrt "
    "multiprocessing netrc nis nntplib nt ntpath nturl2path optparse os os2 osx_support "
    "ossaudiodev overlapped pathlib pdb pickle pickletools pipes pkgutil platform plistlib "
    "popen2 poplib posix posixfile posixpath posixshmem posixsubprocess profile pstats pty pwd "
    "py_compile pyclbr pydoc pydoc_data pyexpat pyio pyrepl quopri readline remote_debugging "
    "resource rlcompleter runpy sched scproxy secrets select selectors shelve shlex shutil "
    "signal site sitebuiltins smtpd smtplib sndhdr socket socketserver spwd sqlite3 ssl subprocess "
    "sunau "
    "symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios testbuffer "
    "testcapi testimportmultiple testinternalcapi testmultiphase thread threading "
    "threading_local timeit tkinter tokenize tomllib trace traceback tracemalloc tty turtle "
    "turtledemo types unittest urllib urllib2 uu uuid venv wave webbrowser winapi winreg "
    "winsound wmi wsgiref xdrlib xml xmlrpc xxinterpchannels xxsubinterpreters xxtestfuzz zipapp "
    "zipfile zipimport";

/// Other packages that run code, create processes or use the network. Every name in them is
/// refused.
constexpr std::string_view kPackages =
    "aiohttp cffi cloudpickle dill execnet fabric fire fsspec httpx invoke IPython joblib "
    "jsonpickle paramiko pexpect pip pkg_resources plumbum ptyprocess pywintypes requests rpyc "
    "setuptools sh torchrun urllib3 win32api win32com win32process zmq";

/// Submodules and subpackages. Every name in or below them is refused.
constexpr std::array<std::string_view, 46> kParts{
    "test.support",
    "numpy._pytesttester",
    "numpy.compat",
    "numpy.ctypeslib",
    "numpy.distutils",
    "numpy.f2py",
    "numpy.lib._datasource",
    "numpy.lib._format_impl",
    "numpy.lib._npyio_impl",
    "numpy.lib.format",
    "numpy.lib.npyio",
    "numpy.testing",
    "torch._classes",
    "torch._dynamo",
    "torch._export",
    "torch._inductor",
    "torch._library",
    "torch._ops",
    "torch._utils_internal",
    "torch._weights_only_unpickler",
    "torch.classes",
    "torch.compiler",
    "torch.distributed.checkpoint.format_utils",
    "torch.distributed.elastic",
    "torch.distributed.launch",
    "torch.distributed.rpc",
    "torch.distributed.run",
    "torch.export",
    "torch.fx.experimental",
    "torch.fx.graph_module",
    "torch.hub",
    "torch.jit",
    "torch.multiprocessing",
    "torch.onnx",
    "torch.ops",
    "torch.package",
    "torch.testing",
    "torch.utils._config_module",
    "torch.utils._pytree",
    "torch.utils.benchmark",
    "torch.utils.bottleneck",
    "torch.utils.collect_env",
    "torch.utils.cpp_extension",
    "torch.utils.data.datapipes.utils.decoder",
    "torch.utils.hipify",
    "torch.utils.model_zoo",
};

struct Words {
  std::string_view module;
  std::string_view names;
};

/// Plain-data names in modules of kPython. These are accepted, although all other names in the
/// modules are refused.
constexpr std::array<Words, 16> kSpared{{
    {"_codecs", "decode encode"},
    {"_io", "BytesIO StringIO"},
    {"codecs", "decode encode"},
    {"contextlib", "nullcontext"},
    {"http", "HTTPMethod HTTPStatus"},
    {"inspect", "BoundArguments Parameter Signature _ParameterKind _empty"},
    {"io", "BytesIO StringIO"},
    {"logging", "Filter Formatter LogRecord Logger PercentStyle RootLogger getLogger"},
    {"pathlib", "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath"},
    {"optparse", "Values"},
    {"platform", "uname_result"},
    {"signal", "Handlers Sigmasks Signals"},
    {"subprocess", "CalledProcessError CompletedProcess SubprocessError TimeoutExpired"},
    {"traceback", "FrameSummary StackSummary TracebackException"},
    {"types",
     "EllipsisType GenericAlias MappingProxyType NoneType NotImplementedType "
     "SimpleNamespace UnionType"},
    {"uuid", "SafeUUID UUID"},
}};

/// Names that run code or open files, in modules that otherwise contain only plain data. The
/// entries for numpy, pandas and torch also apply to their submodules.
constexpr std::array<Words, 17> kSingle{{
    {"_functools", "reduce"},
    {"_operator", "attrgetter call methodcaller"},
    {"argparse", "FileType"},
    {"ast", "compile parse"},
    {"builtins",
     "__build_class__ __import__ __loader__ __spec__ apply breakpoint compile copyright "
     "credits delattr eval exec execfile exit file filter globals help input license "
     "locals map open quit raw_input reload setattr vars"},
    {"copyreg", "add_extension pickle"},
    {"dataclasses", "_create_fn _FuncBuilder make_dataclass"},
    {"functools", "reduce"},
    {"numpy",
     "DataSource exec_command fromfile fromregex genfromtxt load loads loadtxt "
     "mafromtxt memmap ndfromtxt open_memmap recfromcsv recfromtxt runstring save "
     "savetxt savez savez_compressed"},
    {"operator", "attrgetter call methodcaller"},
    {"pandas",
     "eval read_clipboard read_csv read_excel read_feather read_fwf read_gbq read_hdf "
     "read_html read_json read_orc read_parquet read_pickle read_sas read_sql read_table "
     "read_xml to_pickle"},
    {"torch",
     "_import_dotted_name _import_ir_module_from_package _legacy_load _load _load_from_bytes "
     "_open_file "
     "_open_file_like _open_zipfile_reader compile from_file import_ir_module "
     "load load_inline load_library save"},
    {"hydra.utils", "call get_class get_method get_object get_static_method instantiate"},
    {"transformers", "dynamic_module_utils get_class_from_dynamic_module pipeline"},
    {"typing", "ForwardRef _eval_type get_type_hints"},
    {"weakref", "finalize"},
    {"yaml",
     "FullLoader Loader UnsafeLoader full_load full_load_all load load_all unsafe_load "
     "unsafe_load_all"},
}};

/// Names of the modules above that ordinary objects hold, and what they do when they are called.
struct Held {
  std::string_view module;
  std::string_view names;
  std::string_view what;
};
constexpr std::string_view kPathNames =
    "abspath basename commonpath commonprefix dirname exists expanduser expandvars getsize isabs "
    "isdir isfile islink join normcase normpath realpath relpath samefile split splitdrive "
    "splitext";
constexpr std::string_view kPathWhat = "works on the paths of files";
constexpr std::string_view kCallsWhat = "calls the function that it is given";
constexpr std::array<Held, 10> kHeld{{
    {"_functools", "reduce", kCallsWhat},
    {"functools", "reduce", kCallsWhat},
    {"builtins", "filter map", kCallsWhat},
    {"builtins", "open", "opens files"},
    {"io", "open", "opens files"},
    {"_operator", "attrgetter methodcaller", "reads attributes or calls methods"},
    {"operator", "attrgetter methodcaller", "reads attributes or calls methods"},
    {"os.path", kPathNames, kPathWhat},
    {"posixpath", kPathNames, kPathWhat},
    {"ntpath", kPathNames, kPathWhat},
}};

/// Names that are refused in every module. Some are refused modules that the module has imported,
/// such as "_os" in "random._os". The others are objects that give access to a refused module.
constexpr std::string_view kImported =
    "__builtin__ __builtins__ __import__ __loader__ __spec__ _os _sys _thread bltns builtins "
    "ctypes "
    "importlib marshal nt os pickle posix runpy shutil socket subprocess sys";

/// Attributes that are refused on any object.
constexpr std::string_view kMethods =
    "Popen _evaluate check_call check_output exec_module execl execle execlp execv execve execvp "
    "execvpe fork forkpty from_file from_pretrained import_module import_string load_module popen "
    "rmdir rmtree run_module "
    "run_path runcode runsource spawn spawnl spawnle spawnlp spawnv spawnve spawnvp startfile "
    "symlink_to system unlink write_bytes write_text";

/// Returns the first word of `words`. The words are separated by `end`.
constexpr std::string_view first_of(std::string_view words, char end) {
  return words.substr(0, std::min(words.find(end), words.size()));
}

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    const std::string_view word = first_of(words, ' ');
    if (word == wanted) return true;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return false;
}

/// The words of kPython, sorted so that lookups are fast: each name that is not on the closed list
/// is looked up here.
constexpr auto kPythonSorted = [] {
  std::array<std::string_view, std::count(kPython.begin(), kPython.end(), ' ') + 1> words;
  std::string_view rest = kPython;
  for (std::string_view& word : words) {
    word = first_of(rest, ' ');
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  std::sort(words.begin(), words.end());
  return words;
}();

/// True if `module` is `folder` or below it.
bool within(std::string_view module, std::string_view folder) {
  return module.starts_with(folder) &&
         (module.size() == folder.size() || module[folder.size()] == '.');
}

bool special(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

bool is_part(std::string_view module) {
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return within(module, part); });
}

bool in_code_module(std::string_view module, std::string_view name) {
  std::string_view top = first_of(module, '.');
  if (has_word(kPackages, top) || is_part(module)) return true;
  if (top.starts_with('_')) top.remove_prefix(1);
  if (!std::binary_search(kPythonSorted.begin(), kPythonSorted.end(), top)) return false;
  // Classes of pathlib also occur in submodules of pathlib.
  return std::none_of(kSpared.begin(), kSpared.end(), [&](const Words& spared) {
    const bool here =
        spared.module == "pathlib" ? within(module, spared.module) : module == spared.module;
    return here && has_word(spared.names, name);
  });
}

bool is_code(std::string_view module, std::string_view name) {
  return std::any_of(kSingle.begin(), kSingle.end(), [&](const Words& code) {
    return within(module, code.module) && has_word(code.names, name);
  });
}

/// True if a refused name begins at `begin` in `path`; the name may be shorter than the rest of the
/// path. For example, "torch.nn.torch.hub.load" contains "torch.hub.load" at position 9. The full
/// path leads to the same function, because the module torch.nn has the module torch as a member.
bool passes_code(std::string_view path, std::size_t begin, std::size_t first_attribute) {
  for (std::size_t dot = path.find('.', first_attribute); dot != std::string_view::npos;
       dot = path.find('.', dot + 1)) {
    const std::string_view module = path.substr(begin, dot - begin);
    if (is_part(module) || is_code(module, first_of(path.substr(dot + 1), '.'))) return true;
    if (begin != 0 && in_code_module(module, path.substr(dot + 1))) return true;
  }
  return is_part(path.substr(begin));
}

}  // namespace

bool leads_to_code(std::string_view attribute) {
  // A dotted attribute is looked up step by step, so each part is checked.
  for (std::size_t begin = 0; begin <= attribute.size();) {
    const std::string_view part = first_of(attribute.substr(begin), '.');
    if (special(part) || has_word(kImported, part) || has_word(kMethods, part)) return true;
    begin += part.size() + 1;
  }
  return false;
}

std::string_view held_for(std::string_view module, std::string_view name) {
  const auto* held = std::ranges::find_if(
      kHeld, [&](const Held& each) { return each.module == module && has_word(each.names, name); });
  return held == kHeld.end() ? std::string_view{} : held->what;
}

bool always_refused(std::string_view module, std::string_view name) {
  const std::string_view first = first_of(name, '.');
  if (in_code_module(module, name) || is_code(module, first) || has_word(kImported, first)) {
    return true;
  }
  if (first.size() < name.size() && leads_to_code(name.substr(first.size() + 1))) return true;
  const std::string path = std::string(module) + "." + std::string(name);
  const std::size_t attributes = module.size() + 1;
  if (passes_code(path, 0, attributes)) return true;
  for (std::size_t begin = attributes; begin < path.size();) {
    if (passes_code(path, begin, begin)) return true;
    begin += first_of(std::string_view(path).substr(begin), '.').size() + 1;
  }
  return false;
}

}  // namespace reprise::pickle
