#pragma once
// Load: metadata is read and validated, the template says what is wanted, each byte that is needed
// is read once per rank.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/engine/leader.hpp"
#include "core/engine/plan_cache.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/strictness.hpp"
#include "core/ports/ports.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

/// The decisions of a load. Default-constructed ones are right; a mutant swaps one.
struct LoadPolicy {
  /// What a difference between requested and stored keys means.
  StrictVerdict (*strict)(Strictness mode, const KeyMismatch& keys) = judge;
  /// Who reads for all.
  LeaderPolicy lead = {};
  MetadataCachePolicy cache;
};

/// Whether what is read is held against the CRC-32 that is stored for it.
enum class LoadChecksums : std::uint8_t {
  kIgnored,
  kVerified,  ///< records of which bytes are needed are read whole
};

struct LoadOptions {
  std::string path;  ///< as for locate()
  Strictness strictness = Strictness::kRaiseAll;
  /// Keys that may be absent on one side; each use is reported.
  std::vector<std::string> excused;
  std::uint64_t staging_bytes = std::uint64_t{16} << 20U;
  LoadChecksums checksums = LoadChecksums::kIgnored;
  LoadPolicy policy = {};
  /// Seeds the plan of the next save, and keeps the metadata; all ranks give one, or none does.
  PlanCache* cache = nullptr;
};

struct LoadReport {
  Location location;
  std::uint64_t tensors = 0;  ///< leaves of this rank that were filled
  std::uint64_t objects = 0;  ///< likewise
  std::uint64_t elements = 0;
  std::uint64_t bytes_read = 0;  ///< element bytes, this rank
  std::uint64_t bytes_needed = 0;
  std::uint64_t peak_staging = 0;
  std::uint64_t records_verified = 0;  ///< this rank, if checksums are verified
  KeyMismatch returned;                ///< what the strict mode returns
  std::vector<std::string> excused;
  std::vector<std::string> log;
  std::vector<CacheKind> reused;
};

/// The common state of the checkpoint at `path`, read by one rank for all, for jobs that need it to
/// say what they want. Nothing where a checkpoint has none. Collective; fails alike on all ranks.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderPolicy& lead = {});

/// Collective over `group`. Fills the tensors' pieces, the objects' values and the common state of
/// `into`, whose keys, shapes and dtypes are the request; where a plain DCP checkpoint has no
/// common state, that of `into` stays. A refusal that follows from names, metadata or plan leaves
/// `into` as it was; after a data error its tensors are poisoned (0xBD) and the job may not go on
/// from them. A record without its stored checksum is a data error (CHECKSUM: rank, key, file,
/// offset), unless all ranks together saw none but 0 for elements and no other wrong one: then the
/// writer had checksums switched off, and the log says so. EXTENT_MISMATCH if two items share
/// bytes. The same Error on all ranks.
LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options);

}  // namespace reprise
