#pragma once
// A store that forwards every call to another store. It is a base class for stores that intercept
// some calls.

#include "reprise/store.hpp"

namespace reprise {

class PassingStore : public Store {
 public:
  /// Forwards to `inner`, which must outlive this store.
  explicit PassingStore(Store& inner) : inner_(inner) {}

  StoreCapabilities capabilities() const override { return inner_.capabilities(); }
  std::unique_ptr<ReadFile> open(const std::string& path) override { return inner_.open(path); }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    return inner_.create(path);
  }
  std::optional<Entry> stat(const std::string& path) override { return inner_.stat(path); }
  std::vector<Entry> list(const std::string& directory) override { return inner_.list(directory); }
  void make_directory(const std::string& path) override { inner_.make_directory(path); }
  void publish(const NameChange& change) override { inner_.publish(change); }
  void replace(const NameChange& change) override { inner_.replace(change); }
  void put_aside(const NameChange& change) override { inner_.put_aside(change); }
  void remove(const std::string& path) override { inner_.remove(path); }
  bool remove_empty(const std::string& directory) override {
    return inner_.remove_empty(directory);
  }
  void sync_directory(const std::string& directory) override { inner_.sync_directory(directory); }
  std::unique_ptr<StoreLock> lock(const std::string& path) override { return inner_.lock(path); }
  std::optional<std::string> lock_holder(const std::string& path) override {
    return inner_.lock_holder(path);
  }
  std::vector<std::string> remove_dead_locks(const std::string& directory) override {
    return inner_.remove_dead_locks(directory);
  }
  std::optional<std::uint64_t> free_bytes(const std::string& directory) override {
    return inner_.free_bytes(directory);
  }
  std::string display(const std::string& path) const override { return inner_.display(path); }

 protected:
  Store& inner() const { return inner_; }

 private:
  Store& inner_;
};

}  // namespace reprise
