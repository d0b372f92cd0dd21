#include "core/engine/diff.hpp"

#include <algorithm>

#include "core/engine/diff_objects.hpp"
#include "core/engine/diff_tensors.hpp"
#include "core/engine/extents.hpp"

namespace reprise {

std::string_view name_of(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kSame:
      return "same";
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
  }
  return "different";
}

bool counts_as_different(DiffVerdict verdict) {
  return verdict != DiffVerdict::kSame && verdict != DiffVerdict::kNotComparable;
}

std::uint64_t DiffReport::different() const {
  const auto differs = [](const auto& item) { return counts_as_different(item.verdict); };
  return static_cast<std::uint64_t>(std::count_if(tensors.begin(), tensors.end(), differs) +
                                    std::count_if(objects.begin(), objects.end(), differs));
}

std::uint64_t DiffReport::not_comparable() const {
  const auto bound = [](const auto& item) { return item.verdict == DiffVerdict::kNotComparable; };
  return static_cast<std::uint64_t>(std::count_if(tensors.begin(), tensors.end(), bound) +
                                    std::count_if(objects.begin(), objects.end(), bound));
}

namespace {

void sort_out(const ChecksumTally& tally, const Checkpoint& checkpoint, DiffReport& report) {
  for (Finding& finding : tally.findings()) {
    if (finding.file.empty()) {
      finding.file = checkpoint.store().display(checkpoint.location().directory);
    }
    auto& list = finding.severity == Severity::kError ? report.damage : report.notes;
    list.push_back(std::move(finding));
  }
}

}  // namespace

DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress) {
  require_apart(left);
  require_apart(right);
  DiffReport report;
  ChecksumTally left_checksums;
  ChecksumTally right_checksums;
  diff_objects(left, right, options, left_checksums, right_checksums, report);
  diff_tensors(left, right, device, options, left_checksums, right_checksums, progress, report);
  sort_out(left_checksums, left, report);
  sort_out(right_checksums, right, report);
  return report;
}

}  // namespace reprise
