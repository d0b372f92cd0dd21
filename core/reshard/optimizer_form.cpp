#include "core/reshard/optimizer_form.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/format/tensor_item.hpp"
#include "core/geometry/strided_copy.hpp"
#include "core/megatron/expert_key.hpp"
#include "core/megatron/optimizer_part.hpp"
#include "core/plan/cover.hpp"
#include "core/reshard/bucket_map.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

constexpr std::string_view kBuckets = "dp_reshardable";
constexpr std::string_view kFlattened = "fully_sharded_model_space";
constexpr std::string_view kFsdp = "fsdp_dtensor";
constexpr std::string_view kShardingType = "param_state_sharding_type";
constexpr std::string_view kContent = "content_metadata";
constexpr std::string_view kContentType = "distrib_optim_sharding_type";
/// The parameter in float32, as it was called and as it is called now.
constexpr std::string_view kOldParameter = "optimizer.state.fp32_param.";
constexpr std::string_view kParameter = "optimizer.state.param.";

Value common_of(Checkpoint& checkpoint) {
  auto common = checkpoint.common();
  if (!common) {
    throw Error(Code::kUnsupported,
                "the checkpoint has no common state, so it is no checkpoint of Megatron-Core");
  }
  if (!common->item.value) {
    throw Error(Code::kUnsupported,
                "the common state can't be written anew, as it is not interpreted (" +
                    common->item.opaque_because +
                    "); save once from the job with --dist-ckpt-optim-fully-reshardable instead",
                {.file = common->source});
  }
  return std::move(*common->item.value);
}

/// Returns the states of the optimizers in the common state: one, or those of a chain.
std::vector<Value*> optimizers_in(Value& common) {
  if (common.find("optimizer") == nullptr) return {};
  Value& optimizer = common["optimizer"];
  if (optimizer.find(kShardingType) != nullptr) return {&optimizer};
  std::vector<Value*> chain;
  if (auto* entries = optimizer.as<Dict>()) {
    for (auto& [key, value] : *entries) {
      if (value.find(kShardingType) != nullptr) chain.push_back(&value);
    }
  }
  return chain;
}

std::string form_in(Value& common) {
  const auto optimizers = optimizers_in(common);
  if (optimizers.empty()) return "";
  return sharding_type_of(*optimizers.front()->find(kShardingType)).value_or("");
}

void sort_by_key(Catalog& catalog) {
  std::ranges::sort(catalog.tensors, {}, &StoredTensor::key);
  std::ranges::sort(catalog.objects, {}, &StoredObject::key);
}

/// Makes the tensors of parameters and moments from buckets.
class FromBuckets {
 public:
  FromBuckets(Checkpoint& checkpoint, OptimizerView& view, bool prefixed)
      : checkpoint_(checkpoint), view_(view), prefixed_(prefixed) {}

