// Names that are refused wherever they stand, and the names that Python 2 had for others.

#include <algorithm>
#include <array>

#include "core/format/pickle_names.hpp"

namespace reprise::pickle {
namespace {

// Whole modules with all that is below them.
constexpr std::array<std::string_view, 42> kModules{"os",
                                                    "posix",
                                                    "nt",
                                                    "posixpath",
                                                    "sys",
                                                    "subprocess",
                                                    "socket",
                                                    "shutil",
                                                    "importlib",
                                                    "runpy",
                                                    "ctypes",
                                                    "pty",
                                                    "code",
                                                    "operator",
                                                    "_operator",
                                                    "pickle",
                                                    "_pickle",
                                                    "dill",
                                                    "cloudpickle",
                                                    "marshal",
                                                    "joblib",
                                                    "webbrowser",
                                                    "http",
                                                    "pip",
                                                    "commands",
                                                    "multiprocessing",
                                                    "threading",
                                                    "asyncio",
                                                    "urllib",
                                                    "requests",
                                                    "timeit",
                                                    "pdb",
                                                    "bdb",
                                                    "profile",
                                                    "cProfile",
                                                    "pydoc",
                                                    "zipimport",
                                                    "pkgutil",
                                                    "torch.jit",
                                                    "torch.hub",
                                                    "torch.package",
                                                    "torch.utils._pytree"};

constexpr std::array<ModuleAndName, 25> kSingle{{
    {"builtins", "eval"},
    {"builtins", "exec"},
    {"builtins", "execfile"},
    {"builtins", "compile"},
    {"builtins", "open"},
    {"builtins", "__import__"},
    {"builtins", "globals"},
    {"builtins", "locals"},
    {"builtins", "vars"},
    {"builtins", "setattr"},
    {"builtins", "delattr"},
    {"builtins", "input"},
    {"builtins", "map"},
    {"builtins", "filter"},
    {"builtins", "apply"},
    {"builtins", "breakpoint"},
    {"functools", "partial"},
    {"functools", "reduce"},
    {"types", "FunctionType"},
    {"types", "CodeType"},
    {"types", "MethodType"},
    {"torch", "load"},
    {"torch.serialization", "load"},
    {"torch.storage", "_load_from_bytes"},
    {"numpy", "load"},
}};

struct Renamed {
  ModuleAndName python2;
  ModuleAndName python3;
};
constexpr std::array<Renamed, 3> kRenamed{{
    {{"__builtin__", "xrange"}, {"builtins", "range"}},
    {{"__builtin__", "long"}, {"builtins", "int"}},
    {{"__builtin__", "unicode"}, {"builtins", "str"}},
}};

}  // namespace

bool always_refused(std::string_view module, std::string_view name) {
  if (name.find('.') != std::string_view::npos) return true;
  const auto within = [module](std::string_view refused) {
    return module.starts_with(refused) &&
           (module.size() == refused.size() || module[refused.size()] == '.');
  };
  return std::any_of(kModules.begin(), kModules.end(), within) ||
         std::any_of(kSingle.begin(), kSingle.end(), [&](const ModuleAndName& refused) {
           return refused.module == module && refused.name == name;
         });
}

ModuleAndName modern_name(ModuleAndName written) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.python2.module == written.module && renamed.python2.name == written.name) {
      return renamed.python3;
    }
  }
  if (written.module == "__builtin__") return {"builtins", written.name};
  if (written.module == "copy_reg") return {"copyreg", written.name};
  return written;
}

ModuleAndName protocol2_name(ModuleAndName modern) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.python3.module == modern.module && renamed.python3.name == modern.name) {
      return renamed.python2;
    }
  }
  if (modern.module == "builtins") return {"__builtin__", modern.name};
  if (modern.module == "copyreg") return {"copy_reg", modern.name};
  return modern;
}

}  // namespace reprise::pickle
