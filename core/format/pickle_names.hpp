#pragma once
// The closed list of names: which globals a pickle may mention, in which kind of pickle, and what
// it may do with them. Everything else is refused or makes the pickle opaque.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace reprise::pickle {

/// Which kind of pickle is read.
enum class Grammar : std::uint8_t {
  kMetadata = 1,    ///< `.metadata`
  kTensorItem = 2,  ///< data.pkl of a tensor item
  kBytesItem = 4,   ///< data.pkl of a bytes item or common.pt
};

/// Arguments that REDUCE or NEWOBJ may give.
enum class Args : std::uint8_t {
  kNever,
  kEmpty,
  kText,        ///< one str
  kScalar,      ///< one int or str: an enum by value
  kExtents,     ///< one tuple of ints
  kTexts,       ///< any number of str
  kEnumMember,  ///< getattr(enum on this list, 'MEMBER')
  kAny,
};

/// What BUILD may give.
enum class State : std::uint8_t { kNever, kDict, kTuple, kAny };

/// What may be put into it after it was made.
enum class Items : std::uint8_t { kNone, kList, kDict };

struct NameRule {
  std::string_view module;
  std::string_view name;
  std::uint8_t grammars = 0;  ///< of Grammar, or-ed
  Args call = Args::kNever;   ///< REDUCE
  Args fresh = Args::kNever;  ///< NEWOBJ
  State state = State::kNever;
  Items items = Items::kNone;

  /// True for a class whose instances are compared by content that can change: Python takes none
  /// as a key or into a set.
  bool changeable() const;
  bool allowed_in(Grammar grammar) const {
    return (grammars & static_cast<std::uint8_t>(grammar)) != 0;
  }
};

/// Sorted by module, then name.
std::span<const NameRule> all_names();
/// Null if it is not on the list.
const NameRule* rule_of(std::string_view module, std::string_view name);

/// Names that no checkpoint needs and an attack does: refused in every kind of pickle, even where
/// unlisted names only make it opaque. Of Python's own modules those of plain data are spared, and
/// in the others the classes of plain data; of torch, numpy and other packages what runs code,
/// opens files, imports or reaches the network is refused; and whatever the module, a name by which
/// one comes to such a module ("random._os", "enum.sys").
bool always_refused(std::string_view module, std::string_view name);

/// True for an attribute by which an object leads to code: "__globals__", "os", "system".
bool leads_to_code(std::string_view attribute);

/// A member of an enum on the list, for pickles of Python 3.11.0 to 3.11.3, which write
/// `getattr(Class, 'MEMBER')` instead of `Class(value)`. Nothing if there is no such member.
using EnumValue = std::variant<std::int64_t, std::string_view>;
std::optional<EnumValue> enum_value(std::string_view module, std::string_view name,
                                    std::string_view member);
bool is_enum(std::string_view module, std::string_view name);

/// Names of Python 2, which protocols 0 to 2 use, and what Python 3 reads for them.
struct ModuleAndName {
  std::string_view module;
  std::string_view name;
};
ModuleAndName modern_name(ModuleAndName written);
/// The inverse, for writing at protocol 2.
ModuleAndName protocol2_name(ModuleAndName modern);

}  // namespace reprise::pickle
