#pragma once
// Lists the names that a pickle would import if it were loaded. Nothing of it is run.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/pickle/pickle_names.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {

/// What is known of a name.
enum class Standing : std::uint8_t {
  kKnown,    ///< checkpoints of torch and Megatron have it, and whatever a pickle does with it only
             ///< makes values
  kUnknown,  ///< nobody here knows what it does
  kRefused,  ///< it runs code, opens files, imports modules or uses the network, or can lead there
};
std::string_view name_of(Standing standing);

/// Most things that a log holds.
inline constexpr std::size_t kImportsMax = std::size_t{1} << 16U;

/// A name that loading the pickle imports, or something else that only loading it would tell.
struct Import {
  std::string name;          ///< "module.name", as Python 3 knows it
  std::size_t position = 0;  ///< of the opcode in the pickle that needs it first
  Standing standing = Standing::kKnown;
  std::string why;       ///< what is wrong with it; empty for a name that is known
  bool is_name = false;  ///< false for something that only loading it would tell
};

class ImportLog {
 public:
  /// Logs it, unless it has been. Throws LIMIT for more than kImportsMax.
  void add(Import import);
  void add_name(ModuleAndName name, std::size_t position);
  /// Logs what getattr reads of a name. It is never known.
  void add_attribute(ModuleAndName of, std::string_view attribute, std::size_t position);

  std::vector<Import> take() { return std::move(imports_); }

 private:
  std::set<std::pair<std::string, std::string>> seen_;
  std::vector<Import> imports_;
};

/// The names of one pickle, in the order in which they are needed.
struct Imports {
  std::vector<Import> imports;
  std::size_t end = 0;           ///< position after the opcode STOP, if it was reached
  std::optional<Error> failure;  ///< why it can't be followed to its STOP
  bool ran_out = false;          ///< true if that is because `bytes` ends before
  bool called = false;           ///< true if something was called before the failure
};

/// Follows the pickle at the beginning of `bytes`, of any protocol, to its STOP. What was found
/// before a failure is listed, too: loading would import it before it fails.
Imports imports_of(ByteSpan bytes, const PickleSource& where);

}  // namespace reprise::pickle
