#pragma once
// A store that records every call of a rank with the time that it took.

#include <string>

#include "core/ports/passing_store.hpp"
#include "sim/world/recorder.hpp"

namespace reprise::driver {

/// Records a call under the name that it has in the simulated world. May be called from any thread.
class RecordedStore final : public PassingStore {
 public:
  /// Borrows both; files that it opens borrow the recorder.
  RecordedStore(Store& inner, sim::Recorder& recorder, GlobalRank rank)
      : PassingStore(inner), seat_{recorder, rank} {}

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void publish(const NameChange& change) override;
  void replace(const NameChange& change) override;
  void put_aside(const NameChange& change) override;
  void remove(const std::string& path) override;
  bool remove_empty(const std::string& directory) override;
  void sync_directory(const std::string& directory) override;
  std::unique_ptr<StoreLock> lock(const std::string& path) override;

  /// Tells the recorder whose calls these are.
  struct Seat {
    sim::Recorder& recorder;
    GlobalRank rank;
  };

 private:
  Seat seat_;
};

}  // namespace reprise::driver
