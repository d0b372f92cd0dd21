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

/// What a save writes beside the elements so that damage is found.
enum class Checksums : std::uint8_t {
  kNone,
  kCrc32,           ///< of each record, in its archive
  kCrc32AndSha256,  ///< and of each file, in a manifest (integrity.json)
};

struct SaveOptions {
  /// Within the job's root. With a step the checkpoint is `directory/iter_<step>`, and the tracker
  /// in `directory` names it; without one it is `directory` itself.
  std::string directory;
  std::optional<std::int64_t> step = {};
  Checksums checksums = Checksums::kCrc32;
  /// How many iterations stay in `directory`, this one among them; at least 1, and only with a
  /// step. Nothing: all.
  std::optional<std::int32_t> keep = {};
  bool replace = true;  ///< false: USAGE if there is a checkpoint of that name
  /// The most memory for copies of what is being written. Nothing: 8 MiB for save, 256 MiB for
  /// begin_save; what does not fit is waited for.
  std::optional<std::uint64_t> staging_bytes = {};
};

struct SaveResult {
  std::string directory;      ///< of the checkpoint, within the job's root
  std::uint64_t bytes = 0;    ///< written by this rank
  std::uint64_t tensors = 0;  ///< in the whole checkpoint
  std::uint64_t objects = 0;
  std::vector<std::string> log;  ///< for the operator, such as older iterations that could not go
};

/// A save that is being written while the job goes on. It is committed by poll or finish alone:
/// destroyed before, it waits for its background work and leaves no checkpoint; the next save of
/// the same iteration removes what it wrote. Moved from, it takes no calls.
class SaveInFlight {
 public:
  SaveInFlight(SaveInFlight&&) noexcept;
  SaveInFlight& operator=(SaveInFlight&&) noexcept;
  ~SaveInFlight();

  /// True once the checkpoint stands. Commits it if all ranks have written their parts; does not
  /// wait for those that have not.
  bool poll();
  /// Waits for all ranks' parts and commits. Returns the same if it is called again.
  SaveResult finish();

 private:
  friend struct JobAccess;
  explicit SaveInFlight(std::unique_ptr<struct Flight> flight);
  std::unique_ptr<struct Flight> flight_;
};

/// Copies the state, and returns when it may change. One save at a time is in flight to a directory
/// (LOCKED otherwise). An Error leaves no checkpoint, and the one that stood there as it was,
/// unless it comes after the new one was confirmed in its place: then the new one stands, and the
/// tracker may still name the older one. USAGE on all ranks if their options differ.
[[nodiscard]] SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options);

/// Returns when the checkpoint stands and would survive a power cut.
SaveResult save(Job& job, const State& state, const SaveOptions& options);

}  // namespace REPRISE_API
