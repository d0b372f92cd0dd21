// Maps names of Python 2, which protocols 0 to 2 still use, to names of Python 3.

#include <algorithm>
#include <array>

#include "core/format/pickle/pickle_names.hpp"

namespace reprise::pickle {
namespace {

struct Renamed {
  ModuleAndName python2;
  ModuleAndName python3;
};
// If several entries have the same Python 3 name, the first one is used for writing.
constexpr std::array<Renamed, 12> kRenamed{{
    {{"__builtin__", "xrange"}, {"builtins", "range"}},
    {{"__builtin__", "long"}, {"builtins", "int"}},
    {{"__builtin__", "unicode"}, {"builtins", "str"}},
    {{"__builtin__", "basestring"}, {"builtins", "str"}},
    {{"__builtin__", "unichr"}, {"builtins", "chr"}},
    {{"__builtin__", "intern"}, {"sys", "intern"}},
    {{"__builtin__", "reduce"}, {"functools", "reduce"}},
    {{"exceptions", "StandardError"}, {"builtins", "Exception"}},
    {{"itertools", "ifilter"}, {"builtins", "filter"}},
    {{"itertools", "imap"}, {"builtins", "map"}},
    {{"itertools", "izip"}, {"builtins", "zip"}},
    {{"UserDict", "IterableUserDict"}, {"collections", "UserDict"}},
}};

struct Module {
  std::string_view python2;
  std::string_view python3;
};
constexpr std::array<Module, 29> kModules{{
    {"BaseHTTPServer", "http.server"},
    {"CGIHTTPServer", "http.server"},
    {"ConfigParser", "configparser"},
    {"Cookie", "http.cookies"},
    {"HTMLParser", "html.parser"},
    {"Queue", "queue"},
    {"SimpleHTTPServer", "http.server"},
    {"SocketServer", "socketserver"},
    {"StringIO", "io"},
    {"Tkinter", "tkinter"},
    {"UserDict", "collections"},
    {"UserList", "collections"},
    {"UserString", "collections"},
    {"__builtin__", "builtins"},
    {"_abcoll", "collections.abc"},
    {"_elementtree", "xml.etree.ElementTree"},
    {"_winreg", "winreg"},
    {"anydbm", "dbm"},
    {"cPickle", "pickle"},
    {"cStringIO", "io"},
    {"commands", "subprocess"},
    {"copy_reg", "copyreg"},
    {"exceptions", "builtins"},
    {"httplib", "http.client"},
    {"repr", "reprlib"},
    {"thread", "_thread"},
    {"urllib2", "urllib.request"},
    {"urlparse", "urllib.parse"},
    {"xmlrpclib", "xmlrpc.client"},
}};

}  // namespace

ModuleAndName modern_name(ModuleAndName written) {
  const auto same = [&written](const Renamed& renamed) {
    return renamed.python2.module == written.module && renamed.python2.name == written.name;
  };
  const auto* const name = std::find_if(kRenamed.begin(), kRenamed.end(), same);
  if (name != kRenamed.end()) return name->python3;
  const auto* const module = std::ranges::find(kModules, written.module, &Module::python2);
  return module == kModules.end() ? written : ModuleAndName{module->python3, written.name};
}

ModuleAndName protocol2_name(ModuleAndName modern) {
  const auto same = [&modern](const Renamed& renamed) {
    return renamed.python3.module == modern.module && renamed.python3.name == modern.name;
  };
  const auto* const name = std::find_if(kRenamed.begin(), kRenamed.end(), same);
  if (name != kRenamed.end()) return name->python2;
  if (modern.module == "builtins") return {"__builtin__", modern.name};
  if (modern.module == "copyreg") return {"copy_reg", modern.name};
  return modern;
}

}  // namespace reprise::pickle
