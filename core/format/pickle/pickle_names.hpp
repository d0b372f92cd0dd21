#pragma once
// Defines the closed list of names. For each class or function that a pickle may mention, the list
// states which kinds of pickle may mention it and what they may do with it. Any other name is
// refused or makes the pickle opaque.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace reprise::pickle {

/// The kinds of pickle.
enum class Grammar : std::uint8_t {
  kMetadata = 1,    ///< `.metadata`
  kTensorItem = 2,  ///< data.pkl of a tensor item
  kBytesItem = 4,   ///< data.pkl of a bytes item or common.pt
  kAny = 8,         ///< any pickle: its names are listed, and no rule holds (pickle_imports.hpp)
};

/// What a name stands for.
enum class Is : std::uint8_t { kClass, kFunction, kValue };

/// The arguments that REDUCE or NEWOBJ may have. pickle_calls.hpp has a rule for each.
enum class Args : std::uint8_t {
  kNever,
  kEmpty,
  kScalar,      ///< the value of an enum's member: one int or str
  kExtents,     ///< one tuple of ints
  kTexts,       ///< any number of strs
  kEnumMember,  ///< getattr(enum on this list, 'MEMBER')
  kTensor,      ///< judged by the reader of tensors
  kUnchecked,   ///< not judged
  kLayout,
  kDevice,
  kRange,
  kSlice,
  kIterable,   ///< nothing, or one iterable
  kHashables,  ///< nothing, or one iterable of items that can be hashed
  kMapping,    ///< nothing, or a mapping
  kComplex,
  kInt,
  kFloat,
  kBool,
  kStr,
  kBytes,
  kEncoded,
  kDeque,
  kDefaultDict,
  kDateTime,
  kDate,
  kTime,
  kTimeDelta,
  kTimeZone,
  kReconstructor,
  kPair,  ///< the two fields of a named tuple
  kNumpyDType,
  kNumpyArray,
  kNumpyScalar,
  kNumpyBuffer,
  kNumpyGenerator,
};

/// The state that BUILD may set.
enum class BuildState : std::uint8_t {
  kNever,
  kDict,
  kAny,
  kTensorProperties,
  kUuid,
  kBytesIo,
  kNumpy
};

/// Whether Python can hash an instance, so that it may be a key or in a set.
enum class Hash : std::uint8_t {
  kYes,
  kNo,       ///< compared by content that may change, as a list or a dataclass is
  kOfIndex,  ///< MetadataIndex: hashes its fields `fqn` and `offset`
};

/// The items that may be added after construction.
enum class Items : std::uint8_t { kNone, kList, kDict };

struct NameRule {
  std::string_view module;
  std::string_view name;
  std::uint8_t grammars = 0;  ///< bitwise OR of Grammar values
  Args call = Args::kNever;   ///< arguments allowed for REDUCE
  Args fresh = Args::kNever;  ///< arguments allowed for NEWOBJ
  BuildState state = BuildState::kNever;
  Items items = Items::kNone;
  Hash hash = Hash::kYes;
  Is is = Is::kClass;

  bool allowed_in(Grammar grammar) const {
    return (grammars & static_cast<std::uint8_t>(grammar)) != 0;
  }
};

/// Returns all rules, sorted by module and then by name.
std::span<const NameRule> all_names();
/// Returns the rule of a name; null if the name is not on the list.
const NameRule* rule_of(std::string_view module, std::string_view name);

/// True for names that attacks use and checkpoints never need. They are refused in every kind of
/// pickle, even where unlisted names only make the pickle opaque. Three groups are refused. First,
/// every name in Python's own modules, except plain-data modules and plain-data classes. Second, in
/// torch, numpy and other packages, names that run code, open files, import modules, or use the
/// network. Third, in any module, names that lead to a refused module ("random._os", "enum.sys").
bool always_refused(std::string_view module, std::string_view name);

/// For a name that runs code only when something calls it, and that ordinary objects hold: says
/// what it does, such as "opens files". Empty for any other name. An object may hold such a name if
/// its pickle calls nothing that could call it; in any other pickle the name is refused.
std::string_view held_for(std::string_view module, std::string_view name);

/// True for an attribute that leads from an object to code, such as "__globals__", "os" or
/// "system".
bool leads_to_code(std::string_view attribute);

/// Returns the value of the enum member `member`; nothing if there is no such member. Knows only
/// listed enums. Needed for pickles of Python 3.11.0 to 3.11.3, which write `getattr(Class,
/// 'MEMBER')` instead of `Class(value)`.
using EnumValue = std::variant<std::int64_t, std::string_view>;
std::optional<EnumValue> enum_value(std::string_view module, std::string_view name,
                                    std::string_view member);

enum class Fit : std::uint8_t;
/// Says if a listed enum has a member of this value. A member that is not known may be one of
/// another release, unless the enum never changes.
Fit knows_member(const NameRule& rule, EnumValue value);

/// Identifies a class or function by its module and its name. modern_name() maps Python 2 names,
/// which protocols 0 to 2 use, to Python 3 names.
struct ModuleAndName {
  std::string_view module;
  std::string_view name;
};
ModuleAndName modern_name(ModuleAndName written);
/// Maps Python 3 names back to Python 2 names, for writing at protocol 2.
ModuleAndName protocol2_name(ModuleAndName modern);

}  // namespace reprise::pickle
