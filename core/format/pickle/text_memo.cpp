#include "core/format/pickle/text_memo.hpp"

#include <algorithm>
#include <utility>

#include "core/base/hash.hpp"

namespace reprise::pickle {
namespace {

constexpr std::size_t kSlotsFirst = 16;
constexpr std::size_t kSlotsSeen = 16;  ///< how many slots a text may be in

std::string_view text_at(const Bytes& out, std::uint64_t begin, std::uint32_t size) {
  return as_text(ByteSpan(out).subspan(begin, size));
}

}  // namespace

std::optional<std::uint32_t> TextMemo::find(std::string_view text, const Bytes& out) const {
  const std::uint64_t hash = hash_of(text);
  for (std::size_t i = 0; i < std::min(kSlotsSeen, slots_.size()); ++i) {
    const Slot& slot = slots_[(hash + i) & (slots_.size() - 1)];
    if (slot.index == kFree) break;
    if (slot.hash == hash && text_at(out, slot.begin, slot.size) == text) return slot.index;
  }
  if (sorted_.empty()) return std::nullopt;
  const auto found = sorted_.find(text);
  return found == sorted_.end() ? std::nullopt : std::optional(found->second);
}

void TextMemo::add(std::string_view text, std::uint32_t index, const Bytes& out) {
  if (2 * count_ >= slots_.size()) grow(out);
  put_or_sort(
      {hash_of(text), out.size() - text.size(), static_cast<std::uint32_t>(text.size()), index},
      out);
}

bool TextMemo::put(const Slot& slot) {
  for (std::size_t i = 0; i < kSlotsSeen; ++i) {
    Slot& place = slots_[(slot.hash + i) & (slots_.size() - 1)];
    if (place.index != kFree) continue;
    place = slot;
    ++count_;
    return true;
  }
  return false;
}

void TextMemo::put_or_sort(const Slot& slot, const Bytes& out) {
  if (put(slot)) return;
  sorted_.emplace(text_at(out, slot.begin, slot.size), slot.index);
}

void TextMemo::grow(const Bytes& out) {
  const auto old =
      std::exchange(slots_, std::vector<Slot>(std::max(kSlotsFirst, 2 * slots_.size())));
  count_ = 0;
  for (const Slot& slot : old) {
    if (slot.index != kFree) put_or_sort(slot, out);
  }
}

}  // namespace reprise::pickle
