#pragma once
// Checksums of all records that were looked at, judged together: a writer can be told not to
// compute them, and then every record's is wrong. One wrong among right ones is damage.

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/finding.hpp"
#include "core/format/item_source.hpp"

namespace reprise {

class ChecksumTally {
 public:
  /// Reads the whole item in bounded steps and counts its records. An item that is no archive has
  /// none. Throws as Archive does if it is damaged. Records without content say nothing.
  void add(ItemSource& item, const std::string& key);

  std::uint64_t records() const { return records_; }
  std::uint64_t mismatches() const { return mismatches_; }
  /// True if there are records and none has its checksum.
  bool switched_off() const { return records_ != 0 && mismatches_ == records_; }
  /// Errors by record, or one note if they were switched off; empty if all is well. Only the first
  /// mismatches are kept; a last finding counts the others.
  Findings findings() const;

 private:
  std::uint64_t records_ = 0;
  std::uint64_t mismatches_ = 0;
  Findings kept_;
};

}  // namespace reprise
