#include "core/diff/value_relation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/base/check.hpp"
#include "core/geometry/element_values.hpp"

namespace reprise {
namespace {

/// Bits of evidence for a relation. Also enough pairs: each has at least one.
constexpr std::uint64_t kTellingBits = 40;

/// A binary format: bits behind the leading one, the exponent of its smallest normal number, and
/// its largest number.
struct FloatForm {
  int mantissa = 0;
  int exponent_min = 0;
  double largest = 0;
  bool infinities = true;
};

std::optional<FloatForm> float_form_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return FloatForm{52, -1022, std::numeric_limits<double>::max()};
    case DType::kFloat32:
    case DType::kComplex64:
      return FloatForm{23, -126, std::numeric_limits<float>::max()};
    case DType::kFloat16:
    case DType::kComplex32:
      return FloatForm{10, -14, 65504};
    case DType::kBFloat16:
      return FloatForm{7, -126, 0x1.fep127};
    case DType::kFloat8E4M3FN:
      return FloatForm{3, -6, 448, false};
    case DType::kFloat8E5M2:
      return FloatForm{2, -14, 57344};
    case DType::kFloat8E4M3FNUZ:
      return FloatForm{3, -7, 240, false};
    case DType::kFloat8E5M2FNUZ:
      return FloatForm{2, -15, 57344, false};
    default:
      return std::nullopt;
  }
}

int exponent_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return static_cast<int>((bits >> 52U) & 0x7ffU) - 1023;
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

/// Returns how far apart numbers of the format are around `value`.
double spacing_at(const FloatForm& form, double value) {
  return std::ldexp(1, std::max(exponent_of(value), form.exponent_min) - form.mantissa);
}

double rounded(const FloatForm& form, double value) {
  if (form.mantissa == 52) return value;
  if (std::isinf(value)) return form.infinities ? value : std::nan("");
  if (std::isnan(value) || value == 0) return value;
  const int exponent = std::max(exponent_of(value), form.exponent_min);
  // Adding a large number rounds at its last place; it is subtracted again.
  double result = std::fabs(value);
  if (exponent < 900) {
    const double large = power_of_two(exponent - form.mantissa + 52) * 1.5;
    result = (result + large) - large;
  }
  if (result > form.largest) {
    result = form.infinities ? std::numeric_limits<double>::infinity() : std::nan("");
  }
  return std::copysign(result, value);
}

double cut_to_bfloat16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>(bits & 0xffff0000U);
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// An interval that narrows.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  void narrow(double a, double b) {
    low = std::max(low, std::min(a, b));
    high = std::min(high, std::max(a, b));
  }
  bool has(double value) const { return low <= value && value <= high; }
};

/// Returns the factors for which each rounded product may be what it is.
Range range_of_factor(const FloatForm& form, const double* left, const double* right,
                      std::size_t count) {
  Range range;
  for (std::size_t i = 0; i < count && range.low <= range.high; ++i) {
    const double a = left[i];
    const double b = right[i];
    if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) continue;
    // Two roundings, of the product and then of its type, may move it by a little more than half.
    const double half = spacing_at(form, b) * 0.501;
    range.narrow((b - half) / a, (b + half) / a);
  }
  return range;
}

/// Returns the number in the range that has the fewest digits.
double shortest_in(const Range& range, double middle) {
  for (int digits = 1; digits <= 17; ++digits) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.*g", digits, middle);
    const double value = std::strtod(text.data(), nullptr);
    if (range.has(value)) return value;
    // Programs multiply float32 by a float32, such as the one that is nearest to 0.1.
    const double narrow = static_cast<float>(value);
    if (range.has(narrow)) return narrow;
  }
  return middle;
}

}  // namespace

std::string_view name_of(ValueRelation::Kind kind) {
  switch (kind) {
    case ValueRelation::Kind::kSameValue:
      return "same value";
    case ValueRelation::Kind::kRounded:
      return "rounded";
    case ValueRelation::Kind::kRoundedBack:
      return "rounded back";
    case ValueRelation::Kind::kCut:
      return "cut";
    case ValueRelation::Kind::kNegated:
      return "negated";
    case ValueRelation::Kind::kScaled:
      break;
  }
  return "scaled";
}

bool can_relate(DType left, DType right) {
  return float_form_of(left) && float_form_of(right) &&
         numbers_per_element(left) == numbers_per_element(right);
}

std::string factor_text(double factor) {
  const double under = std::round(1 / factor);
  if (std::fabs(under) > 2 && std::fabs(under) < 1e6 && 1 / under == factor) {
    return std::string(under < 0 ? "-1/" : "1/") + std::to_string(std::llabs(std::llround(under)));
  }
  const auto narrow = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  std::array<char, 40> text{};
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, factor);
    const double read = std::strtod(text.data(), nullptr);
    if (read == factor || (narrow(factor) == factor && narrow(read) == factor)) break;
  }
  return text.data();
}

