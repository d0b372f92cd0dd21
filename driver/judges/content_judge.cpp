#include "driver/judges/content_judge.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/adapters/posix/host_device.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/format/bytes_item.hpp"
#include "core/save/commit_protocol.hpp"
#include "driver/language/scenario.hpp"
#include "driver/record/past.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kStaging = std::size_t{1} << 20;

/// Reads individual items of a checkpoint.
class Stored {
 public:
  explicit Stored(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
    for (const auto& tensor : checkpoint_.catalog().tensors) tensors_[tensor.key] = &tensor;
    for (const auto& object : checkpoint_.catalog().objects) objects_[object.key] = &object;
  }

  /// Returns the checkpoint's item that corresponds to `held`, hashed in the same way; nothing if
  /// there is no such item or if its shape is different.
  std::optional<HeldItem> item_like(const HeldItem& held) {
    const auto tensor = tensors_.find(held.key);
    if (tensor != tensors_.end()) return tensor_part(*tensor->second, held);
    const auto object = objects_.find(held.key);
    return object == objects_.end() ? std::nullopt : object_like(*object->second, held);
  }

 private:
  std::optional<HeldItem> tensor_part(const StoredTensor& tensor, const HeldItem& held) {
    if (!(logical_shape(tensor).size() == held.box.ndim())) return std::nullopt;
    Bytes elements(static_cast<std::size_t>(held.box.elements()) * size_of(tensor.dtype));
    TensorReader({checkpoint_, device_, staging_}, tensor).read(held.box, elements.data());
    const Dims strides = contiguous_strides(held.box.extent);
    StateDict state;
    state.tensors.push_back({.key = tensor.key,
                             .dtype = tensor.dtype,
                             .shape = tensor.shape,
                             .pieces = {{held.box, 0, strides}},
                             .data = elements.data()});
    return page_of(state);
  }

  std::optional<HeldItem> object_like(const StoredObject& object, const HeldItem& held) {
    const auto name = parse_object_key(held.key);
    const Bytes bytes = checkpoint_.object_bytes(object);
    SpanSource source(bytes);
    BytesItem item = read_bytes_item(source);
    if (!name || !item.value) return std::nullopt;
    List* list = item.value->as<List>();
    const bool wrapped = list != nullptr && list->size() == 1;
    StateDict state;
    state.objects.push_back({.key = name->key,
                             .grid = name->grid,
                             .coordinate = name->coordinate,
                             .value = wrapped ? list->front() : *item.value});
    return page_of(state);
  }

  static std::optional<HeldItem> page_of(const StateDict& state) {
    const AuditPage page = audit_page(GlobalRank{0}, Step{0}, state);
    if (page.items.empty()) return std::nullopt;
    return page.items.front();
  }

  Checkpoint checkpoint_;
  HostDevice device_{"host", 0};
  Bytes staging_ = Bytes(kStaging);
  std::map<std::string, const StoredTensor*> tensors_;
  std::map<std::string, const StoredObject*> objects_;
};

/// Facts about one save, combined from the records of all ranks.
struct WholeSave {
  Step step;
  bool certain = false;
  std::int64_t beside = 0;
  std::set<std::string> padded;
};

WholeSave save_of(const LifeRecord& life, std::size_t number) {
  WholeSave whole;
  for (const auto& rank : life.ranks) {
    if (number >= rank.saves.size()) continue;
    const SaveEvidence& save = rank.saves[number];
    whole.step = save.point.step;
    whole.certain = whole.certain || save.point.certain;
    whole.beside = std::max(whole.beside, save.point.beside);
    whole.padded.insert(save.padded.begin(), save.padded.end());
  }
  return whole;
}

std::size_t saves_in(const LifeRecord& life) {
  std::size_t saves = 0;
  for (const auto& rank : life.ranks) saves = std::max(saves, rank.saves.size());
  return saves;
}

/// True if a later save of the same step replaced save `number`.
bool is_replaced(const LifeRecord& life, std::size_t number) {
  for (std::size_t later = number + 1; later < saves_in(life); ++later) {
    if (save_of(life, later).step == save_of(life, number).step) return true;
  }
  return false;
}

void compare(Stored& stored, const AuditPage& page, const WholeSave& save, Findings& findings) {
  for (const auto& held : page.items) {
    if (held.replica != 0 || save.padded.contains(held.key)) continue;
    const auto found = stored.item_like(held);
    if (!found || found->hashes == held.hashes) continue;  // other judges report missing items
    findings.push_back({save.beside > 0 ? judged::kTornSnapshot : judged::kBitMismatch, held.key,
                        "rank " + std::to_string(page.rank.value) +
                            " passed it to the save of step " + std::to_string(save.step.value) +
                            ", but the committed checkpoint has different bits" +
                            differing_elements(held, *found),
                        page.rank});
  }
}

}  // namespace

Findings judge_contents(const JudgedStore& where, const LifeRecord& life) {
  Findings findings;
  if (was_lied_to(life)) return findings;
  for (std::size_t number = 0; number < saves_in(life); ++number) {
    const WholeSave save = save_of(life, number);
    if (!save.certain || is_replaced(life, number)) continue;
    const std::string directory = CommitTarget::iteration(kCheckpointRoot, save.step).directory;
    try {
      if (!holds_metadata(where.store, directory)) continue;  // retention removed the checkpoint
      Stored stored(where.open(directory));
      for (const auto& rank : life.ranks) {
        if (number < rank.audits.size()) compare(stored, rank.audits[number], save, findings);
      }
    } catch (const Error&) {
      continue;
    }
  }
  return findings;
}

}  // namespace reprise::driver
