#pragma once
// Checksums of all records that were looked at, judged together: a writer can be told not to
// compute them, and then every record's is stored as 0 (seen in torch 2.15 with
// torch.utils.serialization.config.save.compute_crc32 = False). Any other wrong one is damage.

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/finding.hpp"
#include "core/format/item_source.hpp"

namespace reprise {

class ChecksumTally {
 public:
  /// Reads the whole item in bounded steps and counts its records. A stream of torch
  /// before 1.6 has none. Throws as Archive does if it is damaged or no archive at all. Records
  /// without content say nothing.
  void add(ItemSource& item, const std::string& key);

  std::uint64_t records() const { return records_; }
  std::uint64_t mismatches() const { return mismatches_; }
  /// True if 0 is stored for each of several records, and it is not what their bytes give.
  bool switched_off() const;
  /// Errors by record, or one note if they were switched off; empty if all is well. Only the first
  /// mismatches are kept; a last finding counts the others.
  Findings findings() const;

 private:
  std::uint64_t records_ = 0;
  std::uint64_t mismatches_ = 0;
  std::uint64_t unset_ = 0;  ///< records with 0 for a checksum, right or not
  Findings kept_;
};

}  // namespace reprise