RelationFinder::RelationFinder(DType left, DType right) : left_(left), right_(right) {
  CHECK(can_relate(left, right), left, right);
  using Kind = ValueRelation::Kind;
  open_.push_back({.kind = Kind::kSameValue});
  if (left != right) {
    open_.push_back({.kind = Kind::kRounded, .dtype = right});
    open_.push_back({.kind = Kind::kRoundedBack, .dtype = left});
  }
  open_.push_back({.kind = Kind::kNegated});
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16,
                            DType::kFloat8E4M3FN, DType::kFloat8E5M2}) {
    const int mantissa = float_form_of(dtype)->mantissa;
    const bool narrow_left = mantissa < float_form_of(left)->mantissa;
    const bool narrow_right = mantissa < float_form_of(right)->mantissa;
    if (narrow_left && dtype != right) open_.push_back({.kind = Kind::kRounded, .dtype = dtype});
    if (narrow_right && dtype != left) {
      open_.push_back({.kind = Kind::kRoundedBack, .dtype = dtype});
    }
  }
  if (left == DType::kFloat32) open_.push_back({.kind = Kind::kCut, .dtype = DType::kBFloat16});
}

void RelationFinder::guess_factors(const double* left, const double* right, std::size_t count) {
  guessed_ = true;
  const Range range = range_of_factor(*float_form_of(right_), left, right, count);
  if (!(range.low <= range.high) || std::isinf(range.low) || std::isinf(range.high)) return;
  const double middle = range.low + (range.high - range.low) / 2;
  const double size = std::fabs(middle);
  if (size == 0 || !std::isnormal(size)) return;
  const double near_power = std::copysign(std::exp2(std::round(std::log2(size))), middle);
  const double shortest = shortest_in(range, middle);
  for (const double factor : {near_power, std::round(middle), 1 / std::round(1 / middle), shortest,
                              static_cast<double>(static_cast<float>(middle)), middle}) {
    const ValueRelation scaled{.kind = ValueRelation::Kind::kScaled, .factor = factor};
    const bool sound = std::isfinite(factor) && factor != 0 && factor != 1 && factor != -1;
    if (sound && std::ranges::find(open_, scaled) == open_.end()) open_.push_back(scaled);
  }
}

bool RelationFinder::all_fulfil(const ValueRelation& relation, const double* left,
                                const double* right, std::size_t count) const {
  const auto all = [&](const auto& right_of_left) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!right_of_left(left[i], right[i])) return false;
    }
    return true;
  };
  const FloatForm form = *float_form_of(right_);
  const FloatForm named = *float_form_of(relation.dtype);
  switch (relation.kind) {
    case ValueRelation::Kind::kSameValue:
      return all([](double a, double b) { return same(a, b); });
    case ValueRelation::Kind::kRounded:
      return all([&named](double a, double b) { return same(rounded(named, a), b); });
    case ValueRelation::Kind::kRoundedBack:
      return all([&named](double a, double b) { return same(rounded(named, b), a); });
    case ValueRelation::Kind::kCut:
      return all([](double a, double b) { return same(cut_to_bfloat16(a), b); });
    case ValueRelation::Kind::kNegated:
      return all([](double a, double b) { return same(-a, b); });
    case ValueRelation::Kind::kScaled:
      break;
  }
  return all([&form, factor = relation.factor](double a, double b) {
    const double product = a * factor;
    // PyTorch multiplies narrow types as float32, and rounds that.
    return same(rounded(form, product), b) ||
           same(rounded(form, static_cast<double>(static_cast<float>(product))), b);
  });
}

bool RelationFinder::add(const double* left, const double* right, std::size_t count) {
  const std::size_t numbers = count * numbers_per_element(left_);
  if (!guessed_) guess_factors(left, right, numbers);
  std::erase_if(open_, [&](const ValueRelation& relation) {
    return !all_fulfil(relation, left, right, numbers);
  });
  for (std::size_t i = 0; i < numbers && telling_ < kTellingBits; ++i) {
    const bool finite = std::isfinite(left[i]) && std::isfinite(right[i]);
    if (!finite || left[i] == 0 || right[i] == 0 || left[i] == last_left_) continue;
    last_left_ = left[i];
    ++telling_;
  }
  return !open_.empty();
}

std::optional<ValueRelation> RelationFinder::found() const {
  if (open_.empty()) return std::nullopt;
  const ValueRelation& best = open_.front();
  using Kind = ValueRelation::Kind;
  if (best.kind == Kind::kSameValue && left_ == right_) return std::nullopt;
  // A pair agrees by chance as often as the bits of the narrowest type allow. A factor costs a
  // pair.
  int mantissa = std::min(float_form_of(left_)->mantissa, float_form_of(right_)->mantissa);
  const bool names_type =
      best.kind == Kind::kRounded || best.kind == Kind::kRoundedBack || best.kind == Kind::kCut;
  if (names_type) mantissa = std::min(mantissa, float_form_of(best.dtype)->mantissa);
  const std::uint64_t spent = best.kind == Kind::kScaled ? 1 : 0;
  if (telling_ < spent ||
      (telling_ - spent) * static_cast<std::uint64_t>(mantissa) < kTellingBits) {
    return std::nullopt;
  }
  return best;
}

}  // namespace reprise
