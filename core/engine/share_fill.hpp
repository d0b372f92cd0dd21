#pragma once
// What one rank reads of a checkpoint, in any order of its records, each read once.

#include <map>
#include <span>
#include <vector>

#include "core/engine/load_reader.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/shared_reads.hpp"

namespace reprise {

class ShareFill {
 public:
  /// All is borrowed.
  ShareFill(const LoadPlan& plan, const Catalog& catalog, ShareReader reader);

  /// The records that are needed; those without storage are left out.
  std::vector<StoredRecord> records();
  /// Fills every destination that depends on `records`.
  void read(std::span<const StoredRecord> records);
  /// Reads what was not read before.
  void read_tensors();
  void read_objects();
  void poison() { reader_.poison(plan_); }

  std::uint64_t bytes_read() const { return bytes_read_; }
  /// As in plan.objects, once they are read.
  std::vector<Value>& objects() { return objects_; }

 private:
  /// Indices into the lists of the plan.
  struct Needs {
    std::vector<std::size_t> tensors;
    std::vector<std::size_t> objects;
  };

  void read_tensor(std::size_t i);
  void read_object(std::size_t i);

  const LoadPlan& plan_;
  const Catalog& catalog_;
  ShareReader reader_;
  std::map<StoredRecord, Needs> needs_;  ///< once they were asked for
  std::vector<bool> has_tensor_;
  std::vector<bool> has_object_;
  std::vector<Value> objects_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace reprise
