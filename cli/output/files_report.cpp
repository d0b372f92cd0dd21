#include "cli/output/files_report.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/print.hpp"
#include "core/base/shell_word.hpp"
#include "driver/runs/run.hpp"

namespace reprise::cli {
namespace {

std::string words_of(const Finding& finding) {
  std::ostringstream out;
  out << finding;
  return out.str();
}

void blame(const Finding& finding, reports::ScenarioResult& result) {
  result.code = std::string(name_of(finding.code));
  result.reason = words_of(finding);
}

/// Returns the error code if a tensor is missing on one side or its shape or dtype differs. Empty
/// for all other verdicts.
std::string code_of(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kShape:
      return std::string(name_of(Code::kShapeDrift));
    case DiffVerdict::kDtype:
      return std::string(name_of(Code::kDtypeDrift));
    case DiffVerdict::kOnlyLeft:
    case DiffVerdict::kOnlyRight:
      return std::string(name_of(Code::kNotStored));
    default:
      return "";
  }
}

void count(const TensorDiff& tensor, reports::RankResult& rank) {
  Comparison total{.bit_mismatches = rank.bit_mismatches, .max_delta = rank.max_delta};
  total.append(tensor.comparison);
  rank.bit_mismatches = total.bit_mismatches;
  rank.max_delta = total.max_delta;
  if (tensor.verdict == DiffVerdict::kOnlyLeft) rank.not_requested.push_back(tensor.key);
  if (tensor.verdict == DiffVerdict::kOnlyRight) rank.not_stored.push_back(tensor.key);
  if (tensor.verdict == DiffVerdict::kShape) rank.shape_mismatches.push_back(tensor.key);
  if (tensor.verdict == DiffVerdict::kDtype) rank.dtype_mismatches.push_back(tensor.key);
  const bool other_dtype = tensor.verdict == DiffVerdict::kSameValues;
  if (tensor.verdict == DiffVerdict::kNotComparable || other_dtype) {
    rank.excused.push_back(tensor.key);
  }
}

void count(const ObjectDiff& object, reports::RankResult& rank) {
  if (object.verdict == DiffVerdict::kOnlyLeft) rank.not_requested.push_back(object.key);
  if (object.verdict == DiffVerdict::kOnlyRight) rank.not_stored.push_back(object.key);
  if (object.verdict == DiffVerdict::kNotComparable) rank.excused.push_back(object.key);
}

void explain(const DiffReport& report, reports::ScenarioResult& result) {
  for (const auto& tensor : report.tensors) {
    if (!counts_as_different(tensor.verdict)) continue;
    if (result.reason.empty()) {
      result.code = code_of(tensor.verdict);
      result.reason = tensor.key + ": " + std::string(name_of(tensor.verdict));
    }
    if (!tensor.first) continue;
    result.first_difference =
        reports::FirstDifference{.key = tensor.key,
                                 .index = {tensor.first->begin(), tensor.first->end()},
                                 .saved = tensor.first_left,
                                 .loaded = tensor.first_right};
    return;
  }
  for (const auto* list : {&report.objects, &report.files}) {
    for (const auto& object : *list) {
      if (!result.reason.empty() || !counts_as_different(object.verdict)) continue;
      result.reason = object.key + ": " + std::string(name_of(object.verdict));
    }
  }
}

/// Describes the first tensor, object or file that was neither compared nor excused, and states the
/// number of all such items.
std::string words_for_uncompared(const DiffReport& report, LayoutBound bound) {
  std::string first;
  std::uint64_t count = 0;
  const auto look = [&](const auto& item) {
    const bool open =
        item.verdict == DiffVerdict::kNotKnown ||
        (item.verdict == DiffVerdict::kNotComparable && bound == LayoutBound::kDecides);
    if (!open) return;
    if (++count == 1) first = item.key + ": " + std::string(name_of(item.verdict));
    if (count == 1 && !item.reason.empty()) first += ", " + item.reason;
  };
  for (const auto& object : report.objects) look(object);
  for (const auto& tensor : report.tensors) look(tensor);
  for (const auto& file : report.files) look(file);
  return with_commas(count) + " not compared, first " + first;
}

}  // namespace

