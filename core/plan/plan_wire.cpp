// Wire format of a local plan:
//
//   magic u32 | common digest u64 | placed offers | forms | given offers | objects | paths
//   placed offers   placements | tensors (form | placement)
//   placement       axes (name, size)... | members (difference from the one before)... | splits
//   form            key | dtype u8 | shape
//   given offer     boxes (offset, extent)... | replica | denied boxes; one offer per form
//   object          key | replica | plain
//   path            key | steps (0: text, 1: number)
//
// Placed offers and forms begin with their size in bytes, so that equal bytes can be recognized and
// decoded only once. A list begins with the number of its entries, a text with its length. Numbers
// are LEB128; signed numbers are zigzag-encoded. Each list entry takes at least one byte, so a list
// that claims more entries than there are bytes left is refused.

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "core/base/bytes.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/plan/save_plan.hpp"

namespace reprise {
namespace {

constexpr std::uint32_t kMagic = 0x34504c52;  // "RLP4"
/// Upper limit on the number of axes, far more than any mesh has. The limit bounds the cost of
/// comparing names.
constexpr std::size_t kAxesMax = 64;
/// Upper limit on the number of entries for which memory is reserved before the entries are read.
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

  void part(ByteSpan bytes) {
    count(bytes.size());
    append(out_, bytes);
  }

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
  /// `begin` is the position of `bytes` in the whole plan. Error messages contain positions in the
  /// whole plan.
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

  /// Reads the number of entries that follow. Throws if it exceeds the number of bytes left,
  /// because each entry takes at least one byte.
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
      torn("has a number of more than 32 bits where it can't have one", at());
    }
    return static_cast<std::int32_t>(value);
  }

  std::string text() {
    const std::size_t size = entries();
    return std::string(as_text(take(size)));
  }

  Dims dims() {
    Dims dims;
    const std::size_t size = entries(kMaxNdim);
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
      torn("names a rank that cannot exist", in.at());
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
    torn("has an invalid mesh: " + error.message(), in.at());
  }
}

void write_form(Writer& out, const TensorForm& form) {
  out.text(form.key);
  out.byte(static_cast<std::uint8_t>(form.dtype));
  out.dims(form.shape);
  if (form.shape.size() < kMaxNdim) return;
  out.count(form.folded.size());
  for (const std::int64_t extent : form.folded) out.number(extent);
}

void write_given(Writer& out, const GivenOffers& given, std::size_t i) {
  out.count(given.boxes(i));
  for (const std::int64_t number : given.corners(i)) out.number(number);
  out.number(given.replica(i));
  const Box* denied = given.denied(i);
  out.count(denied != nullptr ? 1 : 0);
  if (denied == nullptr) return;
  out.dims(denied->offset);
  out.dims(denied->extent);
}

Bytes encode(const PlacedOffers& offers) {
  Writer out;
  out.count(offers.placements.size());
  for (const Placed& placed : offers.placements) write_placed(out, placed);
  out.count(offers.tensors.size());
  for (const PlacedOffer& offer : offers.tensors) {
    write_form(out, offer.form);
    out.count(offer.placed);
  }
  return out.take();
}

Bytes encode(const std::vector<TensorForm>& forms) {
  Writer out;
  out.count(forms.size());
  for (const TensorForm& form : forms) write_form(out, form);
  return out.take();
}

DType read_dtype(Reader& in) {
  const std::size_t code = in.byte();
  if (code >= all_dtypes().size()) torn("has an unknown element type", in.at());
  return static_cast<DType>(code);
}

TensorForm read_form(Reader& in) {
  TensorForm form;
  form.key = in.text();
  form.dtype = read_dtype(in);
  form.shape = in.dims();
  if (form.shape.size() == kMaxNdim) {
    for (std::size_t n = in.entries(kTorchNdimMax); n > 0; --n) form.folded.push_back(in.number());
    if (!can_stand_for(form.shape, form.folded)) torn("has impossible dimensions", in.at());
  }
  return form;
}

/// True if the ends of the box can be computed without overflow.
bool is_printable(const Box& box) {
  if (box.offset.size() != box.extent.size()) return false;
  for (std::size_t d = 0; d < box.ndim(); ++d) {
    std::int64_t end = 0;
    if (__builtin_add_overflow(box.offset[d], box.extent[d], &end)) return false;
  }
  return true;
}

/// Reads one rank's boxes. Reuses one buffer instead of allocating memory for each box.
class GivenReader {
 public:
  void read(Reader& in, std::size_t ndim, GivenOffers& given) {
    const std::size_t boxes = in.entries(std::numeric_limits<std::uint32_t>::max());
    corners_.clear();
    for (std::size_t n = 2 * ndim * boxes; n > 0; --n) corners_.push_back(in.number());
    const std::int32_t replica = in.small();
    std::optional<Box> denied;
    if (in.entries(1) == 1) {
      denied = Box{in.dims(), in.dims()};
      if (denied->offset.size() != ndim || !is_printable(*denied)) {
        torn("has an invalid box", in.at());
      }
    }
    given.add(corners_, static_cast<std::uint32_t>(boxes), replica, denied);
  }

