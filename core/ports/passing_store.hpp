#pragma once
// A store that passes everything on to another one: a base for those that look at some calls.

#include "core/ports/store.hpp"

namespace reprise {

class PassingStore : public Store {
 public:
  /// `inner` is borrowed.
  explicit PassingStore(Store& inner) : inner_(inner) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override { return inner_.open(path); }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    return inner_.create(path);
  }
  std::optional<Entry> stat(const std::string& path) override { return inner_.stat(path); }
  std::vector<Entry> list(const std::string& directory) override { return inner_.list(directory); }
  void make_directory(const std::string& path) override { inner_.make_directory(path); }
  void rename(const std::string& from, const std::string& to) override { inner_.rename(from, to); }
  void exchange(const std::string& a, const std::string& b) override { inner_.exchange(a, b); }
  void remove(const std::string& path) override { inner_.remove(path); }
  void sync_directory(const std::string& directory) override { inner_.sync_directory(directory); }
  StoreCapabilities capabilities() const override { return inner_.capabilities(); }
  std::string display(const std::string& path) const override { return inner_.display(path); }

 protected:
  Store& inner() const { return inner_; }

 private:
  Store& inner_;
};

}  // namespace reprise
