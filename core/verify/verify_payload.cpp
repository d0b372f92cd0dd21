#include "core/verify/verify_payload.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/zip/archive.hpp"
#include "core/verify/verify_copies.hpp"
#include "core/verify/verify_experts.hpp"

namespace reprise {
namespace {

/// Upper limit on the number of errors. Without it, a damaged file could be reported once per item.
constexpr std::size_t kErrorsMax = 10'000;

/// Number of bytes read at a time of elements without checksum.
constexpr std::size_t kElementsStep = std::size_t{1} << 20U;

struct Visit {
  FileIndex file = kNoFile;
  ByteRange range;
  const StoredTensor* tensor = nullptr;  ///< null for an object; otherwise `chunk` is set too
  const StoredChunk* chunk = nullptr;
  const StoredObject* object = nullptr;
};

/// Returns the readable items in the order of files and offsets.
std::vector<Visit> visits_of(const Catalog& catalog, std::span<const StoredFile> files) {
  std::vector<Visit> visits;
  const auto add = [&visits, files](const Visit& visit) {
    if (is_readable(visit.file, visit.range, files)) visits.push_back(visit);
  };
  std::set<const SharedRecord*> seen;
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) {
      // What several tensors share is read once, as the record that it is.
      if (chunk.view && !seen.insert(chunk.view->record.get()).second) continue;
      const ByteRange range = chunk.view ? chunk.view->record->range : chunk.range;
      add({chunk.file, range, &tensor, &chunk, nullptr});
    }
  }
  for (const auto& object : catalog.objects) {
    add({object.file, object.range, nullptr, nullptr, &object});
  }
  std::stable_sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) {
    return std::pair(a.file, a.range.offset) < std::pair(b.file, b.range.offset);
  });
  return visits;
}

/// Returns the offsets of the records that tensors use, by file.
std::map<FileIndex, std::set<std::uint64_t>> records_of(const Catalog& catalog) {
  std::map<FileIndex, std::set<std::uint64_t>> records;
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) {
      if (chunk.view) records[chunk.file].insert(chunk.view->record->range.offset);
    }
  }
  return records;
}

/// Limits the number of bytes of a file that are read again because items overlap. The limit is the
/// size of the file. It is needed because even a small metadata file can list very many overlapping
/// items. Overlaps are reported elsewhere.
class Rereads {
 public:
  /// True if the item may be read. Must be called in the order of visits_of().
  bool allowed(const Visit& visit, std::span<const StoredFile> files) {
    if (visit.file != file_) {
      file_ = visit.file;
      reached_ = 0;
      spare_ = files[file_].size.value_or(0);
    }
    if (visit.range.offset < reached_) {
      if (visit.range.size > spare_) return false;
      spare_ -= visit.range.size;
    }
    reached_ = std::max(reached_, visit.range.offset + visit.range.size);
    return true;
  }

 private:
  FileIndex file_ = kNoFile;
  std::uint64_t reached_ = 0;
  std::uint64_t spare_ = 0;
};

class PayloadVerifier {
 public:
  PayloadVerifier(Checkpoint& checkpoint, VerifyReport& report, HealthMeter* meter)
      : checkpoint_(checkpoint), report_(report), meter_(meter) {}

  void look_at(const Visit& visit) {
    const std::string& key = visit.tensor != nullptr ? visit.tensor->key : visit.object->key;
    if (visit.file == unreadable_) {
      ++unread_items_;
      return;
    }
    try {
      if (visit.chunk != nullptr && visit.chunk->form == ItemForm::kView) {
        return look_at_record(*visit.tensor, *visit.chunk);
      }
      auto slice = checkpoint_.slice(key, visit.file, visit.range);
      if (meter_ != nullptr && visit.tensor != nullptr) {
        slice = meter_->measured(std::move(slice), *visit.tensor, *visit.chunk);
      }
      if (visit.chunk != nullptr && visit.chunk->form == ItemForm::kElements) {
        return look_at_elements(*visit.tensor, *slice);
      }
      if (visit.file == checkpoint_.metadata().made_file) return look_at_object(*visit.object);
      // Checksums are compared first, because a wrong checksum explains why an item is malformed.
      tally_.add(*slice, key);
      if (visit.tensor != nullptr) {
        experts_.add(*visit.tensor, *visit.chunk,
                     checkpoint_.tensor_item(*visit.tensor, *visit.chunk));
      } else {
        look_at_object(*visit.object);
      }
    } catch (const Error& error) {
      if (error.code() == Code::kIo) return add_unreadable(visit, error);
      add(finding_from(error.within(
          {.key = key, .file = checkpoint_.display(visit.file), .offset = visit.range.offset})));
    }
  }

  void leave_out() { ++overlapping_; }

