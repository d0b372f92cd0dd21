#include "core/verify/verify_payload.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/print.hpp"
#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/checkpoint_copies.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/checkpoint/usual_frame.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/verify/payload_visits.hpp"
#include "core/verify/verify_copies.hpp"
#include "core/verify/verify_experts.hpp"

namespace reprise {
namespace {

/// Upper limit on the number of errors. Without it, a damaged file could be reported once per item.
constexpr std::size_t kErrorsMax = 10'000;

/// Number of bytes read at a time of elements without checksum.
constexpr std::size_t kElementsStep = std::size_t{1} << 20U;

/// An item of at most this many bytes is read at once.
constexpr std::uint64_t kItemAtOnce = std::uint64_t{256} << 10U;

/// Objects of more bytes than this are read one at a time.
constexpr std::uint64_t kLargeObject = std::uint64_t{4} << 20U;

/// What one run of visits found.
struct RunFindings {
  ChecksumTally tally;
  ExpertContents experts;
  EqualTensors equal;
  HealthMeter meter;
  Findings findings;
  std::vector<std::string> opaque;
  std::optional<std::string> unreadable;  ///< why the rest of the file can't be read
  std::uint64_t unread = 0;               ///< items of that rest
};

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

/// Reads runs of visits for one thread.
class RunReader {
 public:
  /// Large objects are read while this thread holds `large`, so that one is in memory at a time.
  RunReader(Checkpoint& checkpoint, bool measures, std::mutex& large)
      : checkpoint_(checkpoint), measures_(measures), large_(large) {}

  /// `at_visit` is called when an item is done with.
  template <class AtVisit>
  std::unique_ptr<RunFindings> read(std::span<const Visit> run, const AtVisit& at_visit) {
    auto found = std::make_unique<RunFindings>();
    for (const Visit& visit : run) {
      if (found->unreadable) {
        ++found->unread;
      } else {
        look_at(visit, *found);
      }
      at_visit(visit);
    }
    return found;
  }

 private:
  void look_at(const Visit& visit, RunFindings& found) {
    const std::string& key = visit.tensor != nullptr ? visit.tensor->key : visit.object->key;
    try {
      if (visit.chunk != nullptr && visit.chunk->form == ItemForm::kView) {
        // A wrong checksum is told by the tally, with all others.
        count_record(checkpoint_, *visit.tensor, *visit.chunk, found.tally);
        return;
      }
      auto slice = checkpoint_.slice(key, visit.file, visit.range);
      if (measures_ && visit.tensor != nullptr) {
        slice = found.meter.measured(checkpoint_, std::move(slice), *visit.tensor, *visit.chunk);
      }
      if (visit.chunk != nullptr && visit.chunk->form == ItemForm::kElements) {
        return look_at_elements(*visit.tensor, *slice, found.equal);
      }
      if (visit.file == checkpoint_.metadata().made_file) {
        return look_at_object(*visit.object, found);
      }
      // Checksums are compared first, because a wrong checksum explains why an item is malformed.
      if (visit.tensor != nullptr) {
        return look_at_item(*visit.tensor, *visit.chunk, *slice, found);
      }
      found.tally.add(*slice, key);
      look_at_object(*visit.object, found);
    } catch (const Error& error) {
      if (error.code() == Code::kIo) {
        found.unreadable = error.message();
        found.unread = 1;
        return;
      }
      found.findings.push_back(finding_from(error.within(
          {.key = key, .file = checkpoint_.display(visit.file), .offset = visit.range.offset})));
    }
  }

  /// Reads elements that have no checksum: all that can be seen is that they can be read, and which
  /// are equal.
  void look_at_elements(const StoredTensor& tensor, ItemSource& elements, EqualTensors& equal) {
    elements_.resize(kElementsStep);
    for (std::uint64_t at = 0; at < elements.size(); at += kElementsStep) {
      const auto step = std::min<std::uint64_t>(elements.size() - at, kElementsStep);
      const MutableByteSpan read = MutableByteSpan(elements_).first(step);
      elements.read_at(at, read);
      equal.add(tensor, {at, elements.size()}, read);
    }
  }

  /// Reads a small item at once, and parses it unless its bytes are the usual ones and have their
  /// checksums.
  void look_at_item(const StoredTensor& tensor, const StoredChunk& chunk, ItemSource& item,
                    RunFindings& found) {
    const auto frame =
        item.size() <= kItemAtOnce ? usual_frame(checkpoint_.frames(), tensor, chunk) : nullptr;
    if (!frame) return look_at_archive(tensor, chunk, item, found);
    elements_.resize(item.size());
    item.read_at(0, elements_);
    if (look_at_framed(tensor, chunk, *frame, item.place_at(0).file, found)) return;
    SpanSource other(elements_, item.place_at(0));
    look_at_archive(tensor, chunk, other, found);
  }

  /// Counts the item that was read, if it has that frame and the right checksums.
  bool look_at_framed(const StoredTensor& tensor, const StoredChunk& chunk,
                      const TensorFrame& frame, const std::string& file, RunFindings& found) {
    const ByteSpan bytes = elements_;
    const ByteSpan tail = bytes.last(frame.tail_bytes());
    const auto item = frame.match(bytes.first(frame.head_bytes()), tail);
    if (!item || !frame.id_is_whole(tail) ||
        item->crc != crc32_of(bytes.subspan(frame.head_bytes(), frame.data_bytes()))) {
      return false;
    }
    count_frame(frame, tail, file, {}, found.tally);
    found.tally.add(file, {.name = "data/0", .size = frame.data_bytes(), .crc = item->crc}, true,
                    {});
    found.experts.add(tensor, chunk, *item);
    return true;
  }

