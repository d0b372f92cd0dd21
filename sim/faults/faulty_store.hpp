#pragma once
// A rank's store that fails, lies and flips bits where the book says so. Included by this folder's
// sources only.

#include <mutex>
#include <set>
#include <string>

#include "core/ports/store.hpp"
#include "sim/faults/fault_seat.hpp"

namespace reprise::sim {

class FaultyStore final : public Store {
 public:
  FaultyStore(Store& inner, FaultSeat& seat) : inner_(inner), seat_(seat) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void exchange(const std::string& a, const std::string& b) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& directory) override;
  StoreCapabilities capabilities() const override { return inner_.capabilities(); }
  std::string display(const std::string& path) const override { return inner_.display(path); }

 private:
  void touch(std::string_view what, const std::string& path) {
    seat_.strikes({CallKind::kOther, what, path});
  }
  /// False if the call is to be left out.
  bool moves(const PortCall& call, const std::string& from);
  bool lies(const std::string& directory);

  Store& inner_;
  FaultSeat& seat_;
  std::mutex mutex_;
  std::set<std::string> lying_;  ///< directories whose syncs do nothing any more
};

}  // namespace reprise::sim
