// The input is one of the small files next to a checkpoint (tracker, metadata.json or
// integrity.json), or the name of a directory that a tracker may contain.

#include "core/format/backend_info.hpp"
#include "core/format/integrity.hpp"
#include "core/format/tracker.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

bool check_tracker(ByteSpan input) {
  const auto tracker =
      read_or_refuse(input.size(), [&] { return read_tracker(input, input_place()); });
  if (!tracker) return false;
  promise(read_tracker(write_tracker(*tracker)) == *tracker, "another tracker when written again");
  promise(tracker_of_directory(directory_of(*tracker)) == *tracker,
          "a directory that does not lead back: " + directory_of(*tracker));
  return true;
}

void check_directory(std::string_view name) {
  const auto tracker = tracker_of_directory(name);
  if (tracker)
    promise(directory_of(*tracker) == name, "a directory of two names: " + std::string(name));
}

bool check_integrity(ByteSpan input) {
  const auto manifest =
      read_or_refuse(input.size(), [&] { return read_integrity(input, input_place()); });
  if (!manifest) return false;
  promise(read_integrity(write_integrity(*manifest)).files == manifest->files,
          "another manifest when written again");
  return true;
}

Acceptance run(ByteSpan input) {
  const bool tracker = check_tracker(input);
  check_directory(as_text(input));
  const bool integrity = check_integrity(input);
  const auto backend =
      read_or_refuse(input.size(), [&] { return read_backend_info(input, input_place()); });
  return tracker || integrity || backend ? Acceptance::kAccepted : Acceptance::kRefused;
}

std::vector<Seed> seeds() {
  std::vector<Seed> files = files_below("tests/data", "/metadata.json");
  for (Seed& file : files_below("tests/data", kTrackerFile)) files.push_back(std::move(file));
  IntegrityManifest manifest;
  for (const Seed& file : files) {
    manifest.files.push_back(
        {"__" + std::to_string(manifest.files.size()) + "_0.distcp", sha256_of(file.bytes)});
  }
  files.push_back({"manifest", write_integrity(manifest)});
  files.push_back({"directory", to_bytes("iter_0000010")});
  return files;
}

const Target kTarget("small_files", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