  /// Checks the records of files of torch.save that have no elements of tensors: the pickle, and
  /// storages that nothing uses.
  void look_at_small_records() {
    if (!is_of_torch_save(checkpoint_.metadata().form)) return;
    auto checked = records_of(checkpoint_.catalog());
    for (FileIndex file = 0; file < checkpoint_.catalog().files.size(); ++file) {
      if (file == checkpoint_.metadata().made_file) continue;
      const std::set<std::uint64_t>& records = checked[file];
      try {
        const auto whole = checkpoint_.slice("", file, {0, checkpoint_.file(file).size()});
        Archive archive(*whole, ArchiveOf::kFile);
        for (const Record& record : archive.records()) {
          const std::uint64_t at = archive.content_range(record).offset;
          if (record.size == 0 || records.contains(at)) continue;
          const bool matches = archive.checksum_matches(record);
          // Whoever opened the file told of this.
          if (!matches && record.name == "data.pkl" && record.crc != 0) continue;
          tally_.add(checkpoint_.display(file), record, matches,
                     [&] { return whole->place_at(at); });
        }
      } catch (const Error& error) {
        add(finding_from(error.within({.file = checkpoint_.display(file)})));
      }
    }
  }

  void finish() {
    say_unreadable();
    if (overlapping_ != 0) {
      report_.findings.push_back(
          {Severity::kError, Code::kExtentMismatch,
           with_commas(overlapping_) + " items that overlap others were not read"});
    }
    if (left_out_ != 0) {
      report_.findings.push_back({Severity::kError, Code::kTornFile,
                                  with_commas(left_out_) + " more items can't be read"});
    }
    report_.records_checked = tally_.records();
    for (auto& finding : tally_.findings()) report_.findings.push_back(std::move(finding));
    for (auto& finding : experts_.findings(checkpoint_)) {
      report_.findings.push_back(std::move(finding));
    }
    for (auto& finding : equal_.findings()) report_.findings.push_back(std::move(finding));
  }

 private:
  /// Reads elements that have no checksum: all that can be seen is that they can be read, and which
  /// are equal.
  void look_at_elements(const StoredTensor& tensor, ItemSource& elements) {
    elements_.resize(kElementsStep);
    for (std::uint64_t at = 0; at < elements.size(); at += kElementsStep) {
      const auto step = std::min<std::uint64_t>(elements.size() - at, kElementsStep);
      const MutableByteSpan read = MutableByteSpan(elements_).first(step);
      elements.read_at(at, read);
      equal_.add(tensor, {at, elements.size()}, read);
    }
  }

  /// Compares the record with its checksum. A wrong one is told by the tally, with all others.
  void look_at_record(const StoredTensor& tensor, const StoredChunk& chunk) {
    try {
      checkpoint_.check_record(tensor, chunk, tally_);
    } catch (const Error& error) {
      if (error.code() != Code::kChecksum) throw;
    }
  }

  void look_at_object(const StoredObject& object) {
    const auto slice = checkpoint_.slice(object.key, object.file, object.range);
    const BytesItem item = read_bytes_item(*slice);
    if (item.value) return;
    report_.opaque.push_back(object.key);
    const std::string names = join(item.unlisted_names, ", ");
    report_.findings.push_back({Severity::kNote, Code::kUnsupported,
                                "opaque, kept as bytes: " + item.opaque_because +
                                    (names.empty() ? "" : "; names " + names),
                                object.key});
  }

  /// Reports an unreadable file once, and not again for each item. Items come in file order.
  void add_unreadable(const Visit& visit, const Error& error) {
    say_unreadable();
    unreadable_ = visit.file;
    unread_items_ = 1;
    because_ = error.message();
  }
  void say_unreadable() {
    if (unreadable_ == kNoFile) return;
    add({Severity::kError, Code::kIo,
         because_ + "; " + with_commas(unread_items_) + " items of this file were not checked", "",
         checkpoint_.display(unreadable_)});
    unreadable_ = kNoFile;
  }

  void add(Finding finding) {
    if (errors_++ < kErrorsMax) {
      report_.findings.push_back(std::move(finding));
    } else {
      ++left_out_;
    }
  }

  Checkpoint& checkpoint_;
  VerifyReport& report_;
  HealthMeter* meter_;
  ChecksumTally tally_;
  ExpertContents experts_;
  EqualTensors equal_;
  Bytes elements_;
  std::size_t errors_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint64_t overlapping_ = 0;
  FileIndex unreadable_ = kNoFile;
  std::uint64_t unread_items_ = 0;
  std::string because_;
};

}  // namespace

void verify_payload(Checkpoint& checkpoint, std::span<const StoredFile> files, Progress& progress,
                    VerifyReport& report, HealthMeter* meter) {
  const auto visits = visits_of(checkpoint.catalog(), files);
  std::uint64_t total = 0;
  for (const Visit& visit : visits) total += visit.range.size;
  std::uint64_t done = 0;
  PayloadVerifier verifier(checkpoint, report, meter);
  Rereads rereads;
  for (const Visit& visit : visits) {
    if (rereads.allowed(visit, files)) {
      verifier.look_at(visit);
    } else {
      verifier.leave_out();
    }
    done += visit.range.size;
    progress.advance(checkpoint.catalog().files[visit.file], done, total);
  }
  verifier.look_at_small_records();
  verifier.finish();
}

}  // namespace reprise
