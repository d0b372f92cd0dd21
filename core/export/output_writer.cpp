#include "core/export/output_writer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/format/zip/crc32.hpp"
#include "core/geometry/convert.hpp"

namespace reprise {
namespace {

/// Most files that are written and not yet synced.
constexpr std::size_t kSyncsMax = 64;

MappedTensor within(MappedTensor tensor, const Box& box) {
  for (std::size_t d = 0; d < box.ndim(); ++d) {
    if (box.offset[d] == 0 && box.extent[d] == tensor.shape[d]) continue;
    tensor = narrowed(tensor, d, {box.offset[d], box.offset[d] + box.extent[d]});
  }
  return tensor;
}

}  // namespace

/// Makes the elements of batches; for one thread.
class OutputWriter::Worker {
 public:
  explicit Worker(PieceReader& reader) : reader_(&reader) {}

  ByteSpan elements_of(const MappedTensor& tensor, const Batch& batch) {
    const auto count = static_cast<std::size_t>(batch.end - batch.begin);
    const std::size_t bytes = count * size_of(tensor.stored);
    if (stored_.size() < bytes) stored_.resize(bytes);
    const MutableByteSpan stored(stored_.data(), bytes);
    if (tensor.padded) std::ranges::fill(stored, std::byte{0});
    reader_->read(sources_of(tensor, batch.begin, batch.end), stored.data());
    if (tensor.stored == tensor.dtype) return stored;
    converted_.resize(count * size_of(tensor.dtype));
    convert(tensor.stored, stored, tensor.dtype, converted_.data());
    return converted_;
  }

 private:
  PieceReader* reader_;
  Bytes stored_;
  Bytes converted_;
};

OutputWriter::OutputWriter(const std::vector<MappedTensor>& tensors,
                           const std::vector<OutputFile>& files,
                           std::vector<std::unique_ptr<PieceReader>>& readers,
                           ByteProgress& progress)
    : files_(files), readers_(readers), progress_(progress) {
  for (std::uint32_t f = 0; f < files.size(); ++f) {
    open_.push_back(std::make_unique<Open>());
    first_part_of_.push_back(parts_.size());
    const std::size_t before = batches_.size();
    for (const OutputPart& part : files[f].parts) {
      MappedTensor tensor = within(tensors[part.tensor], part.box);
      const std::size_t width = std::max(size_of(tensor.dtype), size_of(tensor.stored));
      const std::int64_t elements = volume(tensor.shape);
      parts_.push_back({f, part.begin, std::move(tensor), batches_.size()});
      add_batches(parts_.size() - 1, elements, width, batches_);
    }
    open_.back()->batches_left = batches_.size() - before;
  }
  checksums_.resize(batches_.size());
}

void OutputWriter::write(Store& store, const std::vector<std::string>& paths, Tasks& tasks,
                         Tasks& background) {
  for (std::size_t f = 0; f < files_.size(); ++f) {
    if (open_[f]->batches_left != 0) continue;
    open_[f]->out = store.create(paths[f]);
    finish(f, background);
  }
  do_all(tasks, batches_.size(), [&](std::size_t thread) {
    return [&, worker = Worker(*readers_[thread])](std::size_t b) mutable {
      const Part& part = parts_[batches_[b].item];
      if (unsynced_.any_before(part.file)) return;
      const ByteSpan elements = worker.elements_of(part.tensor, batches_[b]);
      if (files_[part.file].needs_checksums) checksums_[b] = crc32_of(elements);
      const std::uint64_t begin =
          part.begin + static_cast<std::uint64_t>(batches_[b].begin) * size_of(part.tensor.dtype);
      Open& file = *open_[part.file];
      bool last = false;
      {
        const std::scoped_lock lock(file.writing);
        if (!file.out) file.out = store.create(paths[part.file]);
        file.out->write_at(begin, elements);
        last = --file.batches_left == 0;
      }
      if (last) finish(part.file, background);
      progress_.go(part.tensor.key, elements.size());
    };
  });
}

void OutputWriter::finish(std::size_t file, Tasks& background) {
  Open& open = *open_[file];
  files_[file].put_around(checksums_of(file), [&open](std::uint64_t begin, ByteSpan bytes) {
    open.out->write_at(begin, bytes);
  });
  std::shared_ptr<Task> oldest;
  {
    const std::scoped_lock lock(syncing_);
    syncs_.push_back(background.start([this, file, out = std::move(open.out)] {
      try {
        out->sync();
        out->close();
      } catch (const std::exception&) {
        unsynced_.note(file, std::current_exception());
      }
    }));
    if (syncs_.size() <= kSyncsMax) return;
    oldest = std::move(syncs_.front());
    syncs_.pop_front();
  }
  oldest->wait();
}

void OutputWriter::wait() {
  for (const auto& sync : syncs_) sync->wait();
  unsynced_.rethrow();
}

/// Returns the checksum of each part of the file.
std::vector<std::uint32_t> OutputWriter::checksums_of(std::size_t file) const {
  std::vector<std::uint32_t> checksums;
  if (!files_[file].needs_checksums) return checksums;
  for (std::size_t p = 0; p < files_[file].parts.size(); ++p) {
    const std::size_t number = first_part_of_[file] + p;
    const Part& part = parts_[number];
    std::uint32_t whole = 0;
    for (std::size_t b = part.first_batch; b < batches_.size() && batches_[b].item == number; ++b) {
      const auto elements = static_cast<std::uint64_t>(batches_[b].end - batches_[b].begin);
      whole = crc32_joined(whole, checksums_[b], elements * size_of(part.tensor.dtype));
    }
    checksums.push_back(whole);
  }
  return checksums;
}

}  // namespace reprise
