#include "core/reshard/bucket_map.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/geometry/blocks.hpp"
#include "core/geometry/convert.hpp"
#include "core/geometry/piece.hpp"
#include "core/megatron/expert_key.hpp"
#include "core/megatron/module_key.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kBlockElements = std::int64_t{1} << 18U;
/// The first block of a comparison, which shows at once that most parameters are others.
constexpr std::int64_t kHeadElements = 1024;
constexpr std::size_t kReadBytes = std::size_t{1} << 20U;
/// A parameter begins at a multiple of this in its bucket.
constexpr std::int64_t kParameterUnit = 64;
constexpr std::string_view kDistributed = "optimizer.distributed.dp_group_idx_";
constexpr std::string_view kChained = "chained_";
constexpr std::string_view kMaster = "param";
constexpr std::string_view kAdvice =
    "; save once from the job with --dist-ckpt-optim-fully-reshardable instead";

/// The modules of a layer in the order in which Megatron-Core makes them.
constexpr std::array<std::string_view, 4> kModules = {"self_attention", "cross_attention", "mlp",
                                                      "mixer"};

/// Where a weight stands in the order of the model's parameters.
struct ModelOrder {
  std::int64_t stage = 0;  ///< embedding, layers, output
  std::int64_t layer = 0;
  std::int64_t module = 0;

  friend auto operator<=>(const ModelOrder&, const ModelOrder&) = default;
};

/// A parameter that may be in a bucket of a rank.
struct Candidate {
  std::uint32_t weight = 0;
  std::vector<Box> boxes;
  ModelOrder order;
  std::int64_t elements = 0;
  bool taken = false;
  bool tied = false;  ///< true once another had the same bits at the same place
};

/// The parameters of one rank, dense ones or experts, and the buffers that have them.
struct Pool {
  std::vector<Candidate> candidates;
  std::map<std::string, std::optional<DType>> buffers;  ///< by prefix_of_buffer(): of parameters
};

ModelOrder order_of(const StoredTensor& weight, const ParallelKey& key, const Box& box) {
  using Stage = ParallelKey::Stage;
  ModelOrder order;
  order.stage = key.stage == Stage::kFirst ? 0 : key.stage == Stage::kLast ? 2 : 1;
  order.layer = key.layers_stacked && box.ndim() > 0 ? box.offset[0] : key.layer.value_or(-1);
  const auto parts = parts_of_key(name_of(weight));
  for (std::size_t m = 0; m < kModules.size(); ++m) {
    if (std::ranges::find(parts, kModules[m]) != parts.end()) {
      order.module = static_cast<std::int64_t>(m) + 1;
    }
  }
  return order;
}

/// True if a module makes the parameter `a` before `b`, and nothing else tells them apart.
bool is_made_before(const std::string& a, const std::string& b) {
  constexpr std::array<std::array<std::string_view, 2>, 2> kPairs = {
      {{"weight", "bias"}, {"q_layernorm", "k_layernorm"}}};
  return std::ranges::any_of(kPairs, [&](const auto& pair) {
    std::string second = a;
    const auto at = second.rfind(pair[0]);
    if (at == std::string::npos) return false;
    return second.replace(at, pair[0].size(), pair[1]) == b;
  });
}

/// Returns the part of a bucket's key that the buckets of one buffer have in common.
std::string prefix_of_buffer(const std::string& bucket) {
  return bucket.substr(0, bucket.rfind(".bucket_idx_"));
}

/// Returns the type of the parameters of a bucket's buffer, which has "dtype_(torch.bfloat16, " in
/// its key; nothing if it is none in which weights are stored, such as that of float8.
std::optional<DType> type_of_parameters(std::string_view bucket) {
  constexpr std::string_view kBegin = ".dtype_(torch.";
  const auto at = bucket.find(kBegin);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = bucket.substr(at + kBegin.size());
  const std::string_view name = rest.substr(0, rest.find(','));
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    if (name == name_of(dtype)) return dtype;
  }
  return std::nullopt;
}

/// Groups the boxes of one weight by the layer and expert of which they are.
std::vector<std::vector<Box>> by_parameter(const std::vector<Box>& boxes, std::size_t lead) {
  std::vector<std::vector<Box>> groups;
  const auto same = [lead](const Box& a, const Box& b) {
    for (std::size_t d = 0; d < lead; ++d) {
      if (a.offset[d] != b.offset[d]) return false;
    }
    return true;
  };
  for (const Box& box : boxes) {
    const auto known = std::ranges::find_if(
        groups, [&](const std::vector<Box>& group) { return same(group.front(), box); });
    if (known == groups.end()) {
      groups.push_back({box});
    } else {
      known->push_back(box);
    }
  }
  return groups;
}

