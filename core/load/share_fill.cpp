#include "core/load/share_fill.hpp"

#include <exception>
#include <utility>

#include "core/agree/agreement.hpp"

namespace reprise {
namespace {

StoredRecord record_of(const Catalog& catalog, const ChunkRead& read) {
  const StoredChunk& chunk = catalog.tensors[read.tensor].chunks[read.chunk];
  return {chunk.file, chunk.range};
}

StoredRecord record_of(const Catalog& catalog, const ObjectRead& read) {
  const StoredObject& object = catalog.objects[read.object];
  return {object.file, object.range};
}

}  // namespace

ShareFill::ShareFill(const LoadPlan& plan, const Catalog& catalog, ShareReader reader,
                     std::function<void()> ask)
    : plan_(plan),
      catalog_(catalog),
      reader_(std::move(reader)),
      ask_(std::move(ask)),
      has_tensor_(plan.reads.size()),
      has_object_(plan.objects.size()),
      objects_(plan.objects.size()) {}

std::vector<StoredRecord> ShareFill::records() {
  needs_.clear();
  for (std::size_t i = 0; i < plan_.reads.size(); ++i) {
    needs_[record_of(catalog_, plan_.reads[i])].tensors.push_back(i);
  }
  for (std::size_t i = 0; i < plan_.objects.size(); ++i) {
    needs_[record_of(catalog_, plan_.objects[i])].objects.push_back(i);
  }
  std::vector<StoredRecord> stored;
  for (const auto& [record, needs] : needs_) {
    if (record.file != kNoFile) stored.push_back(record);
  }
  return stored;
}

void ShareFill::read(std::span<const StoredRecord> records, AtHand at_hand) {
  try {
    for (const auto& record : records) {
      const Needs& needs = needs_.at(record);
      for (const std::size_t i : needs.tensors) read_tensor(i);
      for (const std::size_t i : needs.objects) read_object(i);
    }
    if (at_hand == AtHand::kOnDevice) return reader_.drain();
    reader_.catch_up();
  } catch (const std::exception&) {
    // Reads that are on their way still use what is at hand.
    static_cast<void>(contribution_of([this] {
      reader_.drain();
      return Bytes{};
    }));
    throw;
  }
}

void ShareFill::read_tensors() {
  for (std::size_t i = 0; i < has_tensor_.size(); ++i) {
    if (!has_tensor_[i]) read_tensor(i);
  }
  reader_.drain();
}
void ShareFill::read_objects() {
  for (std::size_t i = 0; i < has_object_.size(); ++i) {
    if (!has_object_[i]) read_object(i);
  }
}

void ShareFill::read_tensor(std::size_t i) {
  ask_();
  reader_.read(plan_.reads[i]);
  has_tensor_[i] = true;
}
void ShareFill::read_object(std::size_t i) {
  ask_();
  objects_[i] = reader_.object(plan_.objects[i]);
  has_object_[i] = true;
}

}  // namespace reprise
