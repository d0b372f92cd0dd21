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
    if (!alike(known, finding) || known.where != finding.where) continue;
    known.ranks.insert(rank);
    return;
  }
  finding.ranks.insert(rank);
  findings_.push_back(std::move(finding));
}

void FindingBook::add_name(std::int32_t rank, const std::string& name, WatchFinding finding) {
  for (auto& known : names_) {
    if (!alike(known, finding) || known.names.front() != name) continue;
    known.ranks.insert(rank);
    return;
  }
  finding.ranks.insert(rank);
  finding.names = {name};
  names_.push_back(std::move(finding));
}

std::vector<WatchFinding> FindingBook::take() {
  std::vector<WatchFinding> all;
  for (auto& finding : names_) {
    const auto at = std::ranges::find_if(all, [&](const WatchFinding& known) {
      return alike(known, finding) && known.ranks == finding.ranks &&
             kind_of(known.names.front()) == kind_of(finding.names.front());
    });
    if (at == all.end()) {
      all.push_back(std::move(finding));
    } else {
      at->names.push_back(finding.names.front());
    }
  }
  for (auto& finding : all) {
    std::ranges::stable_sort(finding.names, in_natural_order);
    finding.where = names_text(finding.names);
  }
  std::ranges::move(findings_, std::back_inserter(all));
  findings_.clear();
  names_.clear();
  return all;
}

}  // namespace reprise::driver
