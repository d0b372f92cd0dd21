#pragma once
// Reads a dict of a checkpoint. Messages contain the path to the entry.

#include <string>
#include <string_view>

#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise::sim {

/// Borrows the value. Throws NOT_STORED for the first entry that is missing or has another
/// type.
class DictReader {
 public:
  DictReader(const Value& value, std::string path) : value_(value), path_(std::move(path)) {
    if (value_.as<Dict>() == nullptr) refuse("is not a dict");
  }

  const Value& value(std::string_view key) const {
    const Value* found = value_.find(key);
    if (found == nullptr) DictReader(*this, key).refuse("is not there");
    return *found;
  }
  bool has(std::string_view key) const { return value_.find(key) != nullptr; }
  DictReader entries(std::string_view key) const { return {value(key), inner(key)}; }
  template <class T>
  void read(std::string_view key, T& out) const {
    const T* found = value(key).as<T>();
    if (found == nullptr) DictReader(*this, key).refuse("is of another type");
    out = *found;
  }
  const Dict& all() const { return *value_.as<Dict>(); }
  std::string inner(std::string_view key) const { return path_ + "['" + std::string(key) + "']"; }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::kNotStored, path_ + " " + what + "; the job can't go on without it",
                {.key = path_});
  }

 private:
  DictReader(const DictReader& outer, std::string_view key)
      : value_(outer.value_), path_(outer.inner(key)) {}

  const Value& value_;
  std::string path_;
};

}  // namespace reprise::sim
