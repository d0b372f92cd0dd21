#include "core/format/torch_save.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/torch_records.hpp"
#include "core/format/zip/archive.hpp"

namespace reprise {
namespace {

constexpr std::string_view kStorages = "data/";
/// Largest pickle that is read. That of a model with 100,000 tensors has 20 MB.
constexpr std::uint64_t kPickleBytesMax = std::uint64_t{1} << 30U;
/// Expanded tensors have more elements than the file has. Up to this many bytes of elements are
/// read for each byte of the file, and as many more for small files.
constexpr std::uint64_t kExpandedPerByte = 16;
constexpr std::uint64_t kExpandedMin = std::uint64_t{1} << 30U;

/// Returns the number of elements from the first of the view to its last.
std::uint64_t reach_of(const TensorDescription& tensor) {
  std::int64_t reach = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return 0;
    reach += (tensor.shape[d] - 1) * tensor.strides[d];  // within the storage, as was checked
  }
  return static_cast<std::uint64_t>(reach);
}

class FileReader {
 public:
  explicit FileReader(ItemSource& source)
      : source_(source),
        archive_(source, ArchiveOf::kFile),
        room_(source.size() > kExpandedMin ? source.size() * kExpandedPerByte
                                           : kExpandedMin * kExpandedPerByte) {}

  TorchSaveFile read(const std::string& item) {
    check_torch_records(archive_);
    byteswap_ = byte_order_of(archive_) == ByteOrder::kBig;
    for (const Record& record : archive_.records()) {
      hash_.text(record.name);
      hash_.number(record.header_offset);
      hash_.number(record.size);
      hash_.number(record.crc);
      if (record.name.starts_with(kStorages)) {
        storages_.emplace(record.name.substr(kStorages.size()), Storage{&record, nullptr});
      }
    }
    const Record& record = archive_.at("data.pkl");
    pickle_offset_ = archive_.content_range(record).offset;
    const Bytes pickle = archive_.read(record, kPickleBytesMax);
    hash_.bytes(pickle);
    if (record.crc != 0 && !archive_.checksum_matches(record)) {
      const ErrorPlace place = source_.place_at(pickle_offset_);
      file_.findings.push_back({Severity::kError, Code::kChecksum,
                                "the pickle, which has all values and says where tensors are, does "
                                "not have its recorded checksum: bytes changed after the save",
                                "", place.file, place.offset});
    }
    PickledState state = decode_state(pickle, pickle_at(source_, pickle_offset_), item);
    for (Finding& finding : state.findings) file_.findings.push_back(std::move(finding));
    for (PickledState::Tensor& tensor : state.tensors) take(std::move(tensor));
    file_.objects = std::move(state.objects);
    note_shared();
    file_.hash = hash_.digest();
    return std::move(file_);
  }

 private:
  struct Storage {
    const Record* record = nullptr;
    std::shared_ptr<const SharedRecord> content;  ///< null until a tensor needs it
    std::vector<std::size_t> users = {};          ///< tensors with elements in it
  };

  void find(const PickledState::Tensor& tensor, Code code, std::string message,
            std::uint64_t offset) {
    file_.findings.push_back({Severity::kError, code, std::move(message), tensor.key,
                              source_.place_at(0).file, source_.place_at(offset).offset});
  }

  void take(PickledState::Tensor&& named) {
    const TensorDescription& tensor = named.tensor;
    const std::size_t width = size_of(tensor.dtype);
    const auto storage = storages_.find(tensor.storage_key);
    if (storage == storages_.end()) {
      return find(
          named, Code::kCoverageGap,
          "the record of its storage is missing: " + std::string(kStorages) + tensor.storage_key,
          pickle_offset_);
    }
    const Record& record = *storage->second.record;
    if (record.size < static_cast<std::uint64_t>(tensor.storage_bytes())) {
      return find(named, Code::kTornFile,
                  "record '" + record.name + "' has " + with_commas(record.size) +
                      " bytes, but the storage of the tensor has " +
                      with_commas(static_cast<std::uint64_t>(tensor.storage_bytes())),
                  record.header_offset);
    }
    if (too_large(width, tensor.shape)) {
      return find(named, Code::kLimit, "a tensor of shape " + to_string(tensor.shape),
                  pickle_offset_);
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(volume(tensor.shape)) * width;
    const std::uint64_t span = reach_of(tensor) * width;
    if (bytes > span && bytes - span > room_) {
      return find(named, Code::kUnsupported,
                  "an expanded tensor of shape " + to_string(tensor.shape) + ": written out, it " +
                      "would have " + human_bytes(bytes) + ", which is far more than the file has",
                  pickle_offset_);
    }
    if (bytes > span) room_ -= bytes - span;
    if (!storage->second.content) {
      storage->second.content = std::make_shared<const SharedRecord>(
          record.name, archive_.content_range(record), record.crc);
    }
    if (bytes != 0) storage->second.users.push_back(file_.tensors.size());
    const std::shared_ptr<const SharedRecord>& content = storage->second.content;
    const std::uint64_t first = static_cast<std::uint64_t>(tensor.storage_offset) * width;
    const ByteRange range{content->range.offset + (bytes == 0 ? 0 : first), span};
    file_.tensors.push_back(
        {.key = std::move(named.key),
         .path = std::move(named.path),
         .dtype = tensor.dtype,
         .shape = tensor.shape,
         .folded = tensor.folded,
         .requires_grad = tensor.requires_grad,
         .range = range,
         .view = std::make_shared<const StoredView>(StoredView{.strides = tensor.strides,
                                                               .byteswap = byteswap_,
                                                               .flips = tensor.flips,
                                                               .record = content}),
         .shard = named.shard,
         .saved_by = named.saved_by});
  }

  /// Says which tensors share memory: torch.load ties them again, and other formats don't.
  void note_shared() {
    constexpr std::size_t kShown = 8;
    std::size_t sets = 0;
    for (const Record& record : archive_.records()) {
      if (!record.name.starts_with(kStorages)) continue;
      const auto& users = storages_.find(record.name.substr(kStorages.size()))->second.users;
      if (users.size() < 2 || ++sets > kShown) continue;
      std::vector<std::string> others;
      for (std::size_t i = 1; i < users.size(); ++i) {
        others.push_back(file_.tensors[users[i]].key);
      }
      const TorchSaveFile::Tensor& one = file_.tensors[users.front()];
      const bool same = std::ranges::all_of(users, [&](std::size_t i) {
        return file_.tensors[i].range == one.range && file_.tensors[i].shape == one.shape &&
               file_.tensors[i].view->strides == one.view->strides;
      });
      file_.findings.push_back({Severity::kNote, Code::kNotStored,
                                (same ? "tied, as it has the same elements: "
                                      : "it shares the memory of its storage with ") +
                                    join_first(others),
                                one.key, source_.place_at(0).file, one.range.offset});
    }
    if (sets > kShown) {
      file_.findings.push_back({Severity::kNote, Code::kNotStored,
                                with_commas(sets - kShown) + " more storages have several tensors",
                                "", source_.place_at(0).file});
    }
  }

  ItemSource& source_;
  Archive archive_;
  std::uint64_t room_;  ///< bytes that expanded tensors may still have beyond what is stored
  bool byteswap_ = false;
  std::uint64_t pickle_offset_ = 0;
  std::map<std::string, Storage, std::less<>> storages_;
  Hasher hash_;
  TorchSaveFile file_;
};

}  // namespace

TorchSaveFile read_torch_save(ItemSource& source, const std::string& item) {
  return FileReader(source).read(item);
}

}  // namespace reprise
