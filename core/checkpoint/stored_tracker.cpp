#include "core/checkpoint/stored_tracker.hpp"

#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {

Tracker stored_tracker(Store& store, const std::string& root) {
  constexpr std::uint64_t kBytesMax = 4096;  // limit for a file that holds one number
  const std::string path = join_path(root, std::string(kTrackerFile));
  return read_tracker(read_all(store, path, kBytesMax), {.file = store.display(path)});
}

std::optional<Step> tracked_step(Store& store, const std::string& root) {
  try {
    return stored_tracker(store, root).step;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace reprise