  void make(const std::vector<BucketParameter>& parameters) {
    const Catalog& catalog = checkpoint_.catalog();
    for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
      if (const auto key = parse_bucket_key(catalog.tensors[t].key)) {
        buckets_[key->bucket][key->slot] = t;
      }
    }
    std::set<std::pair<std::uint32_t, Box>> stored;
    for (const BucketParameter& one : parameters) {
      // Ranks of tensor parallelism have copies of a norm; the first is the one that is saved.
      if (!stored.emplace(one.weight, one.boxes.front()).second) continue;
      for (const auto& [slot, bucket] : buckets_.at(one.bucket)) add(one, slot, bucket);
    }
    replace();
  }

 private:
  void add(const BucketParameter& one, const std::string& slot, std::uint32_t bucket) {
    const StoredTensor& weight = checkpoint_.catalog().tensors[one.weight];
    const StoredTensor& source = checkpoint_.catalog().tensors[bucket];
    const std::string prefix = prefixed_ ? one.prefix : "";
    const std::string key = prefix + "optimizer.state." + slot + "." + std::string(name_of(weight));
    StoredTensor& made = made_[key];
    if (made.key.empty()) {
      made.key = key;
      made.dtype = source.dtype;
      made.shape = logical_shape(weight);
      made.folded = weight.folded;
      made.place = source.place;
    }
    if (made.dtype != source.dtype) {
      throw Error(Code::kUnsupported, "the buckets have parts of it in different element types",
                  {.key = key});
    }
    for (const StoredChunk& chunk : source.chunks) add_part(one, source, chunk, made);
  }

  /// Adds what the chunk of a bucket has of the parameter, as boxes of the weight.
  void add_part(const BucketParameter& one, const StoredTensor& source, const StoredChunk& chunk,
                StoredTensor& made) {
    if (chunk.box.empty()) return;
    const std::int64_t first = chunk.box.offset[0];
    const std::int64_t last = first + chunk.box.extent[0];
    std::int64_t begin = one.begin;  // of a box of the parameter, in the bucket
    for (const Box& box : one.boxes) {
      const std::int64_t end = begin + box.elements();
      const std::int64_t from = std::max(begin, first);
      const std::int64_t to = std::min(end, last);
      std::int64_t at = from;
      if (from < to) {
        for (const Box& part : boxes_of_range(box, from - begin, to - begin)) {
          made.chunks.push_back(view_of(source, chunk, part, at - first));
          at += part.elements();
        }
      }
      begin = end;
    }
  }

  /// Returns a chunk that is `part`, of which the elements lie one after another in the elements of
  /// `chunk` from number `element` on.
  StoredChunk view_of(const StoredTensor& source, const StoredChunk& chunk, const Box& part,
                      std::int64_t element) {
    const auto& [record, contiguous] = record_of(source, chunk);
    if (!contiguous) {
      throw Error(Code::kUnsupported, "a chunk of the bucket is not contiguous",
                  {.key = source.key});
    }
    const std::uint64_t width = size_of(source.dtype);
    StoredChunk made{.box = part, .file = chunk.file};
    made.range = {record->range.offset + static_cast<std::uint64_t>(element) * width,
                  static_cast<std::uint64_t>(part.elements()) * width};
    made.form = record->crc == 0 ? ItemForm::kElements : ItemForm::kView;
    if (made.form == ItemForm::kView) {
      made.view = std::make_shared<const StoredView>(
          StoredView{.strides = contiguous_strides(part.extent), .record = record});
    }
    return made;
  }

  struct Opened {
    std::shared_ptr<const SharedRecord> record;
    bool contiguous = false;
  };

  const Opened& record_of(const StoredTensor& source, const StoredChunk& chunk) {
    Opened& opened = records_[{chunk.file, chunk.range.offset}];
    if (opened.record) return opened;
    const TensorItem item = checkpoint_.tensor_item(source, chunk);
    opened.contiguous = item.contiguous() && !item.byteswap;
    opened.record = std::make_shared<const SharedRecord>(
        "data/0", ByteRange{chunk.range.offset + item.data_offset, item.data_bytes}, item.crc);
    return opened;
  }

  /// Puts the made tensors into the place of buckets.
  void replace() {
    Catalog& catalog = view_.metadata.catalog;
    std::erase_if(catalog.tensors,
                  [](const StoredTensor& tensor) { return parse_bucket_key(tensor.key); });
    for (auto& [key, tensor] : made_) {
      std::vector<Box> boxes;
      for (const StoredChunk& chunk : tensor.chunks) boxes.push_back(chunk.box);
      if (const auto defect = prove_cover(tensor.shape, boxes)) {
        throw Error(Code::kUnsupported, "the buckets do not have all of it: " + defect->message,
                    {.key = key});
      }
      catalog.tensors.push_back(std::move(tensor));
    }
    view_.parameters = made_.size();
    sort_by_key(catalog);
  }

  Checkpoint& checkpoint_;
  OptimizerView& view_;
  bool prefixed_;
  /// Indices of bucket tensors, by bucket and slot.
  std::map<std::string, std::map<std::string, std::uint32_t>> buckets_;
  std::map<std::pair<FileIndex, std::uint64_t>, Opened> records_;
  std::map<std::string, StoredTensor> made_;
};

