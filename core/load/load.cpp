#include "core/load/load.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "core/agree/agreement.hpp"
#include "core/agree/leader.hpp"
#include "core/base/caught.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/format/common_state.hpp"
#include "core/load/checksum_vote.hpp"
#include "core/load/load_keys.hpp"
#include "core/load/load_open.hpp"
#include "core/load/load_reader.hpp"
#include "core/load/load_seamed.hpp"
#include "core/load/record_exchange.hpp"
#include "core/load/share_fill.hpp"
#include "core/plan/cover.hpp"
#include "core/ports/interruption.hpp"
#include "core/ports/leaf_reach.hpp"
#include "core/ports/mixed_device.hpp"
#include "core/save/phases.hpp"
#include "core/save/staging.hpp"

namespace reprise {
namespace {

constexpr std::string_view kSwitchedOff =
    "checksums were not verified: the writer had them switched off, and those of elements are 0";

/// Sizes of the read buffer without an option. Copies to a device overlap with reads of the next
/// part, so a device gets parts that hide what a copy and a read cost by themselves.
constexpr std::uint64_t kHostBuffer = std::uint64_t{16} << 20U;
constexpr std::uint64_t kDeviceBuffer = std::uint64_t{64} << 20U;

/// Checks that the chunks of each requested tensor tile the tensor; otherwise part of it would
/// silently stay unfilled. Returns the number of requested tensors that are stored.
std::uint64_t prove_stored_cover(const StateDict& wanted, const Catalog& catalog) {
  std::vector<Box> boxes;
  std::uint64_t stored = 0;
  for (const auto& leaf : wanted.tensors) {
    const StoredTensor* tensor = catalog.tensor(leaf.key);
    if (tensor == nullptr) continue;
    ++stored;
    if (tensor->chunks.size() == 1 && tensor->chunks[0].box == Box::whole(tensor->shape)) continue;
    boxes.clear();
    for (const auto& chunk : tensor->chunks) boxes.push_back(chunk.box);
    if (const auto defect = prove_cover(tensor->shape, boxes)) {
      throw Error(defect->code, defect->message, {.key = leaf.key});
    }
  }
  return stored;
}

/// Form in which a job wants the common state.
enum class CommonForm : std::uint8_t { kDict, kAsStored };

CommonForm form_wanted(const StateDict& into) {
  return into.common.as<Bytes>() != nullptr ? CommonForm::kAsStored : CommonForm::kDict;
}

/// Reads the common state on one rank and sends it to all ranks. The rank that reads also adds the
/// checksums of the common state's records to `checksums`.
std::optional<Value> common_for_all(Communicator& group, const LeaderSeams& lead,
                                    const std::function<Checkpoint&()>& checkpoint,
                                    ChecksumTally* checksums = nullptr,
                                    CommonForm form = CommonForm::kDict) {
  const Bytes answer = from_leader(group, lead, [&] {
    Checkpoint& opened = checkpoint();
    auto common = opened.common(checksums);
    if (!common) {
      opened.require_common_if_megatron();
      return Bytes{};
    }
    if (form == CommonForm::kAsStored) return std::move(common->stored);
    if (!common->item.value) {
      throw Error(Code::kUnsupported,
                  "the common state can't be loaded: " + common->item.opaque_because,
                  {.file = common->source});
    }
    return write_common_file(*common->item.value->as<Dict>());
  });
  if (answer.empty()) return std::nullopt;
  if (form == CommonForm::kAsStored) return answer;
  return read_common_file(answer).value;
}

void remember_log(LoadResult& report, const std::vector<std::string>& lines, Trace& trace) {
  for (const auto& line : lines) trace.event({.phase = "load", .detail = line});
  report.log.insert(report.log.end(), lines.begin(), lines.end());
}

/// Returns what to tell if a load failed and could not poison the memory that it had filled in
/// part.
std::string unpoisoned(const Error& error) {
  return std::string("what had been loaded could not be poisoned: ") + error.what();
}

/// While this object exists, each read of the checkpoint first looks in `at_hand` for the bytes,
/// and reads the file only if they are not there.
class LookFirst {
 public:
  LookFirst(Checkpoint& checkpoint, const BytesAtHand& at_hand) : checkpoint_(checkpoint) {
    checkpoint_.look_first_in(&at_hand);
  }
  ~LookFirst() { checkpoint_.look_first_in(nullptr); }
  LookFirst(const LookFirst&) = delete;
  LookFirst& operator=(const LookFirst&) = delete;