reports::ScenarioResult verify_result(const std::string& path, const VerifyReport& report) {
  reports::ScenarioResult result{.name = "verify " + path,
                                 .file = path,
                                 .proves = "The checkpoint is whole.",
                                 .verdict = reports::Verdict::kPass};
  result.replay = "reprise verify " + shell_word(path);
  const bool damaged = report.verdict() == VerifyVerdict::kDamaged;
  const auto error = std::find_if(
      report.findings.begin(), report.findings.end(), [damaged](const Finding& finding) {
        const bool unread = finding.code == Code::kIo || finding.code == Code::kUnsupported;
        return finding.severity == Severity::kError && damaged != unread;
      });
  if (error != report.findings.end()) {
    result.verdict = damaged ? reports::Verdict::kFail : reports::Verdict::kInconclusive;
    blame(*error, result);
  }
  if (report.health && !report.health->healthy() && result.verdict != reports::Verdict::kFail) {
    result.verdict = reports::Verdict::kFail;
    blame(*std::ranges::find(report.health->findings, Severity::kError, &Finding::severity),
          result);
  }
  if (report.vacuous() && result.verdict == reports::Verdict::kPass) {
    result.verdict = reports::Verdict::kInconclusive;
    result.reason = "the metadata names neither a tensor nor an object";
  }
  result.ranks.push_back(
      {.compared = report.tensors + report.objects, .elements = report.elements});
  return result;
}

std::string command_of(const DiffRequest& request) {
  return "reprise diff " + request.options + shell_word(request.left) + " " +
         shell_word(request.right);
}

reports::ScenarioResult diff_result(const DiffRequest& request, const DiffReport& report) {
  reports::ScenarioResult result{.name = "diff " + request.left + " " + request.right,
                                 .file = request.right,
                                 .proves = "The checkpoints hold the same content.",
                                 .verdict = reports::Verdict::kPass};
  result.replay = command_of(request);
  reports::RankResult rank{
      .compared = report.tensors_compared + report.objects_compared + report.files_compared,
      .elements = report.elements};
  for (const auto& tensor : report.tensors) count(tensor, rank);
  for (const auto& object : report.objects) count(object, rank);
  for (const auto& file : report.files) count(file, rank);
  result.ranks.push_back(std::move(rank));
  const DiffOutcome outcome = report.outcome(request.layout_bound);
  if (outcome == DiffOutcome::kSame) return result;
  const bool fails = outcome == DiffOutcome::kDifferent || outcome == DiffOutcome::kDamaged;
  result.verdict = fails ? reports::Verdict::kFail : reports::Verdict::kInconclusive;
  if (outcome == DiffOutcome::kDamaged) blame(report.damage.front(), result);
  if (outcome == DiffOutcome::kNothingCompared) result.reason = "nothing was compared";
  if (outcome == DiffOutcome::kDifferent) explain(report, result);
  if (outcome == DiffOutcome::kNotAllCompared) {
    result.reason = words_for_uncompared(report, request.layout_bound);
  }
  return result;
}

void write_files_report(std::vector<reports::ScenarioResult> results, double seconds,
                        const std::string& directory) {
  reports::Report report = driver::empty_report(reports::ReportLane::kFiles);
  report.planned = results.size();
  report.seconds = seconds;
  report.scenarios = std::move(results);
  if (report.scenarios.size() == 1) report.scenarios[0].seconds = seconds;
  for (auto& result : report.scenarios) {
    reports::restate_failure(result);
    if (result.failure) result.failure->rank.reset();  // files have no ranks
  }
  report.verdict = reports::overall(report.scenarios);
  driver::write_report(report, directory);
}

}  // namespace reprise::cli