class Mapper {
 public:
  Mapper(Checkpoint& checkpoint, const LayoutBoxes& boxes, const LayoutParts& parts,
         bool virtual_stages, Device& device)
      : checkpoint_(checkpoint),
        boxes_(boxes),
        parts_(parts),
        virtual_stages_(virtual_stages),
        device_(device),
        staging_(kReadBytes),
        weights_(static_cast<std::size_t>(kBlockElements) * sizeof(double)),
        masters_(static_cast<std::size_t>(kBlockElements) * sizeof(float)),
        rounded_(weights_.size()) {}

  std::vector<BucketParameter> map() {
    const auto& tensors = checkpoint_.catalog().tensors;
    std::map<std::pair<std::string, std::int64_t>, std::vector<std::uint32_t>> ranks;
    for (std::uint32_t t = 0; t < tensors.size(); ++t) {
      const auto key = parse_bucket_key(tensors[t].key);
      if (key && key->slot == kMaster) {
        ranks[{key->of_group.prefix, key->of_group.group}].push_back(t);
      }
    }
    std::vector<std::pair<std::uint32_t, Pool*>> buckets;
    for (auto& [rank, all] : ranks) {
      // The numbers of buffers and buckets tell the order of the model, and the keys sort
      // otherwise.
      std::ranges::sort(all, in_natural_order, [&](std::uint32_t t) { return tensors[t].key; });
      Pool& pool = pool_of(rank.second, all.front());
      for (const std::uint32_t bucket : all) {
        const std::string key = parse_bucket_key(tensors[bucket].key)->bucket;
        pool.buffers.emplace(prefix_of_buffer(key), type_of_parameters(key));
        buckets.emplace_back(bucket, &pool);
      }
    }
    for (const auto& [bucket, pool] : buckets) map_bucket(bucket, *pool);
    for (const auto& [place, pool] : pools_) require_all_of_ties(pool);
    return std::move(found_);
  }

 private:
  /// Nothing in the keys says whether a group is one of experts. Its first parameter does.
  Pool& pool_of(std::int64_t group, std::uint32_t first) {
    Pool& dense = pools_[{group, false}];
    if (dense.candidates.empty()) dense.candidates = candidates(dense_place(group), false);
    if (has_one_at_start(first, dense.candidates)) return dense;
    Pool& experts = pools_[{group, true}];
    if (experts.candidates.empty()) experts.candidates = candidates(expert_place(group), true);
    return experts;
  }

  /// Refuses a weight that another one was taken for, which had the same bits, and that has no
  /// parameter in any bucket: then nothing says which of them has the state.
  void require_all_of_ties(const Pool& pool) const {
    for (const Candidate& one : pool.candidates) {
      if (one.taken || !one.tied) continue;
      throw Error(
          Code::kUnsupported,
          "the weight has the same bits as another one, and one of them has no state in any "
          "bucket, as if it were frozen; nothing says which of them" +
              std::string(kAdvice),
          {.key = checkpoint_.catalog().tensors[one.weight].key});
    }
  }

  /// True if the order of the model tells in which order parameters are in the buckets: each buffer
  /// begins again at the last layer, and its type says which parameters it has.
  bool is_ordered(const Pool& pool) const {
    if (virtual_stages_) return false;
    if (pool.buffers.size() == 1) return true;
    std::set<DType> types;
    return std::ranges::all_of(pool.buffers, [&](const auto& buffer) {
      return buffer.second && types.insert(*buffer.second).second;
    });
  }

  LayoutPlace dense_place(std::int64_t group) const {
    LayoutPlace place;
    place.tp = static_cast<std::int32_t>(group % parts_.tp);
    place.pp = static_cast<std::int32_t>(group / parts_.tp);
    return place;
  }

  LayoutPlace expert_place(std::int64_t group) const {
    LayoutPlace place;
    place.etp = static_cast<std::int32_t>(group % parts_.etp);
    place.ep = static_cast<std::int32_t>(group / parts_.etp % parts_.ep);
    place.pp = static_cast<std::int32_t>(group / parts_.etp / parts_.ep);
    return place;
  }

  std::vector<Candidate> candidates(const LayoutPlace& place, bool experts) const {
    std::vector<Candidate> found;
    const auto& tensors = checkpoint_.catalog().tensors;
    for (std::uint32_t t = 0; t < tensors.size(); ++t) {
      const StoredTensor& weight = tensors[t];
      const ParallelKey key = parse_parallel_key(name_of(weight));
      if (is_of_optimizer(weight.key) || key.expert != experts) continue;
      if (!can_convert(DType::kFloat32, weight.dtype)) continue;
      const std::size_t lead = std::min(key.lead(), logical_shape(weight).size());
      for (auto& boxes : by_parameter(boxes_.of(t, place), lead)) {
        Candidate candidate{
            .weight = t, .boxes = {}, .order = order_of(weight, key, boxes.front())};
        for (const Box& box : boxes) candidate.elements += box.elements();
        candidate.boxes = std::move(boxes);
        found.push_back(std::move(candidate));
      }
    }
    return found;
  }

