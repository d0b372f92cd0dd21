#pragma once
// Collects the items that a diff can't read. If a whole file can't be read, all its items fail for
// one reason; they become one finding.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/checkpoint/finding.hpp"
#include "reprise/error.hpp"

namespace reprise {

struct DiffReport;

/// True if the error concerns one item or file, so that the others can still be compared. False for
/// errors that concern the whole comparison: wrong usage, a size for which the memory or the file
/// is too small (LIMIT), a checkpoint that was replaced while it was read, a defect of this
/// program.
bool concerns_one_item(const Error& error);

class UnreadItems {
 public:
  /// Counts an item that can't be read. `error` must have the file's name.
  void add(const Error& error);
  /// Adds the findings to the report: to its unread items, or to its damage if the item contradicts
  /// the metadata or itself.
  void sort_into(DiffReport& report) const;

 private:
  struct Unread {
    Finding first;
    std::uint64_t items = 0;
  };
  std::map<std::pair<std::string, Code>, Unread> by_file_;
};

}  // namespace reprise
