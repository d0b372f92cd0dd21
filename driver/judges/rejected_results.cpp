#include "driver/judges/rejected_results.hpp"

#include <sstream>

#include "core/base/bytes.hpp"
#include "core/base/print.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "sim/job/rerun/rerun_log.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kLogBytesMax = std::uint64_t{1} << 20U;

std::string file_in(const std::string& root) {
  return join_path(root, std::string(sim::kRerunLog));
}

}  // namespace

std::vector<std::string> rejected_results(Store& store, const std::string& root) {
  if (!store.stat(file_in(root))) return {};
  const Bytes content = read_all(store, file_in(root), kLogBytesMax);
  std::istringstream text(
      std::string(reinterpret_cast<const char*>(content.data()), content.size()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void add_rejected_results(Store& store, const std::string& root,
                          const std::vector<std::string>& lines) {
  auto all = rejected_results(store, root);
  all.insert(all.end(), lines.begin(), lines.end());
  if (!store.stat(root)) {  // true before the first save
    store.make_directory(root);
    store.sync_directory(parent_path(root));
  }
  const std::string text = join(all, "\n") + "\n";
  write_atomically(store, file_in(root), as_bytes(text));
}

}  // namespace reprise::driver