std::optional<GroupKey> group_of(const StoredObject& object) {
  const auto parsed = parse_object_key(object.key);
  return parsed ? parse_group_key(parsed->key) : std::nullopt;
}

/// Moves what the first group saved of the optimizer, such as its groups of parameters, into the
/// common state, where the other form has it, and removes the objects of all groups.
void take_group_objects(Checkpoint& checkpoint, OptimizerView& view) {
  const auto optimizers = optimizers_in(view.common);
  for (const StoredObject& object : checkpoint.catalog().objects) {
    const auto key = group_of(object);
    if (!key || key->group != 0 || key->name.starts_with("per_bucket_numel")) continue;
    BytesItem item = read_bytes_item(checkpoint.object_bytes(object), {.key = object.key});
    if (!item.value) {
      throw Error(
          Code::kUnsupported,
          "the object can't be written anew, as it is not interpreted: " + item.opaque_because,
          {.key = object.key});
    }
    auto* list = item.value->as<List>();
    Value value =
        list != nullptr && list->size() == 1 ? std::move(list->front()) : std::move(*item.value);
    const auto place = static_cast<std::size_t>(key->chain);
    if (place < optimizers.size()) (*optimizers[place])[key->name] = std::move(value);
  }
  std::erase_if(view.metadata.catalog.objects,
                [](const StoredObject& object) { return group_of(object).has_value(); });
}

void take_buckets(Checkpoint& checkpoint, const SavingLayout& layout, Device& device,
                  OptimizerView& view) {
  const LayoutBoxes boxes(checkpoint.catalog(), layout.parts,
                          {.megatron = true, .tp = layout.parts.tp, .pp = layout.parts.pp});
  const auto parameters =
      map_buckets(checkpoint, boxes, layout.parts, layout.virtual_stages, device);
  std::set<std::uint32_t> with_state;
  for (const BucketParameter& one : parameters) with_state.insert(one.weight);
  const auto& tensors = checkpoint.catalog().tensors;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    if (!is_of_optimizer(tensors[t].key) && !with_state.contains(t)) {
      view.without_state.push_back(tensors[t].key);
    }
  }
  const Value* content = view.common.find(kContent);
  const Value* bare = content != nullptr ? content->find("chained_optim_avoid_prefix") : nullptr;
  const bool* avoid = bare != nullptr ? bare->as<bool>() : nullptr;
  FromBuckets(checkpoint, view, avoid == nullptr || !*avoid).make(parameters);
  take_group_objects(checkpoint, view);
}

/// Gives parameters their present name. Their flattened ranges are whole tensors to every reader.
void take_flattened(OptimizerView& view) {
  Catalog& catalog = view.metadata.catalog;
  for (StoredTensor& tensor : catalog.tensors) {
    if (tensor.key.find("optimizer.state.") == std::string::npos) continue;
    ++view.parameters;
    const auto at = tensor.key.find(kOldParameter);
    if (at != std::string::npos) tensor.key.replace(at, kOldParameter.size(), kParameter);
  }
  sort_by_key(catalog);
}

/// Removes the steps of single parameters, which torch's Adam counts and the form has no place for:
/// they are those of the groups of parameters.
void drop_steps(Value& optimizer) {
  constexpr std::string_view kState = "param_state";
  const Value* state = optimizer.find(kState);
  const Dict* parameters = state != nullptr ? state->as<Dict>() : nullptr;
  if (parameters == nullptr) return;
  const bool steps_alone = std::ranges::all_of(*parameters, [](const auto& one) {
    const Dict* entries = one.second.template as<Dict>();
    return entries != nullptr && std::ranges::all_of(*entries, [](const auto& entry) {
             const auto* name = entry.first.template as<std::string>();
             return name != nullptr && *name == "step";
           });
  });
  if (!steps_alone) return;
  std::erase_if(*optimizer.as<Dict>(), [&](const auto& entry) {
    const auto* name = entry.first.template as<std::string>();
    return name != nullptr && *name == kState;
  });
}

