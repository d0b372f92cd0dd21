#pragma once
// Reads a single `.metadata` into tables of its tensors, objects and files.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/format/metadata.hpp"

namespace reprise {

/// Most bytes of a key. Messages repeat a key, and real ones have up to a few hundred.
inline constexpr std::size_t kKeyBytesMax = 16384;

/// The file names of the catalog. Each name is listed once, in the order of first mention.
class FileNames {
 public:
  FileIndex add(std::string_view name);
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
  std::map<std::string, FileIndex, std::less<>> index_;
};

/// Collects notes about facts that are legal but unusual.
class Notes {
 public:
  /// Adds a note. Only the first few notes of each `kind` are kept; the others are only counted.
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

/// The content of one metadata file. Tensors and objects are in file order, and their keys are
/// unique.
struct MetadataTables {
  std::int32_t rank = -1;  ///< rank in the name `__<rank>.metadata`
  std::vector<StoredTensor> tensors;
  std::vector<StoredObject> objects;
  std::vector<PlannerEntry> planner_data;
  std::string checkpoint_id;
  std::string save_id;
  std::string version;
  Forms forms = {};  ///< see Metadata::forms
  bool has_local_plans = false;
};

MetadataTables read_tables(ByteSpan file, const std::string& name, FileNames& names, Notes& notes);

}  // namespace reprise
