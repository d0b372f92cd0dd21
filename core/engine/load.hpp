#pragma once
// Load: metadata is read and validated, the template says what is wanted, elements that are needed
// are read once, by each rank that needs them or by one for all.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/candidates.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/engine/plan_cache.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/strictness.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct LoadSettings {
  std::string path;  ///< as for locate()
  Strictness strictness = Strictness::kRaiseAll;
  /// Keys that may be absent on one side; each use is reported.
  std::vector<std::string> excused;
  std::uint64_t staging_bytes = std::uint64_t{16} << 20U;
  LoadChecksums checksums = LoadChecksums::kIgnored;
  Fallback fallback = Fallback::kNone;
  Reads reads = Reads::kByEach;
  /// Seeds the plan of the next save, and keeps the metadata; all ranks give one, or none does.
  PlanCache* cache = nullptr;
};

struct LoadReport {
  Location location;
  std::uint64_t tensors = 0;  ///< leaves of this rank that were filled
  std::uint64_t objects = 0;  ///< likewise
  std::uint64_t elements = 0;
  std::uint64_t bytes_read = 0;  ///< element bytes, this rank, whoever read them from storage
  /// Of records that several ranks need, what this rank read for all of them.
  std::uint64_t bytes_for_all = 0;
  std::uint64_t bytes_needed = 0;
  std::uint64_t peak_staging = 0;  ///< staging, and the most that was held of what was exchanged
  /// What this rank may hold beside the job's own memory while it reads, known before it does:
  /// staging, its largest object, and a round of what is exchanged with this rank's share of it.
  /// Not in it: the metadata, which all ranks hold, and what the fabric holds within a call.
  std::uint64_t bound_staging = 0;
  /// The same of a rank that holds no part of any tensor of more than one element: its largest
  /// object and a constant; where records are read once for all, what it has of the exchange, too.
  std::uint64_t bound_empty = 0;
  std::uint64_t metadata_bytes = 0;    ///< of that
  std::uint64_t records_verified = 0;  ///< this rank, if checksums are verified
  KeyMismatch returned;                ///< what the strict mode returns
  std::vector<std::string> excused;
  std::vector<std::string> log;
  /// Candidates that were passed over, each with what is wrong with it; the same on all ranks.
  std::vector<std::string> fell_back_from;
  /// The iterations among them; what is saved next is told of them (CommitTarget::damaged).
  std::vector<Step> damaged;
  std::vector<CacheKind> reused;
};

/// The common state of the checkpoint at `path`, read by one rank for all, for jobs that need it to
/// say what they want. Nothing where a checkpoint has none. Collective; fails alike on all ranks.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path);

/// True if one rank, for all, finds that nothing was ever saved at `path`. Collective.
bool nothing_saved(Store& store, Communicator& group, const std::string& path);

/// What a job wants of the checkpoint that was chosen.
struct Wanted {
  StateDict* into = nullptr;         ///< lives until the load returns
  std::vector<std::string> excused;  ///< beside those of the options
};
/// What a job is shown of it before it says so; lives until it has.
struct Offered {
  const Location& location;
  const Value* common = nullptr;  ///< if it has one
  const Catalog& catalog;
};
/// Called once for each candidate. What it throws it throws alike on all ranks, and no other
/// candidate is tried.
using Ask = std::function<Wanted(const Offered&)>;

/// Collective over `group`. Chooses the checkpoint, shows the job its common state, and fills what
/// the job then wants: the tensors' pieces, the objects' values and the common state, with keys,
/// shapes and dtypes as the request; where a plain DCP checkpoint has no common state, that of the
/// request stays. All ranks take the same checkpoint.
///
/// A refusal that follows from names, metadata or plan leaves the job's memory as it was; after a
/// data error the tensors that were to be filled are poisoned (0xBD) and the job may not go on from
/// them. With Fallback::kNewestWhole damage leads to the next candidate instead, which fills the
/// same tensors (NOT_STORED if it lacks one); if none is whole, the first one's error is thrown.
///
/// A record without its stored checksum is a data error (CHECKSUM: rank, key, file, offset), unless
/// all ranks together saw none but 0 for elements and no other wrong one: then the writer had
/// checksums switched off, and the log says so. EXTENT_MISMATCH if two items share bytes. The same
/// Error on all ranks.
LoadReport load(const Ports& ports, Communicator& group, const LoadSettings& options,
                const Ask& ask);
/// The same for a job that knows what it wants.
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadSettings& options);

}  // namespace reprise
