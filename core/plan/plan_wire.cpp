// A local plan on the wire:
//
//   magic u32 | common digest u64 | bytes of placed offers | placed offers | tensors | objects
//   placed offers   placements | tensors (key | dtype u8 | shape | placement)
//   placement       axes (name, size)... | members (difference to the one before)... | splits
//   tensor          key | dtype u8 | shape | boxes (offset, extent)... | replica | denied boxes (0,
//   1) object          key | replica
//
// Lists and texts begin with their count. Numbers are LEB128, signed ones by zigzag. Each entry of
// a list takes at least one byte, so no count is believed that exceeds the bytes left.

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

constexpr std::uint32_t kMagic = 0x32504c52;  // "RLP2"
/// Far more than any mesh has; keeps the cost of checking names bounded.
constexpr std::size_t kAxesMax = 64;
/// Most tensors that room is made for by claim.
constexpr std::size_t kRoomMax = 4096;

class Writer {
 public:
  void fixed32(std::uint32_t value) { append_le(out_, value); }
  void fixed64(std::uint64_t value) { append_le(out_, value); }
  void byte(std::uint8_t value) { out_.push_back(std::byte{value}); }

  void count(std::uint64_t value) {
    while (value >= 0x80) {
      byte(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7U;
    }
    byte(static_cast<std::uint8_t>(value));
  }

  void number(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    count((bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }

  void text(std::string_view value) {
    count(value.size());
    append(out_, as_bytes(value));
  }

  void bytes(ByteSpan bytes) { append(out_, bytes); }

  void dims(const Dims& dims) {
    count(dims.size());
    for (const std::int64_t value : dims) number(value);
  }

  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

[[noreturn]] void torn(const std::string& what, std::size_t offset) {
  throw Error(Code::kTornFile, "a plan from another rank " + what,
              {.offset = static_cast<std::uint64_t>(offset)});
}

class Reader {
 public:
  /// `begin`: what to add to positions in messages.
  Reader(ByteSpan bytes, std::size_t begin) : bytes_(bytes), begin_(begin) {}

  template <class T>
  T fixed() {
    return load_le<T>(take(sizeof(T)));
  }
  std::uint8_t byte() { return std::to_integer<std::uint8_t>(take(1)[0]); }

  std::uint64_t any_count() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t digit = byte();
      if (shift == 63 && digit > 1) break;
      value |= (digit & 0x7fU) << shift;
      if (digit < 0x80) return value;
    }
    torn("has a number of more than 64 bits", at());
  }

  /// Of entries that take at least a byte each.
  std::size_t entries(std::size_t most = std::numeric_limits<std::size_t>::max()) {
    const std::uint64_t value = any_count();
    if (value > left() || value > most) {
      torn("claims " + std::to_string(value) + " entries and has " + std::to_string(left()) +
               " bytes left",
           at());
    }
    return static_cast<std::size_t>(value);
  }

  std::int64_t number() {
    const std::uint64_t bits = any_count();
    return static_cast<std::int64_t>((bits >> 1U) ^ ((bits & 1U) != 0 ? ~std::uint64_t{0} : 0));
  }

  std::int32_t small() {
    const std::int64_t value = number();
    if (value < std::numeric_limits<std::int32_t>::min() ||
        value > std::numeric_limits<std::int32_t>::max()) {
      torn("has a number of more than 32 bits where none can be", at());
    }
    return static_cast<std::int32_t>(value);
  }

  std::string text() {
    const std::size_t size = entries();
    return std::string(as_text(take(size)));
  }

  Dims dims() {
    Dims dims;
    const std::size_t size = entries(kMaxRank);
    for (std::size_t d = 0; d < size; ++d) dims.push_back(number());
    return dims;
  }

  ByteSpan take(std::size_t size) {
    if (size > left()) torn("ends too early", at());
    const ByteSpan taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  std::size_t at() const { return begin_ + at_; }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  ByteSpan bytes_;
  std::size_t begin_;
  std::size_t at_ = 0;
};

void write_placed(Writer& out, const Placed& placed) {
  out.count(placed.mesh->axes().size());
  for (const Axis& axis : placed.mesh->axes()) {
    out.text(axis.name);
    out.number(axis.size);
  }
  out.count(placed.mesh->members().members().size());
  std::int64_t before = -1;
  for (const GlobalRank rank : placed.mesh->members().members()) {
    out.number(rank.value - before - 1);
    before = rank.value;
  }
  out.count(placed.placement.splits().size());
  for (const Split& split : placed.placement.splits()) {
    out.text(split.axis);
    out.count(split.dim);
  }
}

Placed read_placed(Reader& in) {
  std::vector<Axis> axes(in.entries(kAxesMax));
  for (Axis& axis : axes) {
    axis.name = in.text();
    axis.size = in.small();
  }
  std::vector<GlobalRank> members(in.entries());
  std::int64_t before = -1;
  for (GlobalRank& rank : members) {
    const std::int64_t step = in.small();
    before += step + 1;
    if (before < 0 || before > std::numeric_limits<std::int32_t>::max()) {
      torn("names a rank that cannot be", in.at());
    }
    rank.value = static_cast<std::int32_t>(before);
  }
  std::vector<Split> splits(in.entries(kAxesMax));
  for (Split& split : splits) {
    split.axis = in.text();
    split.dim = static_cast<std::size_t>(in.any_count());
  }
  try {
    auto mesh = std::make_shared<const Mesh>(std::move(axes), Group(std::move(members)));
    return {std::move(mesh), Placement(std::move(splits))};
  } catch (const Error& error) {
    torn("has a mesh that is none: " + error.message(), in.at());
  }
}

void write_form(Writer& out, const std::string& key, DType dtype, const Dims& shape) {
  out.text(key);
  out.byte(static_cast<std::uint8_t>(dtype));
  out.dims(shape);
}

void write_box(Writer& out, const Box& box) {
  out.dims(box.offset);
  out.dims(box.extent);
}

void write_offer(Writer& out, const TensorOffer& offer) {
  write_form(out, offer.key, offer.dtype, offer.shape);
  out.count(offer.boxes.size());
  for (const Box& box : offer.boxes) write_box(out, box);
  out.number(offer.replica);
  out.count(offer.denied ? 1 : 0);
  if (offer.denied) write_box(out, *offer.denied);
}

Bytes encode(const PlacedOffers& offers) {
  Writer out;
  out.count(offers.placements.size());
  for (const Placed& placed : offers.placements) write_placed(out, placed);
  out.count(offers.tensors.size());
  for (const PlacedOffer& offer : offers.tensors) {
    write_form(out, offer.key, offer.dtype, offer.shape);
    out.count(offer.placed);
  }
  return out.take();
}

DType read_dtype(Reader& in) {
  const std::size_t code = in.byte();
  if (code >= all_dtypes().size()) torn("has an unknown element type", in.at());
  return static_cast<DType>(code);
}

Box read_box(Reader& in) {
  Box box;
  box.offset = in.dims();
  box.extent = in.dims();
  return box;
}

TensorOffer read_offer(Reader& in) {
  TensorOffer offer;
  offer.key = in.text();
  offer.dtype = read_dtype(in);
  offer.shape = in.dims();
  const std::size_t boxes = in.entries();
  offer.boxes.reserve(std::min(boxes, kRoomMax));
  for (std::size_t n = boxes; n > 0; --n) offer.boxes.push_back(read_box(in));
  offer.replica = in.small();
  if (in.entries(1) == 1) offer.denied = read_box(in);
  return offer;
}

PlacedOffer read_placed_offer(Reader& in, std::size_t placements) {
  PlacedOffer offer;
  offer.key = in.text();
  offer.dtype = read_dtype(in);
  offer.shape = in.dims();
  const std::uint64_t placed = in.any_count();
  if (placed >= placements) torn("refers to a placement that it lacks", in.at());
  offer.placed = static_cast<std::uint32_t>(placed);
  return offer;
}

/// `begin`: where the bytes stand in the plan, for messages.
std::shared_ptr<const PlacedOffers> read_placed_offers(ByteSpan bytes, std::size_t begin) {
  Reader in(bytes, begin);
  PlacedOffers offers;
  for (std::size_t n = in.entries(); n > 0; --n) offers.placements.push_back(read_placed(in));
  const std::size_t tensors = in.entries();
  offers.tensors.reserve(std::min(tensors, kRoomMax));
  for (std::size_t n = tensors; n > 0; --n) {
    offers.tensors.push_back(read_placed_offer(in, offers.placements.size()));
  }
  if (in.left() != 0) torn("has placed offers that end too early", in.at());
  return std::make_shared<const PlacedOffers>(std::move(offers));
}

/// Placed offers by their bytes; those that are there are not read again.
class KnownOffers {
 public:
  std::shared_ptr<const PlacedOffers> read(ByteSpan bytes, std::size_t begin) {
    auto& offers = known_[as_text(bytes)];
    if (!offers) offers = read_placed_offers(bytes, begin);
    return offers;
  }

 private:
  std::map<std::string_view, std::shared_ptr<const PlacedOffers>> known_;
};

LocalPlan decode(ByteSpan bytes, KnownOffers& known) {
  Reader in(bytes, 0);
  LocalPlan plan;
  if (in.fixed<std::uint32_t>() != kMagic) torn("does not begin as one", 0);
  plan.common_digest = in.fixed<std::uint64_t>();
  const std::size_t placed = in.entries();
  const std::size_t begin = in.at();
  plan.placed = known.read(in.take(placed), begin);
  const std::size_t tensors = in.entries();
  plan.tensors.reserve(std::min(tensors, kRoomMax));
  for (std::size_t n = tensors; n > 0; --n) plan.tensors.push_back(read_offer(in));
  for (std::size_t n = in.entries(); n > 0; --n) {
    std::string key = in.text();
    plan.objects.push_back({std::move(key), in.small()});
  }
  if (in.left() != 0) torn("has " + std::to_string(in.left()) + " bytes too many", in.at());
  return plan;
}

}  // namespace

Bytes encode(const LocalPlan& plan) {
  const Bytes placed = encode(*plan.placed);
  Writer out;
  out.fixed32(kMagic);
  out.fixed64(plan.common_digest);
  out.count(placed.size());
  out.bytes(placed);
  out.count(plan.tensors.size());
  for (const TensorOffer& offer : plan.tensors) write_offer(out, offer);
  out.count(plan.objects.size());
  for (const ObjectOffer& offer : plan.objects) {
    out.text(offer.key);
    out.number(offer.replica);
  }
  return out.take();
}

LocalPlan decode_local_plan(ByteSpan bytes) {
  KnownOffers known;
  return decode(bytes, known);
}

std::vector<LocalPlan> decode_local_plans(std::span<const Bytes> wires) {
  KnownOffers known;
  std::vector<LocalPlan> plans;
  plans.reserve(wires.size());
  for (const Bytes& wire : wires) plans.push_back(decode(wire, known));
  return plans;
}

}  // namespace reprise