 private:
  Checkpoint& checkpoint_;
};

/// Thrown on all ranks, with the same error, if a candidate is damaged and cannot be loaded.
struct Damage {
  Error error;
};

/// Runs one stage of a load.
template <class Work>
auto stage(LoadStage which, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (is_damage(error.code(), which)) throw Damage{error};
    throw;
  }
}

/// One load: tries candidate after candidate until one is undamaged.
class Loading {
 public:
  /// Returns the job's request. Called after the checkpoint has been opened.
  using Want = std::function<Wanted(Loading&, Checkpoint&)>;

  Loading(const Ports& ports, Communicator& group, const LoadOptions& options,
          const LoadSeams& seams, const KnownMetadata* known, ParsedMetadata* parsed)
      : ports_(ports),
        group_(group),
        options_(options),
        seams_(seams),
        known_(known),
        parsed_(parsed) {}

  LoadResult run(const Want& want) {
    begin_phase(ports_.trace, phase::kLocate);
    Candidates found = candidates_for_all(ports_.store, group_, options_, seams_);
    end_phase(ports_.trace, phase::kLocate);
    fell_back_from_ = std::move(found.passed_over);
    notes_ = std::move(found.notes);
    std::optional<Error> first;
    for (const Location& location : found.locations) {
      try {
        return attempt(location, want);
      } catch (const Damage& damage) {
        if (!first) first = damage.error;
        pass_over(location, damage.error);
      } catch (const Error& error) {
        if (!half_read_) throw;
        throw Error(error.code(),
                    error.message() +
                        "; tensors hold 0xBD, because a newer checkpoint was found "
                        "damaged while they were read from it",
                    error.place());
      }
    }
    throw *first;
  }

  /// Returns the checkpoint's common state, so that the job can base its request on it; null if
  /// there is no common state. The load later delivers the same value. If the load verifies
  /// checksums, the records of the common state are added to the tally.
  const Value* common(Checkpoint& checkpoint, CommonForm form = CommonForm::kDict) {
    begin_phase(ports_.trace, phase::kCommon);
    Common& shown = shown_.emplace();
    shown.value = stage(LoadStage::kContent, [&] {
      return common_for_all(
          group_, seams_.leader, [&]() -> Checkpoint& { return checkpoint; },
          verifies() ? &shown.tally : nullptr, form);
    });
    end_phase(ports_.trace, phase::kCommon);
    return shown.value ? &*shown.value : nullptr;
  }

 private:
  struct Common {
    std::optional<Value> value;
    ChecksumTally tally;  ///< checksums of the records of the common state
  };
  /// The plan for this rank's reads, and what has been read so far.
  struct ReadShare {
    LoadPlan plan;
    Staging staging = {};
    std::vector<Value> objects = {};  ///< in the order of plan.objects
    std::optional<Value> common = {};
    ChecksumTally tally = {};
  };

  /// The device of the leaves that are being filled.
  Device& device() { return mixed_ ? *mixed_ : ports_.device; }
  std::uint64_t buffer_bytes() const {
    return options_.staging_bytes.value_or(ports_.device.host_memory() ? kHostBuffer
                                                                       : kDeviceBuffer);
  }

  bool verifies() const {
    return options_.checksums == LoadChecksums::kVerified || options_.fallback != Fallback::kNone;
  }

  void pass_over(const Location& location, const Error& error) {
    if (options_.fallback == Fallback::kNone) return;
    fell_back_from_.push_back(location.directory + ": " + error.what());
    if (location.step) damaged_.push_back(location.step->value);
    ports_.trace.event({.phase = "load", .detail = "passed over " + fell_back_from_.back()});
  }

