#include "core/diff/diff_beside.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/diff/diff_values.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/whole_value.hpp"
#include "core/format/zip/archive.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr std::byte kPickleBegins{0x80};

enum class Kind : std::uint8_t { kFile, kLinkedDirectory };
using Names = std::map<std::string, Kind>;

bool is_there(const Checkpoint& checkpoint, std::string_view name) {
  const auto path = join_path(checkpoint.location().directory, std::string(name));
  return checkpoint.store().stat(path).has_value();
}

Names names_beside(Checkpoint& checkpoint) {
  const BesidePayload beside = beside_payload(checkpoint);
  Names names;
  for (const auto& file : beside.files) names.emplace(file.name, Kind::kFile);
  for (const auto& file : beside.linked_files) names.emplace(file.name, Kind::kFile);
  for (const auto& other : beside.no_files) names.emplace(other.name, Kind::kFile);
  for (const auto& link : beside.linked_directories) {
    names.emplace(link.name, Kind::kLinkedDirectory);
  }
  for (const auto name : {kBackendFile, kIntegrityFile}) {
    if (is_there(checkpoint, name)) names.emplace(name, Kind::kFile);
  }
  if (has_own_common_file(checkpoint)) names.emplace(kCommonFile, Kind::kFile);
  return names;
}

/// Returns the linked directory among `names` that contains `name`; nothing if there is none.
std::optional<std::string> link_above(const Names& names, const std::string& name) {
  for (auto at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
    const auto found = names.find(name.substr(0, at));
    if (found != names.end() && found->second == Kind::kLinkedDirectory) return found->first;
  }
  return std::nullopt;
}

WholeValue backend_value(ItemSource& file) {
  Value value = read_backend_value(read_range(file, {0, file.size()}), file.place_at(0));
  return {{.value = std::move(value), .opaque_because = {}}, ""};
}

/// Decodes a file's content as a value, or returns the reason why it cannot be decoded.
WholeValue value_of(ItemSource& file, bool of_megatron) {
  const auto opaque = [](std::string because) {
    return WholeValue{{.value = {}, .opaque_because = std::move(because)}, ""};
  };
  try {
    if (of_megatron) return backend_value(file);
    Bytes first(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kItemKindBytes)));
    file.read_at(0, first);
    if (item_kind_of(first) == ItemKind::kArchive) return read_whole_item(file);
    if (item_kind_of(first) != ItemKind::kOther || first.empty() || first[0] != kPickleBegins) {
      return opaque("neither an archive of torch nor a pickle");
    }
    return read_whole_pickle(file);
  } catch (const Error& error) {
    if (error.code() == Code::kIo) throw;
    return opaque(error.message());  // no error: the user's file may have any format
  }
}

class BesideDiffer {
 public:
  BesideDiffer(DiffSides& sides, const DiffOptions& options, DiffReport& report)
      : sides_(sides),
        left_(names_beside(sides.left)),
        right_(names_beside(sides.right)),
        has_backend_file_(sides.left.has_backend_file() || sides.right.has_backend_file()),
        has_manifests_(has_manifest(sides.left) && has_manifest(sides.right)),
        options_(options),
        report_(report) {}

  void run() {
    if (!options_.wanted || options_.wanted(kIntegrityFile)) {
      for (const Checkpoint* side : {&sides_.left, &sides_.right}) require_readable_manifest(*side);
    }
    std::set<std::string> all;
    for (const Names* names : {&left_, &right_}) {
      for (const auto& [name, kind] : *names) all.insert(name);
    }
    for (const std::string& name : all) {
      if (name == kIntegrityFile && has_manifests_) continue;
      if (options_.wanted && !options_.wanted(name)) {
        ++report_.ignored_keys;
        continue;
      }
      ObjectDiff result{.key = name};
      judge(name, result);
      if (result.verdict == DiffVerdict::kSame || result.verdict == DiffVerdict::kDifferent) {
        ++report_.files_compared;
      }
      report_.files.push_back(std::move(result));
    }
  }

 private:
  void judge(const std::string& name, ObjectDiff& result) const {
    const auto left = left_.find(name);
    const auto right = right_.find(name);
    const auto is_link = [](const Names& names, const auto& found) {
      return found != names.end() && found->second == Kind::kLinkedDirectory;
    };
    if (is_link(left_, left) || is_link(right_, right)) {
      const bool both = stands(left_, sides_.left, name) && stands(right_, sides_.right, name);
      if (both) return not_followed(name, result);
    } else if (left == left_.end() || right == right_.end()) {
      const auto link = link_above(left == left_.end() ? left_ : right_, name);
      if (link) return not_followed(*link, result);
    } else {
      return compare(name, result);
    }
    const bool in_left = stands(left_, sides_.left, name);
    result.verdict = in_left ? DiffVerdict::kOnlyLeft : DiffVerdict::kOnlyRight;
  }

  /// True if the checkpoint has an entry named `name`. `names` lists only files and links, so a
  /// directory is looked up in the checkpoint.
  static bool stands(const Names& names, const Checkpoint& checkpoint, const std::string& name) {
    return names.contains(name) || is_there(checkpoint, name);
  }

  static void not_followed(const std::string& link, ObjectDiff& result) {
    result.verdict = DiffVerdict::kNotKnown;
    result.reason = link + " is a link to a directory, which is not followed";
  }

  /// Opens the file. For a dangling link or a pipe, returns null and sets the verdict to kNotKnown.
  static std::unique_ptr<WholeFile> opened(const Checkpoint& side, const std::string& name,
                                           ObjectDiff& result) try {
    return std::make_unique<WholeFile>(side.store(), join_path(side.location().directory, name));
  } catch (const Error& error) {
    result.verdict = DiffVerdict::kNotKnown;
    result.reason = "it can't be opened: " + error.message();
    return nullptr;
  }

  void compare(const std::string& name, ObjectDiff& result) const {
    const auto one = opened(sides_.left, name, result);
    const auto other = opened(sides_.right, name, result);
    if (!one || !other) return;
    WholeFile& left = *one;
    WholeFile& right = *other;
    if (same_bytes(left, right)) return;
    if (std::max(left.size(), right.size()) > kDecodedMax) {
      return judge_bytes(false, "larger than " + human_bytes(kDecodedMax), result);
    }
    const bool is_backend_file = name == kBackendFile && has_backend_file_;
    const WholeValue a = value_of(left, is_backend_file);
    const WholeValue b = value_of(right, is_backend_file);
    if (options_.checksums && !is_backend_file && a.item.value && b.item.value) {
      count_records(left, name, sides_.left_checksums);
      count_records(right, name, sides_.right_checksums);
    }
    judge_items({left, a}, {right, b}, options_, sides_.seams, result);
  }

  /// Adds the records of the file to the tally if the file is an archive.
  static void count_records(ItemSource& file, const std::string& name, ChecksumTally& checksums) {
    std::array<std::byte, 1> first{};
    file.read_at(0, first);
    if (first[0] != kPickleBegins) checksums.add(file, name);
  }

  DiffSides& sides_;
  Names left_;
  Names right_;
  bool has_backend_file_;  ///< true if a side has Megatron's metadata.json
  bool has_manifests_;     ///< true if both sides have a manifest; manifests are then not compared
  const DiffOptions& options_;
  DiffReport& report_;
};

}  // namespace

void diff_beside(DiffSides& sides, const DiffOptions& options, DiffReport& report) {
  BesideDiffer(sides, options, report).run();
}

}  // namespace reprise
