#include "core/diff/diff.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/diff/diff_beside.hpp"
#include "core/diff/diff_objects.hpp"
#include "core/diff/diff_seamed.hpp"
#include "core/diff/diff_tensors.hpp"
#include "core/verify/verify_directory.hpp"

namespace reprise {

std::span<const DiffVerdict> all_diff_verdicts() {
  static constexpr std::array kAll = {
      DiffVerdict::kDifferent, DiffVerdict::kShape,      DiffVerdict::kDtype,
      DiffVerdict::kOnlyLeft,  DiffVerdict::kOnlyRight,  DiffVerdict::kNotComparable,
      DiffVerdict::kNotKnown,  DiffVerdict::kSameValues, DiffVerdict::kSame};
  return kAll;
}

std::string_view name_of(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kSame:
      return "same";
    case DiffVerdict::kSameValues:
      return "same values";
    case DiffVerdict::kDifferent:
      return "different";
    case DiffVerdict::kShape:
      return "shape differs";
    case DiffVerdict::kDtype:
      return "dtype differs";
    case DiffVerdict::kOnlyLeft:
      return "only in A";
    case DiffVerdict::kOnlyRight:
      return "only in B";
    case DiffVerdict::kNotComparable:
      return "not comparable";
    case DiffVerdict::kNotKnown:
      return "not known";
  }
  return "different";
}

std::string_view name_of(DiffOutcome outcome) {
  switch (outcome) {
    case DiffOutcome::kSame:
      return "same";
    case DiffOutcome::kDifferent:
      return "different";
    case DiffOutcome::kNotAllCompared:
      return "not all compared";
    case DiffOutcome::kNothingCompared:
      return "nothing compared";
    case DiffOutcome::kDamaged:
      return "damaged";
  }
  return "damaged";
}

bool counts_as_different(DiffVerdict verdict) {
  return verdict != DiffVerdict::kSame && verdict != DiffVerdict::kSameValues &&
         verdict != DiffVerdict::kNotComparable && verdict != DiffVerdict::kNotKnown;
}

namespace {

template <class Counts>
std::uint64_t count_of(const DiffReport& report, Counts counts) {
  const auto judged = [&counts](const auto& item) { return counts(item.verdict); };
  return static_cast<std::uint64_t>(
      std::count_if(report.tensors.begin(), report.tensors.end(), judged) +
      std::count_if(report.objects.begin(), report.objects.end(), judged) +
      std::count_if(report.files.begin(), report.files.end(), judged));
}

}  // namespace

std::uint64_t DiffReport::different() const { return count_of(*this, counts_as_different); }

std::uint64_t DiffReport::not_comparable() const {
  return count_of(*this, [](DiffVerdict v) { return v == DiffVerdict::kNotComparable; });
}

std::uint64_t DiffReport::not_known() const {
  return count_of(*this, [](DiffVerdict v) { return v == DiffVerdict::kNotKnown; });
}

DiffOutcome DiffReport::outcome(LayoutBound bound) const {
  if (!damage.empty()) return DiffOutcome::kDamaged;
  if (different() != 0) return DiffOutcome::kDifferent;
  if (empty()) return DiffOutcome::kNothingCompared;
  const std::uint64_t open = not_known() + (bound == LayoutBound::kAccepted ? 0 : not_comparable());
  return open == 0 ? DiffOutcome::kSame : DiffOutcome::kNotAllCompared;
}

namespace {

void sort_out(const ChecksumTally& tally, const Checkpoint& checkpoint, const DiffSeams& seams,
              DiffReport& report) {
  for (Finding& finding : tally.findings()) {
    if (finding.file.empty()) {
      finding.file = checkpoint.store().display(checkpoint.location().directory);
    }
    auto& list = seams.is_damage(finding) ? report.damage : report.notes;
    list.push_back(std::move(finding));
  }
}

/// Adds a note about the files that an earlier save left. They are not compared.
void note_stale_files(Checkpoint& checkpoint, DiffReport& report) {
  if (!checkpoint.location().torch_dist()) return;
  for (Finding& finding : check_stale_files(checkpoint)) {
    finding.severity = Severity::kNote;
    finding.message += "; not compared";
    report.notes.push_back(std::move(finding));
  }
}

/// Files beside tensors are compared where both sides are directories of one format. A model's
/// config.json has no place in a checkpoint of a job, nor random states in a model.
bool have_files_alike(const Checkpoint& left, const Checkpoint& right, DiffReport& report) {
  const auto alone = [](const Checkpoint& one) { return !one.location().file.empty(); };
  const bool same_format = left.location().form == right.location().form;
  if (same_format && !alone(left) && !alone(right)) return true;
  report.notes.push_back({Severity::kNote, Code::kUnsupported,
                          same_format
                              ? "files beside the tensors were not compared: a file was named"
                              : "files beside the tensors were not compared: A and B have "
                                "different formats"});
  return false;
}

/// Keys of values for which DCP has no place, and which the other side lacks.
std::vector<std::string> without_place(const Checkpoint& checkpoint, const Checkpoint& other) {
  std::vector<std::string> keys;
  if (checkpoint.location().form == other.location().form) return keys;
  for (const std::string& key : checkpoint.metadata().without_place) {
    if (other.catalog().object(key) == nullptr) keys.push_back(key);
  }
  return keys;
}

Checkpoint without(const Checkpoint& checkpoint, const std::vector<std::string>& keys) {
  Metadata metadata = checkpoint.metadata();
  std::erase_if(metadata.catalog.objects, [&](const StoredObject& object) {
    return std::ranges::binary_search(keys, object.key);
  });
  std::erase_if(metadata.without_place,
                [&](const std::string& key) { return std::ranges::binary_search(keys, key); });
  return checkpoint.with(std::move(metadata));
}

void note_without_place(const Checkpoint& checkpoint, const std::vector<std::string>& keys,
                        DiffReport& report) {
  report.notes.push_back({Severity::kNote, Code::kUnsupported,
                          "not compared, as the other format has no place for empty dicts and for "
                          "attributes of dicts: " +
                              join_first(keys),
                          keys.front(), checkpoint.store().display(checkpoint.location().path())});
}

}  // namespace

bool is_error(const Finding& finding) { return finding.severity == Severity::kError; }

DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress) {
  return diff(left, right, device, options, progress, {});
}

DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress, const DiffSeams& seams) {
  for (const bool of_left : {true, false}) {
    const Checkpoint& side = of_left ? left : right;
    const auto keys = without_place(side, of_left ? right : left);
    if (keys.empty()) continue;
    Checkpoint less = without(side, keys);
    DiffReport report =
        diff(of_left ? less : left, of_left ? right : less, device, options, progress, seams);
    note_without_place(side, keys, report);
    return report;
  }
  require_apart(left);
  require_apart(right);
  DiffReport report{.checksums = options.checksums};
  DiffSides sides(left, right, seams);
  diff_objects(sides, options, report);
  diff_tensors(sides, device, options, progress, report);
  if (have_files_alike(left, right, report)) diff_beside(sides, options, report);
  for (Checkpoint* side : {&left, &right}) note_stale_files(*side, report);
  sort_out(sides.left_checksums, left, seams, report);
  sort_out(sides.right_checksums, right, seams, report);
  sides.unread.sort_into(report);
  left.require_in_place();
  right.require_in_place();
  return report;
}

}  // namespace reprise
