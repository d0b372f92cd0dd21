#pragma once
// Tables of a single `.metadata`.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/format/metadata.hpp"

namespace reprise {

/// File names of the catalog, each once, in order of first mention.
class FileNames {
 public:
  FileIndex add(std::string_view name);
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
  std::map<std::string, FileIndex, std::less<>> index_;
};

/// Collects legal oddities; shortens a flood of one kind.
class Notes {
 public:
  /// Adds a note; keeps only the first few notes of each `kind` and counts the rest.
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

/// Contents of one file. Tensors and objects in file order, with unique keys.
struct MetadataTables {
  std::int32_t rank = -1;  ///< rank in `__<rank>.metadata`
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