 private:
  std::vector<std::int64_t> corners_;
};

PlacedOffers read_placed_offers(Reader& in) {
  PlacedOffers offers;
  for (std::size_t n = in.entries(); n > 0; --n) offers.placements.push_back(read_placed(in));
  const std::size_t tensors = in.entries();
  offers.tensors.reserve(std::min(tensors, kRoomMax));
  for (std::size_t n = tensors; n > 0; --n) {
    TensorForm form = read_form(in);
    const std::uint64_t placed = in.any_count();
    if (placed >= offers.placements.size()) torn("refers to a placement that it lacks", in.at());
    offers.tensors.push_back({std::move(form), static_cast<std::uint32_t>(placed)});
  }
  return offers;
}

std::vector<TensorForm> read_forms(Reader& in) {
  std::vector<TensorForm> forms;
  const std::size_t count = in.entries();
  forms.reserve(std::min(count, kRoomMax));
  for (std::size_t n = count; n > 0; --n) forms.push_back(read_form(in));
  return forms;
}

Bytes encode(const KeyPaths& paths) {
  Writer out;
  out.count(paths.size());
  for (const auto& [key, path] : paths) {
    out.text(key);
    out.count(path.size());
    for (const PathStep& step : path) {
      out.byte(static_cast<std::uint8_t>(step.index()));
      if (const auto* name = std::get_if<std::string>(&step)) {
        out.text(*name);
      } else {
        out.number(std::get<std::int64_t>(step));
      }
    }
  }
  return out.take();
}

KeyPaths read_paths(Reader& in) {
  KeyPaths paths;
  for (std::size_t n = in.entries(); n > 0; --n) {
    KeyPath& path = paths[in.text()];
    for (std::size_t steps = in.entries(); steps > 0; --steps) {
      if (in.byte() == 0) {
        path.emplace_back(in.text());
      } else {
        path.emplace_back(in.number());
      }
    }
  }
  return paths;
}

/// A cache of decoded parts of plans. The encoded bytes are the key, so equal parts are decoded
/// once.
template <class Part>
class KnownParts {
 public:
  std::shared_ptr<const Part> read(Reader& in, Part (*read_part)(Reader&)) {
    const std::size_t size = in.entries();
    const std::size_t begin = in.at();
    const ByteSpan bytes = in.take(size);
    auto& part = known_[as_text(bytes)];
    if (part) return part;
    Reader inner(bytes, begin);
    auto fresh = std::make_shared<const Part>(read_part(inner));
    if (inner.left() != 0) torn("has a part that ends too early", inner.at());
    part = std::move(fresh);
    return part;
  }

 private:
  std::map<std::string_view, std::shared_ptr<const Part>> known_;
};

class Decoder {
 public:
  LocalPlan decode(ByteSpan bytes) {
    Reader in(bytes, 0);
    LocalPlan plan;
    if (in.fixed<std::uint32_t>() != kMagic) torn("does not begin like one", 0);
    plan.common_digest = in.fixed<std::uint64_t>();
    plan.placed = placed_.read(in, read_placed_offers);
    plan.given = GivenOffers(forms_.read(in, read_forms));
    for (const TensorForm& form : *plan.given.forms()) {
      given_.read(in, form.shape.size(), plan.given);
    }
    for (std::size_t n = in.entries(); n > 0; --n) {
      std::string key = in.text();
      const std::int32_t replica = in.small();
      plan.objects.push_back({std::move(key), replica, in.byte() != 0});
    }
    plan.paths = paths_.read(in, read_paths);
    if (in.left() != 0) torn("has " + std::to_string(in.left()) + " bytes too many", in.at());
    return plan;
  }

 private:
  KnownParts<PlacedOffers> placed_;
  KnownParts<std::vector<TensorForm>> forms_;
  KnownParts<KeyPaths> paths_;
  GivenReader given_;
};

}  // namespace

Bytes encode(const LocalPlan& plan) {
  Writer out;
  out.fixed32(kMagic);
  out.fixed64(plan.common_digest);
  out.part(encode(*plan.placed));
  out.part(encode(*plan.given.forms()));
  for (std::size_t i = 0; i < plan.given.size(); ++i) write_given(out, plan.given, i);
  out.count(plan.objects.size());
  for (const ObjectOffer& offer : plan.objects) {
    out.text(offer.key);
    out.number(offer.replica);
    out.byte(offer.plain ? 1 : 0);
  }
  out.part(encode(*plan.paths));
  return out.take();
}

LocalPlan decode_local_plan(ByteSpan bytes) { return Decoder().decode(bytes); }

std::vector<LocalPlan> decode_local_plans(std::span<const Bytes> wires) {
  Decoder decoder;
  std::vector<LocalPlan> plans;
  plans.reserve(wires.size());
  for (const Bytes& wire : wires) plans.push_back(decoder.decode(wire));
  return plans;
}

}  // namespace reprise
