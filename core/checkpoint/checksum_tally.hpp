#pragma once
// Counts checksum results per file and judges each file only at the end. A writer may have been
// configured not to compute checksums; this shows only if all records of a file are considered
// together. In a file of such a writer, torch stores 0 for every record (seen in torch 2.15 with
// torch.utils.serialization.config.save.compute_crc32 = False). Reprise stores 0 for records with
// elements, and correct checksums for all other records. Any other mismatch is damage. Each rank
// writes its own files, so each file is judged separately.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/finding.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

class ChecksumTally {
 public:
  struct Count {
    std::uint64_t records = 0;
    std::uint64_t mismatches = 0;
    std::uint64_t unset = 0;  ///< records whose stored checksum is 0, correct or not
  };
  struct Counts {
    Count all;
    Count elements;  ///< counts of only those records that contain elements

    /// True if every record stores the checksum 0, or if every element record does and all other
    /// records match their checksums.
    bool may_be_switched_off() const;
    /// True if may_be_switched_off() is true, there are several records, and at least one of them
    /// does not match its checksum.
    bool switched_off() const;
  };

  /// Reads the whole item in bounded steps, checks its records and counts the results. A stream
  /// written by torch before 1.6 has no records. Throws the same errors as Archive if the item is
  /// damaged or not an archive. Ignores records without content.
  void add(ItemSource& item, const std::string& key);
  /// The same for an item whose archive is open.
  void add(Archive& archive, const std::string& key);
  /// Counts a non-empty record whose checksum was verified elsewhere. `place` returns the record's
  /// position; it is called only if the checksum does not match.
  void add(const std::string& file, const Record& record, bool matches,
           const std::function<ErrorPlace()>& place);
  /// Counts records that were found to match their checksums. They must have content but no
  /// elements, and their checksums must not be 0.
  void add_matching(const std::string& file, std::uint64_t records) {
    files_[file].counts.all.records += records;
  }

  /// Adds what `other` counted. The order in which several are added does not matter.
  void add(const ChecksumTally& other);

  /// Returns the counts by file, with the file names that users see.
  std::map<std::string, Counts> counts() const;
  std::uint64_t records() const;
  std::uint64_t mismatches() const;
  /// True if no records of the file were counted but those with elements, which alone don't show if
  /// its checksums are switched off.
  bool has_elements_only(const std::string& file) const;
  /// Throws an Error for the first mismatch in the files that `in` accepts, if there is one.
  void require_matches(const std::function<bool(const std::string& file)>& in) const;
  /// Throws an Error for the first mismatch. Ignores files for which may_be_switched_off() is true
  /// so far.
  void require_no_damage() const;
  /// Returns one error for each mismatch, and one note on files without checksums; empty if there
  /// are neither. Only the first mismatches by offset are kept; the last finding states how many
  /// more there are.
  Findings findings() const;

 private:
  struct OfFile {
    Counts counts;
    Findings kept;  ///< by offset
  };

  void keep(const std::string& file, Finding finding);

  std::map<std::string, OfFile> files_;
  std::set<std::string> several_;  ///< files of which several mismatches are kept
  std::size_t kept_ = 0;
};

}  // namespace reprise