  /// Opens the item once, for its checksums and for its header.
  static void look_at_archive(const StoredTensor& tensor, const StoredChunk& chunk,
                              ItemSource& item, RunFindings& found) {
    Archive archive(item);
    found.tally.add(archive, tensor.key);
    found.experts.add(tensor, chunk, Checkpoint::tensor_item(tensor, chunk, archive));
  }

  void look_at_object(const StoredObject& object, RunFindings& found) {
    std::unique_lock alone(large_, std::defer_lock);
    if (object.range.size > kLargeObject) alone.lock();
    const auto slice = checkpoint_.slice(object.key, object.file, object.range);
    const BytesItem item = read_bytes_item(*slice);
    if (item.value) return;
    found.opaque.push_back(object.key);
    const std::string names = join(item.unlisted_names, ", ");
    found.findings.push_back({Severity::kNote, Code::kUnsupported,
                              "opaque, kept as bytes: " + item.opaque_because +
                                  (names.empty() ? "" : "; names " + names),
                              object.key});
  }

  Checkpoint& checkpoint_;
  bool measures_;
  std::mutex& large_;
  Bytes elements_;  ///< what is read at a time of elements without checksum, or a small item
};

/// Puts together what runs found, in their order.
class PayloadFindings {
 public:
  PayloadFindings(Checkpoint& checkpoint, VerifyReport& report, HealthMeter* meter)
      : checkpoint_(checkpoint), report_(report), meter_(meter) {}

  void add(std::span<const Visit> run, RunFindings& found) {
    if (run.front().file != file_) {
      say_unreadable();
      file_ = run.front().file;
    }
    if (unreadable_) {  // told once for the file, whose rest was not read if one thread had read it
      unread_ += run.size();
      return;
    }
    tally_.add(found.tally);
    experts_.add(found.experts);
    equal_.add(found.equal);
    if (meter_ != nullptr) meter_->add(found.meter);
    for (Finding& finding : found.findings) add(std::move(finding));
    report_.opaque.insert(report_.opaque.end(), found.opaque.begin(), found.opaque.end());
    unreadable_ = std::move(found.unreadable);
    unread_ = found.unread;
  }

  /// Checks the records of files of torch.save that have no elements of tensors: the pickle, and
  /// storages that nothing uses.
  void look_at_small_records() {
    if (!is_of_torch_save(checkpoint_.metadata().form)) return;
    say_unreadable();
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

  void finish(std::uint64_t overlapping) {
    say_unreadable();
    if (overlapping != 0) {
      report_.findings.push_back(
          {Severity::kError, Code::kExtentMismatch,
           with_commas(overlapping) + " items that overlap others were not read"});
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
  /// Reports an unreadable file once, and not again for each item.
  void say_unreadable() {
    if (!unreadable_) return;
    add({Severity::kError, Code::kIo,
         *unreadable_ + "; " + with_commas(unread_) + " items of this file were not checked", "",
         checkpoint_.display(file_)});
    unreadable_.reset();
  }

  void add(Finding finding) {
    const bool error = finding.severity == Severity::kError;
    if (error && errors_ == kErrorsMax) {
      ++left_out_;
      return;
    }
    errors_ += error ? 1 : 0;
    report_.findings.push_back(std::move(finding));
  }

  Checkpoint& checkpoint_;
  VerifyReport& report_;
  HealthMeter* meter_;
  ChecksumTally tally_;
  ExpertContents experts_;
  EqualTensors equal_;
  std::size_t errors_ = 0;
  std::uint64_t left_out_ = 0;
  FileIndex file_ = kNoFile;
  std::optional<std::string> unreadable_;  ///< why the rest of the file can't be read
  std::uint64_t unread_ = 0;               ///< items of that rest
};

}  // namespace

void verify_payload(Checkpoint& checkpoint, std::span<const StoredFile> files,
                    const VerifyPorts& ports, VerifyReport& report, HealthMeter* meter) {
  const PayloadVisits payload = payload_visits(checkpoint.catalog(), files);
  PayloadFindings all(checkpoint, report, meter);
  std::vector<std::unique_ptr<RunFindings>> found(payload.runs.size());
  std::size_t next = 0;  // the first run that was not put to the others
  std::uint64_t done = 0;
  std::mutex at_a_time;
  std::mutex large;
  CheckpointCopies copies(checkpoint, ports.tasks);
  do_all(ports.tasks, payload.runs.size(), [&](std::size_t thread) {
    return
        [&, reader = RunReader(copies.of(thread), meter != nullptr, large)](std::size_t i) mutable {
          auto run = reader.read(payload.runs[i], [&](const Visit& visit) {
            const std::lock_guard lock(at_a_time);
            done += visit.range.size;
            ports.progress.advance(checkpoint.catalog().files[visit.file], done, payload.bytes);
          });
          const std::lock_guard lock(at_a_time);
          found[i] = std::move(run);
          for (; next < found.size() && found[next]; ++next) {
            all.add(payload.runs[next], *found[next]);
            found[next].reset();
          }
        };
  });
  copies.end_in(checkpoint);
  checkpoint.require_files_in_place();
  all.look_at_small_records();
  all.finish(payload.left_out);
}

}  // namespace reprise