  LoadResult attempt(const Location& location, const Want& want) {
    shown_.reset();
    begin_phase(ports_.trace, phase::kMetadata);
    auto opened = stage(LoadStage::kOpen, [&] {
      return std::make_shared<Opened>(
          known_ != nullptr ? opened_as(*known_, ports_.store, location)
                            : open_for_all(ports_.store, group_, seams_, location, parsed_));
    });
    if (options_.fallback != Fallback::kNone) opened = vote(std::move(opened));
    end_phase(ports_.trace, phase::kMetadata, {.bytes = opened->metadata_bytes});
    LoadResult report = fill(opened->checkpoint, want(*this, opened->checkpoint));
    report.metadata_bytes = opened->metadata_bytes;
    return report;
  }

  /// Checks the candidate's files; each rank checks a share. If any rank finds a fault, all ranks
  /// throw that error.
  std::shared_ptr<Opened> vote(std::shared_ptr<Opened> candidate) {
    const Contribution mine = contribution_of([&] {
      require_files(candidate->checkpoint, group_.rank(), group_.group().size());
      return Bytes{};
    });
    Votes votes;
    std::optional<Error> fault;
    for (auto& gathered : gather_contributions(group_, mine)) {
      if (gathered.error && !fault) fault = gathered.error;
      votes.push_back(std::move(gathered.error));
    }
    auto chosen = seams_.choose_candidate(std::move(candidate), votes, group_.rank());
    if (fault) stage(LoadStage::kOpen, [&] { throw *fault; });
    return chosen;
  }

  LoadResult fill(Checkpoint& checkpoint, const Wanted& wanted) {
    mixed_.reset();
    if (needs_mixed_device(ports_.device, *wanted.into))
      mixed_.emplace(ports_.device, *wanted.into);
    LoadResult report;
    report.directory = checkpoint.location().directory;
    if (const auto step = checkpoint.location().step) report.step = step->value;
    report.log = report.fell_back_from = fell_back_from_;
    remember_log(report, notes_, ports_.trace);
    report.damaged = damaged_;
    ReadShare share = plan(checkpoint, wanted, report);
    read(checkpoint, *wanted.into, share, report);
    for (std::size_t i = 0; i < share.objects.size(); ++i) {
      wanted.into->objects[share.plan.objects[i].leaf].value = std::move(share.objects[i]);
    }
    if (share.common) wanted.into->common = std::move(*share.common);
    report.objects = share.objects.size();
    return report;
  }

  ReadShare plan(const Checkpoint& checkpoint, const Wanted& wanted, LoadResult& report) {
    ReadShare share;
    begin_phase(ports_.trace, phase::kLoadPlan);
    const auto absent = stage(
        LoadStage::kKeys, [&] { return plan_share(checkpoint, *wanted.into, share.plan, report); });
    KeyMismatch keys = mismatch_over(group_, share.plan, absent);
    for (auto* side : {&keys.not_requested, &keys.not_stored}) {
      for (const auto* excused : {&options_.excused, &wanted.excused}) {
        const auto taken = take_excused(*side, *excused);
        report.excused.insert(report.excused.end(), taken.begin(), taken.end());
      }
    }
    StrictVerdict verdict = seams_.judge_strictness(options_.strictness, keys);
    remember_log(report, verdict.log, ports_.trace);
    if (verdict.refuse || (!verdict.drop_not_stored && !keys.not_stored.empty())) refuse(keys);
    report.not_stored = std::move(verdict.returned.not_stored);
    report.not_requested = std::move(verdict.returned.not_requested);
    const LoadPlan& own = share.plan;
    report.elements = own.elements;
    report.bytes_needed = own.bytes_needed;
    const StagingNeed need =
        staging_need(own, checkpoint.catalog(), device(), ports_.tasks, buffer_bytes());
    share.staging = {.bytes = seams_.staging(need),
                     .room = one_read(need),
                     .joined = need.joined,
                     .joined_items = need.joined_items,
                     .readers = need.readers};
    report.peak_staging = share.staging.bytes;
    report.bound_staging = reading_bound(own, checkpoint.catalog(), need);
    report.bound_empty = empty_reading_bound(own, checkpoint.catalog());
    end_phase(ports_.trace, phase::kLoadPlan, {.items = own.reads.size() + own.objects.size()});
    return share;
  }

