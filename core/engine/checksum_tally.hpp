#pragma once
// Checksums of all records that were looked at, judged file by file: a writer can be told not to
// compute them, and each rank writes files of its own. Then torch stores 0 for every record (seen
// in torch 2.15 with torch.utils.serialization.config.save.compute_crc32 = False), and Reprise 0
// for every record of elements and the right ones for what stands around them. Any other wrong one
// is damage.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/engine/finding.hpp"
#include "core/format/archive.hpp"
#include "core/format/item_source.hpp"

namespace reprise {

class ChecksumTally {
 public:
  struct Count {
    std::uint64_t records = 0;
    std::uint64_t mismatches = 0;
    std::uint64_t unset = 0;  ///< records with 0 for a checksum, right or not
  };
  struct Counts {
    Count all;
    Count elements;  ///< those of `all` that hold a tensor's elements

    /// True if no record of elements has a checksum, or no record at all.
    bool may_be_switched_off() const;
    /// The same of several records, and 0 is not what their bytes give.
    bool switched_off() const;
  };

  /// Reads the whole item in bounded steps and counts its records. A stream of torch
  /// before 1.6 has none. Throws as Archive does if it is damaged or no archive at all. Records
  /// without content say nothing.
  void add(ItemSource& item, const std::string& key);
  /// A record with content that was compared elsewhere; `place`, where it begins, is asked for if
  /// it does not match.
  void add(const std::string& file, const Record& record, bool matches,
           const std::function<ErrorPlace()>& place);
  /// Records with content, but without elements, and right checksums that are not 0.
  void add_matching(const std::string& file, std::uint64_t records) {
    files_[file].counts.all.records += records;
  }

  /// Returns the counts of each file, under the name that is shown to people.
  std::map<std::string, Counts> counts() const;
  std::uint64_t records() const;
  std::uint64_t mismatches() const;
  /// Throws the first mismatch in one of these files, if there is one.
  void require_matches(const std::function<bool(const std::string& file)>& in) const;
  /// Throws the first mismatch, but for files whose checksums may have been switched off, as far as
  /// is known by now.
  void require_no_damage() const;
  /// Errors by record, and one note on files that had them switched off; empty if all is well. Only
  /// the first mismatches are kept; a last finding counts the others.
  Findings findings() const;

 private:
  struct OfFile {
    Counts counts;
    Findings kept;
  };

  std::map<std::string, OfFile> files_;
  std::size_t kept_ = 0;
};

}  // namespace reprise
