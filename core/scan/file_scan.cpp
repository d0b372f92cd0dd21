#include "core/scan/file_scan.hpp"

#include <algorithm>
#include <optional>

#include "core/base/print.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/format/zip/archive_begin.hpp"

namespace reprise {
namespace {

/// A record is not read further if its first bytes can't begin a pickle.
constexpr std::uint64_t kSniffedBytes = std::uint64_t{64} << 10U;
constexpr std::uint64_t kRecordBytesMax = std::uint64_t{1} << 31U;
/// The pickles at the beginning of what torch.save wrote before 1.6.
constexpr int kLegacyPickles = 5;

/// What is said of bytes that are no pickle.
enum class Must : std::uint8_t {
  kBePickle,  ///< that is reported
  kMaybe,     ///< nothing, unless they are a pickle that breaks off after a name that is refused.
              ///< Bytes of elements can look like a pickle without a name, which is no pickle then
};

/// True if it says so: text can begin as pickles of the first two protocols do.
bool begins_as_pickle(ByteSpan bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] <= std::byte{5};
}

bool has_name(const pickle::Imports& found) {
  return std::ranges::any_of(found.imports, &pickle::Import::is_name);
}
bool has_refused_name(const pickle::Imports& found) {
  return std::ranges::any_of(found.imports, [](const pickle::Import& each) {
    return each.is_name && each.standing == pickle::Standing::kRefused;
  });
}

class FileScanner {
 public:
  explicit FileScanner(ItemSource& file) : file_(file) {}

  FileScan scan() {
    if (file_.size() == 0) {
      scan_.kind = "empty";
      return std::move(scan_);
    }
    const Bytes first = read_range(file_, {0, std::min<std::uint64_t>(file_.size(), kFirstBytes)});
    switch (item_kind_of(first)) {
      case ItemKind::kArchive:
        scan_archives();
        break;
      case ItemKind::kSafetensors:
        scan_.kind = "safetensors";  // its first bytes may be those of a pickle, too
        walk(pickle_bytes(file_, {0, file_.size()}, Must::kMaybe), {});
        break;
      case ItemKind::kLegacy:
        scan_.kind = "torch.save before 1.6";
        scan_series(kLegacyPickles);
        break;
      case ItemKind::kZstd:
        scan_.kind = "zstd";
        left_out("it is compressed with zstd; scan what comes out of it", {}, 0);
        break;
      case ItemKind::kOther:
        scan_series(0);
        if (archive_begin(file_, file_.size())) scan_archives();
        break;
    }
    std::ranges::stable_sort(scan_.names, {}, &ScannedName::offset);
    return std::move(scan_);
  }

 private:
  static constexpr std::uint64_t kFirstBytes = 64;

  void left_out(std::string why, std::string record, std::uint64_t offset) {
    scan_.unscanned.push_back({std::move(why), std::move(record), offset});
  }

  /// Scans pickles in a row: `count` of them, or as many as there are if it is 0.
  void scan_series(int count) {
    const Bytes bytes = pickle_bytes(file_, {0, file_.size()}, Must::kMaybe);
    const bool all = bytes.size() == file_.size();
    // A pickle of the first protocols has no sign of its own, but it ends where the file does.
    const bool is_one = all && pickle::imports_of(bytes, {}).end == bytes.size() && !bytes.empty();
    const Must must = is_one || begins_as_pickle(bytes) ? Must::kBePickle : Must::kMaybe;
    walk(bytes, {{}, 0, must, count});
    const bool found = scan_.pickles != 0 || !scan_.unscanned.empty();
    if (found && scan_.kind.empty()) scan_.kind = "pickle";
    if (found && count == 0 && !all) {
      left_out("only what comes before was looked at", {}, bytes.size());
    }
  }

  /// Returns the beginning of a part that is no pickle, and otherwise the whole, as far as it is
  /// read.
  static Bytes pickle_bytes(ItemSource& source, ByteRange range, Must must) {
    ByteRange wanted{range.offset, std::min(range.size, kRecordBytesMax)};
    if (must == Must::kMaybe && wanted.size > kSniffedBytes) {
      Bytes first = read_range(source, {range.offset, kSniffedBytes});
      const pickle::Imports found = pickle::imports_of(first, {});
      if (found.failure && !found.ran_out) return first;
    }
    return read_range(source, wanted);
  }

