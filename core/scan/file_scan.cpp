#include "core/scan/file_scan.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <optional>
#include <string_view>

#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/format/safetensors_header.hpp"
#include "core/format/zip/archive_begin.hpp"
#include "core/scan/pickle_wrapping.hpp"

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
  kMaybe,  ///< nothing, unless they are a pickle that breaks off after it did something. Bytes of
           ///< elements, and words, can look like the beginning of a pickle
};

/// True if it says so: text can begin as pickles of the first two protocols do.
bool begins_as_pickle(ByteSpan bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] <= std::byte{5};
}

bool has_name(const pickle::Imports& found) {
  return std::ranges::any_of(found.imports, &pickle::Import::is_name);
}
/// True if all parts of the name could be names in a program.
bool is_identifier(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_' || c == '.';
  });
}

/// True if loading the pickle does something before it breaks off, and if the limit that ends the
/// scan is not one of Python's.
bool did_something(const pickle::Imports& found, bool sure) {
  if (found.failure->code() == Code::kLimit) return true;
  return std::ranges::any_of(found.imports, [&](const pickle::Import& each) {
    if (each.is_name && each.standing == pickle::Standing::kRefused) return true;
    return each.standing != pickle::Standing::kKnown && (found.called || sure) &&
           (!each.is_name || is_identifier(each.name));
  });
}

std::string lower_case(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

/// The kinds of archives and files whose names promise pickles, and that are good without any.
bool is_good_without_pickles(const FileScan& scan, std::string_view lower_name) {
  // A rank may write nothing, and torch can write its items as safetensors.
  if (lower_name.ends_with(".distcp")) return scan.kind == "empty" || scan.kind == "safetensors";
  return lower_name.ends_with(".npy") ? scan.kind == kNumpyArray : lower_name.ends_with(".npz");
}

class FileScanner {
 public:
  explicit FileScanner(ItemSource& file) : file_(file) {}

  FileScan scan() {
    try {
      look();
    } catch (const std::bad_alloc& caught) {
      left_out(limit_from(caught, {}).message(), {}, 0);
    }
    std::ranges::stable_sort(scan_.names, {}, &ScannedName::offset);
    return std::move(scan_);
  }

 private:
  void look() {
    if (file_.size() == 0) {
      scan_.kind = "empty";
      return;
    }
    const Bytes first =
        read_range(file_, {0, std::min<std::uint64_t>(file_.size(), kWrappingBytes)});
    if (const PickleWrapping wrapping = wrapping_of(first, true); !wrapping.kind.empty()) {
      scan_.kind = wrapping.kind;
      if (!wrapping.why.empty()) left_out(std::string(wrapping.why), {}, 0);
      // Its first bytes may be those of a pickle, too.
      return walk(pickle_bytes(file_, {0, file_.size()}, Must::kMaybe), {});
    }
    switch (item_kind_of(first)) {
      case ItemKind::kArchive:
        return scan_archives();
      case ItemKind::kSafetensors:
        return scan_safetensors();
      case ItemKind::kLegacy:
        scan_.kind = "torch.save before 1.6";
        return scan_series(kLegacyPickles);
      case ItemKind::kZstd:
      case ItemKind::kOther:
        scan_series(0);
        if (archive_begin(file_, file_.size())) scan_archives();
        break;
    }
  }

  /// A pickle can begin as safetensors do, so that only a header that describes the whole file
  /// tells that it is one. Even then the first bytes may be those of a pickle, too.
  void scan_safetensors() {
    const std::string why = why_no_safetensors();
    if (why.empty()) {
      scan_.kind = "safetensors";
      return walk(pickle_bytes(file_, {0, file_.size()}, Must::kMaybe), {});
    }
    scan_series(0);
    if (scan_.kind.empty()) left_out("it begins as safetensors do, but " + why, {}, 0);
  }

  std::string why_no_safetensors() {
    try {
      const ErrorPlace place = file_.place_at(0);
      const Bytes length = read_range(file_, {0, kSafetensorsLengthBytes});
      const std::uint64_t bytes = safetensors_header_bytes(length, file_.size(), place);
      const Bytes json = read_range(file_, {kSafetensorsLengthBytes, bytes});
      const SafetensorsHeader header = read_safetensors_header(json, place);
      const Findings wrong = check_safetensors_layout(header, file_.size(), place);
      return wrong.empty() ? "" : wrong.front().message;
    } catch (const Error& error) {
      if (error.code() == Code::kIo) throw;
      return error.message();
    }
  }

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
      const bool told = found.failure ? place.must == Must::kBePickle || did_something(found, sure)
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
    const Bytes first = read_range(
        archive.source(), {content.offset, std::min<std::uint64_t>(content.size, kWrappingBytes)});
    leave_out_wrapped(first, record.name, offset);
    const Must must = named ? Must::kBePickle : Must::kMaybe;
    const Bytes bytes = pickle_bytes(archive.source(), content, must);
    if (named && bytes.size() < std::max<std::uint64_t>(content.size, 1)) {
      left_out(bytes.empty() ? "an empty pickle" : "a pickle of more than 2 GiB", record.name,
               offset);
    }
    walk(bytes, {record.name, offset, must, 0});
  }

  void leave_out_wrapped(ByteSpan first, const std::string& name, std::uint64_t offset) {
    const PickleWrapping wrapping = wrapping_of(first, is_name_of_pickles(name));
    if (!wrapping.why.empty()) left_out(std::string(wrapping.why), name, offset);
    if (wrapping.kind.empty() && item_kind_of(first) == ItemKind::kArchive) {
      left_out("an archive within the archive is not looked into", name, offset);
    }
  }

  ItemSource& file_;
  FileScan scan_;
  /// Where each name with its reason is in FileScan::names.
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
};

}  // namespace

FileScan scan_file(ItemSource& file) { return FileScanner(file).scan(); }

bool is_name_of_pickles(std::string_view name) {
  const std::string lower = lower_case(name);
  constexpr std::array<std::string_view, 20> kEnds{
      ".pt",  ".pth",    ".pkl", ".pickle", ".ckpt",    ".distcp", ".metadata",
      ".bin", ".joblib", ".npy", ".npz",    ".tar",     ".tgz",    ".nemo",
      ".gz",  ".bz2",    ".xz",  ".zst",    ".pickled", ".dill"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return lower.ends_with(end); });
}

void require_promised(std::string_view name, FileScan& scan) {
  if (scan.pickles != 0 || !scan.unscanned.empty() || !is_name_of_pickles(name)) return;
  if (is_good_without_pickles(scan, lower_case(name))) return;
  scan.unscanned.push_back(
      {"by its name there should be a pickle in it, and there is none", {}, 0});
}

}  // namespace reprise
