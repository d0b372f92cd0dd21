#pragma once
#pragma GCC system_header
// The switches of machine-made mutants. tests/mutation/instrument.py puts one site into a copy of
// the sources of core wherever a decision could be another one; the program is built once. The
// variable REPRISE_MUTATION names the one mutant that is on, as SITE:VARIANT. Without it the
// program decides as the original does.
//
//   a < b          a < mutation::Less(7) < b        7:0 is a <= b, 7:1 is a >= b
//   a + b          a + mutation::Plus(8) + b        8:0 is a - b
//   a && b         a && !mutation::on(9, 0) && b    9:0 is false
//   if (x)         if (mutation::flip(10, x))       10:0 is if (!x)
//   f(x);          if (!mutation::on(11, 0)) f(x);  11:0 leaves the call out
//
// An operator with a site between stays an operator of the same precedence, so the sources need no
// parser: the compiler finds the operands.

#include <cstdint>
#include <type_traits>
#include <utility>

namespace mutation {

/// Site and variant of the mutant that is on; -1 if none is.
struct Chosen {
  std::int32_t site = -1;
  std::int32_t variant = 0;
};
extern const Chosen chosen;

/// Notes that the site was evaluated and that a variant of it can be switched on.
void note(std::int32_t site, std::int32_t variant);

/// True if this mutant is on.
inline bool on(std::int32_t site, std::int32_t variant) {
  note(site, variant);
  return chosen.site == site && chosen.variant == variant;
}

inline bool flip(std::int32_t site, bool value) { return on(site, 0) ? !value : value; }

/// An operand on the left, and the site of the operator that follows.
template <class Left, class Operator>
struct Pending {
  Left&& left;
  std::int32_t site;
};

// An operator needs four things: its type, how it takes its left side, its original, and variants.
#define MUTATION_BINARY(Name, op, ...)                                                          \
  struct Name {                                                                                 \
    explicit constexpr Name(std::int32_t number) : site(number) {}                              \
    std::int32_t site;                                                                          \
  };                                                                                            \
  template <class Left>                                                                         \
  Pending<Left, Name> operator op(Left&& left, Name at) {                                       \
    return {std::forward<Left>(left), at.site};                                                 \
  }                                                                                             \
  template <class Left, class Right>                                                            \
  auto operator op(Pending<Left, Name>&& pending, Right&& right) {                              \
    using Result =                                                                              \
        std::decay_t<decltype(std::forward<Left>(pending.left) op std::forward<Right>(right))>; \
    Left&& left = std::forward<Left>(pending.left);                                             \
    const std::int32_t site = pending.site;                                                     \
    __VA_ARGS__                                                                                 \
    return static_cast<Result>(std::forward<Left>(left) op std::forward<Right>(right));         \
  }

#define MUTATION_VARIANT(number, op)                                 \
  if constexpr (requires { static_cast<Result>(left op right); }) {  \
    if (on(site, number)) return static_cast<Result>(left op right); \
  }
// Division by zero would be a crash and no decision.
#define MUTATION_DIVIDING(number, op)                                                \
  if constexpr (std::is_integral_v<std::decay_t<Right>>) {                           \
    if constexpr (requires { static_cast<Result>(left op right); }) {                \
      if (on(site, number) && right != 0) return static_cast<Result>(left op right); \
    }                                                                                \
  }

MUTATION_BINARY(Less, <, MUTATION_VARIANT(0, <=) MUTATION_VARIANT(1, >=))
MUTATION_BINARY(Greater, >, MUTATION_VARIANT(0, >=) MUTATION_VARIANT(1, <=))
MUTATION_BINARY(LessEqual, <=, MUTATION_VARIANT(0, <) MUTATION_VARIANT(1, >))
MUTATION_BINARY(GreaterEqual, >=, MUTATION_VARIANT(0, >) MUTATION_VARIANT(1, <))
MUTATION_BINARY(Equal, ==, MUTATION_VARIANT(0, !=))
MUTATION_BINARY(Unequal, !=, MUTATION_VARIANT(0, ==))
MUTATION_BINARY(Plus, +, MUTATION_VARIANT(0, -))
MUTATION_BINARY(Minus, -, MUTATION_VARIANT(0, +))
MUTATION_BINARY(Times, *, MUTATION_VARIANT(0, +) MUTATION_DIVIDING(1, /))
MUTATION_BINARY(Divide, /, MUTATION_VARIANT(0, *))
MUTATION_BINARY(Modulo, %, MUTATION_VARIANT(0, +) MUTATION_DIVIDING(1, /))

#undef MUTATION_BINARY
#undef MUTATION_VARIANT
#undef MUTATION_DIVIDING

}  // namespace mutation