  /// Bytes in which pickles are looked for.
  struct Place {
    std::string record;
    std::uint64_t offset = 0;  ///< in the file
    Must must = Must::kMaybe;
    int count = 0;  ///< of pickles; 0 if they go on to the end
  };

  /// Follows the pickles in a row. Where one breaks off, loading it runs what came before.
  void walk(ByteSpan bytes, const Place& place) {
    std::size_t at = 0;
    bool any = false;
    for (int n = 0; at < bytes.size() && (place.count == 0 || n < place.count); ++n) {
      const pickle::Imports found =
          pickle::imports_of(bytes.subspan(at), {.file = {}, .offset = place.offset + at});
      const bool sure = place.must == Must::kBePickle || begins_as_pickle(bytes.subspan(at));
      const bool told = found.failure ? place.must == Must::kBePickle || has_refused_name(found)
                                      : sure || has_name(found);
      if (told) add(found, place.record, place.offset + at);
      any = any || told;
      if (found.failure) {
        if (!any) return;
        const std::string what = n == 0 ? "" : "what follows the pickle is no pickle: ";
        return left_out(what + found.failure->message(), place.record,
                        found.failure->place().offset.value_or(place.offset + at));
      }
      at += found.end;
    }
  }

  void add(const pickle::Imports& found, const std::string& record, std::uint64_t offset) {
    ++scan_.pickles;
    for (const pickle::Import& import : found.imports) {
      const auto [known, is_new] = index_.emplace(std::pair(import.name, import.why), 0);
      if (is_new) {
        known->second = scan_.names.size();
        scan_.names.push_back({.name = import.name,
                               .standing = import.standing,
                               .why = import.why,
                               .record = record,
                               .offset = offset + import.position,
                               .pickles = 0});
      }
      ScannedName& name = scan_.names[known->second];
      ++name.pickles;
      if (offset + import.position < name.offset) {
        name.offset = offset + import.position;
        name.record = record;
      }
    }
  }

  /// Scans archives in a row, the last first: only the end of an archive says how long it is.
  void scan_archives() {
    std::uint64_t end = file_.size();
    std::uint64_t archives = 0;
    while (end > 0) {
      const std::uint64_t begin = archive_begin(file_, end).value_or(0);
      if (!scan_archive({begin, end - begin})) break;
      ++archives;
      end = begin;
    }
    scan_.kind += scan_.kind.empty() ? "" : ", then ";
    scan_.kind += archives <= 1 ? "archive" : with_commas(archives) + " archives";
    std::ranges::reverse(scan_.unscanned);
  }

  bool scan_archive(ByteRange range) {
    PartOf part(file_, range, file_.place_at(range.offset));
    std::optional<Archive> archive;
    try {
      archive.emplace(part, ArchiveOf::kFile);
      for (const Record& record : archive->records()) scan_record(*archive, record, range.offset);
      return true;
    } catch (const Error& error) {
      if (error.code() == Code::kIo) throw;
      left_out(error.message(), {}, error.place().offset.value_or(range.offset));
      return archive.has_value();
    }
  }

  void scan_record(Archive& archive, const Record& record, std::uint64_t begin) {
    const ByteRange content = archive.content_range(record);
    const std::uint64_t offset = begin + content.offset;
    const bool named = record.name.ends_with(".pkl") || record.name.ends_with(".pickle");
    const Must must = named ? Must::kBePickle : Must::kMaybe;
    const Bytes bytes = pickle_bytes(archive.source(), content, must);
    if (named && bytes.size() < std::max<std::uint64_t>(content.size, 1)) {
      left_out(bytes.empty() ? "an empty pickle" : "a pickle of more than 2 GiB", record.name,
               offset);
    }
    walk(bytes, {record.name, offset, must, 0});
  }

  ItemSource& file_;
  FileScan scan_;
  /// Where each name with its reason is in FileScan::names.
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

}  // namespace

FileScan scan_file(ItemSource& file) { return FileScanner(file).scan(); }

}  // namespace reprise
