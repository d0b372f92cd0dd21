#include "core/checkpoint/tensor_survey.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

/// Small enough for a block to be still in the core's cache when its checksum is computed and when
/// it is handed on.
constexpr std::size_t kBlockBytes = std::size_t{256} << 10U;

/// Reads items for one thread.
class Surveyor {
 public:
  Surveyor(const Checkpoint& opened, Device& device)
      : checkpoint_(opened), device_(device), block_(kBlockBytes), staging_(kBlockBytes) {}

  void read(const SurveyItem& item, const TakeElements& take) {
    for (const Box& box : item.boxes) of(*item.tensor).read(box, block_, take);
  }
  void require_in_place() const { checkpoint_.require_files_in_place(); }
  const ChecksumTally& checksums() const { return checksums_; }

 private:
  TensorReader& of(const StoredTensor& tensor) {
    if (of_ != &tensor) {
      reader_.emplace(ReaderResources{checkpoint_, device_, staging_, &checksums_}, tensor);
      of_ = &tensor;
    }
    return *reader_;
  }

  Checkpoint checkpoint_;
  Device& device_;
  ChecksumTally checksums_;
  Bytes block_;
  Bytes staging_;
  std::optional<TensorReader> reader_;
  const StoredTensor* of_ = nullptr;
};

}  // namespace

void add_chunks(const StoredTensor& tensor, std::vector<SurveyItem>& items) {
  for (const StoredChunk& chunk : tensor.chunks) {
    SurveyItem item{&tensor, {}};
    for (const Piece& piece : pieces_of(tensor, chunk)) item.boxes.push_back(piece.box);
    items.push_back(std::move(item));
  }
}

Findings survey(Checkpoint& checkpoint, std::span<const SurveyItem> items, const SurveyPorts& ports,
                const std::function<TakeElements(std::size_t)>& taker) {
  require_apart(checkpoint);
  ByteProgress progress(ports.progress);
  for (const SurveyItem& item : items) {
    for (const Box& box : item.boxes) {
      progress.expect(static_cast<std::uint64_t>(box.elements()) * size_of(item.tensor->dtype));
    }
  }
  std::vector<std::unique_ptr<Surveyor>> surveyors(static_cast<std::size_t>(ports.tasks.threads()));
  const auto read = [&](Surveyor& surveyor, std::size_t index) {
    const TakeElements take = taker(index);
    surveyor.read(items[index], [&](const Box& box, ByteSpan elements) {
      take(box, elements);
      progress.go(items[index].tensor->key, elements.size());
    });
  };
  from_one_checkpoint(
      [&] {
        do_all(ports.tasks, items.size(), [&](std::size_t thread) {
          surveyors[thread] = std::make_unique<Surveyor>(checkpoint, ports.device);
          return [&read, own = surveyors[thread].get()](std::size_t i) { read(*own, i); };
        });
      },
      [&] {
        checkpoint.require_in_place();
        for (const auto& one : surveyors) {
          if (one) one->require_in_place();
        }
      });
  ChecksumTally checksums;
  for (const auto& one : surveyors) {
    if (one) checksums.add(one->checksums());
  }
  for (const FileIndex file : files_without_small_records(checkpoint, checksums)) {
    count_small_records(checkpoint, file, checksums);
  }
  return checksums.findings();
}

}  // namespace reprise
