#include "core/export/export.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/utf8.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/export/convert.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/safetensors_header.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/geometry/tiling.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20U;
/// Most bytes of elements that one piece of work reads at a time.
constexpr std::uint64_t kBatchBytes = std::uint64_t{8} << 20U;

/// Returns the parts of `whole` that are in none of `boxes`.
std::vector<Box> outside(const Box& whole, std::span<const Box> boxes) {
  std::vector<Box> left;
  if (!whole.empty()) left.push_back(whole);
  for (const Box& box : boxes) {
    std::vector<Box> next;
    for (const Box& one : left) {
      const auto common = intersect(one, box);
      if (!common) {
        next.push_back(one);
        continue;
      }
      for (const Box& rest : subtract(one, *common)) next.push_back(rest);
    }
    left = std::move(next);
  }
  return left;
}

/// Returns what no box covers; boxes may overlap.
std::vector<Box> gaps(const Dims& shape, std::vector<Box> boxes) {
  const Box whole = Box::whole(shape);
  if (!boxes.empty() && !tiling_fault(whole, boxes)) return {};
  std::sort(boxes.begin(), boxes.end());
  return outside(whole, boxes);
}

std::vector<Box> targets(const MappedTensor& tensor) {
  std::vector<Box> boxes;
  for (const auto& part : tensor.parts) boxes.push_back(part.target());
  return boxes;
}

std::uint64_t elements_of(std::span<const Box> boxes) {
  std::uint64_t sum = 0;
  for (const Box& box : boxes) sum += static_cast<std::uint64_t>(box.elements());
  return sum;
}

std::uint64_t bytes_of(const MappedTensor& tensor) {
  return static_cast<std::uint64_t>(volume(tensor.shape)) * size_of(tensor.dtype);
}

/// Returns the index of a tensor that the catalog has.
std::uint32_t index_in(const Catalog& catalog, const std::string& key) {
  return static_cast<std::uint32_t>(catalog.tensor(key) - catalog.tensors.data());
}

/// True for what a JSON text can have. Surrogates, which torch may write, are no text.
bool is_text(const std::string& key) {
  const auto at = std::adjacent_find(key.begin(), key.end(), [](char a, char b) {
    return static_cast<unsigned char>(a) == 0xED && static_cast<unsigned char>(b) >= 0xA0;
  });
  return is_utf8(key) && at == key.end();
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return std::string(kSafetensorsModel);
  const auto padded_number = [](std::size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
  };
  return "model-" + padded_number(index + 1) + "-of-" + padded_number(count) + ".safetensors";
}

/// A range of elements of one tensor, which is one step of the work.
struct Batch {
  std::uint32_t tensor = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

void add_batches(std::uint32_t tensor, const Dims& shape, std::size_t element,
                 std::vector<Batch>& batches) {
  const auto step = static_cast<std::int64_t>(kBatchBytes / element);
  for (std::int64_t begin = 0; begin < volume(shape); begin += step) {
    batches.push_back({tensor, begin, std::min(begin + step, volume(shape))});
  }
}

/// Reads pieces of one checkpoint's tensors; for one thread.
class PieceReader {
 public:
  PieceReader(const Checkpoint& opened, Device& device)
      : checkpoint_(opened), staging_(kStagingBytes), device_(device) {}

  /// Throws STALE_METADATA if a file that was read was replaced meanwhile.
  void require_in_place() const { checkpoint_.require_files_in_place(); }

  void read(const PieceOf& one, std::byte* local) {
    of(one.tensor).read(std::span(&one.piece, 1), local);
  }
  void read(std::span<const PieceOf> pieces, std::byte* local) {
    for (const PieceOf& one : pieces) read(one, local);
  }

 private:
  TensorReader& of(std::uint32_t tensor) {
    if (!reader_ || tensor != of_) {
      reader_ = std::make_unique<TensorReader>(ReaderResources{checkpoint_, device_, staging_},
                                               checkpoint_.catalog().tensors[tensor]);
      of_ = tensor;
    }
    return *reader_;
  }