  bool has_one_at_start(std::uint32_t bucket, const std::vector<Candidate>& candidates) {
    const auto ends = ends_of(bucket);
    return std::ranges::any_of(candidates, [&](const Candidate& one) {
      return ends.contains(one.elements) && is_at(one, bucket, 0);
    });
  }

  /// Returns where chunks of the bucket end: each parameter ends at one of these.
  std::set<std::int64_t> ends_of(std::uint32_t bucket) const {
    std::set<std::int64_t> ends;
    const StoredTensor& tensor = checkpoint_.catalog().tensors[bucket];
    for (const StoredChunk& chunk : tensor.chunks) {
      for (const Piece& piece : pieces_of(tensor, chunk)) {
        if (!piece.box.empty()) ends.insert(piece.box.offset[0] + piece.box.extent[0]);
      }
    }
    return ends;
  }

  void map_bucket(std::uint32_t bucket, Pool& pool) {
    const auto& tensors = checkpoint_.catalog().tensors;
    const StoredTensor& tensor = tensors[bucket];
    const BucketKey key = *parse_bucket_key(tensor.key);
    const auto type = pool.buffers.at(prefix_of_buffer(key.bucket));
    if (tensor.dtype != DType::kFloat32) {
      refuse(bucket, "the parameters are stored as " + std::string(name_of(tensor.dtype)) +
                         " and can be compared with weights only as float32");
    }
    const auto ends = ends_of(bucket);
    const std::int64_t length = logical_shape(tensor)[0];
    for (std::int64_t at = 0; at < length;) {
      std::vector<Candidate*> fits;
      for (Candidate& one : pool.candidates) {
        if (one.taken || (type && tensors[one.weight].dtype != *type)) continue;
        if (ends.contains(at + one.elements) && is_at(one, bucket, at)) fits.push_back(&one);
      }
      if (fits.empty()) {
        require_undamaged(bucket, pool);
        refuse(bucket, "no weight of this rank has the bits of the parameter that begins at " +
                           with_commas(static_cast<std::uint64_t>(at)));
      }
      Candidate& chosen = *one_of(fits, is_ordered(pool), bucket, at);
      chosen.taken = true;
      found_.push_back({chosen.weight, chosen.boxes, key.bucket, key.of_group.prefix, at});
      at += chosen.elements;
      if (at < length) at = (at + kParameterUnit - 1) / kParameterUnit * kParameterUnit;
    }
  }

  /// Returns the last in the order of the model, which is the first in the bucket.
  Candidate* one_of(std::vector<Candidate*>& fits, bool ordered, std::uint32_t bucket,
                    std::int64_t at) {
    if (fits.size() == 1) return fits.front();
    for (Candidate* one : fits) one->tied = true;
    const auto& tensors = checkpoint_.catalog().tensors;
    if (ordered) {
      const ModelOrder last = (*std::ranges::max_element(fits, {}, &Candidate::order))->order;
      std::erase_if(fits, [&](const Candidate* one) { return one->order != last; });
      if (fits.size() == 1) return fits.front();
      if (fits.size() == 2) {
        const std::string& a = tensors[fits[0]->weight].key;
        const std::string& b = tensors[fits[1]->weight].key;
        if (is_made_before(a, b)) return fits[1];
        if (is_made_before(b, a)) return fits[0];
      }
    }
    refuse(bucket, "the weights " + tensors[fits[0]->weight].key + " and " +
                       tensors[fits[1]->weight].key +
                       " have the same bits, so that the parameter at " +
                       with_commas(static_cast<std::uint64_t>(at)) + " may be either");
  }

  [[noreturn]] void refuse(std::uint32_t bucket, const std::string& why) const {
    throw Error(Code::kUnsupported, why + std::string(kAdvice),
                {.key = checkpoint_.catalog().tensors[bucket].key});
  }

  /// Throws the error of a checksum that a bucket, or a weight that may be in it, does not match.
  void require_undamaged(std::uint32_t bucket, const Pool& pool) {
    require_checksums(bucket);
    for (const Candidate& one : pool.candidates) {
      if (!one.taken) require_checksums(one.weight);
    }
  }