[[noreturn]] void refuse_source(const std::string& form) {
  if (form.empty()) {
    throw Error(Code::kUnsupported,
                "the checkpoint has no state of Megatron-Core's distributed optimizer: the common "
                "state has no " +
                    std::string(kShardingType));
  }
  throw Error(Code::kUnsupported,
              "the optimizer's state has the form " + form +
                  ", from which no other is made; load it with the release that saved it, and save "
                  "once with --dist-ckpt-optim-fully-reshardable");
}

/// Returns the weight of which a key has a parameter or moment; empty if it has none.
std::string_view weight_of(std::string_view key) {
  constexpr std::string_view kState = "optimizer.state.";
  const auto at = key.find(kState);
  if (at == std::string_view::npos) return {};
  const auto dot = key.find('.', at + kState.size());
  return dot == std::string_view::npos ? std::string_view{} : key.substr(dot + 1);
}

}  // namespace

void require_writable_form(const std::string& form) {
  if (form == kFullyReshardable) return;
  if (form == kBuckets) {
    throw Error(Code::kUnsupported,
                "dp_reshardable can't be written: its buckets follow the buffers of the job that "
                "will load it, which no checkpoint describes. A job loads fully_reshardable under "
                "any layout, and can then save dp_reshardable");
  }
  if (form == kFlattened) {
    throw Error(Code::kUnsupported,
                "fully_sharded_model_space can't be written: megatron-core from 0.16 on neither "
                "saves nor loads its flattened ranges. Use fully_reshardable");
  }
  if (form == kFsdp) {
    throw Error(Code::kUnsupported,
                "fsdp_dtensor can't be written: Megatron-FSDP gives model and optimizer the names "
                "of its own modules, which no checkpoint of another kind has. Megatron-LM's "
                "tools/checkpoint/checkpoint_inspector.py has convert-torch-dist-to-fsdp-dtensor");
  }
  throw Error(Code::kUsage, "there is no form '" + form + "'; --optimizer takes fully_reshardable");
}

BoxRule boxes_of_weights(const Catalog& catalog, std::int32_t writers) {
  return [&catalog, writers](std::uint32_t tensor) {
    std::vector<OwnedBox> owned;
    const StoredTensor* weight = catalog.tensor(weight_of(catalog.tensors[tensor].key));
    if (weight == nullptr || !(logical_shape(*weight) == logical_shape(catalog.tensors[tensor]))) {
      return owned;
    }
    std::vector<Box> boxes;
    for (const StoredChunk& chunk : weight->chunks) {
      for (const Piece& piece : pieces_of(*weight, chunk)) {
        if (!piece.box.empty()) boxes.push_back(piece.box);
      }
    }
    std::sort(boxes.begin(), boxes.end());
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      const auto writer = (tensor + b) % static_cast<std::size_t>(writers);
      owned.push_back({boxes[b], static_cast<std::int32_t>(writer)});
    }
    return owned;
  };
}

OptimizerView as_fully_reshardable(Checkpoint& checkpoint, const SavingLayout& layout,
                                   Device& device) {
  OptimizerView view{.metadata = checkpoint.metadata(), .common = common_of(checkpoint)};
  view.from = form_in(view.common);
  if (view.from == kBuckets) {
    take_buckets(checkpoint, layout, device, view);
  } else if (view.from == kFlattened || view.from == kFullyReshardable) {
    take_flattened(view);
  } else {
    refuse_source(view.from);
  }
  for (Value* optimizer : optimizers_in(view.common)) {
    (*optimizer)[kShardingType] = std::string(kFullyReshardable);
    drop_steps(*optimizer);
  }
  // Megatron-LM takes a checkpoint without the entry for one of before 0.13, of another form.
  Value& content = view.common[kContent];
  if (content.as<Dict>() == nullptr) content = Dict{};
  content[kContentType] = std::string(kFullyReshardable);
  return view;
}

}  // namespace reprise
