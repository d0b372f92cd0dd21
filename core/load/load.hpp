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
#include "reprise/load.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Returns the common state of the checkpoint at `path`; nothing if the checkpoint has no common
/// state. One rank reads it for all ranks. Meant for jobs that decide what to load by looking at
/// the common state. Collective; a failure throws the same error on all ranks.
std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const StepNames& names = {});

/// True if nothing was ever saved at `path`. Collective: all ranks look. Throws NOT_FOUND if some
/// see a checkpoint and some do not.
bool nothing_saved(Store& store, Communicator& group, const std::string& path);

/// The job's request for content of the chosen checkpoint.
struct Wanted {
  StateDict* into = nullptr;         ///< must live until the load returns
  std::vector<std::string> excused;  ///< excused keys, in addition to LoadOptions::excused
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
/// common state is left unchanged; if the request wants it as stored (Bytes), that is NOT_STORED,
/// before anything is filled. All ranks load the same checkpoint and want the same form.
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
LoadResult load(const Ports& ports, Communicator& group, const LoadOptions& options,
                const Ask& ask);
/// Loads in the same way, but takes the job's request as `into` instead of asking for it.
LoadResult load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options);

}  // namespace reprise