  /// Plans this rank's share. Returns the keys that are wanted but not stored.
  std::vector<std::string> plan_share(const Checkpoint& checkpoint, const StateDict& into,
                                      LoadPlan& plan, LoadResult& report) {
    std::vector<std::string> absent;
    agree_on(group_, [&] {
      require_uninterrupted(ports_);
      require_apart(checkpoint);
      require_reach(ports_.device, into);
      require_distinct_elements(into);
      report.tensors = prove_stored_cover(into, checkpoint.catalog());
      plan = load_plan(into.tensors, into.objects, checkpoint.catalog());
      for (const auto& mismatch : plan.mismatches) {
        if (mismatch.code != Code::kNotStored) {
          throw Error(mismatch.code, mismatch.message, {.key = mismatch.key});
        }
        absent.push_back(mismatch.key);
      }
      require_poison_covered(checkpoint, into);
      return Bytes{};
    });
    return absent;
  }

  /// Throws if this checkpoint lacks elements whose memory a damaged one has left poisoned.
  void require_poison_covered(const Checkpoint& checkpoint, const StateDict& into) const {
    for (const auto& leaf : into.tensors) {
      const auto poisoned = poisoned_.find(leaf.key);
      if (poisoned == poisoned_.end()) continue;
      const StoredTensor* stored = checkpoint.catalog().tensor(leaf.key);
      bool covers = stored != nullptr;
      for (std::size_t dim = 0; covers && dim < leaf.shape.size(); ++dim) {
        const auto wanted = std::min(poisoned->second[dim], leaf.shape[dim]);
        covers = wanted <= logical_shape(*stored)[dim];
      }
      if (covers) continue;
      const std::string what = stored != nullptr ? "all of this tensor" : "this tensor";
      throw Error(Code::kNotStored,
                  "a newer checkpoint, which is damaged, has " + what + ", but this one has not",
                  {.key = leaf.key, .file = ports_.store.display(checkpoint.location().directory)});
    }
  }

  /// Remembers what of the wanted tensors the damaged checkpoint has.
  void remember_poison(const Checkpoint& damaged, const StateDict& into) {
    half_read_ = true;
    for (const auto& leaf : into.tensors) {
      const StoredTensor* stored = damaged.catalog().tensor(leaf.key);
      if (stored == nullptr) continue;
      const Dims& shape = logical_shape(*stored);
      Dims& largest = poisoned_.try_emplace(leaf.key, shape).first->second;
      for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        largest[dim] = std::max(largest[dim], shape[dim]);
      }
    }
  }

  void read(Checkpoint& checkpoint, StateDict& into, ReadShare& share, LoadResult& report) {
    if (shown_) share.tally = shown_->tally;
    std::optional<ShareFill> filling;
    const auto make_ready = [&] {
      filling.emplace(share.plan, checkpoint.catalog(),
                      ShareReader(checkpoint, device(), ports_.tasks, into, share.staging,
                                  verifies() ? &share.tally : nullptr,
                                  parsed_ != nullptr ? parsed_->frames() : frames_),
                      [this] { require_uninterrupted(ports_); });
    };
    const auto exchange = exchange_of(checkpoint, report, [&] {
      make_ready();
      return filling->records();
    });
    try {
      agree_on(group_, [&] {
        if (!filling) make_ready();
        read_share(checkpoint, *filling, report, exchange.get());
        return Bytes{};
      });
      share.objects = std::move(filling->objects());
      read_common(checkpoint, share, report, form_wanted(into));
      require_in_place(checkpoint);
    } catch (const std::exception& caught) {
      const Error error = error_from(caught);
      const auto poison = [&] {
        if (filling) filling->poison();
        return Bytes{};
      };
      remember_poison(checkpoint, into);
      if (!is_damage(error.code(), LoadStage::kContent)) {
        // Only this rank knows if it can't poison its memory: others may be lost.
        const auto second = contribution_of(poison).error;
        if (second) ports_.trace.event({.phase = "load", .detail = unpoisoned(*second)});
        throw;
      }
      agree_on_poison(error, poison);
      require_in_place(checkpoint);
      throw Damage{error};
    }
  }

