#pragma once
// The closed list of names: globals that a pickle may mention, in which kind of pickle, and what it
// may do with them. Everything else is refused or makes the pickle opaque.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace reprise::pickle {

/// Kinds of pickle.
enum class Grammar : std::uint8_t {
  kMetadata = 1,    ///< `.metadata`
  kTensorItem = 2,  ///< data.pkl of a tensor item
  kBytesItem = 4,   ///< data.pkl of a bytes item or common.pt
};

/// Arguments allowed for REDUCE or NEWOBJ.
enum class Args : std::uint8_t {
  kNever,
  kEmpty,
  kText,        ///< one str
  kScalar,      ///< one int or str: an enum by its value
  kExtents,     ///< one tuple of ints
  kTexts,       ///< any number of str
  kEnumMember,  ///< getattr(enum on this list, 'MEMBER')
  kAny,
};

/// State allowed for BUILD.
enum class State : std::uint8_t { kNever, kDict, kTuple, kAny };

/// Items that may be added after construction.
enum class Items : std::uint8_t { kNone, kList, kDict };

struct NameRule {
  std::string_view module;
  std::string_view name;
  std::uint8_t grammars = 0;  ///< Grammar values, or-ed
  Args call = Args::kNever;   ///< for REDUCE
  Args fresh = Args::kNever;  ///< for NEWOBJ
  State state = State::kNever;
  Items items = Items::kNone;

  /// True for a class whose instances compare by mutable content: Python accepts none as a key or
  /// in a set.
  bool changeable() const;
  bool allowed_in(Grammar grammar) const {
    return (grammars & static_cast<std::uint8_t>(grammar)) != 0;
  }
};

/// Returns all rules, sorted by module, then name.
std::span<const NameRule> all_names();
/// Returns null if the name is not on the list.
const NameRule* rule_of(std::string_view module, std::string_view name);

/// True for names that attacks use and checkpoints never need: refused in every kind of pickle,
/// even where unlisted names only make it opaque. For Python's own modules, all names are refused
/// except plain-data modules and plain-data classes. For torch, numpy and other packages, names are
/// refused that run code, open files, import, or use the network. For any module, names that lead
/// to such a module are refused ("random._os", "enum.sys").
bool always_refused(std::string_view module, std::string_view name);

/// True for an attribute that leads from an object to code: "__globals__", "os", "system".
bool leads_to_code(std::string_view attribute);

/// Returns a member of a listed enum, for pickles of Python 3.11.0 to 3.11.3, which write
/// `getattr(Class, 'MEMBER')` instead of `Class(value)`. Nothing if there is no such member.
using EnumValue = std::variant<std::int64_t, std::string_view>;
std::optional<EnumValue> enum_value(std::string_view module, std::string_view name,
                                    std::string_view member);
bool is_enum(std::string_view module, std::string_view name);

/// Maps Python 2 names, which protocols 0 to 2 use, to their Python 3 names.
struct ModuleAndName {
  std::string_view module;
  std::string_view name;
};
ModuleAndName modern_name(ModuleAndName written);
/// Inverse mapping, for writing at protocol 2.
ModuleAndName protocol2_name(ModuleAndName modern);

}  // namespace reprise::pickle
