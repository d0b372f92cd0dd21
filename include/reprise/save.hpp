#pragma once
// Saves a job's state as a checkpoint in the format of PyTorch's distributed checkpoint and
// Megatron-Core. Every call is collective: all ranks of the job make the same calls in the same
// order, and an Error is the same on all of them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

class Job;
class State;

/// Checksums that a save writes next to the elements, so that damage can be detected.
enum class Checksums : std::uint8_t {
  kNone,
  kCrc32,           ///< one per record, in its archive
  kCrc32AndSha256,  ///< also one per file, in a manifest (integrity.json)
};

struct SaveOptions {
  /// Path relative to the job's root. If `step` is set, the checkpoint is `directory/iter_<step>`
  /// and the tracker in `directory` names it; otherwise it is `directory` itself.
  std::string directory;
  std::optional<std::int64_t> step = {};
  Checksums checksums = Checksums::kCrc32;
  /// Number of iterations to keep in `directory`, including this one; at least 1, and only with a
  /// step. Nothing: all.
  std::optional<std::int32_t> keep = {};
  bool replace = true;  ///< false: throw USAGE if a checkpoint of that name exists
  /// Most memory to use for copies of data being written. Nothing: 8 MiB for save, 256 MiB for
  /// begin_save. If the data does not fit, the call waits for space.
  std::optional<std::uint64_t> staging_bytes = {};
};

struct SaveResult {
  std::string directory;      ///< checkpoint directory, relative to the job's root
  std::uint64_t bytes = 0;    ///< bytes written by this rank
  std::uint64_t tensors = 0;  ///< tensors in the whole checkpoint
  std::uint64_t objects = 0;
  std::vector<std::string> log;  ///< for the operator, e.g. iterations that could not be removed
};

/// A save that is written in the background. Only poll and finish commit it. If it is destroyed
/// before that, it waits for its background work and leaves no checkpoint; the next save of the
/// same iteration removes what it wrote. A moved-from one is no save: it
/// may be destroyed, assigned to and moved from again; poll and finish throw USAGE.
class SaveInFlight {
 public:
  SaveInFlight(SaveInFlight&&) noexcept;
  SaveInFlight& operator=(SaveInFlight&&) noexcept;
  ~SaveInFlight();

  /// True once the checkpoint is committed. Commits it if all ranks have written their parts; never
  /// waits for a rank that has not.
  bool poll();
  /// Waits for the parts of all ranks and commits. Returns the same result if called again.
  SaveResult finish();

 private:
  friend struct JobAccess;
  explicit SaveInFlight(std::unique_ptr<struct Flight> flight);
  std::unique_ptr<struct Flight> flight_;
};

/// Copies the state and returns when it may change. Only one save per directory may be in flight
/// (LOCKED otherwise). Throws USAGE on all ranks if their options differ. An Error adds no
/// checkpoint and leaves an existing one intact. The exception is an Error after the new checkpoint
/// was confirmed: then the new one is there, and the tracker may still name the older one.
[[nodiscard]] SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options);

/// Returns when the checkpoint is committed and would survive a power cut.
SaveResult save(Job& job, const State& state, const SaveOptions& options);

}  // namespace REPRISE_API