  /// Collective. Either all ranks try the next candidate, or none does: if a rank can't poison its
  /// memory, all ranks throw `cause` with a note on that.
  void agree_on_poison(const Error& cause, const std::function<Bytes()>& poison) const {
    try {
      agree_on(group_, poison);
    } catch (const std::exception& caught) {
      throw Error(cause.code(), cause.message() + "; " + unpoisoned(error_from(caught)),
                  cause.place());
    }
  }

  /// Collective. Throws if the checkpoint was replaced at any time while it was read, even if the
  /// original is back now: some of the data may come from the other checkpoint. First, one rank
  /// checks that the metadata is still the original; then each rank checks the files that it
  /// opened. This order matters: if the metadata is the original, the files that are now at the
  /// path are originals too.
  void require_in_place(const Checkpoint& checkpoint) const {
    from_leader(group_, seams_.leader, [&checkpoint] {
      checkpoint.require_metadata_in_place();
      return Bytes{};
    });
    agree_on(group_, [&checkpoint] {
      checkpoint.require_files_in_place();
      return Bytes{};
    });
  }

  /// If each rank reads for itself, returns null without communication. Otherwise, the call is
  /// collective: first, every rank allocates what it needs for the exchange, and if this fails on
  /// any rank, all ranks throw; then the communicators are created.
  std::unique_ptr<RecordExchange> exchange_of(
      Checkpoint& checkpoint, LoadResult& report,
      const std::function<std::vector<StoredRecord>()>& wanted) const {
    if (options_.reads == Reads::kByEach) return nullptr;
    // Checksums are computed by the CPU, so then all bytes must pass through its memory, as those
    // do that stay there.
    const AtHand may_be = verifies() || mixed_ ? AtHand::kOnHost : AtHand::kOnDevice;
    auto exchange = std::make_unique<RecordExchange>(ports_, group_, checkpoint, wanted,
                                                     seams_.share, buffer_bytes(), may_be);
    report.bound_staging += exchange->bound();
    report.bound_empty += exchange->bound();
    return exchange;
  }

  /// Reads the records that other ranks need too, round by round, and then the records that only
  /// this rank needs.
  void read_share(Checkpoint& checkpoint, ShareFill& filling, LoadResult& report,
                  RecordExchange* exchange) const {
    begin_phase(ports_.trace, phase::kRead);
    if (exchange != nullptr) {
      const LookFirst looking(checkpoint, *exchange);
      exchange->run([&](std::span<const StoredRecord> records, AtHand at_hand) {
        filling.read(records, at_hand);
      });
      report.bytes_for_all = exchange->bytes_read();
      report.peak_staging += exchange->peak();
    }
    filling.read_tensors();
    report.bytes_read = filling.bytes_read();
    end_phase(ports_.trace, phase::kRead, {.bytes = report.bytes_read, .items = report.tensors});
    begin_phase(ports_.trace, phase::kObjects);
    filling.read_objects();
    end_phase(ports_.trace, phase::kObjects, {.items = filling.objects().size()});
    if (filling.unverified() > 0) {
      remember_log(
          report,
          {std::to_string(filling.unverified()) +
           " items of bytes have no checksums because they are not archives of torch.save"},
          ports_.trace);
    }
  }

