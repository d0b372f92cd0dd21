#include "reprise/inspect.hpp"

#include <utility>

#include "core/api/access.hpp"
#include "core/diff/diff.hpp"
#include "core/ports/no_progress.hpp"
#include "core/verify/verify.hpp"

namespace reprise {
namespace {

template <class Diffs>
void sort_out(const Diffs& diffs, DiffSummary& summary) {
  for (const auto& diff : diffs) {
    if (diff.verdict == DiffVerdict::kSame) continue;
    auto& keys = counts_as_different(diff.verdict) ? summary.different : summary.not_compared;
    keys.push_back(diff.key);
  }
}

Progress& watched_by(Progress* given, Progress& otherwise) {
  return given != nullptr ? *given : otherwise;
}

}  // namespace

Verification verify(Job& job, const std::string& directory, Progress* progress) {
  NoProgress unwatched;
  VerifyReport report =
      verify(job.ports().store, directory, PayloadCheck::kRead, watched_by(progress, unwatched));
  return {.verdict = report.verdict(),
          .findings = std::move(report.findings),
          .tensors = report.tensors,
          .elements = report.elements,
          .objects = report.objects,
          .files = report.files,
          .bytes = report.bytes};
}

DiffSummary diff(Job& job, const std::string& left, const std::string& right, Progress* progress) {
  const Ports ports = job.ports();
  if (!ports.device.host_memory()) {
    throw Error(Code::kUnsupported,
                "diff compares in host memory; pass a job whose device is the host");
  }
  Checkpoint a = Checkpoint::open_any(ports.store, left);
  Checkpoint b = Checkpoint::open_any(ports.store, right);
  NoProgress unwatched;
  DiffReport report = diff(a, b, ports.device, {}, watched_by(progress, unwatched));
  DiffSummary summary{.outcome = report.outcome(),
                      .different = {},
                      .not_compared = {},
                      .elements = report.elements,
                      .damage = std::move(report.damage)};
  sort_out(report.tensors, summary);
  sort_out(report.objects, summary);
  sort_out(report.files, summary);
  return summary;
}

}  // namespace reprise
