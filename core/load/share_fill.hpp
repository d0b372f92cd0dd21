#pragma once
// Reads one rank's part of a checkpoint. Reads each record once, in any order.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/load/load_reader.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/shared_reads.hpp"

namespace reprise {

/// Says where the bytes of records are when they are read.
enum class AtHand : std::uint8_t { kOnHost, kOnDevice };

class ShareFill {
 public:
  /// The arguments must outlive the object. `ask` is called before each read; what it throws ends
  /// the reading.
  ShareFill(const LoadPlan& plan, const Catalog& catalog, ShareReader reader,
            std::function<void()> ask);

  /// Returns the records that are needed, except those without storage.
  std::vector<StoredRecord> records();
  /// Reads the tensors and objects whose content is in `records`. Tensors may still be copied, but
  /// not from memory where the records were at hand.
  void read(std::span<const StoredRecord> records, AtHand at_hand);
  /// Reads all tensors that have not been read yet, and waits until all are in their place.
  void read_tensors();
  void read_objects();
  void poison() { reader_.poison(plan_); }

  std::uint64_t bytes_read() const { return reader_.bytes_read(); }
  std::uint64_t unverified() const { return reader_.unverified(); }
  /// Returns the objects' values in the order of plan.objects; they must have been read before.
  std::vector<Value>& objects() { return objects_; }

 private:
  /// The targets of a record, as indices into the plan's lists.
  struct Needs {
    std::vector<std::size_t> tensors;
    std::vector<std::size_t> objects;
  };

  void read_tensor(std::size_t i);
  void read_object(std::size_t i);

  const LoadPlan& plan_;
  const Catalog& catalog_;
  ShareReader reader_;
  std::function<void()> ask_;
  std::map<StoredRecord, Needs> needs_;  ///< filled by the first call of records()
  std::vector<bool> has_tensor_;
  std::vector<bool> has_object_;
  std::vector<Value> objects_;
};

}  // namespace reprise
