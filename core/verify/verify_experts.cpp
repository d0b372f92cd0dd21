#include "core/verify/verify_experts.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/megatron/expert_key.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kElementsMin = 64;  // fewer may be alike by chance
constexpr std::uint64_t kHeadBytes = std::uint64_t{64} << 10U;
constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20U;
constexpr std::size_t kNamed = 3;
constexpr std::size_t kLookedAt = 64;  // pairs whose moments are looked at

bool is_float(DType dtype) {
  const std::string_view name = name_of(dtype);
  return name.starts_with("float") || name.starts_with("bfloat");
}

/// If the key is of one of Adam's moments, returns it without the moment's name.
std::optional<std::string> without_moment(const std::string& key) {
  for (const std::string_view moment : {"exp_avg", "exp_avg_sq"}) {
    if (auto rest = without_part(key, moment)) return rest;
  }
  return std::nullopt;
}

bool is_constant(ByteSpan elements, std::size_t width) {
  return std::equal(elements.begin() + static_cast<std::ptrdiff_t>(width), elements.end(),
                    elements.begin());
}

std::string described(const StoredTensor& tensor, const StoredChunk& chunk) {
  return tensor.key + (tensor.chunks.size() == 1 ? "" : " at " + to_string(chunk.box.offset));
}

/// True if the two are of different experts, and not two names of the same bytes.
bool of_two(const ExpertKey& a, const StoredChunk& of_a, const ExpertKey& b,
            const StoredChunk& of_b) {
  if (of_a.file == of_b.file && of_a.range == of_b.range) return false;
  return a.number != b.number || (!a.number && of_a.box != of_b.box);
}

}  // namespace

void ExpertContents::add(const StoredTensor& tensor, const StoredChunk& chunk,
                         const TensorItem& item) {
  const std::string key(name_of(tensor));
  const auto moment_of = without_moment(key);
  has_moments_ = has_moments_ || moment_of;
  const auto expert = parse_expert_key(key);
  if (!expert || !is_float(item.dtype) || volume(item.size) < kElementsMin || !item.contiguous()) {
    return;
  }
  if (!moment_of && is_of_optimizer(key)) return;
  const Part part{&tensor, &chunk, {item.data_offset, item.element_bytes()}};
  parts_[{expert->series, item.size, item.crc}].push_back(part);
  if (moment_of) moments_[*moment_of].push_back(part);
}

void ExpertContents::add(const ExpertContents& more) {
  const auto append = [](auto& to, const auto& from) {
    for (const auto& [key, parts] : from) {
      auto& known = to[key];
      known.insert(known.end(), parts.begin(), parts.end());
    }
  };
  append(parts_, more.parts_);
  append(moments_, more.moments_);
  has_moments_ = has_moments_ || more.has_moments_;
}

Bytes ExpertContents::head_of(Checkpoint& checkpoint, const Part& part) {
  const auto slice = checkpoint.slice(part.tensor->key, part.chunk->file, part.chunk->range);
  return read_range(*slice, {part.elements.offset, std::min(part.elements.size, kHeadBytes)});
}

std::uint64_t ExpertContents::hash_of_all(Checkpoint& checkpoint, const Part& part) {
  const auto slice = checkpoint.slice(part.tensor->key, part.chunk->file, part.chunk->range);
  Hasher hasher;
  for (std::uint64_t at = 0; at < part.elements.size; at += kStepBytes) {
    hasher.bytes(read_range(
        *slice, {part.elements.offset + at, std::min(kStepBytes, part.elements.size - at)}));
  }
  return hasher.digest();
}

bool ExpertContents::trained(Checkpoint& checkpoint, const Part& part) const {
  const std::string key(name_of(*part.tensor));
  if (without_moment(key)) return true;
  if (!has_moments_) {
    const auto step = checkpoint.location().step;
    return step && step->value > 1;
  }
  return std::ranges::any_of(moments_, [&](const auto& of_key) {
    if (of_key.first != key && !of_key.first.ends_with("." + key)) return false;
    return std::ranges::any_of(of_key.second, [&](const Part& moment) {
      return moment.chunk->box == part.chunk->box &&
             !is_constant(head_of(checkpoint, moment), size_of(moment.tensor->dtype));
    });
  });
}

Findings ExpertContents::findings(Checkpoint& checkpoint) const try {
  std::vector<std::pair<Part, Part>> pairs;
  for (const auto& [alike, parts] : parts_) {
    if (parts.size() == 1) continue;
    std::map<std::uint64_t, std::vector<Part>> by_head;
    for (const Part& part : parts) {
      const Bytes head = head_of(checkpoint, part);
      if (is_constant(head, size_of(part.tensor->dtype))) continue;
      by_head[hash_of(ByteSpan(head))].push_back(part);
    }
    for (const auto& [head, same] : by_head) {
      if (same.size() == 1) continue;
      std::map<std::uint64_t, Part> seen;
      for (const Part& part : same) {
        const auto [first, is_new] = seen.emplace(hash_of_all(checkpoint, part), part);
        const Part& other = first->second;
        if (is_new || !of_two(*parse_expert_key(name_of(*other.tensor)), *other.chunk,
                              *parse_expert_key(name_of(*part.tensor)), *part.chunk)) {
          continue;
        }
        pairs.emplace_back(part, other);
      }
    }
  }
  if (pairs.empty()) return {};
  const bool warns = std::any_of(
      pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), kLookedAt)),
      [&](const auto& pair) { return trained(checkpoint, pair.first); });
  std::vector<std::string> words;
  for (const auto& [part, other] : pairs) {
    words.push_back(described(*part.tensor, *part.chunk) + " = " +
                    described(*other.tensor, *other.chunk));
  }
  const std::string message = "experts have the same bits as others: " + join_first(words, kNamed);
  return {
      {warns ? Severity::kWarning : Severity::kNote, Code::kLoadRejected,
       message +
           (warns
                ? "; training does not make experts equal, so some were stored in the place of "
                  "others"
                : "; they may have started as copies, or some were stored in the place of others"),
       pairs.front().first.tensor->key}};
} catch (const Error&) {
  return {};  // what can't be read is reported where it is read
}

}  // namespace reprise