  /// Reads the common state, then decides whether checksum mismatches in any of the records are
  /// damage.
  void read_common(Checkpoint& checkpoint, ReadShare& share, LoadResult& report, CommonForm form) {
    begin_phase(ports_.trace, phase::kCommon);
    if (shown_) {
      share.common = std::move(shown_->value);
    } else {
      share.common = common_for_all(
          group_, seams_.leader, [&]() -> Checkpoint& { return checkpoint; },
          verifies() ? &share.tally : nullptr, form);
    }
    report.records_verified = share.tally.records();
    if (verifies() && judge_checksums(group_, share.tally, seams_)) {
      report.records_verified = 0;
      remember_log(report, {std::string(kSwitchedOff)}, ports_.trace);
    }
    end_phase(ports_.trace, phase::kCommon);
  }

  const Ports& ports_;
  Communicator& group_;
  const LoadOptions& options_;
  const LoadSeams& seams_;
  const KnownMetadata* known_;  ///< null if it is to be read
  ParsedMetadata* parsed_;      ///< null if this rank parses for itself
  TensorFrames frames_;         ///< used by this rank alone
  std::vector<std::string> fell_back_from_;
  std::vector<std::int64_t> damaged_;  ///< damaged iterations among the candidates
  std::vector<std::string> notes_;
  std::optional<MixedDevice> mixed_;  ///< set if the leaves are in memory of two kinds
  std::optional<Common> shown_;       ///< common state of the current candidate
  bool half_read_ = false;            ///< true once a candidate was found damaged while it was read
  /// For each key whose memory was poisoned, the largest shape that was stored; a later candidate
  /// must have as much of it.
  std::map<std::string, Dims> poisoned_;
};

}  // namespace

std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const StepNames& names) {
  return read_common(store, group, path, LeaderSeams{}, names);
}

std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderSeams& seams, const StepNames& names) {
  std::optional<Checkpoint> checkpoint;
  return common_for_all(group, seams, [&]() -> Checkpoint& {
    return checkpoint.emplace(Checkpoint::open(store, path, names));
  });
}

bool nothing_saved(Store& store, Communicator& group, const std::string& path) {
  const auto answers = agree_on(group, [&] { return Bytes(nothing_saved(store, path) ? 0 : 1); });
  const auto is_empty = [](const Bytes& answer) { return answer.empty(); };
  const auto without = std::ranges::find_if(answers, is_empty);
  const auto with = std::ranges::find_if_not(answers, is_empty);
  if (without == answers.end() || with == answers.end()) return with == answers.end();
  const auto rank_at = [&](auto at) {
    return group.group().member({static_cast<std::int32_t>(at - answers.begin())});
  };
  throw Error(Code::kNotFound,
              "this rank sees no checkpoint, but rank " + std::to_string(rank_at(with).value) +
                  " does: is the same file system mounted on all ranks? If another job is writing "
                  "its first checkpoint there, try again",
              {.rank = rank_at(without), .file = store.display(path)});
}

LoadResult load(const Ports& ports, Communicator& group, const LoadOptions& options,
                const Ask& ask) {
  return load(ports, group, options, ask, {});
}

LoadResult load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options) {
  return load(ports, group, into, options, {});
}

LoadResult load(const Ports& ports, Communicator& group, const LoadOptions& options, const Ask& ask,
                const LoadSeams& seams, const KnownMetadata* known, ParsedMetadata* parsed) {
  return Loading(ports, group, options, seams, known, parsed)
      .run([&ask](Loading& loading, Checkpoint& checkpoint) {
        const Value* common = loading.common(checkpoint);
        return ask({checkpoint.location(), common, checkpoint.catalog()});
      });
}

LoadResult load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options, const LoadSeams& seams, ParsedMetadata* parsed) {
  return Loading(ports, group, options, seams, nullptr, parsed)
      .run([&](Loading& loading, Checkpoint& checkpoint) {
        constexpr auto kForm = CommonForm::kAsStored;
        if (form_wanted(into) == kForm && loading.common(checkpoint, kForm) == nullptr) {
          throw Error(Code::kNotStored, "not a Megatron-Core checkpoint: it has no common state",
                      {.file = ports.store.display(checkpoint.location().directory)});
        }
        return Wanted{&into, {}};
      });
}

}  // namespace reprise
