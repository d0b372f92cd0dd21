#include "reprise/load.hpp"

#include <array>
#include <memory>
#include <utility>

#include "core/c/handles.hpp"
#include "core/c/last_error.hpp"

namespace reprise::c {
namespace {

constexpr std::array kStrictness = {
    Strictness::kRaiseAll,      Strictness::kRaiseUnexpected, Strictness::kAssumeOkUnexpected,
    Strictness::kLogUnexpected, Strictness::kLogAll,          Strictness::kReturnUnexpected,
    Strictness::kReturnAll,     Strictness::kIgnoreAll};

LoadOptions load_options_of(const rp_load_options& given) {
  LoadOptions options;
  options.directory = required(given.directory, "directory");
  options.step_names = text_or(given.step_names, options.step_names.c_str());
  options.strictness = choice(kStrictness, given.strictness, "strictness");
  if (given.excused_count != 0) require(given.excused, "excused");
  for (std::size_t i = 0; i < given.excused_count; ++i) {
    options.excused.push_back(required(given.excused[i], "excused"));
  }
  if (given.verify_checksums != 0) options.checksums = LoadChecksums::kVerified;
  if (given.newest_whole != 0) options.fallback = Fallback::kNewestWhole;
  if (given.read_once != 0) options.reads = Reads::kOncePerJob;
  if (given.staging_bytes != 0) options.staging_bytes = given.staging_bytes;
  options.stream = given.stream;
  return options;
}

/// Moves what a load has found to its handle, and returns it as C sees it.
rp_load_result kept_in(rp_load& load, LoadResult found) {
  load.directory = std::move(found.directory);
  load.not_stored = Texts(std::move(found.not_stored));
  load.not_requested = Texts(std::move(found.not_requested));
  load.excused = Texts(std::move(found.excused));
  load.fell_back_from = Texts(std::move(found.fell_back_from));
  load.log = Texts(std::move(found.log));
  load.damaged = std::move(found.damaged);
  return {.struct_size = sizeof(rp_load_result),
          .found = 1,
          .has_step = found.step ? 1 : 0,
          .step = found.step.value_or(0),
          .directory = load.directory.c_str(),
          .tensors = found.tensors,
          .objects = found.objects,
          .elements = found.elements,
          .bytes_read = found.bytes_read,
          .bytes_for_all = found.bytes_for_all,
          .bytes_needed = found.bytes_needed,
          .peak_staging = found.peak_staging,
          .bound_staging = found.bound_staging,
          .bound_empty = found.bound_empty,
          .metadata_bytes = found.metadata_bytes,
          .records_verified = found.records_verified,
          .not_stored = load.not_stored.data(),
          .not_stored_count = load.not_stored.size(),
          .not_requested = load.not_requested.data(),
          .not_requested_count = load.not_requested.size(),
          .excused = load.excused.data(),
          .excused_count = load.excused.size(),
          .fell_back_from = load.fell_back_from.data(),
          .fell_back_from_count = load.fell_back_from.size(),
          .damaged = load.damaged.data(),
          .damaged_count = load.damaged.size(),
          .log = load.log.data(),
          .log_count = load.log.size()};
}

/// Returns the result of a load that found no checkpoint.
rp_load_result nothing_found() {
  rp_load_result none{};
  none.directory = "";
  return none;
}

}  // namespace
}  // namespace reprise::c

std::int32_t rp_load_all(rp_job* job, rp_state* state, const rp_load_options* options,
                         rp_load** load, rp_load_result* result) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(load, "load");
    *load = nullptr;
    auto handle = std::make_unique<rp_load>();
    const rp_load_options given = c::taken(options, "options");
    const LoadOptions how = c::load_options_of(given);
    Job& in = c::own(job, "job").job;
    State& into = c::own(state, "state").state;
    std::optional<LoadResult> found =
        given.if_any != 0 ? load_if_any(in, into, how) : reprise::load(in, into, how);
    c::give(result, found ? c::kept_in(*handle, std::move(*found)) : c::nothing_found(), "result");
    *load = handle.release();
  });
}

void rp_load_free(rp_load* load) { reprise::c::free_own(load); }
