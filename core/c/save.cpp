#include "reprise/save.hpp"

#include <array>
#include <memory>
#include <utility>

#include "core/c/handles.hpp"
#include "core/c/last_error.hpp"

namespace reprise::c {
namespace {

constexpr std::array kChecksums = {Checksums::kCrc32, Checksums::kNone, Checksums::kCrc32AndSha256};
constexpr std::array kReturns = {BeginReturns::kWhenCopied, BeginReturns::kWhenQueued};
constexpr std::array kReadBack = {ReadBack::kBeforeOlderGoes, ReadBack::kAlways, ReadBack::kNever};

std::optional<std::uint64_t> bytes_unless_0(std::uint64_t bytes) {
  return bytes != 0 ? std::optional(bytes) : std::nullopt;
}

SaveOptions save_options_of(const rp_save_options& given) {
  SaveOptions options;
  options.directory = required(given.directory, "directory");
  if (given.has_step != 0) options.step = given.step;
  options.step_names = text_or(given.step_names, options.step_names.c_str());
  options.checksums = choice(kChecksums, given.checksums, "checksums");
  if (given.keep != 0) options.keep = given.keep;
  options.replace = given.refuse_existing == 0;
  options.staging_bytes = bytes_unless_0(given.staging_bytes);
  options.batch_bytes = bytes_unless_0(given.batch_bytes).value_or(options.batch_bytes);
  options.returns = choice(kReturns, given.returns, "returns");
  options.read_back = choice(kReadBack, given.read_back, "read_back");
  options.structure = text_or(given.structure, options.structure.c_str());
  if (given.refuse_unequal != 0) options.unequal = UnequalCopies::kRefused;
  options.compare_tensors = given.compare_tensors != 0;
  options.stream = given.stream;
  return options;
}

/// Fills the lists of a result that stays where it is.
void keep_lists(KeptSave& kept) {
  kept.log = Texts(std::move(kept.result.log));
  for (const UnequalCopy& copy : kept.result.unequal) {
    kept.unequal.push_back({.key = copy.key.c_str(),
                            .offset = copy.offset.begin(),
                            .ndim = copy.offset.size(),
                            .holders = copy.holders.data(),
                            .holder_count = copy.holders.size(),
                            .writer = copy.writer,
                            .unused = 0});
  }
}

int number_of(Planned planned) {
  switch (planned) {
    case Planned::kFresh:
      return RP_FRESH;
    case Planned::kReplanned:
      return RP_REPLANNED;
    case Planned::kReused:
      break;
  }
  return RP_REUSED;
}

rp_save_result result_of(const KeptSave& kept) {
  const SaveResult& result = kept.result;
  return {.struct_size = sizeof(rp_save_result),
          .directory = result.directory.c_str(),
          .bytes = result.bytes,
          .tensors = result.tensors,
          .objects = result.objects,
          .staging_bytes = result.staging_bytes,
          .bound_staging = result.bound_staging,
          .bound_empty = result.bound_empty,
          .plan_signature = result.plan_signature,
          .planned = number_of(result.planned),
          .waited_for_staging = result.waited_for_staging ? 1 : 0,
          .unequal = kept.unequal.data(),
          .unequal_count = kept.unequal.size(),
          .log = kept.log.data(),
          .log_count = kept.log.size()};
}

void end(rp_save& save, SaveResult result) {
  save.ended.emplace(KeptSave{.result = std::move(result), .log = {}, .unequal = {}});
  keep_lists(*save.ended);
}

/// Makes a handle of a save that `begin` begins.
template <class Begin>
std::int32_t begun(rp_job* job, const rp_state* state, const rp_save_options* options,
                   rp_save** save, const Begin& begin) noexcept {
  return guarded([&] {
    require(save, "save");
    *save = nullptr;
    *save = begin(own(job, "job").job, own(state, "state").state,
                  save_options_of(taken(options, "options")))
                .release();
  });
}

}  // namespace
}  // namespace reprise::c

std::int32_t rp_begin_save(rp_job* job, const rp_state* state, const rp_save_options* options,
                           rp_save** save) {
  using namespace reprise;
  return c::begun(job, state, options, save,
                  [](Job& in, const State& what, const SaveOptions& how) {
                    return std::make_unique<rp_save>(begin_save(in, what, how));
                  });
}

std::int32_t rp_save_all(rp_job* job, const rp_state* state, const rp_save_options* options,
                         rp_save** save) {
  using namespace reprise;
  return c::begun(job, state, options, save,
                  [](Job& in, const State& what, const SaveOptions& how) {
                    auto handle = std::make_unique<rp_save>(std::nullopt);
                    c::end(*handle, reprise::save(in, what, how));
                    return handle;
                  });
}

std::int32_t rp_save_wait_for_staging(rp_save* save) {
  using namespace reprise::c;
  return guarded([&] {
    rp_save& ours = own(save, "save");
    if (ours.save) ours.save->wait_for_staging();
  });
}

std::int32_t rp_save_poll(rp_save* save, std::int32_t* committed) {
  using namespace reprise::c;
  return guarded([&] {
    require(committed, "committed");
    rp_save& ours = own(save, "save");
    *committed = ours.ended || ours.save->poll() ? 1 : 0;
  });
}

std::int32_t rp_save_finish(rp_save* save, rp_save_result* result) {
  using namespace reprise::c;
  return guarded([&] {
    rp_save& ours = own(save, "save");
    if (!ours.ended) end(ours, ours.save->finish());
    give(result, result_of(*ours.ended), "result");
  });
}

void rp_save_free(rp_save* save) { reprise::c::free_own(save); }