  void require_checksums(std::uint32_t tensor) {
    const StoredTensor& stored = checkpoint_.catalog().tensors[tensor];
    ChecksumTally tally;
    TensorReader whole({checkpoint_, device_, staging_, &tally}, stored);
    whole.read(Box::whole(logical_shape(stored)), masters_, [](const Box&, ByteSpan) {});
    whole.open_rest();
    for (const FileIndex file : files_without_small_records(checkpoint_, tally)) {
      count_small_records(checkpoint_, file, tally);
    }
    for (const Finding& finding : tally.findings()) {
      if (finding.severity != Severity::kError) continue;
      throw Error(finding.code, finding.message,
                  {.key = finding.key, .file = finding.file, .offset = finding.offset});
    }
  }

  /// True if the bucket has the candidate's parameter at `begin`, all elements of it.
  bool is_at(const Candidate& one, std::uint32_t bucket, std::int64_t begin) {
    const Box head =
        boxes_of_range(one.boxes.front(), 0, std::min(one.boxes.front().elements(), kHeadElements))
            .front();
    if (!is_block_at(one.weight, head, bucket, begin)) return false;
    bool same = true;
    std::int64_t at = begin;
    for (const Box& box : one.boxes) {
      for_each_block(box, kBlockElements, [&](const Box& block) {
        if (same) same = is_block_at(one.weight, block, bucket, at);
        at += block.elements();
      });
    }
    return same;
  }

  bool is_block_at(std::uint32_t weight, const Box& block, std::uint32_t bucket, std::int64_t at) {
    const DType dtype = checkpoint_.catalog().tensors[weight].dtype;
    const Box part{{at}, {block.elements()}};
    reader(weight).read(block, weights_.data());
    reader(bucket).read(part, masters_.data());
    const auto count = static_cast<std::size_t>(block.elements());
    convert(DType::kFloat32, {masters_.data(), count * sizeof(float)}, dtype, rounded_.data());
    const auto bytes = static_cast<std::ptrdiff_t>(count * size_of(dtype));
    return std::equal(weights_.begin(), weights_.begin() + bytes, rounded_.begin());
  }

  TensorReader& reader(std::uint32_t tensor) {
    auto& known = readers_[tensor];
    if (!known) {
      known = std::make_unique<TensorReader>(ReaderResources{checkpoint_, device_, staging_},
                                             checkpoint_.catalog().tensors[tensor]);
    }
    return *known;
  }

  Checkpoint& checkpoint_;
  const LayoutBoxes& boxes_;
  const LayoutParts& parts_;
  bool virtual_stages_;
  Device& device_;
  Bytes staging_;
  Bytes weights_;
  Bytes masters_;
  Bytes rounded_;
  std::map<std::uint32_t, std::unique_ptr<TensorReader>> readers_;
  std::map<std::pair<std::int64_t, bool>, Pool> pools_;  ///< by group, and whether of experts
  std::vector<BucketParameter> found_;
};

std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<GroupKey> parse_group_key(std::string_view key) {
  const auto at = key.find(kDistributed);
  if (at == std::string_view::npos) return std::nullopt;
  GroupKey parsed{.prefix = std::string(key.substr(0, at)), .name = {}};
  std::string_view rest = key.substr(at + kDistributed.size());
  const auto group = take_number(rest);
  if (!group || !rest.starts_with('.')) return std::nullopt;
  parsed.group = *group;
  parsed.name = std::string(rest.substr(1));
  if (parsed.prefix.empty()) return parsed;
  std::string_view prefix = parsed.prefix;
  const bool chained = prefix.starts_with(kChained);
  if (chained) prefix.remove_prefix(kChained.size());
  const auto chain = chained ? take_number(prefix) : std::nullopt;
  if (!chain || prefix != "." || *chain >= kChainMax) {
    throw Error(Code::kUnsupported,
                "the optimizer is one of several modules, of which the form can't be changed",
                {.key = std::string(key)});
  }
  parsed.chain = *chain;
  return parsed;
}

std::optional<BucketKey> parse_bucket_key(std::string_view key) {
  auto of_group = parse_group_key(key);
  const bool bucket = of_group && of_group->name.starts_with("gbuf_idx_") &&
                      of_group->name.find(".bucket_idx_") != std::string::npos;
  if (!bucket) return std::nullopt;
  const auto slot = key.rfind('.');
  return BucketKey{std::move(*of_group), std::string(key.substr(0, slot)),
                   std::string(key.substr(slot + 1))};
}

std::vector<BucketParameter> map_buckets(Checkpoint& checkpoint, const LayoutBoxes& boxes,
                                         const LayoutParts& parts, bool virtual_stages,
                                         Device& device) {
  return Mapper(checkpoint, boxes, parts, virtual_stages, device).map();
}

}  // namespace reprise
