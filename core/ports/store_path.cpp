#include "core/ports/store_path.hpp"

#include <string_view>

#include "reprise/error.hpp"

namespace reprise {

std::string join_path(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

std::string parent_path(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

void check_store_path(const std::string& path) {
  if (path.empty()) return;
  const auto refuse = [&path](const std::string& why) {
    throw Error(Code::kPathEscape, "refused the path '" + path + "': " + why, {.file = path});
  };
  if (path.front() == '/') refuse("it is absolute; give it relative to the store's root");
  if (path.find('\0') != std::string::npos) refuse("it holds a zero byte");
  std::string_view rest = path;
  for (bool more = true; more;) {
    const auto slash = rest.find('/');
    const auto name = rest.substr(0, slash);
    if (name == "..") refuse("it leaves its directory with '..'");
    if (name.empty() || name == ".") refuse("it has an empty name or '.' in it");
    more = slash != std::string_view::npos;
    if (more) rest.remove_prefix(slash + 1);
  }
}

void check_store_entry(const std::string& path) {
  check_store_path(path);
  if (path.empty()) {
    throw Error(Code::kUsage, "the root of a store cannot be written, renamed or removed");
  }
}

}  // namespace reprise
