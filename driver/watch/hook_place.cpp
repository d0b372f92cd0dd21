#include "driver/watch/hook_place.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "driver/lanes/package_folders.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

bool has_hook(const fs::path& site) { return fs::exists(site / "sitecustomize.py"); }

/// Returns the folders in which packages of a Python environment lie, the newest Python first.
std::vector<fs::path> site_packages(const fs::path& lib) {
  std::vector<fs::path> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(lib, missing)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    found.push_back(entry.path() / "site-packages");
    found.push_back(entry.path() / "dist-packages");
  }
  std::ranges::stable_sort(found, [](const fs::path& a, const fs::path& b) {
    return in_natural_order(b.string(), a.string());
  });
  return found;
}

}  // namespace

std::string find_hook(const std::string& executable, const std::string& package) {
  std::vector<fs::path> folders;
  if (!package.empty()) {
    folders = {fs::absolute(package), fs::absolute(package) / "reprise"};
  } else {
    const fs::path beside = fs::absolute(executable).parent_path();
    for (const auto& folder : kPackageFolders) folders.push_back(beside / folder);
    for (const auto& site : site_packages((beside / "../lib").lexically_normal()))
      folders.push_back(site / "reprise");
  }
  std::vector<std::string> tried;
  for (const auto& folder : folders) {
    const fs::path site = (folder / "watch/site").lexically_normal();
    if (has_hook(site)) return site.string();
    tried.push_back(site.string());
  }
  throw Error(
      Code::kUsage,
      "the hook that records a command is not here: it is part of the Python package of "
      "this version, which the wheel reprise-ckpt has. Name the package's folder with --package; "
      "looked in " +
          join(tried, ", "));
}

}  // namespace reprise::driver
