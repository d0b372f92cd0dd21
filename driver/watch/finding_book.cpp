#include "driver/watch/finding_book.hpp"

#include <algorithm>
#include <iterator>

#include "core/base/natural_order.hpp"
#include "driver/watch/name_groups.hpp"

namespace reprise::driver {
namespace {

bool alike(const WatchFinding& a, const WatchFinding& b) {
  return a.severity == b.severity && a.code == b.code && a.text == b.text && a.life == b.life &&
         a.step == b.step;
}

}  // namespace

void FindingBook::add(std::int32_t rank, WatchFinding finding) {
  for (auto& known : findings_) {
    const bool same = known.where == finding.where && known.names == finding.names;
    if (!same || !alike(known, finding)) continue;
    known.ranks.insert(rank);
    return;
  }
  finding.ranks.insert(rank);
  findings_.push_back(std::move(finding));
}

void FindingBook::add_name(std::int32_t rank, const std::string& name, WatchFinding finding) {
  finding.names = {name};
  add(rank, std::move(finding));
}

std::vector<WatchFinding> FindingBook::take() {
  std::vector<WatchFinding> all;
  const auto others =
      std::stable_partition(findings_.begin(), findings_.end(),
                            [](const WatchFinding& finding) { return !finding.names.empty(); });
  for (auto at = findings_.begin(); at != others; ++at) {
    const auto like = std::ranges::find_if(all, [&](const WatchFinding& known) {
      return alike(known, *at) && known.ranks == at->ranks &&
             kind_of(known.names.front()) == kind_of(at->names.front());
    });
    if (like == all.end()) {
      all.push_back(std::move(*at));
    } else {
      like->names.push_back(at->names.front());
    }
  }
  for (auto& finding : all) {
    std::ranges::stable_sort(finding.names, in_natural_order);
    finding.where = names_text(finding.names);
  }
  std::move(others, findings_.end(), std::back_inserter(all));
  findings_.clear();
  return all;
}

}  // namespace reprise::driver
