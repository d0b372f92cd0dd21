#pragma once
// Loads a checkpoint: reads and validates metadata, takes the wanted keys from the job's request,
// and reads each needed element once, either on each rank that needs it or on one rank for all.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/load/candidates.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/strictness.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Metadata as read from the files of a checkpoint.
struct KnownMetadata {
  std::shared_ptr<const Metadata> metadata;
  std::uint64_t content = 0;  ///< hash of the metadata files' names and bytes
};

struct LoadSettings {
  std::string path;  ///< checkpoint or root, resolved as in locate()
  Strictness strictness = Strictness::kRaiseAll;
  /// Keys that may be missing from the checkpoint or from the request. LoadReport::excused lists
  /// those that were missing from one of the two.
  std::vector<std::string> excused;
  std::uint64_t staging_bytes = std::uint64_t{16} << 20U;
  LoadChecksums checksums = LoadChecksums::kIgnored;
  Fallback fallback = Fallback::kNone;
  Reads reads = Reads::kByEach;
  StepNames names = {};  ///< of the iterations below `path`
  /// The metadata of the checkpoint, if every rank has it already, such as for many loads of one
  /// checkpoint; it is then neither read nor broadcast.
  const KnownMetadata* known = nullptr;
};

struct LoadReport {
  Location location;
  std::uint64_t tensors = 0;  ///< number of this rank's leaves that were filled
  std::uint64_t objects = 0;  ///< number of this rank's objects that were filled
  std::uint64_t elements = 0;
  std::uint64_t bytes_read = 0;  ///< element bytes delivered to this rank, whichever rank read them
  /// Number of bytes that this rank read from storage on behalf of all ranks that need them.
  std::uint64_t bytes_for_all = 0;
  std::uint64_t bytes_needed = 0;
  std::uint64_t peak_staging = 0;  ///< size of staging, plus the peak size of exchanged data
  /// Upper limit, known in advance, on the memory that this rank uses for reading, apart from the
  /// job's own memory. Covers staging, the largest object, and one round of the exchange including
  /// this rank's share. Excludes the metadata, which all ranks hold, and memory that the fabric
  /// uses within a call.
  std::uint64_t bound_staging = 0;
  /// Limit that replaces bound_staging on a rank that needs no tensors, or only tensors of a single
  /// element: the size of its largest object plus a constant. If records are read once for all
  /// ranks, this rank's part of the exchange is added.
  std::uint64_t bound_empty = 0;
  std::uint64_t metadata_bytes = 0;    ///< size of the broadcast metadata; 0 if it was known
  std::uint64_t records_verified = 0;  ///< number of records whose checksums this rank verified
  KeyMismatch returned;                ///< mismatched keys, if the strict mode returns them
  std::vector<std::string> excused;
  std::vector<std::string> log;
  /// Candidates that were skipped, each with its damage; the same on all ranks.
  std::vector<std::string> fell_back_from;
  /// Iterations of the skipped candidates; the job passes them to its next save as
  /// CommitTarget::damaged.
  std::vector<Step> damaged;
};

/// Returns the common state of the checkpoint at `path`; nothing if the checkpoint has no common
/// state. One rank reads it for all ranks. Meant for jobs that decide what to load by looking at
/// the common state. Collective; a failure throws the same error on all ranks.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const StepNames& names = {});

/// True if nothing was ever saved at `path`; one rank checks for all. Collective.
bool nothing_saved(Store& store, Communicator& group, const std::string& path);

/// The job's request for content of the chosen checkpoint.
struct Wanted {
  StateDict* into = nullptr;         ///< must live until the load returns
  std::vector<std::string> excused;  ///< excused keys, in addition to LoadSettings::excused
};
/// A checkpoint that the load tries. It is passed to Ask, so that the job can base its request on
/// it. Valid only during the call of Ask.
struct Candidate {
  const Location& location;
  const Value* common = nullptr;  ///< null if the checkpoint has no common state
  const Catalog& catalog;
};
/// Returns the job's request; called once per candidate. If it throws, it must throw the same error
/// on all ranks; no other candidate is then tried.
using Ask = std::function<Wanted(const Candidate&)>;

/// Collective over `group`. Chooses the checkpoint, passes the checkpoint's common state to the
/// job, and fills the job's request: tensor pieces, object values and common state, with the keys,
/// shapes and dtypes of the request. If a plain DCP checkpoint has no common state, the request's
/// common state is left unchanged. All ranks load the same checkpoint.
///
/// A refusal because of names, metadata or plan leaves the job's memory unchanged. After a data
/// error the requested tensors are poisoned (0xBD) and the job must not continue with them. With
/// Fallback::kNewestWhole, the load continues after damage with the next candidate, which must fill
/// all tensors that were poisoned (otherwise NOT_STORED). If all candidates are damaged, throws the
/// error of the first one.
///
/// A record that does not match its stored checksum is a data error (CHECKSUM: rank, key, file,
/// offset), with one exception: if every checksum of elements that any rank saw is 0, and there is
/// no other mismatch, the writer had checksums switched off; this is not an error, but is reported
/// in the log. Throws EXTENT_MISMATCH if two items share bytes. The Error is the same on all ranks.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask);
/// Loads in the same way, but takes the job's request as `into` instead of asking for it.
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options);

}  // namespace reprise