  Checkpoint checkpoint_;
  Bytes staging_;
  Device& device_;
  std::unique_ptr<TensorReader> reader_;
  std::uint32_t of_ = 0;
};

/// Does batches on all threads of `tasks`. Each thread has a worker of its own, which `make`
/// returns for its number. Throws the first error, once all threads have stopped.
template <class Make>
void do_batches(Tasks& tasks, std::span<const Batch> batches, const Make& make) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::unique_ptr<Task>> running;
  for (std::size_t thread = 0; thread < static_cast<std::size_t>(tasks.threads()); ++thread) {
    running.push_back(tasks.start([&, thread] {
      try {
        auto worker = make(thread);
        for (std::size_t b = next++; b < batches.size(); b = next++) worker(batches[b]);
      } catch (...) {
        next = batches.size();
        throw;
      }
    }));
  }
  std::exception_ptr failure;
  for (const auto& task : running) {
    try {
      task->wait();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// One file that is written, and where its tensors lie in it.
struct Shard {
  std::string name;
  std::vector<std::uint32_t> tensors;
  std::string header;  ///< length and JSON
  std::uint64_t bytes = 0;
};

class Exporter {
 public:
  Exporter(Checkpoint& source, const std::vector<MappedTensor>& tensors, CommitTarget target,
           const ExportOptions& options, const ExportPorts& ports)
      : source_(source),
        tensors_(tensors),
        target_(std::move(target)),
        options_(options),
        ports_(ports),
        progress_(ports.progress),
        readers_(static_cast<std::size_t>(ports.tasks.threads())) {}

  ExportReport run() {
    require_writable();
    plan_shards();
    require_space();
    try {
      prepare(ports_.store, target_);
      note_beside(ports_.store, target_.saving(), target_.claim.token, report_.files);
      from_one_checkpoint(
          [this] {
            for (const Shard& shard : shards_) write(shard);
            write_index();
            ports_.store.sync_directory(target_.saving());
            prove();
          },
          [this] { require_in_place(); });
      if (options_.last_look) options_.last_look();
      publish();
    } catch (const std::exception&) {
      abandon(ports_.store, target_);
      throw;
    }
    return std::move(report_);
  }

 private:
  const Catalog& catalog() const { return source_.catalog(); }
  std::string path_of(const std::string& name) const { return join_path(target_.saving(), name); }

  void require_in_place() const {
    source_.require_in_place();
    for (const auto& reader : readers_) {
      if (reader) reader->require_in_place();
    }
  }

  /// Returns the reader of the checkpoint for a thread, which keeps it.
  PieceReader& reader_of(std::size_t thread) {
    auto& reader = readers_[thread];
    if (!reader) reader = std::make_unique<PieceReader>(source_, ports_.device);
    return *reader;
  }

  void require_writable() {
    std::set<std::string> keys;
    for (const auto& tensor : tensors_) {
      if (tensor.key == kSafetensorsMetadataKey || tensor.key.size() > kKeyBytesMax ||
          !is_text(tensor.key)) {
        throw Error(Code::kUnsupported, "a safetensors file can't have this key",
                    {.key = tensor.key});
      }
      if (!keys.insert(tensor.key).second) {
        throw Error(Code::kUsage, "two tensors would have this key", {.key = tensor.key});
      }
      if (!safetensors_name_of(tensor.dtype)) {
        throw Error(Code::kUnsupported,
                    "safetensors has no type " + std::string(name_of(tensor.dtype)),
                    {.key = tensor.key});
      }
      for (const auto& part : tensor.parts) {
        if (catalog().tensors[part.source].folded.empty()) continue;
        throw Error(
            Code::kUnsupported,
            "a tensor of more than " + std::to_string(kMaxNdim) + " dimensions is not exported",
            {.key = catalog().tensors[part.source].key});
      }
      const DType stored = tensor.stored;
      if (!can_convert(stored, tensor.dtype)) {
        throw Error(Code::kUsage,
                    std::string(name_of(stored)) + " isn't converted to " +
                        std::string(name_of(tensor.dtype)),
                    {.key = tensor.key});
      }
      if (stored != tensor.dtype) report_.converted.push_back({tensor.key, stored, tensor.dtype});
      if (!tensor.padded) CHECK(gaps(tensor.shape, targets(tensor)).empty(), tensor.key);
      report_.elements += static_cast<std::uint64_t>(volume(tensor.shape));
      report_.bytes += bytes_of(tensor);
    }
    report_.tensors = tensors_.size();
    report_.lost = lost_in(catalog(), tensors_);
  }

  void plan_shards() {
    std::uint64_t bytes = 0;
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      const std::uint64_t more = bytes_of(tensors_[t]);
      if (shards_.empty() || (bytes + more > options_.shard_bytes_max && bytes != 0)) {
        shards_.emplace_back();
        bytes = 0;
      }
      shards_.back().tensors.push_back(t);
      bytes += more;
    }
    if (shards_.empty()) throw Error(Code::kUsage, "there is no tensor to export");
    begin_.resize(tensors_.size());
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      Shard& shard = shards_[i];
      shard.name = shard_name(i, shards_.size());
      lay_out(shard);
      report_.files.push_back(shard.name);
      progress_.expect(2 * shard.bytes);  // written, and read back
    }
    if (shards_.size() > 1) report_.files.emplace_back(kSafetensorsModelIndex);
  }

  void lay_out(Shard& shard) {
    SafetensorsHeader header{.metadata = {{"format", "pt"}}};
    for (const auto t : shard.tensors) {
      header.entries.push_back(
          {.key = tensors_[t].key, .dtype = tensors_[t].dtype, .shape = tensors_[t].shape});
    }
    shard.header = write_safetensors_header(header);
    shard.bytes = shard.header.size();
    for (std::size_t i = 0; i < shard.tensors.size(); ++i) {
      begin_[shard.tensors[i]] = header.entries[i].range.offset;
      shard.bytes += header.entries[i].range.size;
    }
  }

  void require_space() const {
    std::uint64_t needed = 0;
    for (const Shard& shard : shards_) needed += shard.bytes;
    reprise::require_space(ports_.store, target_, needed);
  }

  void write(const Shard& shard) {
    const auto file = ports_.store.create(path_of(shard.name));
    file->write_at(0, std::as_bytes(std::span(shard.header)));
    std::vector<Batch> batches;
    for (const auto t : shard.tensors) {
      const std::size_t element = std::max(size_of(tensors_[t].dtype), size_of(tensors_[t].stored));
      add_batches(t, tensors_[t].shape, element, batches);
    }
    std::mutex writing;
    do_batches(ports_.tasks, batches, [&](std::size_t thread) {
      return [&, reader = &reader_of(thread), elements = Bytes(),
              converted = Bytes()](const Batch& batch) mutable {
        const MappedTensor& tensor = tensors_[batch.tensor];
        const DType stored = tensor.stored;
        const auto count = static_cast<std::size_t>(batch.end - batch.begin);
        elements.assign(count * size_of(stored), std::byte{0});
        reader->read(sources_of(tensor, batch.begin, batch.end), elements.data());
        converted.resize(count * size_of(tensor.dtype));
        convert(stored, elements, tensor.dtype, converted.data());
        const std::scoped_lock lock(writing);
        file->write_at(
            begin_[batch.tensor] + static_cast<std::uint64_t>(batch.begin) * size_of(tensor.dtype),
            converted);
        progress_.go(tensor.key, converted.size());
      };
    });
    file->sync();
    file->close();
  }

  void write_index() const {
    if (shards_.size() == 1) return;
    std::map<std::string, std::string> shard_of;
    for (const Shard& shard : shards_) {
      for (const auto t : shard.tensors) shard_of[tensors_[t].key] = shard.name;
    }
    const std::string text = write_safetensors_index(shard_of, report_.bytes);
    write_durably(ports_.store, path_of(std::string(kSafetensorsModelIndex)),
                  std::as_bytes(std::span(text)));
  }

  /// Reads everything back, and compares it with the checkpoint.
  void prove() {
    const Checkpoint written = Checkpoint::open_any(ports_.store, target_.saving());
    written.require_sound();
    std::vector<std::vector<MappedBack>> back(catalog().tensors.size());
    for (const auto& tensor : tensors_) {
      const StoredTensor* found = written.catalog().tensor(tensor.key);
      if (found == nullptr || found->dtype != tensor.dtype || found->shape != tensor.shape) {
        fail_proof(tensor.key);
      }
      const std::uint32_t index = index_in(written.catalog(), tensor.key);
      for (const auto& part : tensor.parts) back[part.source].push_back({index, part});
    }
    std::vector<Batch> batches;
    for (std::uint32_t t = 0; t < back.size(); ++t) {
      if (back[t].empty()) continue;
      add_batches(t, logical_shape(catalog().tensors[t]), sizeof(double), batches);
    }
    std::mutex counting;
    do_batches(ports_.tasks, batches, [&](std::size_t thread) {
      return [&, source = &reader_of(thread),
              target = std::make_shared<PieceReader>(written, ports_.device),
              elements = Bytes()](const Batch& batch) mutable {
        const StoredTensor& stored = catalog().tensors[batch.tensor];
        elements.resize(static_cast<std::size_t>(batch.end - batch.begin) * size_of(stored.dtype));
        source->read(sources_of(mapped(stored, batch.tensor), batch.begin, batch.end),
                     elements.data());
        for (const auto& [index, piece] :
             targets_of(logical_shape(stored), back[batch.tensor], batch.begin, batch.end)) {
          const StoredTensor& now = written.catalog().tensors[index];
          if (!is_same(stored.dtype, elements, piece, now, index, *target)) fail_proof(now.key);
          const auto count = static_cast<std::uint64_t>(piece.box.elements());
          const std::scoped_lock lock(counting);
          report_.proved += count;
          progress_.go(stored.key, count * size_of(now.dtype));
        }
      };
    });
    for (const auto& tensor : tensors_) prove_zeros(written, tensor);
  }

  /// True if a box of a written tensor has the elements that `piece` names in `elements`.
  static bool is_same(DType stored, ByteSpan elements, const Piece& piece,
                      const StoredTensor& written, std::uint32_t index, PieceReader& reader) {
    const Piece packed = contiguous_piece(piece.box);
    const auto count = static_cast<std::size_t>(piece.box.elements());
    Bytes found(count * size_of(written.dtype));
    reader.read({index, packed}, found.data());
    Bytes in_order(count * size_of(stored));
    const auto first = static_cast<std::size_t>(piece.local) * size_of(stored);
    copy_strided({elements.data() + first, piece.strides}, {in_order.data(), packed.strides},
                 piece.box.extent, size_of(stored));
    Bytes expected(found.size());
    convert(stored, in_order, written.dtype, expected.data());
    return expected == found;
  }

  void prove_zeros(const Checkpoint& written, const MappedTensor& tensor) const {
    if (!tensor.padded) return;
    const std::uint32_t index = index_in(written.catalog(), tensor.key);
    PieceReader reader(written, ports_.device);
    for (const Box& gap : gaps(tensor.shape, targets(tensor))) {
      Bytes elements;
      for (std::int64_t begin = 0; begin < gap.elements();) {
        const auto step = static_cast<std::int64_t>(kBatchBytes / size_of(tensor.dtype));
        const std::int64_t end = std::min(begin + step, gap.elements());
        elements.assign(static_cast<std::size_t>(end - begin) * size_of(tensor.dtype),
                        std::byte{1});
        for (const Piece& piece : pieces_of_range(gap, begin, end)) {
          reader.read({index, piece}, elements.data());
        }
        if (std::ranges::any_of(elements, [](std::byte b) { return b != std::byte{0}; })) {
          fail_proof(tensor.key);
        }
        begin = end;
      }
    }
  }

  [[noreturn]] void fail_proof(const std::string& key) const {
    throw Error(Code::kChecksum,
                "what was read back from the new files is not what the checkpoint has; nothing "
                "was exported",
                {.key = key, .file = ports_.store.display(target_.directory)});
  }

  void publish() {
    ports_.store.publish({target_.saving(), target_.directory, target_.claim.directory.get()});
    ports_.store.remove(join_path(target_.directory, mark_of(target_.claim.token)));
    ports_.store.sync_directory(target_.directory);
    ports_.store.sync_directory(parent_path(target_.directory));
    target_.claim = {};
  }

  Checkpoint& source_;
  const std::vector<MappedTensor>& tensors_;
  CommitTarget target_;
  const ExportOptions& options_;
  const ExportPorts& ports_;
  ByteProgress progress_;
  std::vector<Shard> shards_;
  std::vector<std::unique_ptr<PieceReader>> readers_;  ///< one for each thread
  std::vector<std::uint64_t> begin_;  ///< where each tensor's elements begin in its file
  ExportReport report_;
};

}  // namespace

std::vector<LostElements> lost_in(const Catalog& catalog,
                                  const std::vector<MappedTensor>& tensors) {
  std::vector<std::vector<Box>> used(catalog.tensors.size());
  for (const auto& tensor : tensors) {
    for (const auto& part : tensor.parts) used[part.source].push_back(part.box);
  }
  std::vector<LostElements> lost;
  for (std::size_t t = 0; t < used.size(); ++t) {
    const StoredTensor& stored = catalog.tensors[t];
    const auto rest = gaps(logical_shape(stored), std::move(used[t]));
    if (rest.empty()) continue;
    lost.push_back({stored.key, elements_of(rest),
                    static_cast<std::uint64_t>(volume(logical_shape(stored))),
                    *std::min_element(rest.begin(), rest.end())});
  }
  return lost;
}

ExportReport export_safetensors(Checkpoint& source, const std::vector<MappedTensor>& tensors,
                                const CommitTarget& target, const ExportOptions& options,
                                const ExportPorts& ports) {
  return Exporter(source, tensors, target, options, ports).run();
}

}  // namespace reprise
