#include "core/diff/unread_items.hpp"

#include <algorithm>

#include "core/base/print.hpp"
#include "core/diff/diff.hpp"
#include "core/seams/diff_seams.hpp"

namespace reprise {

bool concerns_one_item(const Error& error) {
  switch (error.code()) {
    case Code::kUsage:
    case Code::kLimit:
    case Code::kStaleMetadata:
    case Code::kInternal:
      return false;
    default:
      return true;
  }
}

namespace {

/// True if the findings have this one. A wrong checksum may have been counted before it was thrown.
bool is_told(const Finding& finding, const Findings& findings) {
  return std::ranges::any_of(findings, [&finding](const Finding& told) {
    return told.code == finding.code && told.file == finding.file && told.offset == finding.offset;
  });
}

}  // namespace

DiffVerdict count_unread(UnreadItems& unread, const Error& error) {
  unread.add(error);
  return DiffVerdict::kNotKnown;
}

void UnreadItems::add(const Error& error) {
  Unread& unread = by_file_[{error.place().file, error.code()}];
  if (unread.items++ == 0) unread.first = finding_from(error);
}

void UnreadItems::sort_into(DiffReport& report) const {
  for (const auto& [file_and_code, unread] : by_file_) {
    const Code code = file_and_code.second;
    const bool sound = code == Code::kIo || code == Code::kUnsupported;
    Finding finding = unread.first;
    if (is_told(finding, report.damage)) continue;
    if (unread.items > 1) {
      finding.message += "; " + with_commas(unread.items - 1) + " more " +
                         (unread.items == 2 ? "item" : "items") + " of this file can't be read";
    }
    (sound ? report.unread : report.damage).push_back(std::move(finding));
  }
}

}  // namespace reprise
