#pragma once
// Finds by which arithmetic the elements of one tensor come from those of another: rounded, scaled,
// negated. Pure. A relation is told only if each pair of elements that was added fulfils it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tensor.hpp"

namespace reprise {

struct ValueRelation {
  enum class Kind : std::uint8_t {
    kSameValue,  ///< of other types, but of the same value
    /// Right is left, rounded to `dtype` as PyTorch converts: to the nearest value, and to even
    /// between two. Too large a number becomes infinite, or NaN in a type without infinity.
    kRounded,
    kRoundedBack,  ///< left is right, rounded likewise
    kCut,          ///< right is left with its lower bits cut off, which leaves a bfloat16
    kNegated,
    kScaled,  ///< right is left times `factor`, rounded to the type of right
  };
  Kind kind = Kind::kSameValue;
  DType dtype = DType::kFloat32;  ///< of kRounded, kRoundedBack and kCut
  double factor = 1;              ///< of kScaled

  friend bool operator==(const ValueRelation&, const ValueRelation&) = default;
};

/// Returns "same value", "rounded", "rounded back", "cut", "negated" or "scaled".
std::string_view name_of(ValueRelation::Kind kind);

/// True if relations of elements of these types are looked for: both are floats or both are
/// complex.
bool can_relate(DType left, DType right);

/// Prints a factor with the fewest digits that give it, as a float32 if it is one; "1/3" if it is
/// one over a whole number.
std::string factor_text(double factor);

class RelationFinder {
 public:
  /// can_relate() must be true for the types.
  RelationFinder(DType left, DType right);

  /// Adds the numbers of `count` pairs of elements, as decode_elements() gives them. Returns false
  /// once no relation is left. The first numbers must have a pair that differs, since a factor is
  /// guessed from them.
  bool add(const double* left, const double* right, std::size_t count);

  /// Returns the simplest relation that all pairs fulfil. Returns nothing if there is none, if all
  /// pairs are the same in bits, or if the pairs could fulfil it by chance: zeros and numbers that
  /// repeat say little.
  std::optional<ValueRelation> found() const;

 private:
  void guess_factors(const double* left, const double* right, std::size_t count);
  bool all_fulfil(const ValueRelation& relation, const double* left, const double* right,
                  std::size_t count) const;

  DType left_;
  DType right_;
  std::vector<ValueRelation> open_;  ///< relations that all pairs so far fulfil, simplest first
  bool guessed_ = false;
  /// Pairs of finite numbers other than 0 whose left one is not that of the pair before.
  std::uint64_t telling_ = 0;
  double last_left_ = 0;
};

}  // namespace reprise
