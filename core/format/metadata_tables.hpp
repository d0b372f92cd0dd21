#pragma once
// The tables of one `.metadata`.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/format/metadata.hpp"

namespace reprise {

/// File names of the catalog, each once, in the order in which they were first named.
class FileNames {
 public:
  FileIndex add(std::string_view name);
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
  std::map<std::string, FileIndex, std::less<>> index_;
};

/// Legal oddities; a flood of one kind is shortened.
class Notes {
 public:
  /// `kind` groups notes; only the first few of a kind are kept, the rest counted.
  void add(const char* kind, std::string text);
  std::vector<std::string> take();

 private:
  struct Group {
    const char* kind;
    std::vector<std::string> first;
    std::size_t count = 0;
  };
  std::vector<Group> groups_;
};

/// What one file says. Tensors and objects in file order, keys unique.
struct MetadataTables {
  std::int32_t rank = -1;  ///< of `__<rank>.metadata`
  std::vector<StoredTensor> tensors;
  std::vector<StoredObject> objects;
  std::vector<PlannerEntry> planner_data;
  std::string checkpoint_id;
  std::string save_id;
  std::string version;
  bool has_local_plans = false;
};

MetadataTables read_tables(ByteSpan file, const std::string& name, FileNames& names, Notes& notes);

}  // namespace reprise
